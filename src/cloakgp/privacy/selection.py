r"""Private selection among candidates: permute-and-flip and the exponential mechanism.

Of what `select` computes, nothing but the choice gets out.

Mechanism
---------
Every candidate prior θ predicts every row from the rows of the other folds, as a release with θ
would. Its residuals are linear in the outputs, ρ(θ) = W_θ (clip(y) − m_θ), with W_θ and the
variances n_θ of the noise in each prediction known from inputs alone
(`cloakgp.privacy.cross_validation`). The utility of θ is −e(θ), with e the error that its release
should make:

    squared     e = (‖ρ‖₂² + T)^½,  T = Σ_i n_i    (root of the expected sum of squared errors)
    absolute    e = Σ_i E|ρ_i + n_i^½ z|,  z ~ N(0, 1)    (expected sum of absolute errors)

Private labels are encoded as signs, +1 for their own class and −1 for the others, in one channel
for two classes and in C for more; ρ(θ) has a column for each channel, with the mean of its signs
for m_θ. Errors e_c of the channels are put together in the norm of the loss: Σ_c e_c, or
(Σ_c e_c²)^½.

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
    *labels*: a sign moves by d = 2. Another class changes the sign in one channel of one, or in two
    of C, and leaves the errors of all other channels as they are. So the sum of the errors moves by
    at most twice as much as that of one channel, and their Euclidean length by √2 as much.
    Δ is the largest over the candidates, inflated for rounding (`error_band`).
Theorem
    Both draws are ε-DP with δ = 0. Exponential mechanism: McSherry and Talwar 2007, theorem 6, at
    ε/2Δ; it is besides ε-bounded-range (Durfee and Rogers 2019), which composes better
    (`cloakgp.privacy.composition`). Permute-and-flip: McKenna and Sheldon 2020, who also prove that
    its expected error is never more than the exponential mechanism's.
Argument
    The errors are rounded to integers of sensitivity Δ' (`score_sensitivity`), and OpenDP reports
    where −e plus independent noise is largest. With exponential noise of scale b = 2Δ'/ε
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

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf

from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.budgets import check_budget
from cloakgp.privacy.cross_validation import (
    HeldOutErrors,
    Predictions,
    SelectablePrior,
    deal,
    each_held_out_errors,
)
from cloakgp.privacy.entries import read_outputs
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.rounding import UNIT_ROUNDOFF, gamma
from cloakgp.privacy.sampler import (
    SelectionNoise,
    report_insecure_noisy_max,
    report_noisy_max,
)
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array, as_matrix

Loss = Literal["squared", "absolute"]
LOSSES: tuple[Loss, ...] = ("squared", "absolute")

SelectionMechanism = Literal["permute-and-flip", "exponential"]

NOISE_OF: dict[SelectionMechanism, SelectionNoise] = {
    "permute-and-flip": "exponential",
    "exponential": "gumbel",
}
# The grid is this many binary digits finer than the sensitivity, if 64-bit integers can hold the
# errors then.
GRID_BITS = 32
INTEGER_BITS = 60
# Roundings in one term of an error, library functions included, with room to spare.
TERM_ROUNDINGS = 256
# Beyond this many sd, erf is 1 and exp(−x²) is 0 in float64.
FAR = 40.0


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
@one_charge
def select(
    candidates: Sequence[SelectablePrior],
    X: ArrayLike,
    y: ArrayLike,
    *,
    bounds: object = None,
    classes: Classes | None = None,
    means: Sequence[Sequence[float]] = (),
    epsilon: float,
    folds: int = 5,
    release_epsilon: float,
    release_delta: float,
    mechanism: SelectionMechanism = "permute-and-flip",
    loss: Loss = "absolute",
    predictions: Predictions = "posterior",
    criterion: str = "bayes",
    shuffle: bool = True,
    gap: float = 1e-2,
    n_jobs: int | None = None,
    insecure_seed: int | None = None,
) -> Selection:
    """Choose the prior whose release should predict best, under ε-differential privacy.

    Mechanism, neighbours, sensitivity, theorem and argument stand at the head of this module. What
    the choice is for costs its own budget on top: see `cloakgp.privacy.composition`.

    Parameters
    ----------
    candidates : sequence of ExactPrior or SparsePrior
        Public: chosen without looking at y.
    X : array-like of shape (N, D)
        Public inputs.
    y : array-like of shape (N,)
        Private outputs, clipped to the bounds; or labels.
    bounds : (float, float), optional
        Public range of one output; for numbers.
    classes : Classes, optional
        The declared classes instead, for labels. Candidates are priors over signs then.
    means : sequence of sequences of float
        For labels, of every candidate: the mean of the signs in each channel.
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
        hundreds of rows, "absolute" distinguishes candidates better for the same ε, and is what is
        taken if nothing is said.
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
    if (bounds is None) == (classes is None):
        raise ValueError("give bounds for numbers, or classes for labels")
    limits = OutputBounds.checked((-1.0, 1.0) if classes is not None else bounds)
    inputs = as_matrix(X, name="X")
    if classes is None:
        channels = read_outputs(y, rows=len(inputs))[:, None]
        unit_width, changed = limits.width, 1
    else:
        # Signs are exact, whatever an encoding subtracts.
        channels = np.where(classes.encode(classes.read(y, rows=len(inputs))) > 0, 1.0, -1.0)
        unit_width, changed = classes.output_noise_sd(classes.distance), min(2, classes.channels)
        if [len(each) for each in means] != [classes.channels] * len(candidates):
            raise ValueError("every candidate needs a mean of each channel of labels")
    splits = deal(len(inputs), folds=folds, shuffle=shuffle)
    answer_sd = unit_width * exact_noise_multiplier(release_epsilon, release_delta)
    errors, bands = [], []
    for number, public in enumerate(
        each_held_out_errors(
            candidates,
            inputs,
            splits=splits,
            answer_sd=answer_sd,
            predictions=predictions,
            criterion=criterion,
            gap=gap,
            n_jobs=n_jobs,
        )
    ):
        around = (public.mean,) if classes is None else tuple(map(float, means[number]))
        each = [replace(public, mean=mean) for mean in around]
        errors.append(
            joint_error(
                [
                    _expected_error(one, column, bounds=limits, loss=loss)
                    for one, column in zip(each, channels.T, strict=True)
                ],
                loss=loss,
            )
        )
        bands.append(
            joint_band(
                [error_band(one, bounds=limits, loss=loss) for one in each],
                loss=loss,
                changed=changed,
            )
        )
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


