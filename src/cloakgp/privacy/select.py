r"""`select`: a private choice among candidates, of which nothing but the choice gets out.

Mechanism
---------
Every candidate prior θ predicts every row from the rows of the other folds, as a release with θ
would. Its residuals are linear in the outputs, ρ(θ) = W_θ (clip(y) − m_θ), with W_θ and the
variances n_θ of the noise in each prediction known from inputs alone (`cloakgp.privacy.heldout`).
The utility of θ is −e(θ), with e the error that its release should make:

    squared     e = (‖ρ‖₂² + T)^½,  T = Σ_i n_i    (root of the expected sum of squared errors)
    absolute    e = Σ_i E|ρ_i + n_i^½ z|,  z ~ N(0, 1)    (expected sum of absolute errors)

One candidate is drawn by permute-and-flip (McKenna and Sheldon 2020) or by the exponential
mechanism (McSherry and Talwar 2007), with the log-probabilities' differences of the latter, and
about those of the former, ε·(e(θ') − e(θ))/2Δ.

Neighbours
    One output changes, within [lo, hi]; everything else is equal.
Sensitivity
    Output j enters ρ(θ) through column w_j of W_θ alone, so between neighbours ρ moves by at most d
    times that column.
    *squared*: e is the length of the vector (ρ, T^½), whose last entry does not depend on y; by the
    reverse triangle inequality e moves by at most d·max_j ‖w_j‖₂. Unlike a sum of squares, this
    needs no bound on the errors themselves, and no threshold.
    *absolute*: a ↦ E|a + n^½ z| is an average of shifted absolute values, so it moves by no more
    than a does, and e by at most d·max_j ‖w_j‖₁.
    Δ is the largest over the candidates, inflated for rounding (`cloakgp.privacy.utility`).
Theorem
    Both draws are ε-DP with δ = 0. Exponential mechanism: McSherry and Talwar 2007, theorem 6, at
    ε/2Δ; it is besides ε-bounded-range (Durfee and Rogers 2019), which composes better
    (`cloakgp.privacy.mixed`). Permute-and-flip: McKenna and Sheldon 2020, who also prove that its
    expected error is never more than the exponential mechanism's.
Argument
    The errors are rounded to integers of sensitivity Δ' (`cloakgp.privacy.utility`), and OpenDP
    reports where −e plus independent noise is largest. With exponential noise of scale b = 2Δ'/ε
    this is permute-and-flip (Ding et al. 2021), and its privacy is seen at once: given the others'
    noise, θ wins if its own exceeds a threshold that moves by at most 2Δ' between neighbours, and
    P(noise ≥ t) = min(1, e^(−t/b)) then changes by at most e^(2Δ'/b) = e^ε. With Gumbel noise of
    that scale, P(θ) ∝ e^(−e(θ)/b): the exponential mechanism. Errors and their noise are never
    returned, stored or shown.

What travels
    Designs are functions of the inputs, so workers compute them (`n_jobs`): W_θ and n_θ, fold by
    fold, from the prior, the inputs and the budget. Outputs meet W_θ in the calling process alone,
    one candidate after another, and no task holds them or anything made of them. Workers that share
    the caller's memory (threads) or are copies of it (joblib's "multiprocessing", which forks) have
    the outputs in reach all the same, on the same machine; processes of "loky" do not, nor do the
    workers of a cluster.

Why one Δ for all
    Dividing each utility by its own sensitivity would be private too (all scores then have
    sensitivity 1), but it would choose something else: with −e/Δ_θ, of two candidates that err
    alike the more sensitive one wins. The utilities here are in one unit and stay in it. The
    generalised exponential mechanism (Raskhodnikova and Smith 2016) compares fairly under unlike
    sensitivities, at half the strength where they are alike; predictions by the posterior mean
    shrink noisy directions, which keeps sensitivities alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.arrays import Array, as_matrix
from cloakgp.privacy.guarantee import check_budget, exact_noise_multiplier
from cloakgp.privacy.heldout import (
    HeldOutErrors,
    Predictions,
    SelectablePrior,
    deal,
    each_held_out_errors,
)
from cloakgp.privacy.outputs import OutputBounds, checked_outputs
from cloakgp.privacy.rounding import UNIT_ROUNDOFF
from cloakgp.privacy.sampler import (
    SelectionNoise,
    report_insecure_noisy_max,
    report_noisy_max,
)
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.privacy.utility import LOSSES, Loss, error_band, error_of, score_sensitivity

SelectionMechanism = Literal["permute-and-flip", "exponential"]

NOISE_OF: dict[SelectionMechanism, SelectionNoise] = {
    "permute-and-flip": "exponential",
    "exponential": "gumbel",
}


@dataclass(frozen=True)
class Selection:
    """The choice: public, and the only thing that leaves the private side.

    Attributes
    ----------
    index : int
        Of the chosen candidate.
    candidates : int
        How many there were.
    epsilon : float
        What choosing cost, with δ = 0.
    mechanism : {"permute-and-flip", "exponential"}
    insecure : bool
        True if the noise came from a fixed seed: such a choice is not private.
    """

    index: int
    candidates: int
    epsilon: float
    mechanism: SelectionMechanism
    insecure: bool = False


@forget_on_failure
def select(
    candidates: Sequence[SelectablePrior],
    X: ArrayLike,
    y: ArrayLike,
    *,
    bounds: object,
    epsilon: float,
    folds: int = 5,
    release_epsilon: float,
    release_delta: float,
    mechanism: SelectionMechanism = "permute-and-flip",
    loss: Loss = "squared",
    predictions: Predictions = "posterior",
    criterion: str = "bayes",
    shuffle: bool = True,
    gap: float = 1e-2,
    n_jobs: int | None = None,
    insecure_seed: int | None = None,
) -> Selection:
    """Choose the prior whose release should predict best, under ε-differential privacy.

    Mechanism, neighbours, sensitivity, theorem and argument stand at the head of this module. What
    the choice is for costs its own budget on top: see `cloakgp.privacy.mixed`.

    Parameters
    ----------
    candidates : sequence of ExactPrior or SparsePrior
        Public: chosen without looking at y.
    X : array-like of shape (N, D)
        Public inputs.
    y : array-like of shape (N,)
        Private outputs; clipped to the bounds.
    bounds : (float, float)
        Public range of one output.
    epsilon : float
        The budget of the choice.
    folds : int
        From 2 to N.
    release_epsilon, release_delta : float
        The budget of the release that the choice is for: it sets the noise that counts as error.
    mechanism : {"permute-and-flip", "exponential"}
    loss : {"squared", "absolute"}
        The root of the expected sum of squared errors, or the expected sum of absolute errors. The
        first grows with √N and the second with N, while their sensitivities do not grow: with
        hundreds of rows, "absolute" distinguishes candidates better for the same ε.
    predictions : {"posterior", "raw"}
        Whose errors count: those of the posterior mean, or of C y plus noise (the papers').
    criterion : str
        How the release will choose its questions.
    shuffle : bool
        Deal rows to folds in a fixed random order rather than as they come.
    gap : float
        Certified relative gap at which the designs stop.
    n_jobs : int, optional
        How many folds of candidates are designed at a time, as in scikit-learn: one if not given,
        unless ``joblib.parallel_config`` says otherwise, and -1 for as many as there are
        processors. The choice does not depend on it. Workers get what is public, and no output.
    insecure_seed : int, optional
        Makes the choice reproducible and **not private**. For experiments only.

    Returns
    -------
    Selection

    Raises
    ------
    ValueError
        For candidates, folds, bounds, budgets or outputs that do not make sense; no message quotes
        an output.

    Examples
    --------
    Outputs that swing too fast for the second prior:

    >>> from cloakgp.models import ExactPrior
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> X = np.linspace(0, 10, 200)[:, None]
    >>> priors = [ExactPrior(kernel=RBF(scale), noise_variance=0.1, mean=0.0) for scale in (1, 100)]
    >>> chosen = select(priors, X, np.sin(X).ravel(), bounds=(-1, 1), epsilon=20.0,
    ...                 release_epsilon=5.0, release_delta=1e-3)
    >>> chosen.index
    0
    """
    check_budget(epsilon, release_delta)
    check_budget(release_epsilon, release_delta)
    # numpy divides by a float32 in 32 bits.
    epsilon = float(epsilon)
    if mechanism not in NOISE_OF:
        raise ValueError(
            f"mechanism must be 'permute-and-flip' or 'exponential', got {mechanism!r}"
        )
    if loss not in LOSSES:
        raise ValueError(f"loss must be 'squared' or 'absolute', got {loss!r}")
    if len(candidates) == 0:
        raise ValueError("there is nothing to choose from: give at least one candidate")
    limits = OutputBounds.checked(bounds)
    inputs = as_matrix(X, name="X")
    outputs = checked_outputs(y, rows=len(inputs))
    splits = deal(len(inputs), folds=folds, shuffle=shuffle)
    answer_sd = limits.width * exact_noise_multiplier(release_epsilon, release_delta)
    errors, bands = [], []
    for public in each_held_out_errors(
        candidates,
        inputs,
        splits=splits,
        answer_sd=answer_sd,
        predictions=predictions,
        criterion=criterion,
        gap=gap,
        n_jobs=n_jobs,
    ):
        errors.append(_expected_error(public, outputs, bounds=limits, loss=loss))
        bands.append(error_band(public, bounds=limits, loss=loss))
    step, sensitivity = score_sensitivity(bands)
    scores = -np.rint(np.array(errors) / step).astype(np.int64)
    scale = 2 * sensitivity / epsilon * (1 + 4 * UNIT_ROUNDOFF)
    noise = NOISE_OF[mechanism]
    if insecure_seed is None:
        index = report_noisy_max(scores, scale=scale, sensitivity=sensitivity, noise=noise)
    else:
        index = report_insecure_noisy_max(scores, scale=scale, noise=noise, seed=insecure_seed)
    return Selection(
        index=index,
        candidates=len(candidates),
        epsilon=epsilon,
        mechanism=mechanism,
        insecure=insecure_seed is not None,
    )


def _expected_error(
    public: HeldOutErrors, outputs: Array, *, bounds: OutputBounds, loss: Loss
) -> float:
    """Return e: private, from the outputs, and never to leave `select`."""
    residuals = public.residual_map @ (bounds.clip(outputs) - public.mean)
    return error_of(residuals, public.noise_variance, loss=loss)
