"""How much each extra takes on the disk: `python distribution/sizes.py`, where all are installed.

Of the files of this package's requirements and of what these require, in 10⁶ bytes, without what
Python compiles of them.
"""

from __future__ import annotations

import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
EXTRAS = PROJECT["optional-dependencies"]


def required(listed: list[str]) -> dict[str, Requirement]:
    """Return all that some requirements bring, by name and extras."""
    found: dict[str, Requirement] = {}
    left = [Requirement(each) for each in listed]
    while left:
        one = left.pop()
        if one.name == PROJECT["name"]:
            left += [Requirement(each) for extra in one.extras for each in EXTRAS[extra]]
            continue
        key = f"{one.name.lower()} {sorted(one.extras)}"
        if key in found:
            continue
        found[key] = one
        for each in map(Requirement, distribution(one.name).requires or []):
            marked = [{"extra": extra} for extra in ("", *one.extras)]
            if each.marker is None or any(map(each.marker.evaluate, marked)):
                left.append(each)
    return found


def installed_bytes(listed: list[str]) -> int:
    """Return the bytes of the files of requirements, of each distribution once."""
    names = {distribution(each.name).metadata["Name"].lower() for each in required(listed).values()}
    paths = [Path(str(file.locate())) for name in names for file in distribution(name).files or []]
    return sum(
        path.stat().st_size for path in paths if "__pycache__" not in path.parts and path.is_file()
    )


def main() -> None:
    """Print a line for each extra of `all`, after that of the package alone."""
    [everything] = EXTRAS["all"]
    users = ["", *sorted(Requirement(everything).extras), "all"]
    for extra in users:
        size = installed_bytes([*PROJECT["dependencies"], *EXTRAS.get(extra, [])])
        print(f"{extra or '.':<10} {size / 1e6:6.0f} MB")


if __name__ == "__main__":
    main()
