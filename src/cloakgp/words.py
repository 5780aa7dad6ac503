"""A release in words, for whoever must decide whether it may be published.

Pure functions of the public object: nothing here computes anything from an output.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from cloakgp.arrays import Array
from cloakgp.models import SparsePrior
from cloakgp.numerals import ceiling, odds_factor, one_in, percent
from cloakgp.privacy import Guarantee
from cloakgp.privacy.mixed import MixedGuarantee
from cloakgp.release import Measurement, Release
from cloakgp.sections import Fact, Section

NORMAL = NormalDist()
# The δ at which the guarantee is told as well.
OTHER_DELTAS = (1e-2, 1e-3, 1e-4, 1e-6, 1e-9)
FALSE_ALARMS = 0.05
NOT_PRIVATE = "INSECURE: the noise came from a fixed seed, so this release is NOT PRIVATE"


def describe(release: Release) -> tuple[Section, ...]:
    """Return everything that a custodian should know about a release, in sections.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3)
    >>> sections = describe(model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_)
    >>> [section.title for section in sections]
    ['Protection', 'Guarantee', 'Noise', 'Prior', 'Data']
    """
    warning = (Section("NOT PRIVATE", (Fact("insecure", _insecure()),)),) * release.insecure
    return (
        *warning,
        Section("Protection", _protection(release)),
        Section("Guarantee", _guarantee(release)),
        Section("Noise", _noise(release)),
        Section("Prior", _prior(release)),
        Section("Data", _data(release)),
    )


def headline(release: Release) -> str:
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


def input_names(release: Release) -> tuple[str, ...]:
    """Return what to call the inputs: their names, or x1, x2, ... if the release has none."""
    if len(release.input_names) == release.n_inputs:
        return release.input_names
    return tuple(f"x{number + 1}" for number in range(release.n_inputs))


def rows(release: Release) -> Array:
    """Return the public inputs of all rows of all tables, each table once, shape (N, D)."""
    tables = {one.table: one.X for one in release.measurements}
    return np.vstack(list(tables.values()))


def bounds(release: Release) -> tuple[float, float]:
    """Return the declared range of one output; of several measurements, what spans them all."""
    pairs = np.array([one.answers.bounds for one in release.measurements])
    return float(pairs[:, 0].min()), float(pairs[:, 1].max())


def _insecure() -> str:
    return (
        f"{NOT_PRIVATE}. Whoever knows or guesses the seed can subtract the noise and learn about "
        "single people. The guarantee below would hold with secret noise only. Do not publish."
    )


def _protection(release: Release) -> tuple[Fact, ...]:
    output, names = release.output_name, ", ".join(input_names(release))
    lo, hi = bounds(release)
    return (
        Fact(
            "protected",
            f"the value of {output} in every single row. What is published would be almost as "
            f"likely if that value were any other from {lo:g} to {hi:g}.",
        ),
        Fact(
            "not protected",
            f"the inputs ({names}), which are in this file row by row; that somebody is in the "
            "table; the bounds and the prior.",
        ),
        Fact(
            "nor",
            f"what {output} is like in general. Whoever knows a person's inputs can predict that "
            "person from what all the others have in common.",
        ),
        Fact(
            "free",
            "predictions, pictures, fits and anything else made from this file cost no more "
            "privacy, however often.",
        ),
    )


def _guarantee(release: Release) -> tuple[Fact, ...]:
    guarantee = release.guarantee
    visits = len(release.measurements)
    if guarantee.mu == 0:
        return (Fact("guarantee", "nothing was asked, so nothing depends on any output."),)
    return (
        Fact(
            "guarantee",
            f"(ε, δ) = ({ceiling(guarantee.epsilon)}, {guarantee.delta:.4g}); this is Gaussian "
            f"differential privacy with μ = {ceiling(guarantee.mu)}.",
        ),
        *_parts(release) * (visits > 1),
        *_choice(release),
        Fact(
            "in words",
            f"whatever anybody does with this file, no result is more than e^ε = "
            f"{odds_factor(guarantee.epsilon)} times as likely for one value of a person's "
            f"{release.output_name} as for another, give or take a probability of "
            f"δ = {guarantee.delta:.4g}{one_in(guarantee.delta)}.",
        ),
        *_attacker(guarantee, output=release.output_name),
        Fact("the same, at other δ", _other_deltas(guarantee)),
        *_several_rows(guarantee),
    )


def _several_rows(guarantee: Guarantee | MixedGuarantee) -> tuple[Fact, ...]:
    if isinstance(guarantee, MixedGuarantee):
        return (Fact("several rows", "a person who owns two rows is protected less."),)
    doubled = _epsilon_at(replace(guarantee, mu=2 * guarantee.mu), guarantee.delta)
    return (
        Fact(
            "several rows",
            "a person who owns two rows of the table is protected less: "
            f"ε = {doubled} at the same δ.",
        ),
    )


def _choice(release: Release) -> tuple[Fact, ...]:
    """Say what choosing the prior from the private data cost."""
    if release.choice is None:
        return ()
    return (
        Fact(
            "choice",
            "the prior was chosen among candidates by looking at the private values, with "
            f"ε = {ceiling(release.choice.epsilon)}. The guarantee includes that.",
        ),
    )


def _parts(release: Release) -> tuple[Fact, ...]:
    parts = ", ".join(
        f"({ceiling(one.answers.guarantee.epsilon)}, {one.answers.guarantee.delta:.4g})"
        for one in release.measurements
    )
    return (
        Fact(
            "adds up",
            f"{len(release.measurements)} measurements, of {parts}. The guarantee is theirs "
            "together, for somebody whose output was in every one.",
        ),
    )


def _attacker(guarantee: Guarantee | MixedGuarantee, *, output: str) -> tuple[Fact, ...]:
    """Say what Gaussian differential privacy means for guesses, tests and beliefs.

    Between two values of one output, all others known, the logarithm of the likelihood ratio is
    N(±μ²/2, μ²) in the worst case (Dong, Roth and Su 2022). Guesses and tests of attackers who know
    less are worse.
    """
    mu, epsilon = guarantee.mu, guarantee.epsilon
    exceeded = NORMAL.cdf(mu / 2 - epsilon / mu) + NORMAL.cdf(-mu / 2 - epsilon / mu)
    power = NORMAL.cdf(NORMAL.inv_cdf(FALSE_ALARMS) + mu)
    # With a choice, μ bounds guesses and tests, but says nothing of how often odds move far.
    purely_gaussian = not isinstance(guarantee, MixedGuarantee)
    beliefs = Fact(
        "beliefs",
        "whatever that somebody believed before, the odds between two values change by at most "
        f"a factor of e^ε = {odds_factor(epsilon)}, except with probability "
        f"{percent(exceeded)}. (δ is smaller: it counts only by how much.)",
    )
    return (
        Fact(
            "a guess",
            f"suppose somebody knows everything but one person's {output}, and holds two values "
            "for equally likely. With this file they guess right at most "
            f"{percent(NORMAL.cdf(mu / 2))} of the time. A coin does 50 %.",
        ),
        Fact(
            "a test",
            f"one that accuses wrongly {percent(FALSE_ALARMS)} of the time finds the truth at most "
            f"{percent(power)} of the time. Without the file, {percent(FALSE_ALARMS)}.",
        ),
        *(beliefs,) * purely_gaussian,
    )


def _other_deltas(guarantee: Guarantee | MixedGuarantee) -> str:
    others = [delta for delta in OTHER_DELTAS if not math.isclose(delta, guarantee.delta)]
    return "; ".join(f"ε = {_epsilon_at(guarantee, delta)} at δ = {delta:g}" for delta in others)


def _epsilon_at(guarantee: Guarantee | MixedGuarantee, delta: float) -> str:
    try:
        return ceiling(guarantee.epsilon_at(delta))
    except ValueError:
        return "unknown"


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
    tables = {one.table: one.X for one in release.measurements}
    counts = " + ".join(f"{len(X):,}" for X in tables.values())
    X = rows(release)
    ranges = [
        Fact(name, f"{column.min():.4g} to {column.max():.4g}")
        for name, column in zip(input_names(release), X.T, strict=True)
    ]
    pairs = dict.fromkeys(one.answers.bounds for one in release.measurements)
    stated = " and ".join(f"{lo:g} to {hi:g}" for lo, hi in pairs)
    return (
        Fact("rows", f"{counts}" + f", in {len(tables)} tables" * (len(tables) > 1)),
        *ranges,
        Fact(
            release.output_name,
            f"private; declared to lie in {stated}; values outside were clipped, uncounted.",
        ),
    )


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
