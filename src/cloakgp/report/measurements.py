"""Measurements and priors in words: what was asked of a column of numbers, under which prior."""

from __future__ import annotations

import math

import numpy as np

from cloakgp.criteria import CRITERIA
from cloakgp.design import Certificate
from cloakgp.design.strategy import CLOSE_GAP
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Answers
from cloakgp.privacy.bands import Bands, SpreadQuestion
from cloakgp.privacy.interval import CountQuestion
from cloakgp.privacy.noise import NOISES
from cloakgp.release import Release
from cloakgp.release.io.codec import to_tree
from cloakgp.report.columns import asked_output
from cloakgp.report.facts import Fact
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import ceiling

# What a release says of hyperparameters that were looked for in its answers and left alone.
NOTHING_LEARNED = Fact(
    "learned",
    "nothing: the noisy answers make other values more probable by less than a nat (a factor of "
    "2.7), so those that were declared stay.",
)


def describe_answers(
    answers: Answers, *, queries: Array, reconstruction: Array | None, output: str
) -> str:
    """Say how many numbers were published, and with what noise.

    Parameters
    ----------
    answers : Answers
    queries : array of shape (P, D)
    reconstruction : array of shape (P, k) or None
    output : str
        Name of the private column.
    """
    count = len(answers.values)
    if answers.noise_sd == 0:
        return "nothing was asked."
    source = "a FIXED SEED" if answers.insecure else "the operating system's randomness"
    law = NOISES[answers.noise].law
    answered = (
        f"{count} {'number' if count == 1 else 'numbers, each'} with {law} noise of sd "
        f"{answers.noise_sd:.4g}, in units of {output}, drawn from {source}."
    )
    if reconstruction is None:
        return answered
    raw_sd = answers.noise_sd * np.linalg.norm(reconstruction, axis=1)
    return (
        f"{answered} Raw predictions at the {len(queries):,} queried points follow from them, "
        f"with noise of {root_mean_square(raw_sd):.4g} (root mean square)."
    )


def describe_stage(
    answers: Answers, encoding: Bands | SpreadQuestion | CountQuestion, *, output: str
) -> str:
    """Say what a later stage or a count asked, and with what noise it was answered.

    Parameters
    ----------
    answers : Answers
    encoding : Bands, SpreadQuestion or CountQuestion
    output : str
        Name of the private column.
    """
    if answers.noise_sd == 0:
        return "nothing was asked."
    source = "a FIXED SEED" if answers.insecure else "the operating system's randomness"
    law = NOISES[answers.noise].law
    if isinstance(encoding, CountQuestion):
        inner = encoding.edges[1:-1]
        between = f", which end from {inner[0]:.4g} to {inner[-1]:.4g}" if len(inner) else ""
        return (
            f"{encoding.intervals} numbers: how many values of {output} lie in each of so many "
            f"intervals{between}, each with {law} noise of sd "
            f"{answers.noise_sd:.4g} rows, drawn from {source}."
        )
    if isinstance(encoding, SpreadQuestion):
        return (
            "1 number: on how many rows, in all, values lie outside of what was predicted from the "
            "answers before (counting from 1.5 predictive sds, in full from 3), with "
            f"{law} noise of sd {answers.noise_sd:.4g} rows, drawn from {source}."
        )
    count = len(answers.values)
    return (
        f"{count} {'number' if count == 1 else 'numbers, each'} with {law} noise of sd "
        f"{answers.noise_sd:.4g} in units of a row's band, drawn from {source}. Bands are "
        "around what was predicted from the answers before; values outside were clipped to them, "
        f"uncounted. Their widths: {float(np.median(encoding.width)):.4g} (median), in units of "
        f"{output}."
    )