@dataclass(frozen=True)
class ErrorBand:
    """Public facts about one candidate's error.

    Attributes
    ----------
    sensitivity : float
        The most that the computed error can move between neighbours, in output units.
    largest : float
        The most that it can be.
    """

    sensitivity: float
    largest: float


def error_band(public: HeldOutErrors, *, bounds: OutputBounds, loss: Loss) -> ErrorBand:
    r"""Bound one candidate's error, and its move between neighbours, rounding included.

    Argument. Let v = clip(y) − m in float64. Rounding is monotone, so v_j lies between the rounded
    ends, which are w apart and at most B from zero. In exact arithmetic the error of W v moves by
    at most w times the longest column (see the head of this module). In floating point each
    residual is off by at most γ_N·B·‖row i‖₁ (Higham 2002, §3.1, as in `cloakgp.privacy.ask`),
    and the error, which moves by no more than the residuals do in the norm of the loss, by the norm
    of these. What follows is a sum of at most N + 1 positive terms, each a few roundings from
    exact, and at most the largest error: γ of their number times that. Both neighbours may be off:
    twice.

    Parameters
    ----------
    public : HeldOutErrors
    bounds : OutputBounds
    loss : {"squared", "absolute"}

    Returns
    -------
    ErrorBand
    """
    rows = len(public.residual_map)
    width, reach = bounds.about(public.mean)
    inflation = 1 + 2 * gamma(rows + TERM_ROUNDINGS)
    magnitudes = np.abs(public.residual_map)
    furthest = reach * magnitudes.sum(axis=1) * inflation
    order = 2 if loss == "squared" else 1
    longest = float(np.linalg.norm(magnitudes, ord=order, axis=0).max()) * inflation
    residuals_off = gamma(rows + 2) * float(np.linalg.norm(furthest, ord=order)) * inflation
    largest = error_of(furthest, public.noise_variance, loss=loss) * inflation + residuals_off
    rounding = 2 * (residuals_off + gamma(rows + TERM_ROUNDINGS) * largest)
    return ErrorBand(
        sensitivity=(width * longest + rounding) * (1 + 8 * UNIT_ROUNDOFF),
        largest=largest + rounding,
    )


