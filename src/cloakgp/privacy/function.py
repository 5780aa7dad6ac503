r"""Release of a function: the posterior mean plus a Gaussian process (2018 paper, section 2).

Mechanism
---------
Hall, Rinaldo and Wasserman (2013, *Differential privacy for functions and functional data*)
publish f + c G, where f is the posterior mean and G a draw of a Gaussian process with the kernel k
of f's space H. Here the k coordinates of f in an orthonormal basis of span{k(., x_j)} are asked
through `cloakgp.privacy.ask`; the published function has the noisy coordinates. It can
be evaluated anywhere, as often as one likes.

Neighbours
    One output changes, within [lo, hi]; everything else is equal.
Sensitivity
    The coordinates are β = W (y − m), and column j of W has the length √[K_y⁻¹ K K_y⁻¹]_jj: β moves
    by at most d times the longest, which is exactly the sensitivity of f in H
    (`cloakgp.models.rkhs`). What is asked is W scaled to a longest column of 1; `ask` computes
    the sensitivity from the very matrix that is asked.
Theorem
    Balle and Wang 2018, theorem 8, through `ask`. The papers take σ = √(2 ln(2/δ))/ε from Hall
    et al. instead (2018 paper, equations 1 and 2).
Argument
    The published function is f̃(x) = m + Σ_i e_i(x) β̃_i with public basis functions e_i, so all its
    values together are computed from k noisy numbers: post-processing, whether it is evaluated at
    one point or at infinitely many, and in whatever order. There is one draw of the noise, and it
    is stored; the function is fixed from then on.

This is the mechanism of Hall et al. without the part of their noise that protects nothing. Write
φ(x) = (e_i(x))_i and P G = Σ_i e_i ζ_i, where ζ_i = Σ_j A_ji G(x_j) is the noise along the basis:
independent standard normals, since AᵀKA = I. P G is E[G | G(x_1), …, G(x_N)], and
cov(P G(x), G(x')) = φ(x)·φ(x') = cov(P G(x), P G(x')). So G − P G is independent of P G, and of y.
Publishing f + c G is thus publishing f̃ = f + c P G and adding independent noise of known law:
post-processing of f̃, whose guarantee is μ = d ‖W‖/c for the longest column ‖W‖ of W. Conversely, at
points T the noise c G has covariance c² K_TT, and a change g of f is at the Mahalanobis distance
√(g(T)ᵀ K_TT⁻¹ g(T))/c ≤ ‖g‖_H/c: the left side is the norm of the smallest function in H that
equals g at T. If T has all rows, that function is g, and there is equality. So both have the same
μ. The variance of f̃(x) is c² ‖φ(x)‖² ≤ c² k(x, x), and far from all rows it vanishes.
"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.rkhs import FunctionQuestions, function_questions
from cloakgp.privacy.accounting import Calibration
from cloakgp.privacy.answers import Answers
from cloakgp.privacy.ask import ask
from cloakgp.privacy.budgets import check_budget
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array, as_matrix


@dataclass(frozen=True, eq=False)
class FunctionAnswers:
    """The noisy coordinates of a posterior mean; public.

    Attributes
    ----------
    X : array of shape (N, D)
    questions : FunctionQuestions
    answers : Answers
    bounds : OutputBounds
        To which outputs were clipped.
    """

    X: Array
    questions: FunctionQuestions
    answers: Answers
    bounds: OutputBounds


@forget_on_failure
@one_charge
def measure_function(
    X: ArrayLike,
    y: ArrayLike,
    *,
    prior: ExactPrior | SparsePrior,
    bounds: object,
    epsilon: float,
    delta: float,
    calibration: Calibration = "exact",
    insecure_seed: int | None = None,
) -> FunctionAnswers:
    """Ask outputs for the coordinates of the posterior mean, under (ε, δ)-differential privacy.

    Mechanism, neighbours, sensitivity, theorem and argument stand at the head of this module.
    `cloakgp.release.functional.ReleasedFunction` evaluates what is returned.

    Parameters
    ----------
    X : array-like of shape (N, D)
        Public inputs.
    y : array-like of shape (N,)
        Private outputs; clipped to the bounds.
    prior : ExactPrior or SparsePrior
        Public.
    bounds : (float, float)
    epsilon, delta : float
    calibration : {"exact", "papers"}
        ``papers`` scales by √(2 ln(2/δ))/ε, for comparison; refused for ε > 1.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Returns
    -------
    FunctionAnswers

    Raises
    ------
    ValueError
        For shapes, bounds, budgets or values that do not make sense; no message quotes an output.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> prior = ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.5)
    >>> measured = measure_function([[0.0], [9.0]], [0.0, 1.0], prior=prior, bounds=(0, 1),
    ...                             epsilon=1.0, delta=0.01)
    >>> measured.answers.values.shape, round(measured.answers.noise_sd, 3)
    ((2, 1), 1.878)
    """
    inputs = as_matrix(X, name="X")
    check_budget(epsilon, delta)
    limits = OutputBounds.checked(bounds)
    if len(inputs) < 2:
        raise ValueError("1 sample is too few: a release about one row shows that row; give 2 rows")
    questions = function_questions(prior, inputs)
    answers = ask(
        questions.strategy,
        y,
        question=limits,
        epsilon=epsilon,
        delta=delta,
        calibration=calibration,
        insecure_seed=insecure_seed,
    )
    return FunctionAnswers(X=inputs, questions=questions, answers=answers, bounds=limits)
