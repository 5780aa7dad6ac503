"""The published object: everything public about one or more measurements of private outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from sklearn.gaussian_process.kernels import Kernel

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Guarantee, compose
from cloakgp.privacy.accounting import short_form
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.release.choice import Choice, same_choice
from cloakgp.release.functional import ReleasedFunction
from cloakgp.release.hyperparameters.regression import Hyperprior, WeightedPrior, learn
from cloakgp.release.io import archive
from cloakgp.release.measurement import Measurement, Published, stacked
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.posterior.mixture import Mixture, mixture_given
from cloakgp.release.predicting import LatentRelease
from cloakgp.utils.arrays import Array
from cloakgp.utils.files import write_file

ReleasePrior = ExactPrior | SparsePrior


@dataclass(frozen=True, eq=False)
class Release(LatentRelease):
    """Predictions anywhere, from noisy answers; a public object.

    It holds public inputs, a public prior, the questions asked, the noisy answers and what they
    cost. It holds no output, nor anything computed from outputs without noise. Everything done with
    it is post-processing and costs no more privacy.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
        As declared, before any answer was seen.
    measurements : tuple of Measurement
    learned : tuple of WeightedPrior
        What the answers say about the hyperparameters; empty if nothing was learned.
    hyperprior : Hyperprior or None
        What is learned again whenever answers are added.
    average : bool
        Whether learning averages over the posterior of the hyperparameters.
    choice : Choice or None
        What choosing the prior from the private data cost, if it was so chosen.
    input_names : tuple of str
        Names of the public columns, in order.
    output_name : str
        Name of the private column.

    See Also
    --------
    cloakgp.DPGPRegressor : Makes releases.

    Examples
    --------
    >>> import numpy as np
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
    learned: tuple[WeightedPrior, ...] = ()
    hyperprior: Hyperprior | None = None
    average: bool = False
    choice: Choice | None = None
    input_names: tuple[str, ...] = ()
    output_name: str = "y"

    @property
    def guarantee(self) -> Guarantee | MixedGuarantee:
        """What it all cost anyone whose output was in every measurement, and in the choice."""
        parts = [one.answers.guarantee for one in self.measurements]
        return compose(*parts) if self.choice is None else self.choice.total(parts)

    @property
    def insecure(self) -> bool:
        """True if any noise came from a fixed seed: the release is then not private."""
        return any(one.answers.insecure for one in self.measurements)

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return int(self.measurements[0].X.shape[1])

    def _predicted(
        self, points: Array, *, return_std: bool, return_cov: bool, new_output: bool
    ) -> Array | tuple[Array, Array]:
        return self._mixture.predict(
            points, return_std=return_std, return_cov=return_cov, new_output=new_output
        )

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

    def function(self, measurement: int = 0) -> ReleasedFunction:
        """Return the raw predictions of one measurement, of criterion "functional", at any inputs.

        The posterior mean plus noise: unbiased, and the same function whenever it is evaluated.
        """
        one = self.measurements[measurement]
        return ReleasedFunction.answered(
            self.prior,
            one.X,
            strategy=one.strategy,
            representers=one.representers,
            answers=one.answers,
            input_names=self.input_names,
        )

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
            If the priors differ, ``same_rows=True`` and the inputs do, or ``same_rows=False`` and
            parts are copies of one visit.

        Examples
        --------
        >>> import numpy as np
        >>> from cloakgp import DPGPRegressor
        >>> X = np.linspace(0, 10, 50)[:, None]
        >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3)
        >>> first, second = (model.fit(X, np.sin(X).ravel()).release_ for _ in range(2))
        >>> round(first.combine(second).guarantee.epsilon, 2)
        1.51
        """
        for other in others:
            if archive.prior_to_tree(other.prior) != archive.prior_to_tree(self.prior):
                raise ValueError("releases with different priors cannot be combined: refit one")
            if other.choice is not None and not same_choice(
                (self.choice, self.measurements), (other.choice, other.measurements)
            ):
                raise ValueError(
                    "the other release's prior was chosen from private data: combine the other "
                    "way round, or choose once and refine"
                )
            if other.n_inputs != self.n_inputs:
                raise ValueError("releases with different numbers of inputs cannot be combined")
            if (other.input_names, other.output_name) != (self.input_names, self.output_name):
                raise ValueError("releases about different columns cannot be combined")
        parts = (self.measurements, *(other.measurements for other in others))
        return self.with_measurements(stacked(parts, same_rows=same_rows))

    def learn(self, hyperprior: Hyperprior | None = None, *, average: bool = False) -> Release:
        """Return the same answers with hyperparameters fitted to them, at no cost in privacy.

        Maximises the marginal likelihood of the published answers together with weak priors around
        the declared hyperparameters; see `cloakgp.release.hyperparameters.regression`.

        Parameters
        ----------
        hyperprior : Hyperprior, optional
            What is free besides the kernel's own hyperparameters; noise variance and mean if not
            given.
        average : bool
            Average predictions over the posterior of the hyperparameters.

        Examples
        --------
        >>> import numpy as np
        >>> from cloakgp import DPGPRegressor
        >>> X = np.linspace(0, 10, 50)[:, None]
        >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3, learn=None)
        >>> release = model.fit(X, np.sin(X).ravel()).release_
        >>> release.learn().guarantee == release.guarantee
        True
        """
        chosen = Hyperprior() if hyperprior is None else hyperprior
        return replace(self, hyperprior=chosen, average=average).with_measurements(
            self.measurements
        )

    def with_measurements(self, measurements: Sequence[Measurement]) -> Release:
        """Return a release of other answers, and learn from them what this one learned.

        Parameters
        ----------
        measurements : sequence of Measurement
            With all that this release has, for what comes after it.
        """
        learned: tuple[WeightedPrior, ...] = ()
        if self.hyperprior is not None:
            learned = learn(
                self.prior, measurements, hyperprior=self.hyperprior, average=self.average
            )
        return replace(self, measurements=tuple(measurements), learned=learned)

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
        write_file(path, self.to_bytes(), overwrite=overwrite)

    def to_bytes(self) -> bytes:
        """Return the file that `save` would write."""
        return archive.to_bytes(
            archive.Contents(
                prior=self.prior,
                measurements=self.measurements,
                learned=self.learned,
                hyperprior=self.hyperprior,
                average=self.average,
                choice=self.choice,
                input_names=self.input_names,
                output_name=self.output_name,
            )
        )

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        kernels: Iterable[type[Kernel]] = (),
        max_bytes: int | None = None,
    ) -> Release:
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
        contents = archive.read(path, kernels=tuple(kernels), max_bytes=max_bytes)
        return cls(
            prior=contents.prior,
            measurements=contents.measurements,
            learned=contents.learned,
            hyperprior=contents.hyperprior,
            average=contents.average,
            choice=contents.choice,
            input_names=contents.input_names,
            output_name=contents.output_name,
        )

    @property
    def posterior(self) -> Posterior:
        """The Gaussian process given the answers, under the hyperparameters of most weight."""
        return self._mixture.main

    @property
    def fitted_prior(self) -> ReleasePrior:
        """The prior that predictions use most: the learned one, or the declared one."""
        return self.posterior.prior

    @cached_property
    def _mixture(self) -> Mixture[Posterior]:
        priors = self.learned or (WeightedPrior(prior=self.prior, weight=1.0),)
        return mixture_given(priors, self.measurements)

    def __repr__(self) -> str:
        answers = sum(len(one.strategy) for one in self.measurements)
        return short_form(
            f"Release of {answers} noisy answers, {self.guarantee}", insecure=self.insecure
        )
