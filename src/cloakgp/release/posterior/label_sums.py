r"""The latent functions behind labels of rows that are not kept.

As in `cloakgp.release.posterior.classification`, labels are linearised at marginals μ, v of their
latent values: v_j ≈ h_j + A_j (f_j − μ_j) + e_j. For a sparse prior of features V, with f = m + Vᵀu
and what V leaves of each row to itself, answers R v + z are then

    offset + F u + noise of covariance B + I,    F = R A Vᵀ,
    offset = R (h − A (μ − m)),    B = R Λ Rᵀ,    λ = A² (var f_j − v_jᵀv_j) + var e_j,

and what is known of u follows as in `cloakgp.release.tables`. These sums are over all
rows, and every step of the search for the marginals needs them anew. Where rows are gathered in
cells (`cloakgp.design.streaming.condensing`) the sums of cells, corrected by a sample of the rows,
are near them, and cost little; but not near enough, for the answers about many rows are very exact.
So they are trusted with differences only. A pass over all rows finds the sums at marginals that
cells and sample found; from there, these say how the sums change as the marginals do, which they
hardly do any more. Twice, as a rule, and the sums are what a search over all rows would find.

Everything here works on public inputs and published answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from cloakgp.design.streaming.condensing import CellQuestions
from cloakgp.design.streaming.grouping import GroupedPasses, columns_at
from cloakgp.design.streaming.row_model import RowModel
from cloakgp.design.streaming.rules import Rule
from cloakgp.models import SparsePrior
from cloakgp.models.likelihoods import Likelihood
from cloakgp.privacy.answers import Answers
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release.posterior.classification import iterate_linearisation
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.posterior.mixture import WeightedPrior
from cloakgp.release.tables import SummedTable
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, Passes
from cloakgp.utils.threads import suitable_threads

# Passes over all rows stop when latent values move by less than this share of their sds: what they
# would move in another pass is some tenth of it, or less.
SETTLED = 0.1
MOST_PASSES = 5
# Steps with a sample begin near their end, and cost more than accelerated ones do to prepare.
PLAIN_STEPS = 5


def sparse_channels(prior: WeightedPrior) -> tuple[SparsePrior, ...]:
    """Return the prior of every channel's latent function, with its mean.

    Parameters
    ----------
    prior : WeightedPrior

    Raises
    ------
    TypeError
        If its latent prior is no sparse one.
    """
    latent = prior.prior
    if not isinstance(latent, SparsePrior):
        raise TypeError("rows that are not kept need a latent prior with inducing inputs")
    return tuple(replace(latent, mean=mean) for mean in prior.likelihood.means(latent))


@dataclass(frozen=True, eq=False)
class LabelSums:
    """Sums over all rows of the questions about a latent function, with linearised labels.

    In units of the answers' noise: questions are divided by its sd.

    Attributes
    ----------
    features : array of shape (k, M)
        F = R A Vᵀ.
    noise : array of shape (k, k)
        B = R Λ Rᵀ.
    offset : array of shape (k,)
        R (h − A (μ − m)).
    """

    features: Array
    noise: Array
    offset: Array

    def plus(self, other: LabelSums) -> LabelSums:
        """Return the sums of both."""
        return LabelSums(
            features=self.features + other.features,
            noise=self.noise + other.noise,
            offset=self.offset + other.offset,
        )

    def posterior(self, prior: SparsePrior, values: Array) -> Posterior:
        """Return the latent function given answers.

        Parameters
        ----------
        prior : SparsePrior
            With the latent function's mean.
        values : array of shape (k,)
            R v and noise of unit variance.
        """
        table = SummedTable(number=0, features=self.features, noise=self.noise)
        return Posterior.given(prior, (table,) if len(values) else (), values - self.offset)


@dataclass(frozen=True, eq=False)
class CellSigns:
    """Noisy answers about signs ±1 of rows that are not kept, in units of their noise.

    Attributes
    ----------
    cells : CellQuestions
        Divided by the noise sd.
    values : array of shape (channels, k)
        R v of every channel, and noise of unit variance.
    noise_sd : float
        Of the signed answers, by which both were divided; 0 if nothing was asked.
    """

    cells: CellQuestions
    values: Array
    noise_sd: float

    @classmethod
    def of(cls, cells: CellQuestions, answers: Answers, *, classes: Classes) -> CellSigns:
        """Return answers about signs; none, if nothing was asked.

        Parameters
        ----------
        cells : CellQuestions
            Of the questions that were answered.
        answers : Answers
        classes : Classes
            That they are about.
        """
        if answers.noise_sd == 0:
            nothing = replace(cells, questions=cells.questions[:0], gram=cells.gram[:0, :0])
            values = np.zeros((classes.channels, 0))
            return cls(cells=nothing, values=values, noise_sd=0.0)
        signed = classes.about_outputs(answers.values, cells.totals)
        noise_sd = classes.output_noise_sd(answers.noise_sd)
        return cls(
            cells=cells.scaled(1.0 / noise_sd),
            values=signed.T / noise_sd,
            noise_sd=noise_sd,
        )


@dataclass(frozen=True, eq=False)
class _State:
    """One linearisation, its posterior, and the cells' marginals after it."""

    sums: LabelSums
    posterior: Posterior
    mean: Array
    variance: Array


