"""The other packages' virtual environments: each has its own, with pinned versions."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "environments"
RUNNERS = HERE / "runners"
DEFAULT_CACHE = Path("~/.cache/cloakgp-benchmarks")
OURSELVES = "cloakgp"
# dp4gp asks for "sklearn", a name that the index refuses unless told that it is meant.
INSTALL_VARIABLES = {"SKLEARN_ALLOW_DEPRECATED_SKLEARN_PACKAGE_INSTALL": "True"}


def names() -> list[str]:
    """Return the packages that have a requirements file.

    Examples
    --------
    >>> "dp4gp" in names()
    True
    """
    return sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))


def interpreter(peer: str, *, cache: Path) -> Path | None:
    """Return the Python that has a package, or None if it is not installed.

    Parameters
    ----------
    peer : str
        One of `names()`, or ``cloakgp`` for the Python that runs this.
    cache : Path
    """
    if peer == OURSELVES:
        return Path(sys.executable)
    found = cache.expanduser() / peer / "bin" / "python"
    return found if (cache.expanduser() / peer / ".installed").exists() else None


def create(peer: str, *, cache: Path) -> None:
    """Create a package's environment, or bring it up to its requirements file.

    Parameters
    ----------
    peer : str
    cache : Path

    Raises
    ------
    subprocess.CalledProcessError
        If it cannot be installed.
    """
    folder = cache.expanduser() / peer
    (folder / ".installed").unlink(missing_ok=True)
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    requirements = REQUIREMENTS / f"{peer}.txt"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--requirement", requirements],
        check=True,
        env=os.environ | INSTALL_VARIABLES,
    )
    (folder / ".installed").touch()
