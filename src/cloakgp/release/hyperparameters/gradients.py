r"""Reverse-mode derivatives of a covariance of answers, in the kernel's hyperparameters.

A log density depends on hyperparameters through S, the covariance of k answers. Its derivative B in
S, k numbers squared, is carried back to the kernel's matrices, and from there to all
hyperparameters together (`cloakgp.models.kernels.adjoint`): the cost does not grow with how many
there are. With inducing inputs, Q = K_xZ K_ZZ⁻¹ K_Zx and W = K_ZZ⁻¹ K_Zx, H = W Rᵀ and f_p the sum
of r_jᵀ B r_j over the rows at point p,

    tr(B dS) = ⟨2 H B R − 2 W diag(f), dK_Zx⟩ + ⟨W diag(f) Wᵀ − H B Hᵀ, dK_ZZ⟩ + Σ_p f_p dk_pp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.kernels.adjoint import has_adjoint
from cloakgp.models.kernels.cells import CellKernel, InputCells, between_cells
from cloakgp.models.kernels.rebuilding import count_free
from cloakgp.models.latent import RELATIVE_JITTER, has_white_noise, latent_covariance
from cloakgp.release.hyperparameters.covariance import LearningQuestions, StagesOfCells
from cloakgp.utils.arrays import Array

# At how many points a kernel is tried.
TRIED = 2
# Of cells, between which and others a kernel is had at a time.
BLOCK_CELLS = 128

PullBack = Callable[[Array], Array]
"""From the derivative of a number in the covariance of answers to its gradient in θ."""


@dataclass(frozen=True, eq=False)
class KernelAtPoints:
    """A kernel's matrix at points.

    Attributes
    ----------
    latent : array of shape (n, n)
    white : array of shape (n,)
        White noise per point.
    known : CellKernel or tuple of pairs of arrays
        What tells its slopes, or the derivatives of both in each hyperparameter, where only the
        kernel itself can tell.
    """

    latent: Array
    white: Array
    known: CellKernel | tuple[tuple[Array, Array], ...]

    @classmethod
    def of(cls, kernel: Kernel, points: Array) -> KernelAtPoints:
        """Evaluate a kernel."""
        if has_adjoint(kernel):
            between = between_cells(kernel, _at(points))
            return cls(between.matrix, np.zeros(len(points)), between)
        (latent, white), *rest = _matrix_and_derivatives(kernel, points)
        return cls(latent, white, tuple(rest))

    def pull_back(self, by_latent: Array, by_white: Array) -> Array:
        """Return a number's gradient in θ, shape (p,), from its derivatives in the matrix.

        Parameters
        ----------
        by_latent : array of shape (n, n)
        by_white : array of shape (n,)
        """
        if isinstance(self.known, CellKernel):
            return self.known.pull_back(by_latent)
        return np.array(
            [float(np.vdot(by_latent, latent) + by_white @ white) for latent, white in self.known]
        )


def _at(points: Array) -> InputCells:
    """Return cells whose rows are all at one point."""
    return InputCells(means=points, variances=np.zeros_like(points))


def check_gradient(kernel: Kernel, points: Array) -> None:
    """Refuse a kernel that does not give the gradient by which its hyperparameters are learned.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    points : array of shape (n, D)
        Public inputs: it is tried on a few of them.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> check_gradient(RBF(), np.array([[0.0], [1.0]]))
    """
    points = points[:TRIED]
    count = len(points)
    # What is wrong with its values has a message of its own.
    latent_covariance(kernel, points, points.copy())
    try:
        at = KernelAtPoints.of(kernel, points)
        found = at.pull_back(np.ones((count, count)), np.ones(count)).shape
    except Exception:  # Whatever a kernel of somebody's own may raise.
        found = None
    if found != (count_free(kernel),):
        raise ValueError(
            "the kernel gives no gradient (eval_gradient=True), by which it is learned: give "
            "learn=None"
        )


def latent_covariance_of(
    prior: ExactPrior | SparsePrior, answers: LearningQuestions
) -> tuple[Array, PullBack]:
    """Return the covariance of answers without observation noise, and products of its derivatives.

    Gradients are with respect to ``kernel.theta``, the logarithms of the hyperparameters that are
    not fixed.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    answers : LearningQuestions

    Returns
    -------
    array of shape (k, k)
    callable
        From derivatives in it, shape (k, k) and symmetric, to a gradient of shape (p,).
    """
    if isinstance(prior, SparsePrior):
        return _sparse_covariance_of(prior, answers)
    if has_adjoint(prior.kernel):
        return _covariance_in_blocks(prior.kernel, answers)
    questions, at = answers.questions, KernelAtPoints.of(prior.kernel, answers.points)

    def back(by_covariance: Array) -> Array:
        by_latent = questions.T @ by_covariance @ questions
        return at.pull_back(by_latent, answers.row_forms(by_covariance))

    covariance = questions @ at.latent @ questions.T
    return (covariance + answers.row_products(at.white) if at.white.any() else covariance), back


def _covariance_in_blocks(kernel: Kernel, answers: LearningQuestions) -> tuple[Array, PullBack]:
    """Count what rows have in common, and what those of cells have of their own.

    The kernel is symmetric: what is had is between blocks of points and those up to them. Such a
    block stays in the processor's cache.
    """
    questions, table = answers.questions, _table_of_cells(answers)
    cells = _at(answers.points)
    if answers.variances is not None:
        cells = replace(cells, variances=answers.variances)
    alone = between_cells(kernel, cells)
    own = alone.variances.copy()
    asked = np.empty_like(questions)
    blocks: list[tuple[slice, slice, slice, CellKernel]] = []
    for start in range(0, len(own), BLOCK_CELLS):
        stop = min(start + BLOCK_CELLS, len(own))
        here, before, both = slice(start, stop), slice(0, start), slice(0, stop)
        one = between_cells(kernel, cells, rows=here, columns=both)
        # The transpose is added: of what is there from both sides, half.
        asked[:, here] = questions[:, here] @ (0.5 * one.matrix[:, here])
        asked[:, here] += questions[:, before] @ one.matrix[:, before].T
        own[here] -= np.diagonal(one.matrix, offset=start)
        blocks.append((here, before, both, one))
    if table is not None:
        asked += questions * (0.5 * own / table.counts)
    covariance = asked @ questions.T
    covariance = covariance + covariance.T
    if table is not None:
        covariance += table.beyond_products(own)

    def back(by_covariance: Array) -> Array:
        turned, by_own = by_covariance @ questions, np.zeros_like(own)
        if table is not None:
            by_own += np.einsum("kn,kn->n", questions, turned) / table.counts
            by_own += table.beyond_forms(by_covariance)
        gradient = alone.pull_back_variances(by_own)
        for here, before, both, one in blocks:
            by_matrix = questions[:, here].T @ turned[:, both]
            by_matrix[:, before] *= 2.0
            within = by_matrix[:, here]
            within[np.diag_indices(len(within))] -= by_own[here]
            gradient = gradient + one.pull_back(by_matrix)
        return gradient

    return covariance, back


def _table_of_cells(answers: LearningQuestions) -> StagesOfCells | None:
    """Return what was asked of cells; None where all rows at a point have the same latent value."""
    if answers.variances is None:
        return None
    [table] = answers.tables
    assert isinstance(table, StagesOfCells)
    return table


def _sparse_covariance_of(prior: SparsePrior, answers: LearningQuestions) -> tuple[Array, PullBack]:
    """Q between points, and for FITC the variance that Q leaves out of each row."""
    questions, fitc = answers.questions, float(prior.approximation == "fitc")
    blocks = _Blocks.of(prior.kernel, prior.inducing, answers.points)
    among, crossed = blocks.among.copy(), blocks.crossed
    # A share of the largest variance, taken for constant.
    among[np.diag_indices(len(among))] += RELATIVE_JITTER * float(np.diag(among).max())
    weights = linalg.cho_solve(linalg.cho_factor(among, lower=True), crossed)
    asked = weights @ questions.T
    left_out = blocks.variance - np.einsum("mp,mp->p", crossed, weights)
    covariance = questions @ crossed.T @ asked
    covariance = covariance + answers.row_products(blocks.white + fitc * left_out)

    def back(by_covariance: Array) -> Array:
        forms = answers.row_forms(by_covariance)
        turned, weighed = asked @ by_covariance, weights * (fitc * forms)
        return blocks.pull_back(
            by_among=weighed @ weights.T - turned @ asked.T,
            by_crossed=2.0 * (turned @ questions - weighed),
            by_variance=fitc * forms,
            by_white=forms,
        )

    return covariance, back


@dataclass(frozen=True, eq=False)
class _Blocks:
    """A kernel among inducing inputs, between them and points, and its variance at points.

    What tells their slopes is ``known``: of a kernel that has no adjoint, at all of them together.
    """

    among: Array
    crossed: Array
    variance: Array
    white: Array
    known: tuple[CellKernel, CellKernel] | KernelAtPoints

    @classmethod
    def of(cls, kernel: Kernel, inducing: Array, points: Array) -> _Blocks:
        count, both = len(inducing), np.vstack([inducing, points])
        if has_adjoint(kernel):
            first, others = slice(0, count), slice(count, None)
            among = between_cells(kernel, _at(both), rows=first, columns=first)
            # Turned, so that the variances are those at points.
            crossed = between_cells(kernel, _at(both), rows=others, columns=first)
            return cls(
                among=among.matrix,
                crossed=crossed.matrix.T,
                variance=crossed.variances,
                white=np.zeros(len(points)),
                known=(among, crossed),
            )
        whole = KernelAtPoints.of(kernel, both)
        return cls(
            among=whole.latent[:count, :count],
            crossed=whole.latent[:count, count:],
            variance=np.diag(whole.latent)[count:],
            white=whole.white[count:],
            known=whole,
        )

    def pull_back(
        self, *, by_among: Array, by_crossed: Array, by_variance: Array, by_white: Array
    ) -> Array:
        if not isinstance(self.known, KernelAtPoints):
            among, crossed = self.known
            gradient: Array = (
                among.pull_back(by_among)
                + crossed.pull_back(by_crossed.T)
                + crossed.pull_back_variances(by_variance)
            )
            return gradient
        whole, count = self.known, len(by_among)
        by_latent, by_all_white = np.zeros_like(whole.latent), np.zeros(len(whole.white))
        by_latent[:count, :count] = by_among
        by_latent[:count, count:] = by_crossed
        by_latent[np.diag_indices(len(by_latent))] += np.r_[np.zeros(count), by_variance]
        by_all_white[count:] = by_white
        return whole.pull_back(by_latent, by_all_white)


def _matrix_and_derivatives(kernel: Kernel, points: Array) -> list[tuple[Array, Array]]:
    """Return a kernel's latent matrix and white noise per point, then their derivatives.

    White noise shows on the diagonal only. Between a point and its double there is none, which
    tells the latent covariance from the noise.
    """
    count = len(points)
    doubles = has_white_noise(kernel)
    evaluated = np.vstack([points, points]) if doubles else points
    if count_free(kernel):
        matrix, gradient = kernel(evaluated, eval_gradient=True)
        arrays = [matrix, *(gradient[:, :, index] for index in range(gradient.shape[2]))]
    else:
        # Nothing of it is learned, and a kernel may know no gradient then.
        arrays = [kernel(evaluated)]
    if not doubles:
        return [(array, np.zeros(count)) for array in arrays]
    return [
        (array[:count, count:], np.diag(array)[:count] - np.diag(array[:count, count:]))
        for array in arrays
    ]
