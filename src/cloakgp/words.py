"""A release in words, for whoever must decide whether it may be published.

Pure functions of the public object: nothing here computes anything from an output.
"""

from __future__ import annotations

import math

import numpy as np

from cloakgp.arrays import Array
from cloakgp.columns import AnyRelease, input_names, rows, tables
from cloakgp.guarantee_words import NOTHING_LEARNED, guarantee_facts, insecurity, not_in_the_promise
from cloakgp.label_words import describe_labels
from cloakgp.models import SparsePrior
from cloakgp.numerals import ceiling
from cloakgp.release import LabelRelease, Measurement, Release
from cloakgp.release.archive import prior_to_tree
from cloakgp.sections import Fact, Section


def describe(release: AnyRelease) -> tuple[Section, ...]:
    """Return everything that a custodian should know about a release, in sections.

    Parameters
    ----------
    release : Release or LabelRelease

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3)
    >>> sections = describe(model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_)
    >>> [section.title for section in sections]
    ['Protection', 'Guarantee', 'Noise', 'Prior', 'Data']
    """
    warning = (insecurity(),) * release.insecure
    if isinstance(release, LabelRelease):
        return (*warning, *describe_labels(release))
    parts = [one.answers.guarantee for one in release.measurements]
    return (
        *warning,
        Section("Protection", _protection(release)),
        Section(
            "Guarantee",
            guarantee_facts(
                release.guarantee,
                output=release.output_name,
                parts=parts,
                choice=release.choice,
                grouped=_grouped(release),
            ),
        ),
        Section("Noise", _noise(release)),
        Section("Prior", _prior(release)),
        Section("Data", _data(release)),
    )


def headline(release: AnyRelease) -> str:
    """Return the guarantee in a few words, or that there is none.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3)
    >>> headline(model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_)
    '(1, 0.001)-differentially private'
    """
    if release.insecure:
        return "INSECURE: seeded noise, not private"
    guarantee = release.guarantee
    return f"({ceiling(guarantee.epsilon)}, {guarantee.delta:.4g})-differentially private"


def bounds(release: Release) -> tuple[float, float]:
    """Return the declared range of one output; of several measurements, what spans them all."""
    pairs = np.array([one.answers.bounds for one in release.measurements])
    return float(pairs[:, 0].min()), float(pairs[:, 1].max())


def _grouped(release: Release) -> bool:
    """Return whether every table protects all rows of one person together."""
    return all(one.groups is not None for one in release.measurements)


def _any_groups(release: Release) -> bool:
    return any(one.groups is not None for one in release.measurements)


def _unit(release: Release) -> str:
    """Say whose values are protected together."""
    output = release.output_name
    groups = {one.table: one.groups for one in release.measurements}
    together = [each for each in groups.values() if each is not None]
    if not together:
        return f"the value of {output} in every single row"
    people = " and ".join(
        f"{int(each.max()) + 1:,} people with up to {int(np.bincount(each).max()):,} rows each"
        for each in together
    )
    said = f"all values of {output} of one person, in every row of theirs ({people})"
    if len(together) == len(groups):
        return said
    return f"{said}; in tables that do not say whose rows they are, every single row"


def _protection(release: Release) -> tuple[Fact, ...]:
    output, names = release.output_name, ", ".join(input_names(release))
    lo, hi = bounds(release)
    return (
        Fact(
            "protected",
            f"{_unit(release)}. What is published would be almost as likely if "
            f"{'these were any others' if _grouped(release) else 'that value were any other'} "
            f"from {lo:g} to {hi:g}.",
        ),
        Fact(
            "not protected",
            f"the inputs ({names}), which are in this file row by row; that somebody is in the "
            f"table; {'which rows are the same person; ' * _any_groups(release)}the bounds and "
            "the prior.",
        ),
        *not_in_the_promise(output),
    )