def joint_error(errors: Sequence[float], *, loss: Loss) -> float:
    """Put the errors of channels together: their sum, or their Euclidean length.

    Parameters
    ----------
    errors : sequence of float
        At least 0.
    loss : {"squared", "absolute"}

    Examples
    --------
    >>> joint_error([3.0, 4.0], loss="squared"), joint_error([3.0, 4.0], loss="absolute")
    (5.0, 7.0)
    """
    if len(errors) == 1:
        return errors[0]
    return math.hypot(*errors) if loss == "squared" else math.fsum(errors)


def joint_band(bands: Sequence[ErrorBand], *, loss: Loss, changed: int) -> ErrorBand:
    r"""Bound the error of all channels together, and its move between neighbours.

    Argument. Channels are computed one by one, so that the errors of those that do not change are
    the same bits. Those of the others move by at most the bounds of theirs; by the (reverse)
    triangle inequality the joint error moves by no more than these in the norm of the loss. Putting
    C numbers together errs by a few roundings of the result, for both neighbours.

    Parameters
    ----------
    bands : sequence of ErrorBand
        Of each channel.
    loss : {"squared", "absolute"}
    changed : int
        In how many channels one output can change.
    """
    if len(bands) == 1:
        return bands[0]
    sensitivity = joint_error(sorted(band.sensitivity for band in bands)[-changed:], loss=loss)
    largest = joint_error([band.largest for band in bands], loss=loss)
    rounding = 2 * gamma(len(bands) + TERM_ROUNDINGS) * largest
    return ErrorBand(
        sensitivity=(sensitivity + rounding) * (1 + gamma(TERM_ROUNDINGS)),
        largest=largest + rounding,
    )


def score_sensitivity(bands: Sequence[ErrorBand]) -> tuple[float, int]:
    """Choose a grid for the errors, and bound their change between neighbours on it.

    Two numbers at most m apart, divided by a power of two and rounded to integers, are at most
    ⌊m/step⌋ + 1 apart.

    Parameters
    ----------
    bands : sequence of ErrorBand

    Returns
    -------
    step : float
        A power of two, in output units.
    sensitivity : int
        In steps.
    """
    sensitivity = max(band.sensitivity for band in bands)
    largest = max(band.largest for band in bands)
    finest = math.floor(math.log2(sensitivity)) - GRID_BITS
    fitting = math.ceil(math.log2(largest + sensitivity)) - INTEGER_BITS
    step = math.ldexp(1.0, max(finest, fitting))
    return step, math.floor(sensitivity / step) + 1


def error_of(residuals: Array, noise_variance: Array, *, loss: Loss) -> float:
    """Return the error e that residuals and the variance of their noise lead one to expect.

    Never decreases when a residual grows in size.

    Parameters
    ----------
    residuals : array of shape (N,)
        In output units.
    noise_variance : array of shape (N,)
        In squared output units.
    loss : {"squared", "absolute"}

    Returns
    -------
    float
        In output units.

    Examples
    --------
    >>> error_of(np.array([3.0, 0.0]), np.array([0.0, 16.0]), loss="squared")
    5.0
    """
    if loss == "squared":
        return math.sqrt(float(np.square(residuals).sum() + noise_variance.sum()))
    # The mean of a folded normal variable; its terms are positive, and grow with |residual|.
    sd = np.sqrt(noise_variance)
    far = np.copysign(FAR, residuals)
    with np.errstate(over="ignore"):
        shifted = np.divide(residuals, math.sqrt(2.0) * sd, out=far, where=sd > 0)
    shifted = np.clip(shifted, -FAR, FAR)
    spread = math.sqrt(2.0 / math.pi) * sd * np.exp(-np.square(shifted))
    return float((spread + residuals * erf(shifted)).sum())
