"""The published object of a table too large to be kept: small, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.design import Certificate
from cloakgp.design.streaming.rules import Rule
from cloakgp.design.streaming.sums import AskedSums, asked_sums
from cloakgp.models import SparsePrior
from cloakgp.privacy import Answers, Guarantee
from cloakgp.privacy.accounting import short_form
from cloakgp.release.hyperparameters.regression import WeightedPrior
from cloakgp.release.io import many_rows_archive
from cloakgp.release.measurement import Published, no_raw_predictions
from cloakgp.release.posterior.mixture import Mixture
from cloakgp.release.posterior.streamed import AskedPosterior
from cloakgp.release.predicting import LatentRelease
from cloakgp.utils.arrays import Array
from cloakgp.utils.files import write_file
from cloakgp.utils.passes import Passes

# What recomputed columns may be longer by: float64 in another order of summation.
LENGTH_TOLERANCE = 1e-9
# What sums of recomputed columns may be off by, as a share of all their lengths.
SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class ManyRowsRelease(LatentRelease):
    """Predictions anywhere, from noisy answers about any number of rows; a public object.

    A `Release` keeps what was asked of every row. This one keeps the rule by which every row's
    column follows from its public inputs, and the sums over rows that predictions need. It holds
    no row, no output, nor anything computed from outputs without noise.

    Attributes
    ----------
    prior : SparsePrior
        As declared, before any answer was seen.
    rule : Rule
        What was asked of a row, given its features under ``prior``.
    sums : tuple of AskedSums
        What was asked of all rows, under each of the ``learned`` priors, or the declared one.
    learned : tuple of WeightedPrior
        What the answers say about the hyperparameters; empty if nothing was learned.
    answers : Answers
    certificate : Certificate
    X_query : array of shape (P, D)
        Where predictions mattered.
    query_weights : array of shape (P,)
    reconstruction : array of shape (P, k) or None
        L, with L R the cloaking matrix at X_query; None for criterion "bayes".
    ranges : array of shape (2, D)
        The least and the greatest of every input.
    input_names : tuple of str
    output_name : str

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> from cloakgp.data import ArrayRows
    >>> X = np.linspace(0, 10, 5000)[:, None]
    >>> rows = ArrayRows(X, np.sin(X).ravel(), chunk_rows=1000)
    >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-5, inducing=20)
    >>> release = model.fit_rows(rows).release_
    >>> release.predict([[3.0], [4.0]]).shape
    (2,)
    """

    prior: SparsePrior
    rule: Rule
    sums: tuple[AskedSums, ...]
    learned: tuple[WeightedPrior, ...]
    answers: Answers
    certificate: Certificate
    X_query: Array
    query_weights: Array
    reconstruction: Array | None
    ranges: Array
    input_names: tuple[str, ...] = ()
    output_name: str = "y"

    @property
    def guarantee(self) -> Guarantee:
        """What it cost anyone whose output is in the table."""
        return self.answers.guarantee

    @property
    def insecure(self) -> bool:
        """True if the noise came from a fixed seed: the release is then not private."""
        return self.answers.insecure

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return int(self.ranges.shape[1])

    @property
    def count(self) -> int:
        """N, how many rows were asked."""
        return self.sums[0].count

    def _predicted(
        self, points: Array, *, return_std: bool, return_cov: bool, new_output: bool
    ) -> Array | tuple[Array, Array]:
        return self._mixture.predict(
            points, return_std=return_std, return_cov=return_cov, new_output=new_output
        )

    def published(self) -> Published:
        """Return the raw predictions at the queried points: unbiased, nothing shrunk.

        Raises
        ------
        ValueError
            If the answers do not determine them.
        """
        if self.reconstruction is None:
            raise ValueError(no_raw_predictions(self.certificate))
        residuals = self.answers.values + (self.answers.centre - self.prior.mean) * (
            self.sums[0].totals
        )
        # As a file would give it back: the same doubles before and after.
        reconstruction = np.ascontiguousarray(self.reconstruction)
        root = self.answers.noise_sd * reconstruction
        return Published(
            X=self.X_query,
            values=self.prior.mean + reconstruction @ residuals,
            noise_cov=root @ root.T,
            insecure=self.insecure,
        )

    def verify(self, passes: Passes) -> AskedSums:
        """Compute what was asked of every row anew, from the public inputs, and check it.

        Anybody who has the inputs can do so; it takes one pass and no output.

        Parameters
        ----------
        passes : Passes
            The same rows; `cloakgp.data` makes such objects.

        Returns
        -------
        AskedSums
            Over every row.

        Raises
        ------
        ValueError
            If there are other rows, or the column of any row is longer than the guarantee allows.
        """
        found = asked_sums(passes, model=self.prior, rule=self.rule, what="verifying")
        if found.count != self.count:
            raise ValueError(f"the release is about {self.count} rows, not {found.count}")
        if not found.longest <= self.longest * (1 + LENGTH_TOLERANCE):
            raise ValueError(
                f"the longest column is {found.longest:.12g}, and the guarantee allows "
                f"{self.longest:.12g}"
            )
        differences = np.abs(found.totals - self.sums[0].totals)
        # Written so that NaN fails.
        if not (differences <= SUM_TOLERANCE * self.count * self.longest).all():
            raise ValueError("the release is about other rows: these add up to something else")
        return found

    @property
    def longest(self) -> float:
        """The length of the longest column, over every row."""
        return self.sums[0].longest

    @property
    def posterior(self) -> AskedPosterior:
        """The Gaussian process given the answers, under the hyperparameters of most weight."""
        return self._mixture.main

    @property
    def fitted_prior(self) -> SparsePrior:
        """The prior that predictions use most: the learned one, or the declared one."""
        return self.posterior.prior

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release to one file, without pickle.

        Raises
        ------
        FileExistsError
            If it exists and overwrite is False.
        """
        write_file(path, self.to_bytes(), overwrite=overwrite)

    def to_bytes(self) -> bytes:
        """Return the file that `save` would write."""
        return many_rows_archive.to_bytes(self)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        kernels: Iterable[type[Kernel]] = (),
        max_bytes: int | None = None,
    ) -> ManyRowsRelease:
        """Read a release from a file, checking it.

        Parameters
        ----------
        path : str or Path
        kernels : iterable of kernel classes
            Kernels beyond scikit-learn's that the release may use.
        max_bytes : int, optional
            The most that the file may unpack to. If not given, a hundred times its size, but at
            least 256 MiB and at most 8 GiB.

        Raises
        ------
        ReleaseFileError
            If the file is not a release, truncated, edited, or newer than this package.
        """
        return many_rows_archive.read(path, make=cls, kernels=tuple(kernels), max_bytes=max_bytes)

    @cached_property
    def _mixture(self) -> Mixture[AskedPosterior]:
        priors = self.learned or (WeightedPrior(prior=self.prior, weight=1.0),)
        posteriors = tuple(
            AskedPosterior.given(one.prior, sums, self.answers)
            for one, sums in zip(priors, self.sums, strict=True)
            if isinstance(one.prior, SparsePrior)
        )
        return Mixture(posteriors=posteriors, weights=np.array([one.weight for one in priors]))

    def __repr__(self) -> str:
        return short_form(
            f"ManyRowsRelease of {self.rule.answers} noisy answers about {self.count:,} rows, "
            f"{self.guarantee}",
            insecure=self.insecure,
        )
