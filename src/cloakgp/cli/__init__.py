"""The command line: release, predict, show, plot, demo."""

from cloakgp.utils.extras import extra

with extra("cli"):
    from cloakgp.cli.app import app, main

__all__ = ["app", "main"]
