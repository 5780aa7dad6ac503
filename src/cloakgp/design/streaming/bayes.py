r"""Bayesian A-optimal design for tables read in passes: the sharpest release of many rows.

The problem is that of `cloakgp.design.bayes`, for a sparse model. Neither K_y = VᵀV + Λ nor the
strategy is ever formed. Three steps:

1. rows are gathered in cells, and `design_bayes` finds the best strategy that asks all rows of a
   cell alike (`cloakgp.design.streaming.binning`);
2. from there every row gets the column that is best for it, all others being as they are. With
   S = s² I + A Aᵀ + B, T = A F and W = S⁻¹ T (A = R Vᵀ, B = R Λ Rᵀ, F the query features), the
   explained variance is the largest over W of 2 tr(WᵀAF) − tr(WᵀSW). As a function of r_j it grows
   along 2 rᵀ L v_j − λ_j rᵀ W Wᵀ r with L = W (F − AᵀW)ᵀ: a rule with a k × M matrix. A full step
   may overshoot, so A and B move half-way to those of the new columns, and again;
3. the pass that finds these columns certifies, too (`cloakgp.design.streaming.duals`). There are
   two at least, and up to four as long as the certificate is looser than what is usual.

Any rule may be released: all of this decides how useful a release is, never how private.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from cloakgp.design.bayes import sharpest_strategy
from cloakgp.design.solver import Progress
from cloakgp.design.strategy import LOOSE, Certificate, warn_if_short
from cloakgp.design.streaming.binning import CellSums, Partition, cell_sums
from cloakgp.design.streaming.duals import Duals, DualSums
from cloakgp.design.streaming.row_model import RowModel
from cloakgp.design.streaming.rules import BallRule, Rule
from cloakgp.design.streaming.sampling import Sample
from cloakgp.design.streaming.sums import StrategySums, sum_strategy, sums_of_rows
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import DEFAULT_GAP
from cloakgp.utils.passes import Chunk, Passes
from cloakgp.utils.threads import suitable_threads

# Query directions that together have less than this share of the prior variance are left out, and
# what they could explain is added to the certificate.
NEGLIGIBLE = 1e-7
# How often every row gets the column that is best for it, and how far sums move each time; and how
# often those of a sample do before.
STEPS, MOST_STEPS, STEP_SHARE = 2, 4, 0.5
SAMPLED_STEPS = 3
# Stop when a step explains less than this share of what remains.
STALLED = 1e-5
# Answers are left out of a rule below this share of the largest curvature.
REDUNDANT = 1e-14


@dataclass(frozen=True, eq=False)
class StreamedDesign:
    """A rule for the columns of rows, and its sums.

    Attributes
    ----------
    rule : Rule
        Its columns are at most 1 long.
    sums : StrategySums
        Over all rows.
    certificate : Certificate
    unexplained : float
        Σ_i w_i var[f_i | answers] at the query points, in squared output units.
    """

    rule: Rule
    sums: StrategySums
    certificate: Certificate
    unexplained: float


@dataclass(frozen=True, eq=False)
class StrategyState:
    """The posterior of a strategy, from its sums.

    Attributes
    ----------
    features : array of shape (k, M)
        A = R Vᵀ.
    noise : array of shape (k, k)
        B = R Λ Rᵀ.
    queries : array of shape (M, p)
        F, the features of the query points.
    noise_sd : float
        s.
    """

    features: Array
    noise: Array
    queries: Array
    noise_sd: float

    @classmethod
    def on_cells(
        cls, strategy: Array, cells: CellSums, *, queries: Array, noise_sd: float
    ) -> StrategyState:
        """Return the state of a strategy that asks all rows of a cell alike."""
        return cls(
            features=strategy @ cells.features.T,
            noise=(strategy * cells.noise) @ strategy.T,
            queries=queries,
            noise_sd=noise_sd,
        )

    @property
    def covariance(self) -> Array:
        """R K_y Rᵀ."""
        return self.features @ self.features.T + self.noise

    def weights(self) -> Array:
        """Return W = S⁻¹ A F, shape (k, p)."""
        answers = self.covariance
        answers[np.diag_indices(len(answers))] += self.noise_sd**2
        factor = linalg.cho_factor(answers, lower=True)
        return np.asarray(linalg.cho_solve(factor, self.features @ self.queries))

    def explained(self) -> float:
        """Return tr(TᵀS⁻¹T)."""
        return float(np.vdot(self.features @ self.queries, self.weights()))

    def rule(self) -> tuple[BallRule, StrategyState]:
        """Return the rule by which every row gets the column that is best for it.

        With it comes this state in the rule's own basis: answers may be rotated at will, and in
        that one the curvature is diagonal.
        """
        weights = self.weights()
        curvatures, rotation = linalg.eigh(weights @ weights.T)
        # No more answers than directions matter: the others' columns would be rounding.
        kept = curvatures > REDUNDANT * curvatures.max(initial=0.0)
        curvatures, rotation = curvatures[kept], rotation[:, kept]
        rule = BallRule(
            matrix=(rotation.T @ weights) @ (self.queries - self.features.T @ weights).T,
            curvatures=curvatures,
        )
        features = rotation.T @ self.features
        return rule, replace(self, features=features, noise=rotation.T @ self.noise @ rotation)

    def duals(self, *, gap: float) -> Duals:
        """Return the duals of this strategy, by which other columns can be certified."""
        return Duals.of(
            features=self.features,
            weights=self.weights(),
            queries=self.queries,
            noise_sd=self.noise_sd,
            gap=gap,
        )

    def reached(self, sums: StrategySums, *, share: float = 1.0) -> StrategyState:
        """Return the state of other columns, by their sums over a sample and its share of all rows.

        Parameters
        ----------
        sums : StrategySums
        share : float
        """
        return replace(self, features=share * sums.features, noise=share * sums.noise)

    def towards(self, other: StrategyState) -> StrategyState:
        """Return the state with sums between two."""
        share = STEP_SHARE
        return replace(
            self,
            features=(1 - share) * self.features + share * other.features,
            noise=(1 - share) * self.noise + share * other.noise,
        )


def design_streamed_bayes(
    passes: Passes,
    queries: Array,
    *,
    model: RowModel,
    cells: Partition,
    prior_variance: float,
    noise_sd: float,
    sample: Sample | None = None,
    gap: float = DEFAULT_GAP,
    progress: Progress | None = None,
) -> StreamedDesign:
    """Design the columns of all rows of a table, in a few passes.

    Sees public arrays only.

    Parameters
    ----------
    passes : Passes
    queries : array of shape (M, P)
        The model's features of the query points, columns scaled by the roots of their weights.
    model : RowModel
    cells : Partition
    prior_variance : float
        Σ_i w_i K_**ii, in squared output units.
    noise_sd : float
        s, of the noise on each answer when columns have norm 1, in output units.
    sample : Sample, optional
        Of these rows: the first steps go by it.
    gap : float
        To which the smaller problem is solved. What is certified over all rows stands in the
        certificate. What is lost is far less, but a bound from one pass is not tight: several times
        the gap is usual, whatever is asked for, so only ten times the gap warns.
    progress : callable, optional
        Called with the gap of the smaller problem.

    Returns
    -------
    StreamedDesign

    Warns
    -----
    DesignGapWarning
        If not ten times the gap could be certified.
    """
    directions, lost = main_query_directions(queries, prior_variance=prior_variance)
    gathered = gathered_rows(passes, model=model, cells=cells, sample=sample)
    with suitable_threads(float(gathered.features.size) * len(directions)):
        coarse = sharpest_strategy(
            gathered,
            gathered.features.T @ directions,
            prior_variance=prior_variance,
            noise_sd=noise_sd,
            gap=gap,
            progress=progress,
        )
    state = StrategyState.on_cells(coarse.strategy, gathered, queries=directions, noise_sd=noise_sd)
    if sample is not None:
        state = _begun(sample, state, model=model)
    design = _sharpest_rule(
        passes,
        state,
        model=model,
        prior_variance=prior_variance,
        lost=lost,
        gap=gap,
        least_steps=STEPS if sample is None else 1,
    )
    warn_if_short(design.certificate, gap=gap, allowed=LOOSE * gap)
    return design


def gathered_rows(
    passes: Passes, *, model: RowModel, cells: Partition, sample: Sample | None
) -> CellSums:
    """Return the sums over the rows of every cell; estimates, if there is a sample.

    Parameters
    ----------
    passes : Passes
    model : RowModel
    cells : Partition
    sample : Sample or None
    """
    if sample is None:
        return cell_sums(passes, model=model, cells=cells)
    return cell_sums(sample.passes, model=model, cells=cells).times_rows(sample.share)


def _begun(sample: Sample, state: StrategyState, *, model: RowModel) -> StrategyState:
    """Return from which of a few steps the rows of a sample have the best columns."""
    best, most = state, -np.inf
    for _ in range(SAMPLED_STEPS):
        rule, state = state.rule()
        sums = sum_strategy(sample.passes, model=model, rule=rule)
        reached = state.reached(sums, share=sample.share)
        explained = reached.explained()
        if explained <= most:
            break
        best, most = state, explained
        state = state.towards(reached)
    return best


def _sharpest_rule(
    passes: Passes,
    state: StrategyState,
    *,
    model: RowModel,
    prior_variance: float,
    lost: float,
    gap: float,
    least_steps: int,
) -> StreamedDesign:
    """Let every row have the column that is best for it, and certify: steps 2 and 3.

    Parameters
    ----------
    passes : Passes
    state : StrategyState
        Of the best strategy that asks all rows of a cell alike.
    model : RowModel
    prior_variance : float
    lost : float
        The most that query directions which were left out could explain.
    gap : float
        More than the least steps are taken while ten times this is not certified.
    least_steps : int
    """
    best: tuple[float, BallRule, StrategySums] | None = None
    most, unexplained = prior_variance, prior_variance
    for step in range(MOST_STEPS):
        rule, state = state.rule()
        stepping = Stepping(model=model, rule=rule, duals=state.duals(gap=gap))
        found = passes.over_inputs(stepping, what=f"designing, step {step + 1}")
        sums = found.sums
        reached = state.reached(sums)
        explained = reached.explained()
        most = min(most, stepping.most_explained(found) + lost)
        won = explained - (best[0] if best else -np.inf)
        if won > 0:
            best = explained, rule, sums
        assert best is not None
        unexplained = max(prior_variance - best[0], np.finfo(np.float64).tiny)
        certified = max(most - best[0], 0.0) / unexplained
        stalled = abs(won) < STALLED * (prior_variance - explained)
        if certified <= gap or (step + 1 >= least_steps and (certified <= LOOSE * gap or stalled)):
            break
        state = state.towards(reached)
    assert best is not None
    _, rule, sums = best
    certificate = Certificate(criterion="bayes", gap=certified)
    return StreamedDesign(rule=rule, sums=sums, certificate=certificate, unexplained=unexplained)


@dataclass(frozen=True, eq=False)
class StepSums:
    """The sums of a step over some rows, and those that certify.

    Attributes
    ----------
    sums : StrategySums
    duals : DualSums
    """

    sums: StrategySums
    duals: DualSums

    def merge(self, other: StepSums) -> StepSums:
        """Return the sums over the rows of both."""
        return StepSums(sums=self.sums.merge(other.sums), duals=self.duals.merge(other.duals))


@dataclass(frozen=True, eq=False)
class Stepping:
    """A step over one chunk, and its certificate.

    Attributes
    ----------
    model : RowModel
    rule : Rule
    duals : Duals
    """

    model: RowModel
    rule: Rule
    duals: Duals

    def __call__(self, chunk: Chunk) -> StepSums:
        """Return the sums over the rows of a chunk."""
        features, noise = self.model.features_and_noise(chunk.X)
        return self.of_rows(features, noise)

    def of_rows(self, features: Array, noise: Array) -> StepSums:
        """Return the sums over rows that the model knows so.

        Parameters
        ----------
        features : array of shape (M, n)
        noise : array of shape (n,)
        """
        columns = self.rule.columns(features, noise)
        return StepSums(
            sums=sums_of_rows(columns, features, noise),
            duals=self.duals.over(features, noise, columns),
        )

    def most_explained(self, step: StepSums) -> float:
        """Return an upper bound of the variance that any strategy explains, from sums over rows.

        Parameters
        ----------
        step : StepSums
        """
        return self.duals.most_explained(
            step.duals, features=step.sums.features, noise=step.sums.noise
        )


def main_query_directions(queries: Array, *, prior_variance: float) -> tuple[Array, float]:
    """Rotate F to orthogonal columns, the longest first, and cut off those that cannot matter.

    A column explains at most its own prior variance, whatever is asked.

    Parameters
    ----------
    queries : array of shape (M, P)
        F.
    prior_variance : float
        Of all query points together.

    Returns
    -------
    directions : array of shape (M, p)
    lost : float
        The most that the others could explain.

    Examples
    --------
    >>> directions, lost = main_query_directions(np.diag([1.0, 1e-5]), prior_variance=1.0)
    >>> directions.shape, round(lost, 12)
    ((2, 1), 1e-10)
    """
    left, scales, _ = np.linalg.svd(queries, full_matrices=False)
    remaining = np.cumsum(np.square(scales)[::-1])[::-1]
    kept = remaining > NEGLIGIBLE * prior_variance
    kept[0] = True
    lost = float(remaining[~kept].max()) if not kept.all() else 0.0
    return left[:, kept] * scales[kept], lost
