"""Measurements and priors in words: the questions about a column of numbers, and its prior."""

from __future__ import annotations

import math

import numpy as np

from cloakgp.criteria import CRITERIA
from cloakgp.design import Certificate
from cloakgp.design.strategy import CLOSE_GAP
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.release import Measurement, Release
from cloakgp.release.io.codec import to_tree
from cloakgp.report.columns import asked_output, input_names
from cloakgp.report.facts import Fact
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount, ceiling

# What a release says of hyperparameters that were looked for in its answers and left alone.
NOTHING_LEARNED = Fact(
    "learned",
    "nothing: the noisy answers make other values more probable by less than a nat (a factor of "
    "2.7), so the declared values stay.",
)


def describe_answers(measurement: Measurement, *, output: str) -> str:
    """State the number of published answers, and their noise.

    Parameters
    ----------
    measurement : Measurement
    output : str
        Name of the private column.
    """
    answers, strategy = measurement.answers, measurement.strategy
    if answers.noise_sd == 0:
        return "nothing was asked."
    source = "a FIXED SEED" if answers.insecure else "the operating system's randomness"

    def noise(unit: str) -> str:
        law = NOISES[answers.noise].law
        return f"{law} noise of sd {amount(answers.noise_sd, 4)}{unit}, drawn from {source}"

    # Of rows that are not kept: as at the query points.
    question = measurement.question.of_rows(strategy.X_query)
    answered = question.describe_answers(len(answers.values), noise=noise, output=output)
    if strategy.reconstruction is None:
        return answered
    raw_sd = answers.noise_sd * np.linalg.norm(strategy.reconstruction, axis=1)
    return (
        f"{answered} Raw predictions at the {len(strategy.X_query):,} queried points follow from "
        f"them, with noise of {amount(root_mean_square(raw_sd), 4)} (root mean square)."
    )


def describe_design(
    certificate: Certificate,
    *,
    predictions: str = "raw predictions",
    prior: str = "the prior",
) -> str:
    """State the aim of the questions, and their distance to the best ones.

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
    'That is not the usual 1 %: 18 % is the best bound known;'
    """
    gap = f"{ceiling(100 * certificate.gap, digits=2)} %"
    criterion = CRITERIA[certificate.criterion]
    said = criterion.describe(gap=gap, predictions=predictions, prior=prior)
    if not criterion.certified or certificate.gap <= CLOSE_GAP:
        return said
    return (
        f"{said} That is not the usual {100 * CLOSE_GAP:g} %: {gap} is the best bound known; the "
        "true distance may be smaller."
    )


def describe_sharpness(release: Release, points: Array) -> Fact:
    """State the sharpness of predictions at points, before and after the questions."""
    # Of what was asked, before it is transformed back.
    sd = release.predict_latent(points).sd
    prior_sd = np.sqrt(release.prior.query_variance(points))
    return Fact(
        "predictions",
        "from the answers and the prior together they have an sd of "
        f"{amount(root_mean_square(sd), 4)} (root mean square over the queried points; "
        f"{amount(root_mean_square(prior_sd), 4)} before the first question).",
    )


def prior_facts(release: Release) -> tuple[Fact, ...]:
    """Return the prior in words, and where its values come from."""
    prior, declared = release.fitted_prior, release.prior
    return (
        Fact("kernel", f"{prior.kernel} (covariance, in squared units of {asked_output(release)})"),
        describe_noise(prior),
        Fact("mean", _mean(release)),
        approximation(prior),
        *describe_origin(
            priors=len(release.learned),
            unchanged=to_tree(prior) == to_tree(declared),
            what="these values",
            declared=f"{declared.kernel}, noise sd "
            f"{amount(math.sqrt(declared.noise_variance), 4)}, mean "
            f"{amount(declared.mean, 4)}",
            looked_at="any answer but the counts"
            if any(isinstance(one.question, CountQuestion) for one in release.measurements)
            else "any answer",
        ),
    )


def _mean(release: Release) -> str:
    prior = release.fitted_prior
    if prior.trend is None:
        return f"{amount(prior.mean, 4)}"
    column = input_names(release)[prior.trend.column]
    return f"{prior.mean - prior.trend.centre:+.4g} beside {column}, the public prediction"


def describe_noise(prior: ExactPrior | SparsePrior) -> Fact:
    """Say how far outputs lie from the curve, and where more than elsewhere."""
    noise_sd, scatter = math.sqrt(prior.noise_variance), prior.scatter
    if scatter is None:
        return Fact("noise sd", f"{amount(noise_sd, 4)}, of each output about the curve.")
    sds = noise_sd * np.exp(scatter.log_factor(scatter.centres))
    return Fact(
        "noise sd",
        f"{amount(sds.min(), 3)} to {amount(sds.max(), 3)}, of each output about the curve: it "
        "varies with the "
        f"inputs, smoothly between the middles of {len(sds)} parts of the rows.",
    )


def root_mean_square(values: Array) -> float:
    """Return the root of the mean of squares."""
    return float(np.sqrt(np.mean(np.square(values))))


def approximation(prior: ExactPrior | SparsePrior) -> Fact:
    """Name the approximation of the exact process, if there is one."""
    if isinstance(prior, SparsePrior):
        kind = f"{prior.approximation.upper()}, with {len(prior.inducing)} inducing inputs."
    else:
        kind = "none: the exact Gaussian process."
    return Fact("approximation", kind)


def describe_origin(
    *, priors: int, unchanged: bool, what: str, declared: str, looked_at: str = "any answer"
) -> tuple[Fact, ...]:
    """Name the source of hyperparameters, if any were learned from the answers.

    Parameters
    ----------
    priors : int
        The number of priors over which predictions average; 0 if nothing was learned.
    unchanged : bool
        Whether the one of most weight is as it was declared.
    what : str
        Which values were fitted.
    declared : str
        Their declared values.
    looked_at : str
        The answers that their declaration did not use.

    Examples
    --------
    >>> describe_origin(priors=0, unchanged=True, what="these values", declared="mean 0")
    ()
    """
    if not priors:
        return ()
    if unchanged and priors == 1:
        return (NOTHING_LEARNED,)
    if unchanged:
        weighed = (
            f"predictions average over {priors} priors, weighed by the noisy answers, which costs "
            "no privacy. The declared values are those of most weight."
        )
        return (Fact("learned", weighed),)
    averaged = f" Predictions average over {priors} such priors."
    return (
        Fact(
            "learned",
            f"{what} were fitted to the noisy answers, which costs no privacy."
            + averaged * (priors > 1),
        ),
        Fact("declared", f"{declared}, without looking at {looked_at}."),
    )
