"""What jobs found, kept in one small file with the commit that computed it.

The file and the pictures beside it are part of the repository: pages are made of them without
computing anything.
"""

from __future__ import annotations

import datetime as dt
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.utils.arrays import Array
from experiments.keeping import JsonFile, Keeping
from experiments.reproduction.items import Computed
from experiments.spread import standard_error

FOLDER = Path(__file__).parent / "kept"
DIGITS = 6
# What figures can depend on.
PACKAGES = ("cloakgp", "numpy", "scipy", "scikit-learn", "opendp", "matplotlib")


@dataclass(frozen=True)
class Quantity:
    """A figure with what it is worth.

    Attributes
    ----------
    mean : float
    error : float or None
        Standard error over draws; None where nothing is drawn, or too little.
    draws : int
        0 where nothing is drawn, so that it is the same every time, up to rounding.
    spread : float or None
        Standard deviation over folds, or over releases, as the job says.
    """

    mean: float
    error: float | None = None
    draws: int = 0
    spread: float | None = None

    @classmethod
    def of(cls, draws: Array, *, spread: float | None = None) -> Quantity:
        """Average over draws.

        Parameters
        ----------
        draws : array of shape (draws,)
        spread : float, optional

        Examples
        --------
        >>> Quantity.of(np.array([1.0, 3.0]))
        Quantity(mean=2.0, error=None, draws=2, spread=None)
        """
        return cls(
            mean=float(np.mean(draws)),
            error=standard_error(np.asarray(draws, dtype=np.float64)),
            draws=len(draws),
            spread=spread,
        )

    def packed(self) -> list[float | int | None]:
        """Return it as a short list, rounded to what is worth keeping."""
        numbers = (self.mean, self.error, self.spread)
        mean, error, spread = (
            None if number is None else float(f"{number:.{DIGITS}g}") for number in numbers
        )
        return [mean, error, self.draws, spread]

    @classmethod
    def unpacked(cls, packed: list[Any]) -> Quantity:
        """Return what was packed."""
        mean, error, draws, spread = packed
        return cls(mean=mean, error=error, draws=draws, spread=spread)


@dataclass(frozen=True)
class Kept:
    """What a job found, and how.

    Attributes
    ----------
    quantities : mapping of str to Quantity
    pictures : tuple of str
        Names of files in the folder of pictures.
    settings : str
        In words.
    draws : int
    seconds : float
        Of one core.
    commit, date, versions : str
        Of the sources, with a plus where these were changed; of the day; of what it ran with.
    """

    quantities: Mapping[str, Quantity]
    pictures: tuple[str, ...]
    settings: str
    draws: int
    seconds: float
    commit: str = ""
    date: str = ""
    versions: str = ""


@dataclass(frozen=True)
class Results(Keeping[str, Kept]):
    """What is kept in a folder: ``results.json``, and pictures.

    Attributes
    ----------
    folder : Path
    """

    folder: Path = FOLDER
    _file: JsonFile = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_file", JsonFile(self.folder / "results.json"))

    def find(self, key: str) -> Kept | None:
        """Return what a job found, or None."""
        raw = self._file.find(key)
        if raw is None:
            return None
        quantities = {name: Quantity.unpacked(packed) for name, packed in raw["quantities"].items()}
        return Kept(**raw | {"quantities": quantities, "pictures": tuple(raw["pictures"])})

    def put(self, key: str, value: Kept) -> None:
        """Keep what a job found, and write the file."""
        packed = {name: one.packed() for name, one in value.quantities.items()}
        raw = vars(value) | {"quantities": packed, "pictures": list(value.pictures)}
        self._file.put(key, raw)

    @property
    def names(self) -> tuple[str, ...]:
        """The jobs that are kept."""
        return tuple(self._file.known)

    def quantity(self, wanted: Computed) -> Quantity | None:
        """Return what a cell names, or None where it is not computed yet."""
        kept = self.find(wanted.job)
        return None if kept is None else kept.quantities.get(wanted.quantity)

    def picture(self, name: str) -> Path:
        """Return where a picture lies, whether or not it is there."""
        return self.folder / "pictures" / name


def versions() -> str:
    """Return what computes, in words.

    Examples
    --------
    >>> versions().startswith("Python 3")
    True
    """
    named = (f"{name} {metadata.version(name)}" for name in PACKAGES)
    return ", ".join((f"Python {platform.python_version()}", *named))


def today() -> str:
    """Return the day, in UTC."""
    return dt.datetime.now(dt.UTC).date().isoformat()
