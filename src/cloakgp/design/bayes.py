r"""Bayesian A-optimal design: the linear Gaussian release after which predictions are sharpest.

Among all strategies R whose columns are at most 1 long, with noise of sd s on every answer,
maximise the variance that the answers explain at the weighted query points,

    g = tr[F ᵀ Rᵀ (s² I + R K_y Rᵀ)⁻¹ R F],    F = K_f* W^½.

As a function of G = RᵀR it is concave over the convex set G ⪰ 0, diag G ≤ 1 (it is a trace of
parallel sums; Anderson and Duffin 1969), so there is one optimal value. In R it is smooth, and its
columns are unconstrained once normalised. With S = s² I + R K_y Rᵀ, T = R F, W = S⁻¹T and
E = (F − K_y Rᵀ W)/s, the gradient in G is E Eᵀ and the one in R is 2 R E Eᵀ; R E = s W.

How many answers. E has P columns. Where the gradient along R vanishes, R diag(v) = R E Eᵀ, so R has
rank P at most; and a point of rank less than k that no second-order change of R improves is optimal
in G (Burer and Monteiro 2005). So P + 1 answers are enough, and a few more find it in fewer steps.

When it ends. `cloakgp.design.weak_duality` bounds what any strategy explains. It ends at the gap
asked for; or, with as many answers as help, when that is out of reach.

Where rows come in groups, the columns of a group share one constraint: see `cloakgp.design.groups`.

Any R may be released: what is computed here decides how useful a release is, never how private.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, optimize

from cloakgp.design.explained import CovarianceProduct, evaluate, main_directions
from cloakgp.design.groups import GroupGauges, Groups
from cloakgp.design.solver import Progress
from cloakgp.design.strategy import LOOSE, Certificate, warn_if_short
from cloakgp.design.weak_duality import (
    CHECKS,
    FLOORS,
    Point,
    Record,
    RowSupports,
    positive,
    row_supports,
)
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import DEFAULT_GAP
from cloakgp.utils.threads import suitable_threads

FIRST_ANSWERS = 8
# While more answers still explain this share more, or could by what is certified, a few steps on
# them tell as much as many.
FAR_PROGRESS, FAR_GAP, FAR_GROWTH, FAR_STEPS = 0.05, 0.1, 2.0, 15
# These go without query directions that could explain less than this share of the gap asked for.
FAR_SHARE = 1e-2
GROWTH, STEPS = 1.4, 60
# Answers beyond those that are enough, at most: they shorten the way.
SPARE_ANSWERS = 8
# Steps from one certificate to the next.
CHECKED_EVERY = 20
# Several bounds differ by less than so many times.
FAR_OFF = 100.0
SHORTEST = 1e-20
MEMORY = 20
# Answers whose share of the strategy is below this are dropped at the end, where the gap allows it.
REDUNDANT = 1e-5
# New questions: where they are sought, as a share of the mean eigenvalue of (RE)ᵀRE; how long.
SOUGHT, NEW = 1e-2, 0.1
# Groups: how nearly optimal the design without groups is that theirs starts from, how sharp their
# gauges become, and how many answers more each round tries.
START_GAP, POWERS, MORE_ANSWERS = 1e-2, (8.0, 32.0, 128.0, 512.0, 2048.0), 4


@dataclass(frozen=True, eq=False)
class BayesDesign:
    """The questions to ask, and their certificate.

    Attributes
    ----------
    strategy : array of shape (k, N)
        R, with columns of norm 1, or groups of gauge 1.
    certificate : Certificate
        Its gap is relative to the variance that remains unexplained.
    unexplained : float
        Σ_i w_i var[f_i | answers] at the query points, in squared output units.
    """

    strategy: Array
    certificate: Certificate
    unexplained: float


def design_bayes(
    covariance: CovarianceProduct,
    crossed: Array,
    *,
    prior_variance: float,
    noise_sd: float,
    groups: Groups | None = None,
    gap: float = DEFAULT_GAP,
    progress: Progress | None = None,
) -> BayesDesign:
    """Choose the questions that leave the least variance at the query points.

    Sees the public prior only. The number of answers grows until the certificate closes.

    Parameters
    ----------
    covariance : CovarianceProduct
        K_y over the N rows, in squared output units.
    crossed : array of shape (N, P)
        F = K_f* W^½: covariances of the rows' latent values with those at the query points, columns
        scaled by the roots of the weights.
    prior_variance : float
        Σ_i w_i K_**ii.
    noise_sd : float
        s, of the noise on each answer when columns have norm 1, in output units.
    groups : array of shape (N,), optional
        Which group each row belongs to, from 0; every row alone if not given.
    gap : float
        Stop when the unexplained variance is certified to be within this share of the least. With
        groups, whose bounds are not tight, several times the gap is usual, whatever is asked for,
        and tens of percent where groups have more than eight rows: only ten times the gap warns.
    progress : callable, optional
        Called with the certified gap after every round.

    Returns
    -------
    BayesDesign
        The best that was found, whether the gap was reached or not.

    Warns
    -----
    DesignGapWarning
        If the gap was not reached; with groups, if not ten times the gap was.

    Examples
    --------
    Two persons with independent values: each is asked on its own.

    >>> from cloakgp.models.covariance import DenseCovariance
    >>> prior = DenseCovariance(latent=np.eye(2), noise=np.ones(2))
    >>> design = design_bayes(prior, np.eye(2), prior_variance=2.0, noise_sd=1.0)
    >>> abs(design.strategy.T @ design.strategy).round(3)
    array([[1., 0.],
           [0., 1.]])
    """
    design = sharpest_strategy(
        covariance,
        crossed,
        prior_variance=prior_variance,
        noise_sd=noise_sd,
        groups=groups,
        gap=gap,
        progress=progress,
    )
    allowed = gap if groups is None else LOOSE * gap
    warn_if_short(design.certificate, gap=gap, allowed=allowed)
    return design


def sharpest_strategy(
    covariance: CovarianceProduct,
    crossed: Array,
    *,
    prior_variance: float,
    noise_sd: float,
    groups: Groups | None = None,
    gap: float,
    progress: Progress | None = None,
) -> BayesDesign:
    """Design as `design_bayes`, as part of a design that certifies for itself."""
    rows = len(crossed)
    if not 0 < gap < np.inf:
        raise ValueError(f"gap must be positive and finite, got {gap}")
    with suitable_threads(float(rows) * rows * FIRST_ANSWERS):
        directions, lost = main_directions(crossed, covariance, prior_variance=prior_variance)
        if directions.shape[1] == 0:
            share = lost / prior_variance if prior_variance > 0 else 0.0
            return BayesDesign(
                strategy=np.zeros((0, rows)),
                certificate=Certificate(criterion="bayes", gap=share),
                unexplained=prior_variance,
            )
        problem = _Problem(
            covariance=covariance,
            directions=directions[:, ::-1],
            noise_sd=noise_sd,
            prior_variance=prior_variance,
            lost=lost,
        )
        if groups is None:
            return problem.solve(gap=gap, progress=progress)
        alone = problem.solve(gap=max(gap, START_GAP), progress=None)
        together = replace(problem, gauges=GroupGauges.of(groups, alone.strategy))
        return together.solve_groups(alone, gap=gap, progress=progress)


@dataclass(frozen=True, eq=False)
class _Problem:
    """One design problem; ``directions`` is F with orthogonal columns, longest first."""

    covariance: CovarianceProduct
    directions: Array
    noise_sd: float
    prior_variance: float
    lost: float
    gauges: GroupGauges | None = None

    def evaluate(self, strategy: Array) -> Point:
        """Return g(R), E and R E."""
        return evaluate(
            strategy,
            covariance=self.covariance,
            directions=self.directions,
            noise_sd=self.noise_sd,
        )

    def excess(self, point: Point, *, gap: float = 0.0) -> float:
        """Return a bound of the variance that any feasible strategy explains beyond this one.

        Parameters
        ----------
        point : Point
        gap : float
            As soon as it is certified, no closer bound is looked for.
        """
        enough = gap * positive(self.prior_variance - point.explained)
        noise_ratio = self.noise_sd**2 / self.covariance.least_noise
        if self.gauges is not None:
            return self.lost + self.gauges.excess(
                point.strategy,
                point.slopes,
                answered=point.answered,
                noise_ratio=noise_ratio,
                floor=positive(self.prior_variance - point.explained),
            )
        least = np.inf
        for floor in FLOORS:
            supports = RowSupports.of(point.slopes, answered=point.answered, floors=(floor,))
            least = min(least, supports.excess(point.answered, noise_ratio=noise_ratio))
            # Another one is not needed, or would not be close enough.
            if not enough < self.lost + least < FAR_OFF * enough:
                break
        return self.lost + least

    @property
    def most_answers(self) -> int:
        """More do not help."""
        rows, directions = self.directions.shape
        enough = int(directions) + 1
        return min(int(rows), enough + min(enough, SPARE_ANSWERS))

    def solve(self, *, gap: float, progress: Progress | None) -> BayesDesign:
        """Increase the number of answers while that helps, or until the certificate closes."""
        record = Record(self.prior_variance, gap=gap, progress=progress)
        start = leading_questions(self.directions, min(FIRST_ANSWERS, self.most_answers))
        far, previous = True, np.inf
        while len(start) < self.most_answers:
            climbed = self.leading(FAR_SHARE * gap) if far else self
            point = self.ascend(start, record, steps=FAR_STEPS if far else STEPS, climbed=climbed)
            if record.finished():
                return self.compress(record, gap=gap)
            unexplained = self.prior_variance - point.explained
            far = record.gap > FAR_GAP or previous - unexplained > FAR_PROGRESS * unexplained
            previous = unexplained
            wanted = max(len(start) + 4, int((FAR_GROWTH if far else GROWTH) * len(start)))
            count = min(wanted, self.most_answers) - len(start)
            start = _with_new_questions(point, count=count)
        self.ascend(start, record, steps=CHECKED_EVERY)
        record.expect_no_more_answers()
        while not record.finished():
            self.ascend(record.best.strategy, record, steps=CHECKED_EVERY * CHECKS)
        return self.compress(record, gap=gap)

    def solve_groups(
        self, alone: BayesDesign, *, gap: float, progress: Progress | None
    ) -> BayesDesign:
        """Go on from a design without groups, under gauges that are ever less smooth.

        What it leaves unexplained cannot be undercut: groups only constrain further.
        """
        record = Record(
            self.prior_variance,
            gap=gap,
            progress=progress,
            least=alone.unexplained * (1.0 - alone.certificate.gap),
        )
        problem, start = self, alone.strategy
        record.note(self.evaluate(start / self.lengths(start)), excess=np.inf)
        for power in POWERS:
            gauges = None if self.gauges is None else self.gauges.sharper(power, start)
            problem = replace(problem, gauges=gauges)
            point = problem.ascend(start, record, steps=STEPS)
            if record.finished():
                break
            count = min(max(self.most_answers - len(start), 0), MORE_ANSWERS)
            start = _with_new_questions(point, count=count)
        return BayesDesign(
            strategy=record.best.strategy,
            certificate=Certificate(criterion="bayes", gap=record.gap),
            unexplained=record.unexplained,
        )

    def lengths(self, columns: Array) -> Array:
        """Return the divisor that makes each column feasible."""
        return column_lengths(columns) if self.gauges is None else self.gauges.lengths(columns)

    def normalised(self, free: Array) -> Array:
        """Return the divisors through which `ascend` differentiates."""
        return column_lengths(free) if self.gauges is None else self.gauges.smooth_lengths(free)

    def across(self, point: Point) -> Array:
        """Return the part of the gradient along which the divisors do not change."""
        gradient = point.gradient
        if self.gauges is not None:
            return self.gauges.across(point.strategy, gradient)
        along = np.einsum("kj,kj->j", point.strategy, gradient)
        across: Array = gradient - point.strategy * along
        return across

    def leading(self, share: float) -> _Problem:
        """Return the problem of the main query directions.

        Parameters
        ----------
        share : float
            Of the prior variance: the others could explain no more together.
        """
        squares = np.einsum("np,np->p", self.directions, self.directions)
        explainable = np.cumsum(squares[::-1])[::-1] / self.covariance.least_noise
        kept = explainable > share * self.prior_variance
        if kept.all() or not kept.any():
            return self
        return replace(self, directions=np.ascontiguousarray(self.directions[:, kept]))

    def ascend(
        self, start: Array, record: Record, *, steps: int, climbed: _Problem | None = None
    ) -> Point:
        """Run L-BFGS over the columns' directions, each normalised, and certify the optimum.

        Without groups, strategies on the way, too, to end as soon as that is enough.

        Parameters
        ----------
        start : array of shape (k, N)
        record : Record
        steps : int
        climbed : _Problem, optional
            To climb in place of this one, which certifies.
        """
        shape, done, climbed = start.shape, 0, climbed or self

        def objective(flat: Array) -> tuple[float, Array]:
            free = flat.reshape(shape)
            # Of a column of next to nothing, which would overflow as a divisor.
            lengths = np.maximum(self.normalised(free), SHORTEST)
            point = climbed.evaluate(free / lengths)
            # The derivative through the normalisation is the part across each column.
            across = self.across(point) / lengths
            return -point.explained / self.prior_variance, -across.ravel() / self.prior_variance

        def noted(flat: Array, *, certify: bool) -> Point:
            free = flat.reshape(shape)
            point = self.evaluate(free / self.lengths(free))
            excess = self.excess(point, gap=record.target) if certify else np.inf
            record.note(point, excess=excess)
            return point

        def watch(intermediate_result: optimize.OptimizeResult) -> None:
            nonlocal done
            done += 1
            if done % CHECKED_EVERY == 0 and done < steps:
                # Bounds of groups take as long as many steps, and hardly ever close the gap midway.
                noted(intermediate_result.x, certify=self.gauges is None)
                if record.finished():
                    raise StopIteration

        result = optimize.minimize(
            objective,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=watch,
            options={"maxiter": steps, "maxcor": MEMORY, "ftol": 1e-15, "gtol": 1e-12},
        )
        return noted(result.x, certify=True)

    def compress(self, record: Record, *, gap: float) -> BayesDesign:
        """Drop answers that ask nothing new, where the certificate allows it."""
        point, certified = record.best, record.gap
        squares, directions = linalg.eigh(point.strategy @ point.strategy.T)
        kept = squares > REDUNDANT**2 * squares[-1]
        smaller = directions[:, kept].T @ point.strategy
        lengths = self.lengths(smaller)
        if not kept.all() and lengths.min() > 0:
            candidate = self.evaluate(smaller / lengths)
            candidate_gap = record.gap_of(positive(self.prior_variance - candidate.explained))
            if candidate_gap <= max(gap, certified):
                point, certified = candidate, candidate_gap
        return BayesDesign(
            strategy=point.strategy,
            certificate=Certificate(criterion="bayes", gap=certified),
            unexplained=self.prior_variance - point.explained,
        )


def _with_new_questions(point: Point, *, count: int) -> Array:
    """Append small questions along the directions in which diag(v) ⪰ E Eᵀ is most violated."""
    if count == 0:
        return point.strategy
    supports = row_supports(point.slopes, point.answered, floor=SOUGHT)
    scaled = point.slopes / np.sqrt(supports)[:, None]
    _, vectors = linalg.eigh(scaled.T @ scaled)
    fresh = (scaled @ vectors[:, ::-1][:, :count]).T / np.sqrt(supports)
    fresh = fresh / np.maximum(np.sqrt(np.square(fresh).mean(axis=1, keepdims=True)), 1e-300)
    grown = np.vstack([point.strategy, NEW * fresh])
    return grown / column_lengths(grown)


def leading_questions(directions: Array, count: int) -> Array:
    """Return the query directions that the rows explain most, as columns of norm 1.

    Parameters
    ----------
    directions : array of shape (N, P)
        Orthogonal columns, the longest first.
    count : int
        How many questions to begin with.

    Examples
    --------
    >>> abs(leading_questions(np.eye(2), 2)).round(2)
    array([[1., 0.],
           [0., 1.]])
    """
    leading = directions[:, :count].T.copy()
    if len(leading) < count:
        leading = np.vstack([leading, np.zeros((count - len(leading), leading.shape[1]))])
    leading += 1e-3 * np.abs(leading).max() * _spread(leading.shape)
    return leading / column_lengths(leading)


def column_lengths(columns: Array) -> Array:
    """Return the norms of columns, none of them zero.

    Examples
    --------
    >>> column_lengths(np.array([[3.0], [4.0]]))
    array([5.])
    """
    lengths: Array = np.sqrt(np.einsum("kj,kj->j", columns, columns))
    return np.maximum(lengths, np.finfo(np.float64).tiny)


def _spread(shape: tuple[int, int]) -> Array:
    """Return fixed numbers of either sign that no symmetry of the problem shares."""
    index = np.arange(1, 1 + shape[0] * shape[1], dtype=np.float64).reshape(shape)
    spread: Array = np.cos(index * np.sqrt(2.0) * np.pi)
    return spread
