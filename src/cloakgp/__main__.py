"""The command `cloakgp`, also as `python -m cloakgp`."""

from __future__ import annotations

import sys

from cloakgp.utils.extras import MissingExtraError


def main() -> None:
    """Run the command line, or explain the installation of missing packages."""
    try:
        from cloakgp import cli
    except MissingExtraError as error:
        sys.exit(f"Error: {error}")
    cli.main()


if __name__ == "__main__":
    main()
