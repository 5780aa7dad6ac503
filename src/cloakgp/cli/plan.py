"""What `cloakgp release` was told, whichever kind of column is private."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cloakgp.cli import options
from cloakgp.criteria import Criterion, Use, criterion_named

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray
    from sklearn.gaussian_process.kernels import Kernel

    from cloakgp.utils.arrays import Array

LEARNING: dict[str, Literal["map", "average"] | None] = {
    "map": "map",
    "average": "average",
    "none": None,
}
# scikit-learn's own bounds of a hyperparameter that may be learned.
FREE = (1e-5, 1e5)


@dataclass(frozen=True)
class NumberOptions:
    """Options that go with --bounds only."""

    bounds: tuple[float, float]
    noise_variance: float | None
    mean: float | None


@dataclass(frozen=True)
class ClassOptions:
    """Options that go with --classes only; empty text and None for what was not given."""

    classes: str
    class_rates: str
    link: str
    step_criterion: str
    steps: int | None


@dataclass(frozen=True)
class Plan:
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
        options.one_of(tuple(LEARNING), self.learn, option="--learn")
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
        if constant and not self.lengthscale:
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
        scales = options.positive_numbers(self.lengthscale, option="--lengthscale")
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
