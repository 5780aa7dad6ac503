r"""`bayes`: the linear Gaussian release after which predictions are sharpest.

Among all strategies R whose columns are at most 1 long, with noise of sd s on every answer,
maximise the variance that the answers explain at the weighted query points,

    g = tr[F ᵀ Rᵀ (s² I + R K_y Rᵀ)⁻¹ R F],    F = K_f* W^½.

As a function of G = RᵀR it is concave over the convex set G ⪰ 0, diag G ≤ 1 (it is a trace of
parallel sums; Anderson and Duffin 1969), so there is one optimal value. In R it is smooth, and its
columns are unconstrained once normalised. With S = s² I + R K_y Rᵀ, T = R F and
E = (F − K_y Rᵀ S⁻¹ T)/s, the gradient in G is E Eᵀ and the one in R is 2 R E Eᵀ.

Certificate. Let v ≥ 0 with diag(v) ⪰ E Eᵀ. By concavity, for every feasible G',
g(G') ≤ g(G) + tr[E Eᵀ (G' − G)] ≤ g(G) + Σ_j v_j − tr[E Eᵀ G]. Complementary slackness suggests
v_j = (G E Eᵀ)_jj; it is scaled up until diag(v) ⪰ E Eᵀ holds.

Where rows come in groups, the columns of a group share one constraint: see `cloakgp.design.groups`.

Any R may be released: what is computed here decides how useful a release is, never how private.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import linalg, optimize

from cloakgp.arrays import Array
from cloakgp.design.groups import GroupGauges, Groups
from cloakgp.design.solver import Progress
from cloakgp.design.starts import column_lengths, leading_questions
from cloakgp.design.strategy import Certificate
from cloakgp.design.threads import suitable_threads

FIRST_ANSWERS = 8
# While more answers still explain this share more, a few steps on them tell as much as many.
FAR_PROGRESS, FAR_GROWTH, FAR_STEPS = 0.05, 2.0, 15
GROWTH, STEPS = 1.4, 60
ROUNDS = 40
# With as many answers as rows, stop when a round wins less than this share of the gap asked for.
STALLED = 1e-3
# Shares of the unexplained variance that the floors of v may take, for a better certificate.
FLOORS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
MEMORY = 20
# Query directions that explain less than this share of the variance are left out of F, and the
# most that they could explain is added to the certificate.
NEGLIGIBLE = 1e-7
# Answers whose share of the strategy is below this are dropped at the end, and the rest certified.
REDUNDANT = 1e-5
# Groups: how nearly optimal the design without groups is that theirs starts from, how sharp their
# gauges become, and how many answers more each round tries.
START_GAP, POWERS, MORE_ANSWERS = 1e-2, (8.0, 32.0, 128.0, 512.0, 2048.0), 4


class CovarianceProduct(Protocol):
    """What the design asks of the outputs' prior covariance K_y."""

    def times(self, columns: Array) -> Array:
        """Return K_y B for B of shape (N, k)."""

    @property
    def least_noise(self) -> float:
        """A positive lower bound of the eigenvalues of K_y."""


@dataclass(frozen=True, eq=False)
class BayesDesign:
    """The questions to ask, and what is known about them.

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
    gap: float = 1e-3,
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
        Stop when the unexplained variance is certified to be within this share of the least.
    progress : callable, optional
        Called with the certified gap after every round.

    Returns
    -------
    BayesDesign

    Examples
    --------
    Two persons with independent values: each is asked on its own.

    >>> from cloakgp.models.output_covariance import DenseCovariance
    >>> prior = DenseCovariance(latent=np.eye(2), noise=np.ones(2))
    >>> design = design_bayes(prior, np.eye(2), prior_variance=2.0, noise_sd=1.0)
    >>> abs(design.strategy.T @ design.strategy).round(3)
    array([[1., 0.],
           [0., 1.]])
    """
    rows = len(crossed)
    if not 0 < gap < np.inf:
        raise ValueError(f"gap must be positive and finite, got {gap}")
    with suitable_threads(float(rows) * rows * FIRST_ANSWERS):
        directions, lost = _main_directions(crossed, covariance, prior_variance=prior_variance)
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


