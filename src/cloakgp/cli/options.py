"""Options of the commands: how their values are written, and those of `cloakgp release` together.

Help and mistakes in options import nothing that takes long: what needs numbers or tables is
imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from cloakgp.criteria import Criterion, Use, criterion_named

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray
    from sklearn.gaussian_process.kernels import Kernel

    from cloakgp.release import Release
    from cloakgp.utils.arrays import Array

Name = TypeVar("Name", bound=str)

ReleaseFile = Annotated[Path, typer.Argument(help="A release.", metavar="RELEASE")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")]

LEARNING: dict[str, Literal["map", "average"] | None] = {
    "map": "map",
    "average": "average",
    "none": None,
}
# scikit-learn's own bounds of a hyperparameter that may be learned.
FREE = (1e-5, 1e5)


def open_release(path: Path) -> Release:
    """Return the release in a file, of one number or of a class.

    Parameters
    ----------
    path : Path

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is no release file, or one of another kind.
    """
    from cloakgp.release import Release, ReleaseFileError
    from cloakgp.release.open import load

    release = load(path)
    if not isinstance(release, Release):
        raise ReleaseFileError(
            f"{path} holds a {type(release).__name__}: the command line shows it, and predicts "
            "from releases of one number or of a class alone"
        )
    return release


def names(listed: str, *, example: str = "age,weight") -> list[str]:
    """Return the names in a list with commas.

    Parameters
    ----------
    listed : str
    example : str
        Of such a list, for advice.

    Examples
    --------
    >>> names("age, weight")
    ['age', 'weight']
    """
    parts = [name.strip() for name in listed.split(",")]
    if not all(parts):
        raise ValueError(f"{listed!r} is no list of names: write them with commas, as {example}")
    return parts


def one_of(choices: Sequence[Name], given: str, *, option: str, company: str = "") -> Name:
    """Return the choice that was given by name.

    Parameters
    ----------
    choices : sequence of str
    given : str
    option : str
        That it was given for.
    company : str
        What these choices go with, for advice.

    Examples
    --------
    >>> one_of(("map", "none"), "none", option="--learn")
    'none'
    """
    for choice in choices:
        if given == choice:
            return choice
    raise ValueError(f"{option} must be one of {', '.join(choices)}{company}, got {given!r}")


def positive_numbers(listed: str, *, option: str) -> list[float]:
    """Return the positive numbers in a list with commas.

    Examples
    --------
    >>> positive_numbers("15,20", option="--lengthscale")
    [15.0, 20.0]
    """
    try:
        numbers = [float(number) for number in listed.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(0 < number < float("inf") for number in numbers):
        raise ValueError(f"{option} takes positive numbers with commas, such as 15 or 15,20")
    return numbers


@dataclass(frozen=True)
class NumberOptions:
    """Options that go with --bounds only."""

    bounds: tuple[float, float]
    noise_variance: float | None
    mean: float | None
    stages: str


@dataclass(frozen=True)
class ClassOptions:
    """Options that go with --classes only; empty text and None for what was not given."""

    classes: str
    class_rates: str
    link: str
    step_criterion: str
    steps: int | None


@dataclass(frozen=True)
class ReleaseOptions:
    """Options that values and classes share; all of them are public.

    Attributes
    ----------
    table : Path
    inputs : list of str
        Names of the public columns.
    output : str
        Name of the private column.
    epsilon, delta : float
    queries : Path or None
    inducing : int or None
    criterion, learn, lengthscale : str
    signal_variance : float or None
    gap : float
    memory : float or None
        In gigabytes.
    """

    table: Path
    inputs: list[str]
    output: str
    epsilon: float
    delta: float
    queries: Path | None
    inducing: int | None
    criterion: str
    learn: str
    lengthscale: str
    signal_variance: float | None
    gap: float
    memory: float | None

    def check(self) -> None:
        """Raise ValueError for what makes no sense, before any table is read."""
        one_of(tuple(LEARNING), self.learn, option="--learn")
        if not self.gap > 0:
            raise ValueError(f"--gap must be positive, got {self.gap}")
        if self.memory is not None and not self.memory > 0:
            raise ValueError(f"--memory must be positive, got {self.memory}")

    @property
    def learning(self) -> Literal["map", "average"] | None:
        """What estimators call `learn`."""
        return LEARNING[self.learn]

    def criterion_for(self, use: Use) -> Criterion:
        """Return what the questions are to be chosen for, or raise ValueError."""
        return criterion_named(self.criterion, use=use, parameter="--criterion")

    def check_ranges(self, X: Array) -> None:
        """Refuse inputs that never vary, in the words of options.

        Parameters
        ----------
        X : array of shape (n, D)
            Inputs that span the table's.
        """
        import numpy as np

        extents = zip(self.inputs, np.ptp(X, axis=0), strict=True)
        constant = [name for name, extent in extents if extent == 0]
        if constant:
            raise ValueError(
                f"input {', '.join(constant)} is the same in every row: leave it out of --inputs, "
                "or give a --lengthscale"
            )

    def query_table(self) -> pd.DataFrame | None:
        """Return the table of query points, or None if there is none."""
        if self.queries is None:
            return None
        import pandas as pd

        from cloakgp.data.tables import read_inputs

        return pd.DataFrame(read_inputs(self.queries, names=self.inputs), columns=self.inputs)

    def kernel(
        self, X: Array, *, variance: float, default: Callable[[Array], Kernel]
    ) -> Kernel | None:
        """Return the kernel that the options describe, or None if none do; what is given is fixed.

        Parameters
        ----------
        X : array of shape (N, D)
        variance : float
            Of the function, unless an option gives it.
        default : callable
            Returns the kernel for public inputs, a constant times a shape, if no option is given.
        """
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        given = self.signal_variance
        if not self.lengthscale and given is None:
            return None
        if given is not None and not 0 < given < float("inf"):
            raise ValueError(f"--signal-variance must be positive and finite, got {given}")
        if not self.lengthscale:
            return ConstantKernel(given, "fixed") * default(X).k2
        scales = positive_numbers(self.lengthscale, option="--lengthscale")
        if len(scales) not in (1, X.shape[1]):
            raise ValueError(
                f"--lengthscale has {len(scales)} numbers and --inputs {X.shape[1]} names: give "
                "one lengthscale for all, or one for each"
            )
        factor = ConstantKernel(variance, FREE) if given is None else ConstantKernel(given, "fixed")
        return factor * RBF(scales if len(scales) > 1 else scales[0], "fixed")


def as_table(
    X: Array, y: NDArray[Any], *, inputs: list[str], output: str
) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return columns with their names: estimators keep these in what they release.

    Parameters
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
        Private.
    inputs, output
        The names.
    """
    import pandas as pd

    return pd.DataFrame(X, columns=inputs), pd.Series(y, name=output, dtype=y.dtype)
