"""Learning from answers about rows that are read in passes.

A kernel is learned at cells of rows, which are known by mean and variance of their inputs
(`cloakgp.models.kernels.cells`). What is learned there counts where it makes the answers more
probable with every row at its place, which takes passes. How noisy outputs are is learned from
answers about how far they scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import call

import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.data import InputRows
from cloakgp.design.streaming.binning import CellsOfAnswers, Partition
from cloakgp.fitting.resolution import resolve
from cloakgp.models import ExactPrior, NotPositiveDefiniteError, SparsePrior
from cloakgp.models.kernels.adjoint import has_adjoint
from cloakgp.models.kernels.rebuilding import count_free
from cloakgp.models.likelihoods import NUMBERS
from cloakgp.models.prediction import alternatives
from cloakgp.models.summary import Summary
from cloakgp.models.two_scales import with_finer_part
from cloakgp.privacy import OutputBounds
from cloakgp.release import Hyperprior, Measurement, Release, StreamedStrategy, WeightedPrior
from cloakgp.release.bands import RowScatter, RowSpread
from cloakgp.release.hyperparameters.alike import AlikeOutputs, rows_among, with_noise
from cloakgp.release.hyperparameters.covariance import LearningAnswers, gather_sums
from cloakgp.release.hyperparameters.hyperprior import DEGREES_IN_PASSES
from cloakgp.release.hyperparameters.learning import (
    confirmed,
    learn_numbers,
    likeliest,
    linear_log_evidence,
    weigh,
    whitened_answers,
)
from cloakgp.release.hyperparameters.noise import (
    NEAR_END,
    AnswersByNoise,
    expected_position,
    noise_positions,
    position_of_noise,
    positions_around,
    scaled_noise,
)
from cloakgp.release.hyperparameters.quadrature import EVIDENCE, nearest_maximum
from cloakgp.release.hyperparameters.regression import NumbersObjective
from cloakgp.release.hyperparameters.scatter import Bumps, with_noise_in_strata
from cloakgp.release.posterior.clipped_sums import (
    GatheredCells,
    gather_cells,
    restate,
    stages_of,
    stated_under,
    under_alone,
    under_these,
)
from cloakgp.release.posterior.mixture import weightiest
from cloakgp.release.posterior.spread_sums import sum_spread
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Passes
from cloakgp.utils.threads import each_of

# Of the cells that kernels are learned at: twice as many within answers had the same maximum.
LEARNING_CELLS = 1000
# Of a single input fewer lie as near to all rows.
LEARNING_CELLS_AN_INPUT = 500
# Of a kernel whose gradient takes a matrix between all of them for every hyperparameter.
SLOW_LEARNING_CELLS = 400
# The search for hyperparameters starts at cells that are so many times fewer.
FEWER_CELLS = 4
# Rows by which cells within answers are chosen.
PLACED_ROWS = 2**14
# By how much logarithms of hyperparameters of two maxima may differ that are one.
SAME_MAXIMUM = 0.05
# After how many stages a finer part is looked for: of fewer answers, a wrong one can be likely, and
# the next stage would be designed for it.
FEWEST_STAGES = 3
# Lengthscales of a finer part, in those of the curve: where it is looked for, and where its weak
# prior lies, as far from there as from those of the curve.
START_SHORTER, CENTRE_SHORTER = 0.25, 0.5
# How often a maximum at cells is moved to where one of rows is expected.
MOST_REFINED = 3
# By how many sds outputs may scatter less than what was learned would have it.
REFUTED = 3.0
# Rows that say how far outputs are expected to scatter, and the fewest in each stratum: what they
# may be off by moves the noise that is learned by less than a hundredth.
SPREAD_ROWS, FEWEST_SAMPLED = 2**14, 100
# Numbers in sums under several priors that are made in the same passes.
MOST_SUMMED = 2**24


@dataclass(frozen=True, eq=False)
class RowLearning:
    """Learning from answers about a table that is read in passes.

    Attributes
    ----------
    passes : Passes
        Over its rows.
    summary : Summary
        Of their public inputs.
    number : int
        Of the table, in the release.
    grouped : bool
        Whether all rows of one group are protected together.
    together : int
        The number of adjacent entries of one row, which are protected together.
    resolves : bool
        Whether inducing inputs follow the kernel, so that a finer part of it can be explained.
    """

    passes: Passes
    summary: Summary
    number: int
    grouped: bool
    together: int
    resolves: bool = False

    def cells_for(self, kernel: Kernel) -> Partition:
        """Return cells of similar inputs at which a kernel is learned."""
        centres, _ = self.summary.centres(self.most_cells(kernel))
        return Partition(centres=centres, units=self.summary.units)

    def most_cells(self, kernel: Kernel) -> int:
        """Return at how many points a kernel is learned, at most."""
        if not has_adjoint(kernel):
            return SLOW_LEARNING_CELLS
        return min(LEARNING_CELLS, LEARNING_CELLS_AN_INPUT * len(self.summary.units))

    def learn(self, release: Release, *, hyperprior: Hyperprior | None, average: bool) -> Release:
        """Return a release with hyperparameters fitted to its answers, in more passes if they move.

        Values under which the answers have no covariance that float64 can hold are set aside.

        Parameters
        ----------
        release : Release
            About numbers.
        hyperprior : Hyperprior or None
            None to keep the declared values.
        average : bool
            Whether to average over hyperparameters.
        """
        found = self._learn(release, hyperprior=hyperprior, average=average)
        if not found.learned:
            return found
        try:
            if hyperprior is not None and hyperprior.noise_variance:
                found = self._with_noise_of_alike(found)
            _ = found.posteriors
        except np.linalg.LinAlgError:
            return self._learn(release, hyperprior=None, average=average)
        return found

    def _learn(self, known: Release, *, hyperprior: Hyperprior | None, average: bool) -> Release:
        prior, last = known.prior, known.measurements[-1]
        assert isinstance(prior, SparsePrior)
        declared = tuple(under_alone(one, prior) for one in known.measurements)
        stages = stages_of(known.measurements, self.number)
        if hyperprior is None or not stages or not all(one.noise_sd > 0 for one in stages):
            return replace(known, learned=(), measurements=declared)
        asked = any(one.about_spread for one in known.measurements[:-1])
        before = known.fitted_prior if asked else None
        stated: tuple[Measurement, ...] | None = None
        if before is not None and known.learned and last.about_spread:
            # Nothing new is known of where outputs are.
            learned = known.learned
        else:
            free = hyperprior.noise_variance and before is None and not last.about_spread
            learned, stated = self._learn_curve(
                known,
                # Sums of outputs say little of their noise: where that was asked, it is not free.
                hyperprior=replace(hyperprior, noise_variance=free),
                average=average,
                noisy=before,
            )
        if last.about_spread:
            learned = self._learn_noise(
                learned, known, hyperprior=hyperprior, average=average, before=before
            )
            stated = None
        if stated is None:
            stated = restate(self.passes, other_priors(learned, prior), measurements=declared)
        return replace(known, learned=learned, measurements=stated)

    def _with_noise_of_alike(self, found: Release) -> Release:
        """Return a release with the noise that counts tell, where these find most outputs alike."""
        alike = AlikeOutputs.counted(found.measurements)
        if alike is None:
            return found
        prior = found.prior
        assert isinstance(prior, SparsePrior)
        sample = rows_among(self.summary.sample[:SPREAD_ROWS])
        variance, _ = alike.noise(*found.posterior.joint(sample))
        learned = with_noise(found.learned, variance)
        declared = tuple(under_alone(one, prior) for one in found.measurements)
        stated = restate(self.passes, other_priors(learned, prior), measurements=declared)
        return replace(found, learned=learned, measurements=stated)

    def _learn_noise(
        self,
        learned: tuple[WeightedPrior, ...],
        known: Release,
        *,
        hyperprior: Hyperprior,
        average: bool,
        before: ExactPrior | SparsePrior | None,
    ) -> tuple[WeightedPrior, ...]:
        """Return what was learned with the noise that the last answers tell, where they allow it.

        Sums of outputs hardly tell a curve of very short lengthscales from noise of each row; how
        far outputs scatter does. Where that is less than was learned, what is learned with normal
        tails is held against it.

        Parameters
        ----------
        learned : tuple of WeightedPrior
        known, hyperprior, average
            As for `_learn_curve`.
        before : ExactPrior or SparsePrior or None
            With the noise that an earlier such answer told.
        """
        tell = partial(
            tell_noise_of_rows,
            rows=self.passes,
            release=known,
            sample=self._spread_sample(),
            before=before,
        )
        told = tell(learned)
        if len(stages_of(known.measurements, self.number)) == 1:
            return told.priors
        if before is None and known.learned and not _near(learned, known.learned):
            # That was sought with the declared noise, which may be far off. What was learned with
            # free noise, before, stays if it is as probable.
            told = max(tell(known.learned), told, key=lambda one: one.log_density)
        if told.excess <= REFUTED:
            return told.priors
        noisy, stated = None, known.measurements
        if before is not None:
            noisy = _with_noise_of(known.prior, before)
            stated = restate(self.passes, [noisy], measurements=stated)
        less, _ = self._learn_curve(
            replace(known, learned=(), measurements=stated),
            hyperprior=replace(hyperprior, noise_variance=False),
            average=average,
            noisy=noisy,
            tails=(np.inf,),
        )
        return max(told, tell(less), key=lambda one: one.log_density).priors

    def _learn_curve(
        self,
        known: Release,
        *,
        hyperprior: Hyperprior,
        average: bool,
        noisy: ExactPrior | SparsePrior | None,
        tails: Sequence[float] = (DEGREES_IN_PASSES, np.inf),
    ) -> tuple[tuple[WeightedPrior, ...], tuple[Measurement, ...] | None]:
        """Return what is learned of the curve, and answers with sums under it, if there are.

        Parameters
        ----------
        known : Release
            With what was learned before the last answers; with sums under that, and under the
            declared prior.
        hyperprior : Hyperprior
        average : bool
        noisy : ExactPrior or SparsePrior or None
            With the noise of outputs, if that is known; there are sums under it.
        tails : sequence of float
            Degrees of freedom of weak priors that are tried after several stages.
        """
        prior = known.prior
        assert isinstance(prior, SparsePrior)
        stages = len(stages_of(known.measurements, self.number))
        if stages == 1:
            # What it tells is too little to go by that is far from what was declared.
            tails = (np.inf,)
        searches = self._searches(known, hyperprior=hyperprior, noisy=noisy)
        found = [
            (
                WeightedPrior(prior=search.declared, likelihood=NUMBERS, weight=1.0),
                _maxima(search, known, average=average, tails=tails),
            )
            for search in searches
        ]
        if noisy is not None and len(found) == len(known.learned) == 1:
            # What was learned before, with the noise that is known, stays if it is as probable.
            found = [(replace(known.learned[0], prior=noisy), found[0][1])]
        moves_rows = self.summary.count > self.most_cells(prior.kernel)
        stated: tuple[Measurement, ...] | None = None
        if moves_rows or len(found) > 1 or len(found[0][1]) > 1:
            learned, stated = self._weigh(found, known, confirms=moves_rows)
        else:
            learned = found[0][1][0]
        alone = len(searches) == len(learned) == 1 and has_adjoint(prior.kernel)
        if not alone or len(tails) == 1:
            return learned, stated
        [search] = searches
        if moves_rows and stated is not None:
            learned, stated = self._refine(
                learned, stated, search=search, degrees=tails[0], known=known
            )
        if not self.resolves or stages < FEWEST_STAGES:
            return learned, stated
        [(single, *_), *_] = found[0][1]
        return self._or_in_two_scales(
            learned, stated, search=search, degrees=tails[0], single=single.prior, known=known
        )

    def _searches(
        self,
        known: Release,
        *,
        hyperprior: Hyperprior,
        noisy: ExactPrior | SparsePrior | None,
    ) -> list[_Search]:
        """Return searches at cells of rows: around what was declared, and its alternatives.

        Parameters
        ----------
        known, hyperprior, noisy
            As for `_learn_curve`.
        """
        prior, bounds = known.prior, known.measurements[0].question
        assert isinstance(prior, SparsePrior)
        assert isinstance(bounds, OutputBounds)
        located = stages_of(known.measurements, self.number)
        # Where noise was asked, the bands are narrow: how answers depend on outputs is told by what
        # was known when they were chosen.
        told = prior if noisy is None else noisy
        assert isinstance(told, SparsePrior)
        gathered = self._gather(known, told)
        trends: list[Array] = []
        if prior.trend is not None:
            trends = [one.strategy.trend_answers(prior) for one in located]
        slow = not has_adjoint(prior.kernel)
        found = []
        for declared in alternatives(prior if noisy is None else _with_noise_of(prior, noisy)):
            assert isinstance(declared, SparsePrior)
            answers, fewer = (
                gather_sums(
                    list(zip(cells.stages, located, strict=True)),
                    mean=told.mean,
                    points=cells.inputs.means,
                    counts=cells.counts,
                    variances=None if slow else cells.inputs.variances,
                    trends=trends,
                    detrended=declared.trend is not None,
                )
                for cells in gathered
            )
            # Rows are moved to points in learning: how noise differs between them comes after.
            same = declared.scatter is told.scatter
            found.append(
                _Search(
                    declared=declared if same else replace(declared, scatter=told.scatter),
                    alone=_first_inducing(declared, known) if slow else _exact(declared),
                    answers=answers,
                    fewer=fewer,
                    bounds=(bounds.lo, bounds.hi),
                    hyperprior=hyperprior,
                )
            )
        return found

    def _refine(
        self,
        learned: tuple[WeightedPrior, ...],
        stated: tuple[Measurement, ...],
        *,
        search: _Search,
        degrees: float,
        known: Release,
    ) -> tuple[tuple[WeightedPrior, ...], tuple[Measurement, ...]]:
        """Return what was learned, or near it what is more probable with every row at its place.

        Where answers are precise, what rows differ within cells is more than their noise, and a
        maximum at cells is not one of rows. So the search goes on from there, with the covariance
        of answers exact where it starts, and as at cells in how it changes
        (`NumbersObjective.agreeing`), for as long as that gains.

        Parameters
        ----------
        learned : tuple of WeightedPrior
            One.
        stated : tuple of Measurement
            With sums under it and the declared prior.
        search : _Search
        degrees : float
            Of freedom of the weak priors.
        known : Release
        """
        prior, [found] = known.prior, learned
        assert isinstance(prior, SparsePrior)
        objective = search.objective(degrees=degrees)
        if len(found.prior.kernel.theta) != len(objective.declared) or not objective.size:
            return learned, stated
        for _ in range(MOST_REFINED):
            assert isinstance(found.prior, SparsePrior)
            position = objective.position_of(found.prior)
            try:
                agreeing = objective.agreeing(position, whitened_answers(found.prior, stated)[1])
                moved = nearest_maximum(agreeing, start=position)
                tried = _with_values(found.prior, objective.prior_at(moved))
                added = restate(self.passes, [tried], measurements=stated)
                gained = linear_log_evidence(tried, added) - linear_log_evidence(
                    found.prior, stated
                )
            except (NotPositiveDefiniteError, np.linalg.LinAlgError):
                break
            gained += objective.weak_prior(position) - objective.weak_prior(moved)
            # Written so that NaN fails.
            if not gained >= EVIDENCE:
                break
            found = replace(found, prior=tried)
            stated = tuple(under_these(one, [prior, tried]) for one in added)
        return (found,), stated

    def _or_in_two_scales(
        self,
        learned: tuple[WeightedPrior, ...],
        stated: tuple[Measurement, ...] | None,
        *,
        search: _Search,
        degrees: float,
        single: ExactPrior | SparsePrior,
        known: Release,
    ) -> tuple[tuple[WeightedPrior, ...], tuple[Measurement, ...] | None]:
        """Return what was learned, or a curve with a finer part if answers tell of one.

        It is looked for from what was learned, and has inducing inputs of its own: those that there
        are do not explain what is finer. It counts where it makes the answers more probable, with
        every row at its place, by a nat for each hyperparameter that is more (Akaike 1974).

        Parameters
        ----------
        learned : tuple of WeightedPrior
            One, which may be in two scales since an earlier stage.
        stated : tuple of Measurement or None
            With sums under it and the declared prior, if there are.
        search : _Search
        degrees : float
            Of freedom of the weak priors.
        single : ExactPrior or SparsePrior
            As learned last, of the declared form.
        known : Release
            With sums under the declared prior.
        """
        prior, [found] = known.prior, learned
        assert isinstance(prior, SparsePrior)
        centre = with_finer_part(search.declared.kernel, shorter=CENTRE_SHORTER)
        if centre is None:
            return learned, stated
        more = count_free(centre) - count_free(found.prior.kernel)
        smooth = found.prior if more else single
        start = replace(smooth, kernel=with_finer_part(smooth.kernel, shorter=START_SHORTER))
        finer = search.around(replace(search.declared, kernel=centre))
        [sought] = finer.learn(average=False, degrees=degrees, start=start)
        if sought.prior is finer.declared:
            return learned, stated
        tried = self._with_own_inducing(_with_values(found.prior, sought.prior), known)
        if stated is None:
            own = [under_alone(one, prior) for one in known.measurements]
            stated = restate(self.passes, other_priors(learned, prior), measurements=own)
        try:
            added = restate(self.passes, [tried], measurements=stated)
            gained = linear_log_evidence(tried, added) - linear_log_evidence(found.prior, stated)
        except (NotPositiveDefiniteError, np.linalg.LinAlgError):
            return learned, stated
        # Written so that NaN fails.
        if not gained >= max(more, EVIDENCE):
            return learned, stated
        return (replace(found, prior=tried),), tuple(
            under_these(one, [prior, tried]) for one in added
        )

    def _with_own_inducing(self, prior: SparsePrior, known: Release) -> SparsePrior:
        """Return a prior on inducing inputs that it is worth, by what the last stage told."""
        last = stages_of(known.measurements, self.number)[-1]
        inducing = resolve(
            prior,
            self.summary.sample,
            rows=self.summary.count,
            noise_sd=last.noise_sd,
            answers=last.strategy.n_answers,
        )
        return replace(prior, inducing=inducing)

    def _weigh(
        self,
        found: Sequence[tuple[WeightedPrior, Sequence[tuple[WeightedPrior, ...]]]],
        known: Release,
        *,
        confirms: bool,
    ) -> tuple[tuple[WeightedPrior, ...], tuple[Measurement, ...]]:
        """Return what holds of what was learned, weighed, and answers with sums under it.

        Parameters
        ----------
        found : sequence of pairs
            What was declared, but for noise that is known, first, and its alternatives, or what was
            learned before, with what was learned from each, by different weak priors.
        known : Release
            With sums under the declared prior, and what was learned before.
        confirms : bool
            Whether learning moved rows, so that it counts where it holds with all at their places.
        """
        prior = known.prior
        assert isinstance(prior, SparsePrior)
        tried = [one for _, maxima in found for learned in maxima for one in learned]
        if confirms:
            tried += [other for other, _ in found]
        new = [
            one for one in other_priors(tried, prior) if not stated_under(one, known.measurements)
        ]
        stated = restate(self.passes, new, measurements=known.measurements)
        evidence = partial(linear_log_evidence, measurements=stated)
        chosen = []
        for other, maxima in found:
            learned = likeliest(maxima, log_evidence=evidence)
            if confirms:
                learned = confirmed(learned, declared=other, log_evidence=evidence)
            chosen.append(learned)
        learned = chosen[0] if len(chosen) == 1 else weigh(chosen, log_evidence=evidence)
        kept = [prior, *other_priors(learned, prior)]
        return learned, tuple(under_these(one, kept) for one in stated)

    def _gather(self, release: Release, prior: SparsePrior) -> tuple[GatheredCells, GatheredCells]:
        """Return what was asked of the rows of cells, and of fewer, in a pass.

        Within the answers of the last stage where each row is in one: what it asked is then asked
        of whole cells. (Not of several outputs, which would be mixed in these.)

        Parameters
        ----------
        release : Release
            With sums under the prior.
        prior : SparsePrior
            Under which outputs in bands are linearised.
        """
        last = stages_of(release.measurements, self.number)[-1]
        assert isinstance(last.strategy, StreamedStrategy)
        cells: Partition | CellsOfAnswers
        most = self.most_cells(prior.kernel)
        whole = has_adjoint(prior.kernel) and self.together == 1
        if whole and last.strategy.in_parts and self.summary.count > most:
            sample = self.summary.sample[:PLACED_ROWS]
            asked = last.strategy.columns(last.question).summable_columns(sample)
            assert isinstance(asked, sparse.csr_array)
            cells = CellsOfAnswers.of(sample, asked, units=self.summary.units, most=most)
        else:
            cells = self.cells_for(prior.kernel)
        found = gather_cells(
            self.passes,
            prior,
            measurements=release.measurements,
            table=self.number,
            cells=cells,
            origin=self.summary.sample.mean(axis=0),
        )
        return found, found.joined(cells.joined(most=most // FEWER_CELLS))

    def _spread_sample(self) -> InputRows | None:
        """Return some rows that tell how far outputs are expected to scatter; None for all.

        With groups, rows weigh by how many there are of each, which a sample does not know.
        """
        if self.grouped or self.summary.count <= SPREAD_ROWS:
            return None
        return InputRows(self.summary.sample[:SPREAD_ROWS])


@dataclass(frozen=True, eq=False)
class _Search:
    """A search for hyperparameters of one form of a prior, by what was asked of cells of rows.

    Attributes
    ----------
    declared : SparsePrior
        What is sought is near it.
    alone : ExactPrior or SparsePrior
        The same, as it is at cells.
    answers, fewer : LearningAnswers
        About cells, and about fewer, where the search starts.
    bounds : (float, float)
        Of one output.
    hyperprior : Hyperprior
    """

    declared: SparsePrior
    alone: ExactPrior | SparsePrior
    answers: LearningAnswers
    fewer: LearningAnswers
    bounds: tuple[float, float]
    hyperprior: Hyperprior

    def around(self, declared: SparsePrior) -> _Search:
        """Return a search for what is near another prior, which has no inducing inputs at cells."""
        return replace(self, declared=declared, alone=_exact(declared))

    def learn(
        self, *, average: bool, degrees: float, start: ExactPrior | SparsePrior | None = None
    ) -> tuple[WeightedPrior, ...]:
        """Return what is learned, on the inducing inputs that were declared.

        Parameters
        ----------
        average : bool
        degrees : float
            Of freedom of the weak priors.
        start : ExactPrior or SparsePrior, optional
            The only place where the search starts.
        """
        learned = learn_numbers(
            self.alone,
            self.answers,
            bounds=self.bounds,
            hyperprior=self.hyperprior,
            average=average,
            degrees=degrees,
            coarse=self.fewer,
            start=start,
        )
        return tuple(
            replace(
                one,
                prior=self.declared
                if one.prior is self.alone
                else _with_values(self.declared, one.prior),
            )
            for one in learned
        )

    def objective(self, *, degrees: float) -> NumbersObjective:
        """Return what is minimised at the cells."""
        return NumbersObjective.of(
            self.alone,
            self.answers,
            bounds=self.bounds,
            hyperprior=self.hyperprior,
            degrees=degrees,
        )


def _maxima(
    search: _Search, known: Release, *, average: bool, tails: Sequence[float]
) -> list[tuple[WeightedPrior, ...]]:
    """Return what is learned by different weak priors, and from what was learned before, each once.

    Parameters
    ----------
    search : _Search
    known, average, tails
        As for `RowLearning._learn_curve`.
    """
    tries = [partial(search.learn, average=average, degrees=each) for each in tails]
    if len(tails) > 1 and (earlier := _learned_before(known, search.declared)) is not None:
        # The best of few cells may be far from what is best with every row at its place.
        tries.append(partial(search.learn, average=average, degrees=tails[0], start=earlier))
    maxima: list[tuple[WeightedPrior, ...]] = []
    for learned in each_of(call, tries):
        if not any(_near(learned, one) for one in maxima):
            maxima.append(learned)
    return maxima


@dataclass(frozen=True)
class ToldNoise:
    """What answers about the spread of outputs tell.

    Attributes
    ----------
    priors : tuple of WeightedPrior
        With the noise that is expected after them.
    log_density : float
        Of all answers.
    excess : float
        By how many of their sds outputs scatter less than is expected with that noise.
    """

    priors: tuple[WeightedPrior, ...]
    log_density: float
    excess: float


def tell_noise_of_rows(
    priors: Sequence[WeightedPrior],
    rows: Passes,
    *,
    release: Release,
    sample: Passes | None = None,
    before: ExactPrior | SparsePrior | None = None,
) -> ToldNoise:
    """Return priors with the noise that is expected after the answers, and how that fits these.

    As `cloakgp.release.hyperparameters.noise.with_learned_noise`, or, by strata,
    `cloakgp.release.hyperparameters.scatter.with_learned_scatter`, for rows that are not kept: the
    noise is tried at a few values, all of them in the same passes.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        Their noise is changed by the factor that suits the one of most weight.
    rows : Passes
    release : Release
        The last measurement is about the spread of outputs.
    sample : Passes, optional
        Over some of the rows, by which the answer is expected where each part of it has enough.
    before : ExactPrior or SparsePrior, optional
        With the noise that an earlier such answer told: tried first is what lies near that.
    """
    declared = release.prior
    assert isinstance(declared, SparsePrior)
    question = release.measurements[-1].question
    noisy = [replace(one, prior=_with_noise_of(one.prior, declared)) for one in priors]
    tried = [noise_positions()]
    if before is not None:
        tried.insert(0, positions_around(position_of_noise(before, declared=declared)))
    for positions in tried:
        by_noise = _answers_by_noise(
            noisy, rows, release=release, sample=sample, positions=positions
        )
        if isinstance(question, RowScatter):
            bumps = Bumps.around([(question.centres, question.units)])
            found = with_noise_in_strata(noisy, by_noise, bumps=bumps)
        else:
            position = expected_position(by_noise)
            found = tuple(replace(one, prior=scaled_noise(one.prior, position)) for one in noisy)
        place = position_of_noise(found[0].prior, declared=declared)
        if positions[0] + NEAR_END < place < positions[-1] - NEAR_END:
            break
    return ToldNoise(priors=found, log_density=by_noise.log_density, excess=by_noise.excess(place))


def _answers_by_noise(
    priors: Sequence[WeightedPrior],
    rows: Passes,
    *,
    release: Release,
    sample: Passes | None,
    positions: Array,
) -> AnswersByNoise:
    """Return what is expected of the last answer, and how probable others are, by the noise."""
    main, declared = weightiest(priors).prior, release.prior
    assert isinstance(main, SparsePrior)
    assert isinstance(declared, SparsePrior)
    *known, last = release.measurements
    strategy, spread = last.strategy, last.question
    assert isinstance(strategy, StreamedStrategy)
    assert isinstance(spread, RowSpread)
    answered = [under_alone(one, declared) for one in known]

    def expect(some: Sequence[SparsePrior]) -> tuple[list[float], Array, Array]:
        stated = restate(rows, some, measurements=answered)
        over = partial(
            sum_spread,
            priors=some,
            columns=strategy.columns(spread),
            spread=spread,
            known=stated,
            table=strategy.table,
        )
        sums = over(rows if sample is None else sample)
        if sample is not None:
            enough = (sums.totals >= FEWEST_SAMPLED).all()
            sums = sums.over_all(strategy.row_totals) if enough else over(rows)
        evidence = [linear_log_evidence(one, stated) for one in some]
        return evidence, sums.expected, sums.scatter

    candidates = []
    for position in positions.tolist():
        candidate = scaled_noise(main, position)
        assert isinstance(candidate, SparsePrior)
        candidates.append(candidate)
    numbers = _numbers_summed(stages_of(known, strategy.table), inducing=len(main.inducing))
    together = max(MOST_SUMMED // max(numbers, 1), 1)
    parts = [
        expect(candidates[start : start + together])
        for start in range(0, len(candidates), together)
    ]
    evidence, expected, scatter = (np.concatenate(each) for each in zip(*parts, strict=True))
    return AnswersByNoise.at_all(
        evidence,
        positions=positions,
        values=last.answers.values[:, 0],
        expected=expected,
        variance=scatter + last.noise_sd**2,
    )


def _numbers_summed(stages: Sequence[Measurement], *, inducing: int) -> int:
    """Return how many numbers the sums of stages are under one prior."""
    numbers = before = 0
    for count in (one.strategy.n_answers for one in stages):
        # Features, noise and what clipping leaves, and what is shared with each stage before.
        numbers += count * (inducing + 2 * count + before)
        before += count
    return numbers


def _learned_before(
    known: Release, declared: ExactPrior | SparsePrior
) -> ExactPrior | SparsePrior | None:
    """Return what was learned before of a kernel of the same form, None if nothing was."""
    if not known.learned:
        return None
    before = weightiest(known.learned).prior
    same = len(before.kernel.theta) == len(declared.kernel.theta)
    return (
        before if same and not np.array_equal(before.kernel.theta, declared.kernel.theta) else None
    )


def _near(learned: Sequence[WeightedPrior], other: Sequence[WeightedPrior]) -> bool:
    """Return whether two maxima are one, by the kernels of their main parts."""
    one, another = (weightiest(each).prior for each in (learned, other))
    # A hyperparameter of zero has an infinite logarithm, and stays.
    with np.errstate(divide="ignore"):
        theta, other_theta = one.kernel.theta, another.kernel.theta
    if len(theta) != len(other_theta):
        return False
    return bool(np.allclose(theta, other_theta, rtol=0.0, atol=SAME_MAXIMUM))


def _with_noise_of(prior: ExactPrior | SparsePrior, other: ExactPrior | SparsePrior) -> SparsePrior:
    """Return a prior with the mean noise of another, alike for all rows."""
    assert isinstance(prior, SparsePrior)
    return replace(prior, noise_variance=other.noise_variance, scatter=None)


def _with_values(prior: ExactPrior | SparsePrior, learned: ExactPrior | SparsePrior) -> SparsePrior:
    """Return a prior with the hyperparameters of another."""
    assert isinstance(prior, SparsePrior)
    return replace(
        prior,
        kernel=learned.kernel,
        noise_variance=learned.noise_variance,
        mean=learned.mean,
    )


def _exact(prior: SparsePrior) -> ExactPrior:
    """Return the prior without inducing inputs: of few cells, none are needed."""
    return ExactPrior(
        kernel=prior.kernel, noise_variance=prior.noise_variance, mean=prior.mean, trend=prior.trend
    )


def _first_inducing(prior: SparsePrior, release: Release) -> SparsePrior:
    """Return a prior on the inducing inputs of the first stage.

    Those that were chosen for a kernel do not serve to learn another, and are more.
    """
    first = release.measurements[0].strategy
    assert isinstance(first, StreamedStrategy)
    return on_inducing(prior, first.prior.inducing)


def on_inducing(prior: ExactPrior | SparsePrior, inducing: Array) -> SparsePrior:
    """Return a sparse prior with other inducing inputs."""
    assert isinstance(prior, SparsePrior)
    return replace(prior, inducing=inducing)


def other_priors(learned: Sequence[WeightedPrior], prior: SparsePrior) -> list[SparsePrior]:
    """Return the learned priors other than the declared one, each once."""
    others: list[SparsePrior] = []
    for one in (each.prior for each in learned):
        if isinstance(one, SparsePrior) and not any(one is other for other in (prior, *others)):
            others.append(one)
    return others