def _main_directions(
    crossed: Array, covariance: CovarianceProduct, *, prior_variance: float
) -> tuple[Array, float]:
    """Rotate F to orthogonal columns, ascending, and cut off those that cannot matter.

    A column f explains at most fᵀ K_y⁻¹ f ≤ ‖f‖² / least noise, whatever is asked.
    """
    squares, rotation = linalg.eigh(crossed.T @ crossed)
    explainable = np.cumsum(np.maximum(squares, 0.0)) / covariance.least_noise
    kept = explainable > NEGLIGIBLE * prior_variance
    lost = float(explainable[~kept].max()) if not kept.all() else 0.0
    return crossed @ rotation[:, kept], lost


@dataclass(frozen=True, eq=False)
class _Point:
    """g and its derivatives at one strategy."""

    strategy: Array
    explained: float
    slopes: Array
    gradient: Array


@dataclass(frozen=True, eq=False)
class _Problem:
    """One design problem; ``directions`` is F with orthogonal columns, longest first."""

    covariance: CovarianceProduct
    directions: Array
    noise_sd: float
    prior_variance: float
    lost: float
    gauges: GroupGauges | None = None

    def evaluate(self, strategy: Array) -> _Point:
        """Return g(R), E and 2 R E Eᵀ."""
        covered = self.covariance.times(strategy.T)
        answers = strategy @ covered
        answers[np.diag_indices(len(answers))] += self.noise_sd**2
        answered = strategy @ self.directions
        weights = linalg.cho_solve(linalg.cho_factor(answers, lower=True), answered)
        slopes = (self.directions - covered @ weights) / self.noise_sd
        return _Point(
            strategy=strategy,
            explained=float(np.vdot(answered, weights)),
            slopes=slopes,
            gradient=2.0 * (strategy @ slopes) @ slopes.T,
        )

    def certify(self, point: _Point) -> tuple[float, Array]:
        """Return the certified relative gap, and v."""
        unexplained = max(self.prior_variance - point.explained, np.finfo(np.float64).tiny)
        if self.gauges is not None:
            missing, bounds = self.gauges.certificate(
                point.strategy, point.gradient, point.slopes, unexplained=unexplained
            )
            return max(missing + self.lost, 0.0) / unexplained, bounds
        supporting = np.einsum("kj,kj->j", point.strategy, point.gradient) / 2.0
        squares = np.einsum("jp,jp->j", point.slopes, point.slopes)
        # Rows that hardly matter would each cost a whole unit of the eigenvalue below; so no v_j is
        # less than a little, and of several amounts the one that certifies most is taken.
        least = np.maximum(supporting, squares)
        floors = [share * unexplained / len(squares) for share in FLOORS]
        candidates = (_dominating(np.maximum(least, floor), point.slopes) for floor in floors)
        bounds = min(candidates, key=np.sum)
        missing = float(bounds.sum() - supporting.sum()) + self.lost
        return max(missing, 0.0) / unexplained, bounds

    def solve(self, *, gap: float, progress: Progress | None) -> BayesDesign:
        """Grow the number of answers until the certificate closes."""
        rows = len(self.directions)
        start = leading_questions(self.directions, min(FIRST_ANSWERS, rows))
        best_point, best_gap, far, previous = self.evaluate(start), np.inf, True, np.inf
        for _ in range(ROUNDS):
            point = self.ascend(start, steps=FAR_STEPS if far else STEPS)
            certified, bounds = self.certify(point)
            if certified < best_gap:
                best_point, best_gap = point, certified
            if progress is not None:
                progress(best_gap)
            if best_gap <= gap:
                break
            unexplained = self.prior_variance - point.explained
            won = previous - unexplained
            previous = unexplained
            if len(start) >= rows:
                # No more questions can help: go on improving these, while that does.
                if not far and won < STALLED * gap * unexplained:
                    break
                far, start = False, point.strategy
                continue
            far = won > FAR_PROGRESS * unexplained
            wanted = min(
                rows, max(len(start) + 4, int((FAR_GROWTH if far else GROWTH) * len(start)))
            )
            start = _with_new_questions(point, bounds, count=wanted - len(start))
        return self.compress(best_point, gap=max(gap, best_gap))

    def solve_groups(
        self, alone: BayesDesign, *, gap: float, progress: Progress | None
    ) -> BayesDesign:
        """Go on from a design without groups, under gauges that are ever less smooth.

        What it leaves unexplained cannot be undercut: groups only constrain further.
        """
        least = alone.unexplained * (1.0 - alone.certificate.gap)
        problem, start, best_gap = self, alone.strategy, np.inf
        best_point = self.evaluate(start / self.lengths(start))
        for power in POWERS:
            gauges = None if self.gauges is None else self.gauges.sharper(power, start)
            problem = replace(problem, gauges=gauges)
            point = problem.ascend(start, steps=STEPS)
            certified, bounds = problem.certify(point)
            # What one point certifies holds for all.
            least = max(least, (self.prior_variance - point.explained) * (1.0 - certified))
            best_point = max(best_point, point, key=lambda one: one.explained)
            best_gap = 1.0 - least / (self.prior_variance - best_point.explained)
            if progress is not None:
                progress(best_gap)
            if best_gap <= gap:
                break
            count = min(start.shape[1] - len(start), MORE_ANSWERS)
            start = _with_new_questions(point, bounds, count=count) if count else point.strategy
        return BayesDesign(
            strategy=best_point.strategy,
            certificate=Certificate(criterion="bayes", gap=max(best_gap, 0.0)),
            unexplained=self.prior_variance - best_point.explained,
        )

    def lengths(self, columns: Array) -> Array:
        """Return what each column must be divided by to be feasible."""
        return column_lengths(columns) if self.gauges is None else self.gauges.lengths(columns)

    def normalised(self, free: Array) -> Array:
        """Return the divisors through which `ascend` differentiates."""
        return column_lengths(free) if self.gauges is None else self.gauges.smooth_lengths(free)

    def across(self, point: _Point) -> Array:
        """Return the part of the gradient along which the divisors do not change."""
        if self.gauges is not None:
            return self.gauges.across(point.strategy, point.gradient)
        along = np.einsum("kj,kj->j", point.strategy, point.gradient)
        across: Array = point.gradient - point.strategy * along
        return across

    def ascend(self, start: Array, *, steps: int = STEPS) -> _Point:
        """Run L-BFGS over the columns' directions, each normalised."""
        shape = start.shape

        def objective(flat: Array) -> tuple[float, Array]:
            free = flat.reshape(shape)
            lengths = self.normalised(free)
            point = self.evaluate(free / lengths)
            # The derivative through the normalisation is the part across each column.
            across = self.across(point) / lengths
            return -point.explained / self.prior_variance, -across.ravel() / self.prior_variance

        found = optimize.minimize(
            objective,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps, "maxcor": MEMORY, "ftol": 1e-15, "gtol": 1e-12},
        )
        free = found.x.reshape(shape)
        return self.evaluate(free / self.lengths(free))

    def compress(self, point: _Point, *, gap: float) -> BayesDesign:
        """Drop answers that ask nothing new, where the certificate allows it."""
        certified, _ = self.certify(point)
        squares, directions = linalg.eigh(point.strategy @ point.strategy.T)
        kept = squares > REDUNDANT**2 * squares[-1]
        smaller = directions[:, kept].T @ point.strategy
        lengths = self.lengths(smaller)
        if not kept.all() and lengths.min() > 0:
            candidate = self.evaluate(smaller / lengths)
            candidate_gap, _ = self.certify(candidate)
            if candidate_gap <= max(gap, certified):
                point, certified = candidate, candidate_gap
        return BayesDesign(
            strategy=point.strategy,
            certificate=Certificate(criterion="bayes", gap=certified),
            unexplained=self.prior_variance - point.explained,
        )


def _dominating(bounds: Array, slopes: Array) -> Array:
    """Scale v up until diag(v) ⪰ E Eᵀ."""
    positive = np.maximum(bounds, np.finfo(np.float64).tiny)
    # diag(v) ⪰ E Eᵀ exactly when the largest eigenvalue of Eᵀ diag(1/v) E is at most 1.
    scaled = slopes / np.sqrt(positive)[:, None]
    largest = float(linalg.eigvalsh(scaled.T @ scaled)[-1]) * (1 + 1e-12)
    return positive * max(largest, 1.0)


def _with_new_questions(point: _Point, bounds: Array, *, count: int) -> Array:
    """Append small questions along the directions in which the certificate is most violated."""
    scaled = point.slopes / np.sqrt(bounds)[:, None]
    _, vectors = linalg.eigh(scaled.T @ scaled)
    fresh = (scaled @ vectors[:, ::-1][:, :count]).T / np.sqrt(bounds)
    fresh = fresh / np.maximum(np.sqrt(np.square(fresh).mean(axis=1, keepdims=True)), 1e-300)
    grown = np.vstack([point.strategy, 0.1 * fresh])
    return grown / column_lengths(grown)
