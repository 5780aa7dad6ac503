r"""Design of row noise: how noisy rows are modelled, privacy noise against the predictor's error.

For a predictor C y + noise, with noise of sd s per unit of column norm and the least mean square
that privacy allows, the expected squared error at the query points, summed, under the prior is

    E(C) = s² T(C) + tr K_** − 2 tr C K_f* + tr C K_y Cᵀ,
    T(C) = min tr M over M with c_jᵀ M⁻¹ c_j ≤ 1 = max_u (tr (C diag(u) Cᵀ)^½)²,  u on the simplex.

Here C = K_*f (K_ff + diag(ν))⁻¹, and E is minimised over the row noises ν (a proposal of the 2018
paper's section 5), by L-BFGS on their logarithms. At the optimal u the envelope theorem gives
dT/dC = 2 t S^-½ C diag(u) with S = C diag(u) Cᵀ and t = tr S^½, and dC/dν_j = −C e_j e_jᵀ A⁻¹ with
A = K_ff + diag(ν).

E is convex in C, not in ν: what is found is a local optimum, never worse than the start. Over *all*
linear predictors the least E is what the `bayes` design reaches, so this lever cannot beat it; it
serves those who want raw predictions. Sees public arrays alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize

from cloakgp.design.numerical_range import numerical_range
from cloakgp.design.objectives import factorise
from cloakgp.design.solver import optimal_weights
from cloakgp.utils.arrays import Array

# Row noises are looked for between these multiples of the model's.
SMALLEST_RATIO, LARGEST_RATIO = 1e-2, 1e4
# Of the noise design within every evaluation: coarser than a design to be used, fine enough for a
# line search.
DESIGN_GAP = 1e-3
STEPS = 40


@dataclass(frozen=True, eq=False)
class ExpectedError:
    """Squared errors that the prior expects, summed over the query points, in squared output units.

    Attributes
    ----------
    privacy : float
        Variance of the privacy noise.
    predictor : float
        Squared error of the predictor without it: bias and observation noise.
    """

    privacy: float
    predictor: float

    @property
    def total(self) -> float:
        """Both."""
        return self.privacy + self.predictor


@dataclass(frozen=True, eq=False)
class RowNoiseDesign:
    """Row noises, and their expected gain.

    Attributes
    ----------
    variance : array of shape (N,)
        ν, in squared output units.
    expected : ExpectedError
        With these.
    before : ExpectedError
        With the model's own.
    """

    variance: Array
    expected: ExpectedError
    before: ExpectedError


@dataclass(frozen=True, eq=False)
class PublicCovariances:
    """The prior covariances of rows and query points.

    Attributes
    ----------
    latent : array of shape (N, N)
        K_ff.
    noise : array of shape (N,)
        The model's noise variances, positive.
    crossed : array of shape (P, N)
        K_*f.
    prior_variance : float
        tr K_**.
    """

    latent: Array
    noise: Array
    crossed: Array
    prior_variance: float


def expected_error(
    covariances: PublicCovariances, variance: Array, *, noise_sd: float
) -> ExpectedError:
    """Return the squared error that the prior expects of cloaking with some row noises.

    Parameters
    ----------
    covariances : PublicCovariances
    variance : array of shape (N,)
        ν.
    noise_sd : float
        s: sd of the privacy noise on an answer to a question with columns of norm 1.

    Examples
    --------
    One row of known variance 1 + 1 and one query point at it; s = 1, and C = ½.

    >>> one = PublicCovariances(latent=np.eye(1), noise=np.ones(1), crossed=np.eye(1),
    ...                         prior_variance=1.0)
    >>> error = expected_error(one, np.ones(1), noise_sd=1.0)
    >>> round(error.privacy, 6), error.predictor
    (0.25, 0.5)
    """
    return _error_and_gradient(covariances, variance, noise_sd=noise_sd)[0]


def design_row_noise(
    covariances: PublicCovariances, *, noise_sd: float, shared: bool = False, steps: int = STEPS
) -> RowNoiseDesign:
    """Choose row noises that lower the expected squared error at the query points.

    Parameters
    ----------
    covariances : PublicCovariances
    noise_sd : float
        s, as for `expected_error`.
    shared : bool
        Whether all rows share one factor, to see what it is worth to tell them apart.
    steps : int
        Of L-BFGS, at most.

    Returns
    -------
    RowNoiseDesign
        Never worse in expectation than the model's own noise, up to the gap of the noise designs.

    Examples
    --------
    A row on its own, of noise 1, whose answer gets noise of variance 4: to believe it as much as
    signal 1 among 1 + 1 + 4 deserves, its noise must be taken to be 5.

    >>> one = PublicCovariances(latent=np.eye(1), noise=np.ones(1), crossed=np.eye(1),
    ...                         prior_variance=1.0)
    >>> design_row_noise(one, noise_sd=2.0).variance.round(2)
    array([5.])
    """
    before, _ = _error_and_gradient(covariances, covariances.noise, noise_sd=noise_sd)
    best, lowest = covariances.noise, before

    def value_and_gradient(logarithms: Array) -> tuple[float, Array]:
        nonlocal best, lowest
        variance = covariances.noise * np.exp(logarithms)
        error, gradient = _error_and_gradient(covariances, variance, noise_sd=noise_sd)
        if error.total < lowest.total:
            best, lowest = variance, error
        # Relative to the start, so that tolerances mean the same in all units.
        slopes = gradient * variance / before.total
        if len(logarithms) < len(slopes):
            slopes = slopes.sum(keepdims=True)
        return error.total / before.total, slopes

    limits = (float(np.log(SMALLEST_RATIO)), float(np.log(LARGEST_RATIO)))
    # One factor first: it is found in a few steps, and the rows then only need to be told apart.
    for count in (1,) if shared else (1, len(covariances.noise)):
        optimize.minimize(
            value_and_gradient,
            np.log(best / covariances.noise)[:count],
            jac=True,
            method="L-BFGS-B",
            bounds=[limits] * count,
            options={"maxiter": steps, "ftol": 1e-7, "gtol": 1e-7},
        )
    return RowNoiseDesign(variance=best, expected=lowest, before=before)


def _error_and_gradient(
    covariances: PublicCovariances, variance: Array, *, noise_sd: float
) -> tuple[ExpectedError, Array]:
    """Return the expected error and its gradient in ν, shape (N,)."""
    latent, crossed = covariances.latent, covariances.crossed
    factor = linalg.cho_factor(latent + np.diag(variance), lower=True)
    C = linalg.cho_solve(factor, crossed.T).T
    outputs_times_C = C @ latent + C * covariances.noise
    predictor = covariances.prior_variance + float(np.sum(C * (outputs_times_C - 2.0 * crossed)))
    privacy, privacy_slopes = _least_noise(C)
    slopes = noise_sd**2 * privacy_slopes + 2.0 * (outputs_times_C - crossed)
    gradient = -np.einsum("pj,pj->j", linalg.cho_solve(factor, slopes.T).T, C)
    return ExpectedError(privacy=noise_sd**2 * privacy, predictor=predictor), gradient


def _least_noise(C: Array) -> tuple[float, Array]:
    """Return T(C) and its gradient, shape (P, N).

    The value is that of a feasible M, so it errs upwards by at most the gap.
    """
    span = numerical_range(C)
    if len(span.scales) == 0:
        return 0.0, np.zeros_like(C)
    columns = span.scales[:, None] * span.right
    lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    nonzero = np.flatnonzero(lengths > np.finfo(np.float64).eps * lengths.max())
    optimum = optimal_weights(columns[:, nonzero], criterion="trace", gap=DESIGN_GAP)
    # M = L Lᵀ = t S^½, so tr M = t² and t S^-½ = t² M⁻¹.
    root = factorise("trace", columns[:, nonzero], optimum.weights).noise_root()
    least = float(np.square(root).sum())
    whitened = np.linalg.solve(root.T, np.linalg.solve(root, columns[:, nonzero]))
    slopes = np.zeros_like(C)
    slopes[:, nonzero] = 2.0 * least * span.left @ (whitened * optimum.weights)
    return least * (1.0 + optimum.gap), slopes