@dataclass(frozen=True, eq=False)
class _Weights:
    """Weights of every row's column in each of the sums, at some marginals."""

    slope: Array
    own: Array
    offset: Array

    @classmethod
    def at(
        cls,
        mean: Array,
        variance: Array,
        *,
        noise: Array,
        prior_mean: float,
        likelihood: Likelihood,
    ) -> _Weights:
        """Linearise rows, or the rows of cells, that have noise variances of shape (n,)."""
        account = likelihood.linearise(mean, variance)
        return cls(
            slope=account.slope,
            own=account.slope**2 * noise + account.residual,
            offset=account.expected - account.slope * (mean - prior_mean),
        )

    def minus(self, other: _Weights) -> _Weights:
        return _Weights(
            slope=self.slope - other.slope,
            own=self.own - other.own,
            offset=self.offset - other.offset,
        )


@dataclass(frozen=True, eq=False)
class _Channel:
    """One latent function, the answers about it, and all cells under its prior, then the sample."""

    prior: SparsePrior
    likelihood: Likelihood
    cells: CellQuestions
    values: Array
    questions: Array
    features: Array
    noise: Array

    @classmethod
    def of(cls, prior: WeightedPrior, signs: CellSigns) -> tuple[_Channel, ...]:
        latent, cells = sparse_channels(prior), signs.cells
        places = cells.centres
        if cells.sample is not None:
            places = np.vstack([places, cells.sample.X])
        features, noise = latent[0].features_and_noise(places)
        return tuple(
            cls(
                prior=one,
                likelihood=prior.likelihood,
                cells=cells,
                values=values,
                questions=cells.estimating,
                features=features,
                noise=noise,
            )
            for one, values in zip(latent, signs.values, strict=True)
        )

    def of_cells(self) -> _Channel:
        """Return the same without a sample."""
        cells = replace(self.cells, sample=None)
        count = len(cells.counts)
        return replace(
            self,
            cells=cells,
            questions=cells.questions,
            features=self.features[:, :count],
            noise=self.noise[:count],
        )

    def search(self) -> _State:
        """Search for the marginals among cells alone, and from there with the sample."""
        if self.cells.sample is None:
            return self._settled(
                np.full(len(self.noise), self.prior.mean),
                np.square(self.features).sum(axis=0) + self.noise,
                self._sums,
            )
        begun = self.of_cells().search()
        marginals = row_marginals(begun.posterior, self.features, self.noise)
        return self._settled(*marginals, self._sums)

    def search_from(self, known: _State, sums: LabelSums) -> _State:
        """Search, starting from sums over all rows at a known posterior.

        Parameters
        ----------
        known : _State
        sums : LabelSums
            Over all rows, linearised at the marginals that follow from its posterior.
        """
        there = self._weights(known.mean, known.variance)

        def changed(weights: _Weights) -> LabelSums:
            return sums.plus(self._sums(weights.minus(there)))

        return self._settled(known.mean, known.variance, changed)

    def _weights(self, mean: Array, variance: Array) -> _Weights:
        return _Weights.at(
            mean, variance, noise=self.noise, prior_mean=self.prior.mean, likelihood=self.likelihood
        )

    def _settled(
        self, mean: Array, variance: Array, sums_at: Callable[[_Weights], LabelSums]
    ) -> _State:
        def linearised(mean: Array, variance: Array) -> _State:
            sums = sums_at(self._weights(mean, variance))
            sums = replace(sums, noise=_positive(sums.noise))
            posterior = sums.posterior(self.prior, self.values)
            return _State(sums, posterior, *row_marginals(posterior, self.features, self.noise))

        plain = None if self.cells.sample is None else PLAIN_STEPS
        return iterate_linearisation(linearised, mean=mean, variance=variance, plain=plain)

    def _sums(self, weights: _Weights) -> LabelSums:
        return LabelSums(
            features=(self.questions * weights.slope) @ self.features.T,
            noise=self.cells.estimated_products(weights.own),
            offset=self.questions @ weights.offset,
        )