def _noise(release: Release) -> tuple[Fact, ...]:
    visits = len(release.measurements)
    facts = []
    for number, one in enumerate(release.measurements):
        ordinal = f" {number + 1}" if visits > 1 else ""
        facts += [
            Fact(f"answers{ordinal}", _answers(one, output=release.output_name)),
            Fact(f"design{ordinal}", _design(one)),
        ]
    points = np.vstack([one.X_query for one in release.measurements])
    _, sd = release.predict(points, return_std=True)
    prior_sd = np.sqrt(release.prior.query_variance(points))
    facts.append(
        Fact(
            "predictions",
            f"from the answers and the prior together they have an sd of {_rms(sd):.4g} (root mean "
            f"square over the queried points; {_rms(prior_sd):.4g} before anything was asked).",
        )
    )
    return tuple(facts)


def _answers(one: Measurement, *, output: str) -> str:
    count = len(one.strategy)
    if one.answers.noise_sd == 0:
        return "nothing was asked."
    source = "a FIXED SEED" if one.answers.insecure else "the operating system's randomness"
    answered = (
        f"{count} {'number' if count == 1 else 'numbers, each'} with normal noise of sd "
        f"{one.answers.noise_sd:.4g}, in units of {output}, drawn from {source}."
    )
    if one.reconstruction is None:
        return answered
    raw_sd = one.answers.noise_sd * np.linalg.norm(one.reconstruction, axis=1)
    return (
        f"{answered} Raw predictions at the {len(one.X_query):,} queried points follow from them, "
        f"with noise of {_rms(raw_sd):.4g} (root mean square)."
    )


def _design(one: Measurement) -> str:
    gap = f"{ceiling(100 * one.certificate.gap, digits=2)} %"
    if one.certificate.criterion == "trace":
        return (
            "the questions were chosen for the least mean square noise of raw predictions. It is "
            f"certified to be within {gap} of the least possible under this guarantee."
        )
    if one.certificate.criterion == "bayes":
        return (
            "the questions were chosen for the sharpest predictions under the prior. The variance "
            f"that remains is certified to be within {gap} of the least possible under this "
            "guarantee."
        )
    if one.certificate.criterion == "functional":
        return (
            "the questions are the coordinates of the whole curve: raw predictions follow from "
            "their answers at any inputs."
        )
    return (
        "the questions were chosen for the least volume of noise of raw predictions (the papers' "
        f"choice). Per dimension, it is certified to be within {gap} of the least possible."
    )


def _prior(release: Release) -> tuple[Fact, ...]:
    prior = release.fitted_prior
    if isinstance(prior, SparsePrior):
        kind = f"{prior.approximation.upper()}, with {len(prior.inducing)} inducing inputs."
    else:
        kind = "none: the exact Gaussian process."
    return (
        Fact("kernel", f"{prior.kernel} (covariance, in squared units of {release.output_name})"),
        Fact("noise sd", f"{math.sqrt(prior.noise_variance):.4g}, of each output about the curve."),
        Fact("mean", f"{prior.mean:.4g}"),
        Fact("approximation", kind),
        *_learned(release),
    )


def _learned(release: Release) -> tuple[Fact, ...]:
    """Say where the values come from, if any were learned."""
    if not release.learned:
        return ()
    if prior_to_tree(release.fitted_prior) == prior_to_tree(release.prior):
        return (NOTHING_LEARNED,)
    declared = release.prior
    averaged = f" Predictions average over {len(release.learned)} such priors."
    return (
        Fact(
            "learned",
            "these values were fitted to the noisy answers, which costs no privacy."
            + averaged * (len(release.learned) > 1),
        ),
        Fact(
            "declared",
            f"{declared.kernel}, noise sd {math.sqrt(declared.noise_variance):.4g}, mean "
            f"{declared.mean:.4g}, without looking at any answer.",
        ),
    )


def _data(release: Release) -> tuple[Fact, ...]:
    sizes = [f"{len(X):,}" for X in tables(release)]
    X = rows(release)
    ranges = [
        Fact(name, f"{column.min():.4g} to {column.max():.4g}")
        for name, column in zip(input_names(release), X.T, strict=True)
    ]
    pairs = dict.fromkeys(one.answers.bounds for one in release.measurements)
    stated = " and ".join(f"{lo:g} to {hi:g}" for lo, hi in pairs)
    return (
        Fact("rows", " + ".join(sizes) + f", in {len(sizes)} tables" * (len(sizes) > 1)),
        *ranges,
        Fact(
            release.output_name,
            f"private; declared to lie in {stated}; values outside were clipped, uncounted.",
        ),
    )


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
