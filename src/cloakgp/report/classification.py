"""Releases about classes in words."""

from __future__ import annotations

import numpy as np

from cloakgp.models.likelihoods.classes import ClassLikelihood, class_likelihood
from cloakgp.privacy.noise import NOISES
from cloakgp.release import Measurement, Release, WeightedPrior
from cloakgp.release.io.codec import to_tree
from cloakgp.report.columns import class_names
from cloakgp.report.facts import Fact
from cloakgp.report.measurements import (
    approximation,
    describe_design,
    describe_origin,
    root_mean_square,
)
from cloakgp.report.outputs import OutputWords
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount

# Declared rates of several classes are kept up to this where variances differ by row.
RATES_HELD = 0.01
LINK_WORDS = {"probit": "probit", "logit": "logistic"}


class ClassWords(OutputWords):
    """Releases about classes."""

    def describe_protection(self, release: Release, *, unit: str, grouped: bool) -> str:
        """Name the protected values."""
        if grouped:
            return (
                f"{unit}. The published values would be almost as likely if these were any others "
                f"of {_listed(release)}."
            )
        return (
            f"the class ({release.output_name}) of every single row. The published values would be "
            f"almost as likely if that class were any other of {_listed(release)}."
        )

    def also_public(self) -> str:
        """Name the public facts beside the inputs and membership in the table."""
        return "which classes there are, their declared rates, and the prior"

    def describe_answers(self, measurement: Measurement, release: Release) -> str:
        """State the number of published answers, and their noise."""
        answers = measurement.answers
        if answers.noise_sd == 0:
            return "nothing was asked."
        names, count = class_names(release), measurement.strategy.n_answers
        source = "a FIXED SEED" if answers.insecure else "the operating system's randomness"
        if len(names) == 2:
            weighed = f"a label counts as -1 for {names[0]} and as 1 for {names[1]}"
        else:
            weighed = f"a label counts as 1 for its class and 0 for another, less 1/{len(names)}"
        numbers = "number" if count == 1 else "numbers"
        for_each = f" for each of {len(names)} classes" * (len(names) > 2)
        return (
            f"{count} {numbers}{for_each}, each a weighted sum of labels, where {weighed}, with "
            f"{NOISES[answers.noise].law} noise of sd {amount(answers.noise_sd, 4)}, drawn from "
            f"{source}."
        )

    def describe_design(self, measurement: Measurement, release: Release) -> str:
        """State the aim of the questions."""
        return describe_design(
            measurement.strategy.certificate,
            predictions="the papers' Newton step at all rows"
            if release.inference == "newton"
            else "one Newton step at the queried points",
            prior="the linear prior over labels that is nearest to the declared one",
        )

    def sharpness(self, release: Release) -> tuple[Fact, ...]:
        """Return nothing: how sharp probabilities are stands beside how they are made."""
        del release
        return ()

    def predictions(self, release: Release) -> tuple[Fact, ...]:
        """Describe the origin of probabilities, and their sharpness."""
        probabilities = release.predict_proba(_queried(release))
        surest, rates = probabilities.max(axis=1), probabilities.mean(axis=0)
        commonest = class_names(release)[int(rates.argmax())]
        return (
            Fact(
                "typical success",
                "by these probabilities themselves, the most probable class is right for "
                f"{100 * float(surest.mean()):.0f} % of people at the query points; naming "
                f"{commonest} for everybody, for {100 * float(rates.max()):.0f} % (its mean "
                "probability there, the largest of all).",
            ),
            Fact(
                "decided",
                "at the query points, the most probable class has a probability of "
                f"{surest.min():.2f} to {surest.max():.2f}.",
            ),
        )

    def prior(self, release: Release) -> tuple[Fact, ...]:
        """Return the prior in words, and where its values come from."""
        declared = WeightedPrior(prior=release.prior, likelihood=release.likelihood, weight=1.0)
        fitted = release.fitted
        rates, expected = _rates(release, fitted), _rates(release, declared)
        unchanged = (declared.prior, declared.likelihood), (fitted.prior, fitted.likelihood)
        points = _queried(release)
        latent = release.predict_latent(points)
        prior_sd = np.sqrt(release.prior.query_variance(points))
        return (
            Fact("how", _how(release, class_likelihood(fitted.likelihood))),
            Fact(
                "latent",
                "at the queried points the latent values have an sd of "
                f"{amount(root_mean_square(latent.sd), 4)} (root mean square; "
                f"{amount(root_mean_square(prior_sd), 4)} before the first question). The "
                "privacy noise "
                f"alone makes {amount(root_mean_square(latent.privacy_sd), 4)} of it.",
            ),
            Fact("kernel", f"{fitted.prior.kernel} (covariance of a latent function)"),
            Fact("link", LINK_WORDS[class_likelihood(fitted.likelihood).link_name]),
            Fact(
                "class rates",
                f"{_named(release, rates)}: before any answer, on average over the rows' inputs"
                + ", under the prior of most weight" * (len(release.learned) > 1)
                + ".",
            ),
            approximation(fitted.prior),
            *describe_origin(
                priors=len(release.learned),
                unchanged=to_tree(unchanged[0]) == to_tree(unchanged[1]),
                what="the kernel's values"
                if np.allclose(rates, expected, atol=RATES_HELD)
                else "kernel and class rates",
                declared=f"{declared.prior.kernel}, class rates {_named(release, expected)}",
            ),
        )

    def declared(self, release: Release) -> str:
        """State the declared classes of the private column."""
        return (
            f"private; declared to be one of {_listed(release)}. A table with any other label "
            "would have been refused."
        )


def _how(release: Release, likelihood: ClassLikelihood) -> str:
    names, link_word = class_names(release), LINK_WORDS[likelihood.link_name]
    averaged = "Probabilities average over all uncertainty, including that of the privacy noise."
    if release.inference == "newton":
        steps = len(release.measurements)
        return (
            f"by the papers' iteration, {steps} Newton {'step' if steps == 1 else 'steps'} with "
            f"noise on each; the {link_word} link makes a latent value the probability of "
            f"{names[1]}. {averaged}"
        )
    if len(names) == 2:
        return (
            "a latent function is inferred from the answers and the prior; the "
            f"{link_word} link makes its value the probability of {names[1]}. {averaged}"
        )
    return (
        "one class against the others: each class has a latent function of its own, inferred from "
        f"the answers about it and the prior; the {link_word} link makes its value the probability "
        f"of that class or another, and these are divided by their sum. {averaged}"
    )


def _queried(release: Release) -> Array:
    return np.vstack([measurement.strategy.X_query for measurement in release.measurements])


def _rates(release: Release, prior: WeightedPrior) -> Array:
    return class_likelihood(prior.likelihood).prior_rates(prior.prior, release.known_inputs)


def _named(release: Release, rates: Array) -> str:
    named = zip(class_names(release), rates, strict=True)
    return ", ".join(f"{name} = {amount(rate, 2)}" for name, rate in named)


def _listed(release: Release) -> str:
    return ", ".join(class_names(release))
