"""What `cloakgp release` was told, whichever kind of column is private."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from cloakgp.arrays import Array
from cloakgp.choices import choose_query
from cloakgp.cli import options
from cloakgp.cli.console import warn
from cloakgp.release import Query
from cloakgp.tables import read_inputs

# Beyond, matrices of rows by rows grow too large for a usual machine.
MOST_EXACT_ROWS = 15_000
LEARNING = ("map", "average", "none")
# scikit-learn's own bounds of a hyperparameter that may be learned.
FREE = (1e-5, 1e5)


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
    mechanism, learn, lengthscale : str
    signal_variance : float or None
    gap : float
    """

    table: Path
    inputs: list[str]
    output: str
    epsilon: float
    delta: float
    queries: Path | None
    inducing: int | None
    mechanism: str
    learn: str
    lengthscale: str
    signal_variance: float | None
    gap: float

    def check(self) -> None:
        """Raise ValueError for what makes no sense, before any table is read."""
        if self.learn not in LEARNING:
            raise ValueError(f"--learn must be one of {', '.join(LEARNING)}, got {self.learn!r}")
        if not self.gap > 0:
            raise ValueError(f"--gap must be positive, got {self.gap}")

    def check_rows(self, X: Array) -> None:
        """Warn of tables that are large, and refuse inputs that never vary."""
        if self.inducing is None and len(X) > MOST_EXACT_ROWS:
            warn(
                f"an exact Gaussian process of {len(X):,} rows takes some "
                f"{24e-9 * len(X) ** 2:.0f} GB and long: a sparse one is quicker and often as "
                "good, --inducing 200"
            )
        extents = zip(self.inputs, np.ptp(X, axis=0), strict=True)
        constant = [name for name, extent in extents if extent == 0]
        if constant and not self.lengthscale:
            raise ValueError(
                f"input {', '.join(constant)} is the same in every row: leave it out of --inputs, "
                "or give a --lengthscale"
            )

    def query(self, X: Array) -> Query:
        """Return where predictions matter: the table of queries, or the rows."""
        return self.given_query() or choose_query(X)

    def given_query(self) -> Query | None:
        """Return the table of queries, or None if there is none."""
        if self.queries is None:
            return None
        return Query(X=read_inputs(self.queries, names=self.inputs), weights=None)

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