def describe_design(
    certificate: Certificate,
    *,
    predictions: str = "raw predictions",
    prior: str = "the prior",
) -> str:
    """Say what the questions were chosen for, and how near they are to the best ones.

    Parameters
    ----------
    certificate : Certificate
    predictions : str
        Whose noise matters.
    prior : str
        Under which they were chosen.

    Examples
    --------
    >>> describe_design(Certificate(criterion="given", gap=1.0))
    'the questions were given and not designed: others might say more under this guarantee.'
    >>> describe_design(Certificate(criterion="trace", gap=0.18)).split(". ")[-1][:56]
    'That is not the usual 1 %: 18 % is the best bound known,'
    """
    gap = f"{ceiling(100 * certificate.gap, digits=2)} %"
    criterion = CRITERIA[certificate.criterion]
    said = criterion.describe(gap=gap, predictions=predictions, prior=prior)
    if not criterion.certified or certificate.gap <= CLOSE_GAP:
        return said
    return (
        f"{said} That is not the usual {100 * CLOSE_GAP:g} %: {gap} is the best bound known, and "
        "how much of it better questions could gain, if any, is not known."
    )


def describe_sharpness(release: Release, points: Array) -> Fact:
    """Say how sharp predictions are at points, before and after."""
    # Of what was asked, before it is transformed back.
    sd = release.predict_latent(points).sd
    prior_sd = np.sqrt(release.prior.query_variance(points))
    return Fact(
        "predictions",
        "from the answers and the prior together they have an sd of "
        f"{root_mean_square(sd):.4g} (root mean square over the queried points; "
        f"{root_mean_square(prior_sd):.4g} before anything was asked).",
    )


def prior_facts(release: Release) -> tuple[Fact, ...]:
    """Return the prior in words, and where its values come from."""
    prior, declared = release.fitted_prior, release.prior
    return (
        Fact("kernel", f"{prior.kernel} (covariance, in squared units of {asked_output(release)})"),
        Fact("noise sd", f"{math.sqrt(prior.noise_variance):.4g}, of each output about the curve."),
        Fact("mean", f"{prior.mean:.4g}"),
        approximation(prior),
        *describe_origin(
            priors=len(release.learned),
            unchanged=to_tree(prior) == to_tree(declared),
            what="these values",
            declared=f"{declared.kernel}, noise sd {math.sqrt(declared.noise_variance):.4g}, mean "
            f"{declared.mean:.4g}",
            looked_at="any answer but the counts"
            if any(isinstance(one.encoding, CountQuestion) for one in release.measurements)
            else "any answer",
        ),
    )


def root_mean_square(values: Array) -> float:
    """Return the root of the mean of squares."""
    return float(np.sqrt(np.mean(np.square(values))))


def approximation(prior: ExactPrior | SparsePrior) -> Fact:
    """Say what stands for the exact process, if anything does."""
    if isinstance(prior, SparsePrior):
        kind = f"{prior.approximation.upper()}, with {len(prior.inducing)} inducing inputs."
    else:
        kind = "none: the exact Gaussian process."
    return Fact("approximation", kind)


def describe_origin(
    *, priors: int, unchanged: bool, what: str, declared: str, looked_at: str = "any answer"
) -> tuple[Fact, ...]:
    """Say where hyperparameters come from, if any were looked for in the answers.

    Parameters
    ----------
    priors : int
        How many priors predictions average over; 0 if nothing was looked for.
    unchanged : bool
        Whether the one of most weight is as it was declared.
    what : str
        Which values were fitted.
    declared : str
        Their declared values.
    looked_at : str
        What they were declared without looking at.

    Examples
    --------
    >>> describe_origin(priors=0, unchanged=True, what="these values", declared="mean 0")
    ()
    """
    if not priors:
        return ()
    if unchanged:
        return (NOTHING_LEARNED,)
    averaged = f" Predictions average over {priors} such priors."
    return (
        Fact(
            "learned",
            f"{what} were fitted to the noisy answers, which costs no privacy."
            + averaged * (priors > 1),
        ),
        Fact("declared", f"{declared}, without looking at {looked_at}."),
    )
