"""The published object: everything public about one or more visits to the private data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.arrays import Array, as_matrix
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Guarantee, compose
from cloakgp.release import archive
from cloakgp.release.measurement import Measurement, Published
from cloakgp.release.posterior import Posterior

ReleasePrior = ExactPrior | SparsePrior


@dataclass(frozen=True, eq=False)
class Release:
    """Predictions anywhere, from noisy answers; a public object.

    It holds public inputs, a public prior, the questions asked, the noisy answers and what they
    cost. It holds no output, nor anything computed from outputs without noise. Everything done with
    it is post-processing and costs no more privacy.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
    measurements : tuple of Measurement
    input_names : tuple of str
        Names of the public columns, in order.
    output_name : str
        Name of the private column.

    See Also
    --------
    cloakgp.DPGPRegressor : Makes releases.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> y = np.sin(X).ravel()
    >>> release = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3).fit(X, y).release_
    >>> release.predict([[3.0], [4.0]]).shape
    (2,)
    >>> print(release.guarantee)
    (1, 0.001)-differential privacy (mu = 0.3884)
    """

    prior: ReleasePrior
    measurements: tuple[Measurement, ...]
    input_names: tuple[str, ...] = ()
    output_name: str = "y"

    @property
    def guarantee(self) -> Guarantee:
        """What all measurements together cost anyone whose output was in every one of them."""
        return compose(*(one.answers.guarantee for one in self.measurements))

    @property
    def insecure(self) -> bool:
        """True if any noise came from a fixed seed: the release is then not private."""
        return any(one.answers.insecure for one in self.measurements)

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return int(self.measurements[0].X.shape[1])

    @overload
    def predict(self, X: ArrayLike, *, new_output: bool = ...) -> Array: ...

    @overload
    def predict(
        self, X: ArrayLike, *, return_std: Literal[True], new_output: bool = ...
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self, X: ArrayLike, *, return_cov: Literal[True], new_output: bool = ...
    ) -> tuple[Array, Array]: ...

    def predict(
        self,
        X: ArrayLike,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        new_output: bool = False,
    ) -> Array | tuple[Array, Array]:
        """Predict at any inputs, at no further cost in privacy.

        Parameters
        ----------
        X : array-like of shape (P, D)
        return_std : bool
            Also return the posterior sd, shape (P,), in output units.
        return_cov : bool
            Also return the posterior covariance, shape (P, P), in squared output units.
        new_output : bool
            Uncertainty of a new output at X, rather than of the latent function: adds the
            observation noise.

        Returns
        -------
        mean : array of shape (P,)
            In output units.
        std or cov : array
            If asked for. Both include what is due to the privacy noise.

        Raises
        ------
        ValueError
            If X has another number of columns than the release, or sd and covariance are both
            asked for.
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both")
        points = as_matrix(X, name="X", columns=self.n_inputs)
        posterior = self._posterior
        if return_cov:
            covariance = posterior.covariance(points)
            if new_output:
                covariance[np.diag_indices(len(points))] += self.prior.observation_noise(points)
            return posterior.mean(points), covariance
        if return_std:
            variance = posterior.variance(points)
            if new_output:
                variance = variance + self.prior.observation_noise(points)
            return posterior.mean(points), np.sqrt(variance)
        return posterior.mean(points)

    def published(self, measurement: int = 0) -> Published:
        """Return the raw predictions of one measurement at its queried points.

        These are C y plus noise: unbiased, and what the papers publish. `predict` uses the prior to
        weigh them, which is nearly always closer to the truth.

        Parameters
        ----------
        measurement : int
            Which one, in the order in which they were combined.
        """
        return self.measurements[measurement].published(self.prior.mean)

    def combine(self, *others: Release, same_rows: bool | None = None) -> Release:
        """Return one release that knows what this and others know.

        The guarantee is that of all together, for somebody whose output was in every one of them.

        Parameters
        ----------
        *others : Release
            With the same prior.
        same_rows : bool, optional
            Whether tables with equal inputs are the same rows (asked again: the same outputs, so
            the same observation noise) or other rows at the same places. If not given, equal inputs
            are taken to be the same rows.

        Raises
        ------
        ValueError
            If the priors differ, or ``same_rows=True`` and the inputs do.

        Examples
        --------
        >>> from cloakgp import DPGPRegressor
        >>> X = np.linspace(0, 10, 50)[:, None]
        >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3)
        >>> first, second = (model.fit(X, np.sin(X).ravel()).release_ for _ in range(2))
        >>> round(first.combine(second).guarantee.epsilon, 2)
        1.51
        """
        measurements = list(self.measurements)
        for other in others:
            if archive.prior_to_tree(other.prior) != archive.prior_to_tree(self.prior):
                raise ValueError("releases with different priors cannot be combined: refit one")
            offset = 1 + max(one.table for one in measurements)
            known = {one.table: one.X for one in measurements}
            for one in other.measurements:
                alike = [
                    number
                    for number, X in known.items()
                    if same_rows is not False and np.array_equal(X, one.X)
                ]
                if same_rows and not alike:
                    raise ValueError("same_rows=True, but the releases have different inputs")
                table = alike[0] if alike else offset + one.table
                measurements.append(replace(one, table=table))
        return replace(self, measurements=tuple(measurements))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release to one file, without pickle.

        Parameters
        ----------
        path : str or Path
        overwrite : bool
            Replace a file that exists.

        Raises
        ------
        FileExistsError
            If it exists and overwrite is False.
        ValueError
            If the kernel has parameters that are neither numbers, strings, arrays nor kernels.
        """
        archive.write(
            path,
            prior=self.prior,
            measurements=self.measurements,
            input_names=self.input_names,
            output_name=self.output_name,
            overwrite=overwrite,
        )

    @classmethod
    def load(cls, path: str | Path, *, kernels: Iterable[type[Kernel]] = ()) -> Release:
        """Read a release from a file, checking it.

        Parameters
        ----------
        path : str or Path
        kernels : iterable of kernel classes
            Kernels beyond scikit-learn's that the release may use.

        Raises
        ------
        ReleaseFileError
            If the file is not a release, truncated, edited, or newer than this package.
        """
        contents = archive.read(path, kernels=tuple(kernels))
        return cls(
            prior=contents.prior,
            measurements=contents.measurements,
            input_names=contents.input_names,
            output_name=contents.output_name,
        )

    @cached_property
    def _posterior(self) -> Posterior:
        return Posterior.given(self.prior, self.measurements)

    def __repr__(self) -> str:
        answers = sum(len(one.strategy) for one in self.measurements)
        warning = " INSECURE: seeded noise, not private." if self.insecure else ""
        return f"<Release of {answers} noisy answers, {self.guarantee}.{warning}>"
