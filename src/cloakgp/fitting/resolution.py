r"""Inducing inputs for a kernel that was learned: how many are worth it, and where they lie.

Fit with few inducing inputs, a sparse model learns at which lengthscales outputs vary; and then
inducing inputs can follow. Both are post-processing of public inputs and published answers:

* where: rows of a public sample, drawn one by one with the probability that is proportional to the
  variance of its latent value given those of the others, which is Cholesky's factorisation with
  random pivots (Chen, Epperly, Tropp and Webber 2025, *Randomly pivoted Cholesky*): for any kernel,
  nested, and near the least variance that so many can leave on average over rows. (The row of the
  largest variance each time goes after rows far from all others, and leaves more.) Several rows are
  proposed at a time, and all but some rejected, so that they are distributed as if drawn one by one
  (Epperly, Tropp and Webber 2024, *Embrace rejection*): that takes products of matrices.
* how many: with M of them, the mean squared error of the curve is expected to be

      u(M) + Σ_i λ_i s² / (s² + N λ_i),    s² = σ² + u(M) + ν² min(M, k)/N,

  u the variance that they leave unexplained, on average over rows, λ_i the eigenvalues of the
  covariance that they explain, over rows, and s² the noise of a row: its own, and its share of that
  of k answers of variance ν², each about one k-th of the rows. More of them explain more, and are
  asked in more parts. The fewest are taken with which the root of that is within a twentieth of the
  least.

A stage that is designed for the lengthscales that were learned sees nothing finer, and its answers
cannot refute them. So later stages are designed for half of these (`finer`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloakgp.models import SparsePrior
from cloakgp.models.latent import latent_covariance, latent_variance
from cloakgp.utils.arrays import Array

# Rows among which inducing inputs are chosen.
CANDIDATES = 4096
# So many are proposed at a time.
PROPOSED = 64
# The most of them, whatever is unexplained; and rows times their square, by which the time of
# passes grows.
MOST_INDUCING, MOST_WORK = 1000, 1e11
# Counts that are compared: each so many times the one before.
GROWTH = 2**0.5
# By how much an error may be larger than the least of these, for fewer inducing inputs.
NEAR = 0.05
# Where less than this share of the variance is left, kernels are known to rounding.
EXPLAINED = 1e-9
# Of the lengthscales that were learned, those that a stage is designed for.
FINER = 0.5


@dataclass(frozen=True, eq=False)
class Pivots:
    """Rows in an order in which they explain much of the others, and what each count of them does.

    Attributes
    ----------
    places : array of int, shape (m,)
        The rows, of n.
    factor : array of shape (n, m)
        L, whose first columns L_M give what the first M explain: K ≈ L_M L_Mᵀ.
    unexplained : array of shape (m + 1,)
        Mean variance that the first rows leave unexplained, of the others.
    """

    places: NDArray[np.intp]
    factor: Array
    unexplained: Array

    @classmethod
    def of(cls, prior: SparsePrior, X: Array, *, most: int, random_state: int = 0) -> Pivots:
        """Draw rows.

        Parameters
        ----------
        prior : SparsePrior
            Whose kernel counts.
        X : array of shape (n, D)
            Public inputs, of which none need be distinct.
        most : int
        random_state : int
            Of the draws. They concern public inputs only.

        Examples
        --------
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> prior = SparsePrior(RBF(), 1.0, 0.0, np.zeros((1, 1)))
        >>> found = Pivots.of(prior, np.array([[0.0], [0.1], [9.0], [9.1]]), most=2)
        >>> sorted((found.places // 2).tolist()), found.unexplained.round(2).tolist()
        ([0, 1], [1.0, 0.67, 0.01])
        """
        kernel, rows, draws = prior.kernel, len(X), np.random.default_rng(random_state)
        left = latent_variance(kernel, X)
        floor = EXPLAINED * float(left.max())
        factor = np.zeros((rows, min(most, rows)), order="F")
        places: list[int] = []
        unexplained = [float(left.mean())]
        while len(places) < factor.shape[1] and left.max() > floor:
            known = factor[:, : len(places)]
            proposed = draws.choice(rows, size=PROPOSED, p=left / left.sum())
            levels = left[proposed] * draws.uniform(size=PROPOSED)
            among = latent_covariance(kernel, X[proposed], X[proposed])
            among -= known[proposed] @ known[proposed].T
            # What is left is known better here than by differences of squares, where it is little.
            left[proposed] = np.minimum(left[proposed], np.maximum(among.diagonal(), 0.0))
            taken = _taken(among, levels, floor=floor)[: factor.shape[1] - len(places)]
            if not taken:
                continue
            chosen = proposed[taken]
            columns = latent_covariance(kernel, X, X[chosen]) - known @ known[chosen].T
            root = linalg.cholesky(among[np.ix_(taken, taken)], lower=True)
            columns = linalg.solve_triangular(root, columns.T, lower=True)
            for pivot, column in zip(chosen.tolist(), columns, strict=True):
                factor[:, len(places)] = column
                left = np.maximum(left - np.square(column), 0.0)
                left[pivot] = 0.0
                places.append(pivot)
                unexplained.append(float(left.sum()) / max(rows - len(places), 1))
        return cls(
            places=np.array(places, dtype=np.intp),
            factor=factor[:, : len(places)],
            unexplained=np.array(unexplained),
        )

    @cached_property
    def moments(self) -> Array:
        """LᵀL/n, shape (m, m): of fewer rows, its first block."""
        moments: Array = self.factor.T @ self.factor / len(self.factor)
        return moments


def _taken(among: Array, levels: Array, *, floor: float) -> list[int]:
    """Return which of the proposed rows are taken, in order.

    Each is with the probability that is the share of its variance which those before it leave.

    Parameters
    ----------
    among : array of shape (b, b)
        Their covariance given the rows that were taken before.
    levels : array of shape (b,)
        Uniform between 0 and their variances.
    floor : float
        Of less than this nothing is taken.
    """
    left, taken = among.copy(), []
    for place, level in enumerate(levels.tolist()):
        variance = float(left[place, place])
        if variance > max(level, floor):
            taken.append(place)
            column = left[:, place] / np.sqrt(variance)
            left -= np.outer(column, column)
    return taken


@dataclass(frozen=True)
class Asked:
    """What outputs are known by.

    Attributes
    ----------
    rows : int
        N.
    noise_variance : float
        σ², of an output.
    answer_variance : float
        ν², of the noise on an answer when columns have norm 1, in squared output units.
    answers : int
        The most answers.
    """

    rows: int
    noise_variance: float
    answer_variance: float
    answers: int

    def expected_variance(self, moments: Array, unexplained: float) -> float:
        """Return the expected squared error of the curve with some inducing inputs.

        Parameters
        ----------
        moments : array of shape (M, M)
            ΦᵀΦ/n, with Φ Φᵀ the covariance that they explain of n rows.
        unexplained : float
            u, the mean variance that they leave.
        """
        count = len(moments)
        explained = linalg.eigvalsh(moments)
        explained = np.maximum(explained, 0.0)
        own = self.noise_variance + unexplained
        each = own + self.answer_variance * min(count, self.answers) / self.rows
        return float(unexplained + (explained * each / (each + self.rows * explained)).sum())


def most_inducing(rows: int, *, least: int) -> int:
    """Return the most inducing inputs that a table is given by itself.

    Parameters
    ----------
    rows : int
        N.
    least : int
        With which it begins.

    Examples
    --------
    >>> [most_inducing(rows, least=200) for rows in (6_000, 50_000, 1_000_000, 10_000_000)]
    [600, 1000, 316, 200]
    """
    by_work = int((MOST_WORK / rows) ** 0.5)
    return max(min(MOST_INDUCING, rows // 10, by_work), least)


def finer(prior: SparsePrior) -> SparsePrior:
    """Return a prior with half of its free lengthscales; itself if there are none.

    Parameters
    ----------
    prior : SparsePrior

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, Matern
    >>> kernel = 2.0 * RBF(4.0) + Matern([2.0, 6.0], length_scale_bounds="fixed")
    >>> finer(SparsePrior(kernel, 1.0, 0.0, np.zeros((1, 2)))).kernel
    1.41**2 * RBF(length_scale=2) + Matern(length_scale=[2, 6], nu=1.5)
    """
    theta, place = prior.kernel.theta.copy(), 0
    for one in prior.kernel.hyperparameters:
        count = 0 if one.fixed else one.n_elements
        if one.name.endswith("length_scale"):
            theta[place : place + count] += np.log(FINER)
        place += count
    if np.array_equal(theta, prior.kernel.theta):
        return prior
    return replace(prior, kernel=prior.kernel.clone_with_theta(theta))


def resolve(
    prior: SparsePrior, sample: Array, *, rows: int, noise_sd: float, answers: int
) -> Array:
    """Return the inducing inputs that a kernel is worth.

    Those that there are, where others would not make an error less by a twentieth; fewer than these
    if fewer explain all.

    Parameters
    ----------
    prior : SparsePrior
        Learned, with the inducing inputs that there are.
    sample : array of shape (n, D)
        Public inputs of some rows.
    rows : int
        N.
    noise_sd : float
        ν, of the next answers, in output units.
    answers : int
        The most of these.

    Returns
    -------
    array of shape (M, D)
    """
    least, candidates = len(prior.inducing), sample[:CANDIDATES]
    asked = Asked(
        rows=rows,
        noise_variance=float(prior.observation_noise(candidates).mean()),
        answer_variance=noise_sd**2,
        answers=answers,
    )
    pivots = Pivots.of(prior, candidates, most=most_inducing(rows, least=least))
    most = len(pivots.places)
    counts = [min(least, most)]
    while counts[-1] < most:
        counts.append(min(round(counts[-1] * GROWTH), most))
    expected = [
        asked.expected_variance(pivots.moments[:count, :count], float(pivots.unexplained[count]))
        for count in counts
    ]
    enough = (1.0 + NEAR) ** 2 * min(expected)
    features = prior.features(candidates).T
    left = latent_variance(prior.kernel, candidates) - np.square(features).sum(axis=1)
    moments = features.T @ features / len(features)
    if asked.expected_variance(moments, float(np.maximum(left, 0.0).mean())) <= enough:
        return prior.inducing
    chosen = next(count for count, value in zip(counts, expected, strict=True) if value <= enough)
    return candidates[pivots.places[:chosen]]
