"""Guarantees in words: the promise, its meaning for an attacker, and its parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from cloakgp.privacy import Guarantee
from cloakgp.privacy.cohorts import Cohorts
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.guesses import odds_beyond, odds_beyond_once, power_of_tests, right_guess
from cloakgp.privacy.noise_choice import however_priced, needs_no_delta
from cloakgp.privacy.person_ids import COMPARED
from cloakgp.privacy.spending import Budget
from cloakgp.release import Choice
from cloakgp.release.provenance import Provenance
from cloakgp.report.facts import Fact, Section
from cloakgp.utils.formatting import ceiling, odds_factor, one_in, pair_in_words, percent

NORMAL = NormalDist()
# The δ at which the guarantee is told as well.
OTHER_DELTAS = (1e-2, 1e-3, 1e-4, 1e-6, 1e-9)
FALSE_ALARMS = 0.05
# A probability of exceptions from which on a rule says little.
LITTLE_TOLD = 0.5
# Of sets of tables, those listed.
MOST_COHORTS = 12
NOT_PRIVATE = "INSECURE: the noise came from a fixed seed, so this release is NOT PRIVATE"


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


@dataclass(frozen=True)
class Cases:
    """The two cases of one person that a guarantee compares, in words.

    Attributes
    ----------
    likely : str
        Of which no result is much likelier under one than under the other.
    known : str
        What an attacker knows who is as strong as can be.
    undecided : str
        What such an attacker finds as likely, before a guess.
    odds : str
        Of what beliefs an attacker has odds.
    """

    likely: str
    known: str
    undecided: str
    odds: str

    @classmethod
    def of(cls, output: str, *, grouped: bool = False, present: bool = False) -> Cases:
        """Return the cases of a person with other values, or of a row that is there or not.

        Parameters
        ----------
        output : str
            Name of what is private.
        grouped : bool
            Whether all rows of one person are protected together.
        present : bool
            Whether neighbours have a row more or less, instead of another.

        Examples
        --------
        >>> Cases.of("height").likely
        "for one value of a person's height as for another"
        >>> Cases.of("row", present=True).odds
        'of a row being in the table'
        """
        if present:
            return cls(
                likely="with a person's row as without it",
                known="all other rows",
                undecided="finds it as likely that a row is in the table as that it is not",
                odds="of a row being in the table",
            )
        both = ("all values together", "any others") if grouped else ("one value", "another")
        return cls(
            likely=f"for {both[0]} of a person's {output} as for {both[1]}",
            known=f"everything but one person's {output}",
            undecided="finds two values equally likely",
            odds="between two values",
        )


def guarantee_facts(
    guarantee: Guarantee | MixedGuarantee,
    *,
    output: str,
    parts: Sequence[Guarantee],
    choice: Choice | None = None,
    grouped: bool = False,
    present: bool = False,
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
    present : bool
        Whether neighbours have a row more or less, instead of another.
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
    cases = Cases.of(output, grouped=grouped, present=present)
    composition = _parts(parts, cohorts=cohorts, tables=tables, kept=kept)
    if isinstance(guarantee, Guarantee) and needs_no_delta(guarantee):
        unused = "" if origin is None else origin.unused_delta(guarantee)
        held = however_priced(guarantee, visits=visits)
        assert isinstance(held, Guarantee)
        facts = _without_delta(held, cases, unused=unused, parts=composition, grouped=grouped)
        return (*facts, *_visits(visits, limit=limit, pure=True))
    return (
        Fact("guarantee", _pair(guarantee)),
        *composition,
        *_visits(visits, limit=limit, pure=False),
        *_choice(choice),
        Fact(
            "in words",
            f"under any use of this file, no result is more than e^ε = "
            f"{odds_factor(guarantee.epsilon)} times as likely {cases.likely}, give or take a "
            f"probability of δ = {ceiling(guarantee.delta, digits=4)}{one_in(guarantee.delta)}.",
        ),
        *_attacker(guarantee, cases, parts=parts),
        Fact("the same, at other δ", _other_deltas(guarantee)),
        *_other_values(guarantee, present=present),
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
    guarantee: Guarantee, cases: Cases, *, unused: str, parts: tuple[Fact, ...], grouped: bool
) -> tuple[Fact, ...]:
    """Return a guarantee without δ in words."""
    odds = odds_factor(max(guarantee.epsilon, guarantee.pure_epsilon))
    return (
        Fact("guarantee", f"{stated(guarantee)}.{f' {unused}' if unused else ''}"),
        *parts,
        Fact(
            "in words",
            f"under any use of this file, no result is more than e^ε = {odds} times as likely "
            f"{cases.likely}.",
        ),
        *_guesses(guarantee, cases),
        *_several_rows(guarantee, grouped=grouped),
    )


def _guesses(guarantee: Guarantee, cases: Cases) -> tuple[Fact, ...]:
    """Bound guesses and tests under a guarantee, by its whole ε–δ curve."""
    power = power_of_tests(guarantee, false_alarms=FALSE_ALARMS)
    return _guesses_told(cases, right=right_guess(guarantee), power=power)


def _guesses_told(cases: Cases, *, right: float, power: float) -> tuple[Fact, ...]:
    return (
        Fact(
            "a guess",
            f"an attacker who knows {cases.known}, and {cases.undecided}, guesses right at most "
            f"{percent(right)} of the time with this file. A coin guesses right 50 % of the time.",
        ),
        Fact(
            "a test",
            f"a test with {percent(FALSE_ALARMS)} false alarms detects the truth at most "
            f"{percent(power)} of the time; without the file, {percent(FALSE_ALARMS)}.",
        ),
    )


def _twice(guarantee: Guarantee) -> str:
    """Return the ε of two rows, each of which a guarantee protects; at its δ, if it needs one."""
    laplace, others = (tuple(2 * x for x in each) for each in (guarantee.laplace, guarantee.pure))
    twice = replace(guarantee, mu=2 * guarantee.mu, laplace=laplace, pure=others)
    if twice.pure_epsilon < math.inf:
        return f"ε = {ceiling(twice.pure_epsilon)}"
    return f"ε = {_epsilon_at(twice, guarantee.delta)} at the same δ"


def _other_values(guarantee: Guarantee | MixedGuarantee, *, present: bool) -> tuple[Fact, ...]:
    """Tell what holds between two values of a row, where its presence is protected."""
    if not present or isinstance(guarantee, MixedGuarantee):
        return ()
    return (
        Fact(
            "two values",
            "other values of a row are one row less and another more: between two values of a "
            f"row the file keeps {_twice(guarantee)}.",
        ),
    )


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
    return (
        Fact(
            "several rows",
            f"a person who owns two rows of the table is protected less: {_twice(guarantee)}.",
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
    # A first one without questions costs nothing; of later ones the guarantee has a part.
    each = ", ".join(_short(part) if part.spent else "ε = 0 (nothing asked)" for part in parts)
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
    return f"({ceiling(part.epsilon)}, {ceiling(part.delta, digits=4)})"


def _attacker(
    guarantee: Guarantee | MixedGuarantee, cases: Cases, *, parts: Sequence[Guarantee]
) -> tuple[Fact, ...]:
    """Bound guesses, tests and beliefs under Gaussian differential privacy.

    Between two cases of one person, all others known, no test tells more than one of N(0, 1) and
    N(μ, 1) (Dong, Roth and Su 2022). Guesses and tests of attackers who know less are worse. Their
    beliefs may change by more: what they learn of others, they may think to hold for this person.
    """
    if isinstance(guarantee, Guarantee) and guarantee.epsilon_of_parts:
        return _guesses(guarantee, cases)
    power = NORMAL.cdf(NORMAL.inv_cdf(FALSE_ALARMS) + guarantee.mu)
    told = _guesses_told(cases, right=NORMAL.cdf(guarantee.mu / 2), power=power)
    # With a choice, μ bounds guesses and tests, but says nothing of how often odds move far.
    if isinstance(guarantee, MixedGuarantee):
        return told
    return (*told, *_beliefs(guarantee, cases, once=len(parts) == 1))


def _beliefs(guarantee: Guarantee, cases: Cases, *, once: bool) -> tuple[Fact, ...]:
    """Bound how often odds move far: exactly after one draw, and else by the whole ε–δ curve.

    Questions of later draws may depend on earlier answers.
    """
    epsilon = guarantee.epsilon
    beyond = odds_beyond_once(guarantee.mu, epsilon) if once else odds_beyond(guarantee, epsilon)
    if beyond >= LITTLE_TOLD:
        return ()
    return (
        Fact(
            "beliefs",
            f"for an attacker who knows {cases.known}, whatever they believe of that, this file "
            f"changes the odds {cases.odds} by at most a factor of e^ε = {odds_factor(epsilon)}, "
            f"except with probability {percent(beyond)} at most. (δ is smaller: it weighs these "
            "exceptions by their excess.)",
        ),
    )


def _other_deltas(guarantee: Guarantee | MixedGuarantee) -> str:
    others = [delta for delta in OTHER_DELTAS if not math.isclose(delta, guarantee.delta)]
    return "; ".join(f"ε = {_epsilon_at(guarantee, delta)} at δ = {delta:g}" for delta in others)


def _epsilon_at(guarantee: Guarantee | MixedGuarantee, delta: float) -> str:
    try:
        return ceiling(guarantee.epsilon_at(delta))
    except ValueError:
        return "unknown"
