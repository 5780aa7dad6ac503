"""A release of classification in words.

Pure functions of the public object: nothing here computes anything from a label.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cloakgp.models.likelihoods.classes import LabelPrior
from cloakgp.release import LabelRelease
from cloakgp.release.io.label_archive import prior_to_tree
from cloakgp.release.label_measurement import LabelMeasurement
from cloakgp.report.columns import class_names, input_names, rows, tables
from cloakgp.report.facts import Fact, Section
from cloakgp.report.guarantee import guarantee_facts, not_in_the_promise
from cloakgp.report.measurements import approximation, how_designed, where_from
from cloakgp.utils.arrays import Array

LINK_WORDS = {"probit": "probit", "logit": "logistic"}


def describe_labels(release: LabelRelease) -> tuple[Section, ...]:
    """Return everything that a custodian should know about released classes, in sections.

    Parameters
    ----------
    release : LabelRelease

    Examples
    --------
    >>> from cloakgp import DPGPClassifier
    >>> model = DPGPClassifier(classes=["ill", "well"], epsilon=1.0, delta=1e-3)
    >>> fitted = model.fit([[0.0], [1.0], [2.0]], ["ill", "well", "well"])
    >>> [section.title for section in describe_labels(fitted.release_)]
    ['Protection', 'Guarantee', 'Noise', 'Predictions', 'Prior', 'Data']
    """
    parts = [one.answers.guarantee for one in release.measurements]
    return (
        Section("Protection", _protection(release)),
        Section(
            "Guarantee",
            guarantee_facts(release.guarantee, output=release.output_name, parts=parts),
        ),
        Section("Noise", _noise(release)),
        Section("Predictions", _predictions(release)),
        Section("Prior", _prior(release)),
        Section("Data", _data(release)),
    )


def prior_rates(prior: LabelPrior, X: Array) -> Array:
    """Return the probability of every class before any answer, averaged over inputs, shape (C,).

    Parameters
    ----------
    prior : LabelPrior
    X : array of shape (P, D)
    """
    means = np.array(prior.means)
    variance = prior.latent.query_variance(X)
    found, _ = prior.link.moments(
        np.broadcast_to(means, (len(X), len(means))),
        np.broadcast_to(variance[:, None], (len(X), len(means))),
    )
    if len(means) == 1:
        found = np.hstack([1.0 - found, found])
    rates: Array = (found / found.sum(axis=1, keepdims=True)).mean(axis=0)
    return rates


def _protection(release: LabelRelease) -> tuple[Fact, ...]:
    output, names = release.output_name, ", ".join(input_names(release))
    return (
        Fact(
            "protected",
            f"the class ({output}) of every single row. What is published would be almost as "
            f"likely if that class were any other of {_listed(class_names(release))}.",
        ),
        Fact(
            "not protected",
            f"the inputs ({names}), which are in this file row by row; that somebody is in the "
            "table; which classes there are, their declared rates, and the prior.",
        ),
        *not_in_the_promise(output),
    )


def _noise(release: LabelRelease) -> tuple[Fact, ...]:
    facts = []
    for number, one in enumerate(release.measurements):
        ordinal = f" {number + 1}" if len(release.measurements) > 1 else ""
        facts += [
            Fact(f"answers{ordinal}", _answers(one, release)),
            Fact(f"design{ordinal}", _design(one, release)),
        ]
    return tuple(facts)


def _answers(one: LabelMeasurement, release: LabelRelease) -> str:
    if one.answers.noise_sd == 0:
        return "nothing was asked."
    names, count = class_names(release), len(one.questions.strategy)
    source = "a FIXED SEED" if one.answers.insecure else "the operating system's randomness"
    if len(names) == 2:
        weighed = f"a label counts as -1 for {names[0]} and as 1 for {names[1]}"
    else:
        weighed = f"a label counts as 1 for its class and 0 for another, less 1/{len(names)}"
    numbers = "number" if count == 1 else "numbers"
    for_each = f" for each of {len(names)} classes" * (len(names) > 2)
    return (
        f"{count} {numbers}{for_each}, each a weighted sum of labels, where {weighed}, with normal "
        f"noise of sd {one.answers.noise_sd:.4g}, drawn from {source}."
    )


def _design(one: LabelMeasurement, release: LabelRelease) -> str:
    return how_designed(
        one.questions.certificate,
        predictions="the papers' Newton step at all rows"
        if release.rule == "laplace"
        else "one Newton step at the queried points",
        prior="the linear prior over labels that is nearest to the declared one",
    )


def _predictions(release: LabelRelease) -> tuple[Fact, ...]:
    points = np.vstack([one.questions.X_query for one in release.measurements])
    latent = release.predict_latent(points)
    prior_sd = np.sqrt(release.prior.latent.query_variance(points))
    surest = release.predict_proba(points).max(axis=1)
    return (
        Fact("how", _how(release)),
        Fact(
            "latent",
            f"at the queried points the latent values have an sd of {_rms(latent.sd):.4g} (root "
            f"mean square; {_rms(prior_sd):.4g} before anything was asked). The privacy noise "
            f"alone makes {_rms(latent.privacy_sd):.4g} of it.",
        ),
        Fact(
            "decided",
            "the most probable class of a queried point has a probability of "
            f"{surest.min():.2f} to {surest.max():.2f}.",
        ),
    )


def _how(release: LabelRelease) -> str:
    names, link_word = class_names(release), LINK_WORDS[release.prior.link_name]
    averaged = "Probabilities average over all that is not known, the privacy noise included."
    if release.rule == "laplace":
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


def _prior(release: LabelRelease) -> tuple[Fact, ...]:
    prior, declared = release.fitted_prior, release.prior
    return (
        Fact("kernel", f"{prior.latent.kernel} (covariance of a latent function)"),
        Fact("link", LINK_WORDS[prior.link_name]),
        Fact("class rates", f"{_rates(release, prior)}: what is predicted far from all rows."),
        approximation(prior.latent),
        *where_from(
            priors=len(release.learned),
            unchanged=prior_to_tree(prior) == prior_to_tree(declared),
            what="kernel and class rates",
            declared=f"{declared.latent.kernel}, class rates {_rates(release, declared)}",
        ),
    )


def _rates(release: LabelRelease, prior: LabelPrior) -> str:
    rates = prior_rates(prior, rows(release))
    named = zip(class_names(release), rates, strict=True)
    return ", ".join(f"{name} = {rate:.2g}" for name, rate in named)


def _data(release: LabelRelease) -> tuple[Fact, ...]:
    sizes = [f"{len(X):,}" for X in tables(release)]
    ranges = [
        Fact(name, f"{column.min():.4g} to {column.max():.4g}")
        for name, column in zip(input_names(release), rows(release).T, strict=True)
    ]
    return (
        Fact("rows", " + ".join(sizes) + f", in {len(sizes)} tables" * (len(sizes) > 1)),
        *ranges,
        Fact(
            release.output_name,
            f"private; declared to be one of {_listed(class_names(release))}. A table with any "
            "other label would have been refused.",
        ),
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