def _positive(matrix: Array) -> Array:
    """Return a covariance without the negative parts from differences of cells."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if values.size == 0 or values[0] >= 0:
        return matrix
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T, dtype=np.float64)


def row_marginals(posterior: Posterior, features: Array, noise: Array) -> tuple[Array, Array]:
    """Return means and variances of rows' latent values, each of shape (n,).

    What one row's own label says of its own noise is left out: among many rows, next to nothing.

    Parameters
    ----------
    posterior : Posterior
    features : array of shape (M, n)
    noise : array of shape (n,)
        The variance that features leave to each row, under the posterior's prior.
    """
    prior_variance = np.square(features).sum(axis=0) + noise
    [table] = posterior.tables
    assert isinstance(table, SummedTable)
    mean = posterior.prior.mean + (posterior.weights @ table.features) @ features
    root = linalg.solve_triangular(posterior.factor, table.features, lower=True)
    explained = np.square(root @ features).sum(axis=0)
    return mean, np.maximum(prior_variance - explained, 0.0)


def _sparse(posterior: Posterior) -> SparsePrior:
    assert isinstance(posterior.prior, SparsePrior)
    return posterior.prior


@dataclass(frozen=True, eq=False)
class _Several:
    """Sums of several latent functions."""

    parts: tuple[LabelSums, ...]

    def merge(self, other: _Several) -> _Several:
        pairs = zip(self.parts, other.parts, strict=True)
        return _Several(parts=tuple(one.plus(two) for one, two in pairs))


@dataclass(frozen=True, eq=False)
class _Linearising:
    """The sums of one chunk, with labels linearised at posterior latent values."""

    model: RowModel
    rule: Rule
    noise_sd: float
    posteriors: tuple[tuple[Posterior, ...], ...]
    likelihoods: tuple[Likelihood, ...]
    grouped: bool

    def __call__(self, chunk: Chunk) -> _Several:
        asked, inputs = columns_at(chunk.X, model=self.model, rule=self.rule, grouped=self.grouped)
        columns = asked / self.noise_sd
        parts = []
        for likelihood, posteriors in zip(self.likelihoods, self.posteriors, strict=True):
            # The channels of a prior differ in their means alone.
            features, noise = _sparse(posteriors[0]).features_and_noise(inputs)
            for posterior in posteriors:
                weights = _Weights.at(
                    *row_marginals(posterior, features, noise),
                    noise=noise,
                    prior_mean=posterior.prior.mean,
                    likelihood=likelihood,
                )
                weighed = columns * np.sqrt(weights.own)
                parts.append(
                    LabelSums(
                        features=(columns * weights.slope) @ features.T,
                        # The same array twice: half the work.
                        noise=weighed @ weighed.T,
                        offset=columns @ weights.offset,
                    )
                )
        return _Several(parts=tuple(parts))


def label_sums(
    passes: Passes,
    signs: CellSigns,
    *,
    model: RowModel,
    rule: Rule,
    priors: Sequence[WeightedPrior],
) -> tuple[tuple[LabelSums, ...], ...]:
    """Find the questions about latent functions behind answers about labels, in a few passes.

    Parameters
    ----------
    passes : Passes
        The rows that were asked; with `GroupedPasses`, columns are those of `grouped_columns`.
    signs : CellSigns
        Their cells, and the answers.
    model : RowModel
        Whose features and noise variances the rule goes by.
    rule : Rule
        What was asked of every row.
    priors : sequence of WeightedPrior
        With sparse latent priors; all are served by the same passes.

    Returns
    -------
    tuple of tuples of LabelSums
        Of every channel, for each of the priors.
    """
    if signs.values.size == 0:
        return tuple(_nothing(prior) for prior in priors)
    channels = [_Channel.of(prior, signs) for prior in priors]
    # A second thread would wait longer for these factorisations than it works.
    with suitable_threads(0.0):
        states = [[channel.search() for channel in each] for each in channels]
    for number in range(MOST_PASSES):
        linearising = _Linearising(
            model=model,
            rule=rule,
            noise_sd=signs.noise_sd,
            likelihoods=tuple(prior.likelihood for prior in priors),
            posteriors=tuple(tuple(state.posterior for state in each) for each in states),
            grouped=isinstance(passes, GroupedPasses),
        )
        sums = iter(passes.over_inputs(linearising, what=f"linearising, pass {number + 1}").parts)
        moved = 0.0
        with suitable_threads(0.0):
            for row, each in zip(states, channels, strict=True):
                for place, channel in enumerate(each):
                    found = channel.search_from(row[place], next(sums))
                    moved = max(moved, _move(row[place], found))
                    row[place] = found
        if moved <= SETTLED:
            break
    return tuple(tuple(state.sums for state in each) for each in states)


def _nothing(prior: WeightedPrior) -> tuple[LabelSums, ...]:
    return tuple(
        LabelSums(
            features=np.zeros((0, len(latent.inducing))),
            noise=np.zeros((0, 0)),
            offset=np.zeros(0),
        )
        for latent in sparse_channels(prior)
    )


def _move(one: _State, other: _State) -> float:
    """Return the largest move of latent values at cells, in units of their sds."""
    sd = np.sqrt(np.maximum(other.variance, np.finfo(np.float64).tiny))
    moves = np.abs(other.mean - one.mean) + np.abs(np.sqrt(one.variance) - sd)
    return float((moves / sd).max())
