"""Command line: the application and its entry, where the packages that it needs are installed."""

from cloakgp.utils.extras import extra

with extra("cli"):
    from cloakgp.cli.app import app, main

__all__ = ["app", "main"]
