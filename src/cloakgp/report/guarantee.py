"""Guarantees in words: the promise, its meaning for an attacker, and its parts."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

from cloakgp.privacy import Guarantee
from cloakgp.privacy.cohorts import Cohorts
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.noise_choice import however_priced, needs_no_delta
from cloakgp.privacy.person_ids import COMPARED
from cloakgp.privacy.spending import Budget
from cloakgp.release import Choice
from cloakgp.release.provenance import Provenance
from cloakgp.report.facts import Fact, Section
from cloakgp.utils.formatting import ceiling, odds_factor, one_in, pair_in_words, percent

# Points of the ε–δ curve at which tests are bounded.
CURVE_STEPS = 40
NORMAL = NormalDist()
# The δ at which the guarantee is told as well.
OTHER_DELTAS = (1e-2, 1e-3, 1e-4, 1e-6, 1e-9)
FALSE_ALARMS = 0.05
# Of sets of tables, those listed.
MOST_COHORTS = 12
NOT_PRIVATE = "INSECURE: the noise came from a fixed seed, so this release is NOT PRIVATE"


def right_guess(guarantee: Guarantee | MixedGuarantee, *, belief: float = 0.5) -> float:
    r"""Return the largest share of right guesses of an attacker between two values of a person.

    An attacker who believes the first value with probability p ≤ ½ guesses it on an event A, and
    is right with probability p P(A) + (1 − p)(1 − Q(A)) = (1 − p) + p (P(A) − e^ε Q(A)) with
    e^ε = (1 − p)/p, which is at most (1 − p) + p δ(ε).

    Parameters
    ----------
    guarantee : Guarantee or MixedGuarantee
    belief : float
        p, from 0 to 1; above ½ the two values change places.

    Examples
    --------
    >>> from cloakgp import Guarantee
    >>> guarantee = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,))
    >>> round(right_guess(guarantee), 3), right_guess(guarantee, belief=0.1)
    (0.697, 0.9)
    """
    less = min(belief, 1.0 - belief)
    if less <= 0:
        return 1.0
    return (1.0 - less) + less * guarantee.delta_at(math.log((1.0 - less) / less))


def power_of_tests(guarantee: Guarantee | MixedGuarantee, *, false_alarms: float) -> float:
    """Return the largest power of a test with a given share of false alarms.

    Its power is at most e^ε α + δ(ε) for every ε: the least of these over some.

    Parameters
    ----------
    guarantee : Guarantee or MixedGuarantee
    false_alarms : float
        α.

    Examples
    --------
    >>> from cloakgp import Guarantee
    >>> guarantee = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,))
    >>> round(power_of_tests(guarantee, false_alarms=0.05), 3)
    0.136
    """
    # Beyond, e^ε α is more than 1, which is no bound.
    largest = min(guarantee.epsilon, -math.log(max(false_alarms, sys.float_info.min)))
    others = (largest * share / CURVE_STEPS for share in range(CURVE_STEPS + 1))
    return min(
        1.0,
        *(math.exp(epsilon) * false_alarms + guarantee.delta_at(epsilon) for epsilon in others),
    )


def insecurity() -> Section:
    """Return the warning about a release whose noise came from a fixed seed."""
    return Section(
        "NOT PRIVATE",
        (
            Fact(
                "insecure",
                f"{NOT_PRIVATE}. Anyone who knows or guesses the seed can subtract the noise and "
                "learn about single people. The guarantee below would hold with secret noise only. "
                "Do not publish.",
            ),
        ),
    )


def describe_exclusions(output: str) -> tuple[Fact, ...]:
    """Return facts about limits of protection, and about free uses.

    Parameters
    ----------
    output : str
        Name of the private column.
    """
    return (
        Fact(
            "also not protected",
            f"general patterns of {output}. Anyone who knows a person's inputs can predict that "
            "person from the patterns that all the others share.",
        ),
        Fact(
            "free",
            "predictions, pictures, fits and anything else made from this file cost no more "
            "privacy, however often.",
        ),
    )


def guarantee_facts(
    guarantee: Guarantee | MixedGuarantee,
    *,
    output: str,
    parts: Sequence[Guarantee],
    choice: Choice | None = None,
    grouped: bool = False,
    visits: int = 1,
    limit: Budget | None = None,
    cohorts: Cohorts = (),
    tables: Sequence[int] = (),
    kept: int | None = None,
    origin: Provenance | None = None,
) -> tuple[Fact, ...]:
    """Return a guarantee in words.

    Parameters
    ----------
    guarantee : Guarantee or MixedGuarantee
        Of everything together.
    output : str
        Name of the private column.
    parts : sequence of Guarantee
        Of each measurement.
    choice : Choice, optional
        A private choice of the prior that the guarantee includes.
    grouped : bool
        Whether all rows of one person are protected together.
    visits : int
        How often the private column was asked.
    limit : (float, float) or None
        Of all visits together, declared before the first answer was read.
    cohorts : tuple of tuples of int
        Sets of tables that one person may be in together; empty if anybody may be in all.
    tables : sequence of int
        Which table each of the parts asked; needed with cohorts.
    kept : int, optional
        Which of the parts asked rows that were kept out of all others.
    origin : Provenance, optional
        Of the release: it knows the δ that was allowed.

    Examples
    --------
    >>> from cloakgp import Guarantee
    >>> guarantee = Guarantee(epsilon=1.0, delta=1e-3, mu=0.38)
    >>> guarantee_facts(guarantee, output="height", parts=[guarantee])[0].text
    '(ε, δ) = (1, 0.001); this is Gaussian differential privacy with μ = 0.38.'
    """
    if isinstance(guarantee, Guarantee) and not guarantee.spent:
        return (Fact("guarantee", "nothing was asked, so nothing depends on any output."),)
    composition = _parts(parts, cohorts=cohorts, tables=tables, kept=kept)
    if isinstance(guarantee, Guarantee) and needs_no_delta(guarantee):
        unused = "" if origin is None else origin.unused_delta(guarantee)
        held = however_priced(guarantee, visits=visits)
        assert isinstance(held, Guarantee)
        facts = _without_delta(
            held, output=output, unused=unused, parts=composition, grouped=grouped
        )
        return (*facts, *_visits(visits, limit=limit, pure=True))
    return (
        Fact("guarantee", _pair(guarantee)),
        *composition,
        *_visits(visits, limit=limit, pure=False),
        *_choice(choice),
        Fact(
            "in words",
            f"under any use of this file, no result is more than e^ε = "
            f"{odds_factor(guarantee.epsilon)} times as likely for {_value(grouped)} of a person's "
            f"{output} as for {'any others' if grouped else 'another'}, give or take a probability "
            f"of δ = {guarantee.delta:.4g}{one_in(guarantee.delta)}.",
        ),
        *_attacker(guarantee, output=output),
        Fact("the same, at other δ", _other_deltas(guarantee)),
        *_several_rows(guarantee, grouped=grouped),
    )


def stated(guarantee: Guarantee | MixedGuarantee) -> str:
    """Return the statement of a guarantee in words: ε alone, if it needs no δ.

    Examples
    --------
    >>> from cloakgp import Guarantee
    >>> stated(Guarantee(epsilon=1.0, delta=1e-6, mu=0.0, laplace=(0.4, 0.6)))
    'ε = 1, with no δ'
    """
    pure = guarantee.pure_epsilon if isinstance(guarantee, Guarantee) else math.inf
    return pair_in_words(guarantee.epsilon, guarantee.delta, pure=pure)


def _pair(guarantee: Guarantee | MixedGuarantee) -> str:
    pair = pair_in_words(guarantee.epsilon, guarantee.delta)
    if isinstance(guarantee, MixedGuarantee) or not guarantee.epsilon_of_parts:
        return f"{pair}; this is Gaussian differential privacy with μ = {ceiling(guarantee.mu)}."
    kinds = (("Laplace noise", guarantee.laplace), ("other noise without δ", guarantee.pure))
    listed = " and ".join(
        f"{kind} with ε = {' and '.join(map(ceiling, parts))}" for kind, parts in kinds if parts
    )
    beside = f" beside Gaussian noise with μ = {ceiling(guarantee.mu)}" if guarantee.mu else ""
    return f"{pair}; composed of {listed}{beside}."


def _without_delta(
    guarantee: Guarantee, *, output: str, unused: str, parts: tuple[Fact, ...], grouped: bool
) -> tuple[Fact, ...]:
    """Return a guarantee without δ in words."""
    odds = odds_factor(max(guarantee.epsilon, guarantee.pure_epsilon))
    return (
        Fact("guarantee", f"{stated(guarantee)}.{f' {unused}' if unused else ''}"),
        *parts,
        Fact(
            "in words",
            f"under any use of this file, no result is more than e^ε = {odds} times as "
            f"likely for {_value(grouped)} of a person's {output} as for "
            f"{'any others' if grouped else 'another'}.",
        ),
        *_guesses(guarantee, output=output),
        *_several_rows(guarantee, grouped=grouped),
    )


def _guesses(guarantee: Guarantee, *, output: str) -> tuple[Fact, ...]:
    """Bound guesses and tests under a guarantee, by its whole ε–δ curve."""
    right = right_guess(guarantee)
    power = power_of_tests(guarantee, false_alarms=FALSE_ALARMS)
    return (
        Fact(
            "a guess",
            f"an attacker who knows everything but one person's {output}, and finds two values "
            f"equally likely, guesses right at most {percent(right)} of the time with this file. "
            "A coin guesses right 50 % of the time.",
        ),
        Fact(
            "a test",
            f"a test with {percent(FALSE_ALARMS)} false alarms detects the truth at most "
            f"{percent(power)} of the time; without the file, {percent(FALSE_ALARMS)}.",
        ),
    )


def _value(grouped: bool) -> str:
    return "all values together" if grouped else "one value"


def _several_rows(guarantee: Guarantee | MixedGuarantee, *, grouped: bool) -> tuple[Fact, ...]:
    if grouped:
        return (
            Fact(
                "several rows",
                "all rows that are marked as one person's are protected together, as one. "
                f"{COMPARED}. This file cannot show whether the marks are right.",
            ),
        )
    if isinstance(guarantee, MixedGuarantee):
        return (Fact("several rows", "a person who owns two rows is protected less."),)
    laplace, others = (tuple(2 * x for x in each) for each in (guarantee.laplace, guarantee.pure))
    twice = replace(guarantee, mu=2 * guarantee.mu, laplace=laplace, pure=others)
    pure = twice.pure_epsilon < math.inf
    doubled = ceiling(twice.pure_epsilon) if pure else _epsilon_at(twice, guarantee.delta)
    return (
        Fact(
            "several rows",
            "a person who owns two rows of the table is protected less: "
            f"ε = {doubled}{'' if pure else ' at the same δ'}.",
        ),
    )


def _choice(choice: Choice | None) -> tuple[Fact, ...]:
    """State the cost of a private choice of the prior."""
    if choice is None:
        return ()
    return (
        Fact(
            "choice",
            "the prior was chosen among candidates by looking at the private values, with "
            f"ε = {ceiling(choice.epsilon)}. The guarantee includes that.",
        ),
    )


def _parts(
    parts: Sequence[Guarantee], *, cohorts: Cohorts, tables: Sequence[int], kept: int | None
) -> tuple[Fact, ...]:
    if len(parts) < 2:
        return ()
    each = ", ".join(map(_short, parts))
    listed = f"{len(parts)} measurements, of {each}, each rounded up. "
    if not cohorts:
        text = f"{listed}The guarantee covers all together, for a person whose output is in every "
        return (Fact("composition", f"{text}one."),)
    if kept is not None:
        return (
            Fact(
                "composition",
                f"{listed}The guarantee covers all together: measurement {kept + 1} asked rows "
                "that were in no other, and every person with one row is either in that or in the "
                "others.",
            ),
        )
    return (
        Fact("composition", listed + _of_cohorts(cohorts, tables=tables)),
        Fact(
            "assumption",
            f"{_WHO[all(len(one) == 1 for one in cohorts)]} This is the word of whoever asked the "
            "tables; the file cannot show it. For somebody who is in more of them the measurements "
            "of all of these add up.",
        ),
    )


_WHO = {
    True: "no person is in two of the tables.",
    False: "no person is in other tables together than those listed.",
}


def _of_cohorts(cohorts: Cohorts, *, tables: Sequence[int]) -> str:
    """Say which measurements add up for whom: a person is in the tables of one cohort alone."""
    order = list(dict.fromkeys(tables))
    asked = {
        table: [place for place, number in enumerate(tables, 1) if number == table]
        for table in order
    }
    if all(len(one) == 1 for one in cohorts):
        return (
            f"They asked {len(order)} tables, and a person is in one of them: the guarantee is "
            "that of the table that was asked most."
        )
    sets = [" and ".join(str(order.index(number) + 1) for number in one) for one in cohorts]
    shown = "; ".join(sets[:MOST_COHORTS]) + ("; …" if len(sets) > MOST_COHORTS else "")
    measured = ", ".join(
        f"{order.index(table) + 1} ({len(places)} measurement{'s' if len(places) > 1 else ''})"
        for table, places in asked.items()
    )
    return (
        f"They asked tables {measured}, and a person is at most in these together: {shown}. The "
        "guarantee is that of those who are asked most."
    )


def _visits(visits: int, *, limit: Budget | None, pure: bool) -> tuple[Fact, ...]:
    """State the assumption of the guarantee about the choice of prices of several visits."""
    facts = []
    if visits > 1 and pure:
        facts.append(
            Fact(
                "visits",
                f"the private column was asked {visits} times. Without δ the guarantee holds "
                "however the price of each visit was chosen.",
            )
        )
    elif visits > 1:
        facts.append(
            Fact(
                "visits",
                f"the private column was asked {visits} times, and the guarantee sums up their "
                "prices. It holds if these were fixed before any answer was read. If a price was "
                "chosen after reading answers, only a limit declared beforehand holds.",
            )
        )
    if limit is not None:
        epsilon, delta = limit
        within = f"(ε, δ) = ({epsilon:g}, {delta:g})" if delta else f"ε = {epsilon:g} without δ"
        facts.append(
            Fact(
                "limit",
                f"declared before the first answer was read: all visits together keep {within}, "
                "however the price of each is chosen after reading answers, if each starts from "
                "the release of the one before.",
            )
        )
    return tuple(facts)


def _short(part: Guarantee) -> str:
    if part.pure_epsilon <= part.epsilon:
        return f"ε = {ceiling(part.epsilon)}"
    return f"({ceiling(part.epsilon)}, {part.delta:.4g})"


def _attacker(guarantee: Guarantee | MixedGuarantee, *, output: str) -> tuple[Fact, ...]:
    """Bound guesses, tests and beliefs under Gaussian differential privacy.

    Between two values of one output, all others known, the logarithm of the likelihood ratio is
    N(±μ²/2, μ²) in the worst case (Dong, Roth and Su 2022). Guesses and tests of attackers who know
    less are worse.
    """
    if isinstance(guarantee, Guarantee) and guarantee.epsilon_of_parts:
        return _guesses(guarantee, output=output)
    mu, epsilon = guarantee.mu, guarantee.epsilon
    exceeded = NORMAL.cdf(mu / 2 - epsilon / mu) + NORMAL.cdf(-mu / 2 - epsilon / mu)
    power = NORMAL.cdf(NORMAL.inv_cdf(FALSE_ALARMS) + mu)
    # With a choice, μ bounds guesses and tests, but says nothing of how often odds move far.
    purely_gaussian = not isinstance(guarantee, MixedGuarantee)
    beliefs = Fact(
        "beliefs",
        "for any belief of an attacker, this file changes the odds between two values by at most "
        f"a factor of e^ε = {odds_factor(epsilon)}, except with probability "
        f"{percent(exceeded)}. (δ is smaller: it weighs these exceptions by their excess.)",
    )
    return (
        Fact(
            "a guess",
            f"an attacker who knows everything but one person's {output}, and finds two values "
            f"equally likely, guesses right at most {percent(NORMAL.cdf(mu / 2))} of the time "
            "with this file. A coin guesses right 50 % of the time.",
        ),
        Fact(
            "a test",
            f"a test with {percent(FALSE_ALARMS)} false alarms detects the truth at most "
            f"{percent(power)} of the time; without the file, {percent(FALSE_ALARMS)}.",
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
