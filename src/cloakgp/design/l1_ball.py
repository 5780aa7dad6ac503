r"""Bayesian A-optimal design in the ℓ1 ball: the sharpest release under Laplace noise.

Laplace noise pays for the sum of the absolute entries of a column. Among all strategies R with
‖r_j‖₁ ≤ 1, with noise of sd s on every answer, maximise the variance that the answers explain at
the weighted query points: the problem of `cloakgp.design.bayes` in another norm. The extreme points
of that ball put every row into one answer, with a sign: partitions of the rows. Where noise is
strong they are optimal; where it is weak, rows between two parts are shared by both.

Unlike the Euclidean ball's, this problem depends on more than RᵀR, and it is not convex. What is
found here is a local optimum, reached from several starts:

1. `cloakgp.design.bayes` is solved for the same s. Every column in the ℓ1 ball is in the Euclidean
   one, so no strategy leaves less than what that certifies.
2. The optimum's answers may be rotated at will. Its leading m are rotated by quartimax, after
   which each row is mostly in one answer; m grows while that pays.
3. From there L-BFGS climbs over u, with r_ij = u_ij |u_ij| / ‖u_j‖₂², whose ℓ1 norm is 1 whatever u
   (Hadamard parametrisation: Li, McKenzie and Yin 2023, *From the simplex to the sphere*). Its
   derivative vanishes at zeros, so rows settle in one answer, or in few.

The certificate's gap compares with step 1, and so includes what the ℓ1 ball costs by nature: often
a tenth. Where the gap is 0, the design is optimal.

Groups. All outputs of a group may change together, which moves answers by at most Σ_j ‖r_j‖₁ over
its rows; where each row is in one answer, by exactly that, as signs may all point one way. So the
rows of a group share one ball: ‖u_j‖₂² becomes the sum over the group.

Any R may be released: what is computed here decides how useful a release is, never how private.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from scipy import linalg, optimize

from cloakgp.design.bayes import BayesDesign, sharpest_strategy
from cloakgp.design.explained import NEGLIGIBLE as LEFT_OUT
from cloakgp.design.explained import CovarianceProduct, evaluate, several_main_directions
from cloakgp.design.groups import Groups
from cloakgp.design.solver import Progress
from cloakgp.design.strategy import Certificate
from cloakgp.design.weak_duality import Point, positive
from cloakgp.utils.arrays import Array
from cloakgp.utils.threads import LARGE_PRODUCT, each_of, suitable_threads

# The Gaussian design that starts and bounds is solved to this gap at least.
START_GAP = 1e-2
# Steps by which numbers of answers are compared, and from the best of them.
TRIAL_STEPS, STEPS = 8, 60
MEMORY = 20
# The next number of answers; so many that do not explain this share more of what is left, one after
# the other, end the search. Where all answers matter alike, few of them explain less than that: the
# search goes on to this share of them in any case.
GROWTH, WORSE, PAYS, FEW = 1.4, 2, 2e-3, 0.05
# From so many answers on, their number is doubled: what is explained depends little on it. From so
# large a share of all, all are tried instead.
MANY, MANY_GROWTH, NEARLY_ALL = 64, 2.0, 0.8
# A step that gains less than this share of the unexplained variance is the last.
STALLED = 1e-5
# Answers of the Gaussian design below this share of its first are not begun with.
REDUNDANT = 1e-4
# While climbing, query directions that together matter less than this share are left out.
NEGLIGIBLE = 1e-6
# A column's entries below these shares of its largest are dropped if that costs next to nothing:
# all but the largest, or the smallest.
DROPPED, NEXT_TO_NOTHING = (1.0, 0.1, 0.01), 1e-3
# The rotation ends after so many turns, of many answers fewer, or one that gains no more than this
# share.
ROTATIONS, MANY_ROTATIONS, ROTATED = 100, 20, 1e-6


def design_l1(
    covariance: CovarianceProduct,
    crossed: Array,
    *,
    prior_variance: float,
    noise_sd: float,
    groups: Groups | None = None,
    gap: float = START_GAP,
    progress: Progress | None = None,
) -> BayesDesign:
    """Choose questions with columns of ℓ1 norm 1 that leave little variance at the query points.

    Sees the public prior only.

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
        s, of the noise on each answer when columns have ℓ1 norm 1, in output units: √2 b for
        Laplace noise of scale b.
    groups : array of shape (N,), optional
        Which group each row belongs to, from 0; every row alone if not given.
    gap : float
        To which the Gaussian design that starts and bounds this one is solved; 0.01 is enough, and
        larger ones are not used.
    progress : callable, optional
        Called with the certified gap of that Gaussian design.

    Returns
    -------
    BayesDesign
        The columns of each row, or of each group together, have absolute entries that sum to 1. The
        certificate's gap is relative to the variance that remains unexplained, and bounds how far
        that is from the least; it does not close, as the bound knows Euclidean norms only.

    Examples
    --------
    Two pairs of rows that tell the same: each pair is added up.

    >>> from cloakgp.models.covariance import DenseCovariance
    >>> alike = np.kron(np.eye(2), np.ones((2, 2)))
    >>> prior = DenseCovariance(latent=alike, noise=np.ones(4))
    >>> design = design_l1(prior, alike, prior_variance=4.0, noise_sd=1.0)
    >>> abs(design.strategy.T @ design.strategy).round(6)
    array([[1., 1., 0., 0.],
           [1., 1., 0., 0.],
           [0., 0., 1., 1.],
           [0., 0., 1., 1.]])
    """
    gaussian = sharpest_strategy(
        covariance,
        crossed,
        prior_variance=prior_variance,
        noise_sd=noise_sd,
        groups=groups,
        gap=min(gap, START_GAP),
        progress=progress,
    )
    return climb_in_l1(
        gaussian,
        covariance,
        crossed,
        prior_variance=prior_variance,
        noise_sd=noise_sd,
        groups=groups,
    )


def climb_in_l1(
    gaussian: BayesDesign,
    covariance: CovarianceProduct,
    crossed: Array,
    *,
    prior_variance: float,
    noise_sd: float,
    groups: Groups | None = None,
) -> BayesDesign:
    """Design as `design_l1`, starting from a Gaussian design for the same noise.

    Parameters
    ----------
    gaussian : BayesDesign
        Whose certificate bounds what is found.
    covariance, crossed, prior_variance, noise_sd, groups
        As for `design_l1`.
    """
    if len(gaussian.strategy) == 0:
        return gaussian
    # Sparse models know rows by no more numbers than there are query points.
    with suitable_threads(float(crossed.size) * len(gaussian.strategy)):
        (climbed, _), (every, _) = several_main_directions(
            crossed,
            covariance,
            prior_variance=prior_variance,
            negligible=(NEGLIGIBLE, LEFT_OUT),
        )
        problem = _Problem(
            covariance=covariance,
            directions=climbed,
            noise_sd=noise_sd,
            prior_variance=prior_variance,
            scale=gaussian.unexplained,
            groups=groups,
        )
        point = replace(problem, directions=every).sparser(problem.solve(gaussian.strategy))
    unexplained = positive(prior_variance - point.explained)
    least = gaussian.unexplained * (1.0 - gaussian.certificate.gap)
    return BayesDesign(
        strategy=point.strategy,
        certificate=Certificate(criterion="bayes", gap=max(1.0 - least / unexplained, 0.0)),
        unexplained=unexplained,
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """One design problem; ``scale`` is the variance that matters."""

    covariance: CovarianceProduct
    directions: Array
    noise_sd: float
    prior_variance: float
    scale: float
    groups: Groups | None

    def evaluate(self, strategy: Array) -> Point:
        """Return g(R), E and R E."""
        return evaluate(
            strategy,
            covariance=self.covariance,
            directions=self.directions,
            noise_sd=self.noise_sd,
        )

    def solve(self, gaussian: Array) -> Array:
        """Try more and more answers of a Gaussian design, and climb from the best number."""
        _, sizes, axes = np.linalg.svd(gaussian, full_matrices=False)
        leading = (sizes[:, None] * axes)[sizes > REDUNDANT * sizes[0]]
        best, most, worse = leading[:1], -np.inf, 0
        # As many at a time as end the search. Of a small problem threads cost more than they save.
        at_once = WORSE if self.directions.size * len(leading) > LARGE_PRODUCT else 1
        growing = _numbers_of_answers(len(leading))
        while counts := list(islice(growing, at_once)):
            climbed = each_of(lambda count: self.trial(leading[:count]), counts)
            for count, (free, explained) in zip(counts, climbed, strict=True):
                pays = explained - most > PAYS * (self.prior_variance - explained)
                worse = 0 if pays or count < FEW * len(leading) else worse + 1
                if explained > most:
                    best, most = free, explained
            if worse >= WORSE:
                break
        free, _ = self.ascend(best, steps=STEPS)
        return self.strategy(free)

    def trial(self, leading: Array) -> tuple[Array, float]:
        """Return what a few steps from the leading answers reach, and the variance explained."""
        return self.ascend(quartimax(leading), steps=TRIAL_STEPS)

    def sum_over_groups(self, budgets: Array) -> Array:
        """Return for each row the sum over all rows that are protected with it."""
        if self.groups is None:
            return budgets
        sums = np.bincount(self.groups, weights=budgets)
        return np.asarray(sums[self.groups], dtype=np.float64)

    def unit(self, free: Array) -> tuple[Array, Array]:
        """Return u with Euclidean norm 1, of each row or group, and the norms before."""
        norms = np.sqrt(self.sum_over_groups(np.einsum("kj,kj->j", free, free)))
        norms = np.maximum(norms, np.finfo(np.float64).tiny)
        return free / norms, norms

    def strategy(self, free: Array) -> Array:
        """Return r = u |u|."""
        unit, _ = self.unit(free)
        strategy: Array = unit * np.abs(unit)
        return strategy

    def objective(self, free: Array) -> tuple[float, Array]:
        """Return the unexplained variance, in units of the scale, and its derivative in u."""
        unit, norms = self.unit(free)
        point = self.evaluate(unit * np.abs(unit))
        along = 2.0 * np.abs(unit) * point.gradient
        # The derivative through the norm is the part across each row's, or group's, u.
        across = along - unit * self.sum_over_groups(np.einsum("kj,kj->j", unit, along))
        return (self.prior_variance - point.explained) / self.scale, -across / norms / self.scale

    def ascend(self, start: Array, *, steps: int) -> tuple[Array, float]:
        """Return the optimum of L-BFGS, and the variance explained there."""

        def objective(flat: Array) -> tuple[float, Array]:
            value, slope = self.objective(flat.reshape(start.shape))
            return value, slope.ravel()

        result = optimize.minimize(
            objective,
            self.unit(start)[0].ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps, "maxcor": MEMORY, "ftol": STALLED, "gtol": 0.0},
        )
        return result.x.reshape(start.shape), self.prior_variance - self.scale * float(result.fun)

    def sparser(self, strategy: Array) -> Point:
        """Return the strategy with small entries dropped, as many as that costs nothing."""
        point = self.evaluate(strategy)
        allowed = NEXT_TO_NOTHING * (self.prior_variance - point.explained)
        entries = np.abs(strategy)
        budgets = entries.sum(axis=0)
        for share in DROPPED:
            kept = np.where(entries >= share * entries.max(axis=0), strategy, 0.0)
            sums = np.maximum(np.abs(kept).sum(axis=0), np.finfo(np.float64).tiny)
            kept = kept * (budgets / sums)
            try:
                candidate = self.evaluate(kept[kept.any(axis=1)])
            except linalg.LinAlgError:
                # Without these entries answers depend on each other, beyond what so little noise
                # hides.
                continue
            if point.explained - candidate.explained <= allowed:
                return candidate
        return point


def _numbers_of_answers(most: int) -> Iterator[int]:
    """Yield the numbers of answers that are tried."""
    count = 1
    while count < most:
        yield count
        if count >= MANY and MANY_GROWTH * count > NEARLY_ALL * most:
            break
        growth = GROWTH if count < MANY else MANY_GROWTH
        count = min(max(count + 1, int(growth * count)), most)
    yield most


def quartimax(answers: Array) -> Array:
    """Rotate answers so that the fourth powers of entries sum to as much as they can.

    Neuhaus and Wrigley 1954, *The quartimax method*. The sum is convex in the rotation, so going to
    the polar factor, which maximises its tangent, never makes it less.

    Parameters
    ----------
    answers : array of shape (k, N)

    Returns
    -------
    array of shape (k, N)

    Examples
    --------
    >>> turned = np.array([[3.0, 3.0, -4.0], [4.0, 4.0, 3.0]]) / 5.0
    >>> abs(quartimax(turned)).round(3)
    array([[0., 0., 1.],
           [1., 1., 0.]])
    """
    rotated, reached = answers, 0.0
    # A second thread would wait longer for these small factorisations than it works.
    with suitable_threads(0.0):
        for _ in range(ROTATIONS if len(answers) < MANY else MANY_ROTATIONS):
            left, _, right = np.linalg.svd((rotated * rotated * rotated) @ answers.T)
            rotated = (left @ right) @ answers
            sharpness = float(np.square(np.square(rotated)).sum())
            if sharpness <= (1.0 + ROTATED) * reached:
                break
            reached = sharpness
    return rotated
