"""Notation of numbers in text: which signs stand before decimals and between thousands.

Of 1,234 nobody knows it. A sign is proven by a number that can be read in one way: 1,5 and 0,123
have decimals after it, 1,234,567 and 1,234.5 have it between thousands. What is proven in one
column of a table holds for those in which nothing is. Beside several whole numbers below a thousand
alone, groups of three digits are thousands: decimals of which every cell has three make no whole
numbers without any. One or two may be codes, such as 0 or 999 for what was not measured. What is
open then is not guessed, but for points alone, which are those of decimals. Answers of several
choices, such as 2,3, prove nothing, nor does what may be such.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from cloakgp.columns.cells import Cells
from cloakgp.columns.numbers import Decimal, Thousands

Notation = tuple[Decimal, Thousands]
"""The signs of decimals and of thousands."""

PLAIN: Notation = (".", "")
COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?")
SIGNS: tuple[Decimal, Decimal] = (",", ".")
# Between thousands, whatever stands before decimals.
ALWAYS_THOUSANDS: tuple[Thousands, ...] = (" ", "'", "’", "\u00a0", "\u202f")
BY_DECIMAL: tuple[tuple[Decimal, tuple[Thousands, ...]], ...] = (
    (",", (".", *ALWAYS_THOUSANDS)),
    (".", (",", *ALWAYS_THOUSANDS, "_")),
)
GROUPED: dict[Notation, re.Pattern[str]] = {
    (decimal, sign): re.compile(
        rf"[+-]?[0-9]{{1,3}}(?:{re.escape(sign)}[0-9]{{3}})+(?:{re.escape(decimal)}[0-9]*)?"
    )
    for decimal, signs in BY_DECIMAL
    for sign in signs
}
MARKED = re.compile(
    r"[+-]?(?P<whole>[0-9]{1,3}(?:(?P<group>[.,' ’\u00a0\u202f_])[0-9]{3})(?:(?P=group)[0-9]{3})*"
    r"|[0-9]*)(?P<mark>[.,])(?P<rest>[0-9]*)(?P<power>[eE][+-]?[0-9]+)?"
)
BELOW_THOUSAND, WHOLE = re.compile(r"[+-]?[0-9]{1,3}"), re.compile(r"[+-]?[0-9]+")
# Codes for what is missing are mostly 0 or less.
AMOUNT = re.compile(r"\+?[1-9][0-9]{0,2}")
_CODE = r"(?:0|[1-9][0-9]?)"
CHOICES = re.compile(rf"{_CODE}(,{_CODE})*")
# Codes of which few decimals are made: of 0 and more digits there are 0,5 and 1,25.
FEW_CODES = re.compile(r"0|[1-9](,[1-9])*")
# So many different numbers have three digits behind a sign, and none fewer, if they are thousands;
# decimals of three digits, of which final zeros are left out, would do so one time in eight.
FEW = 20
# So many different whole numbers are no codes: of these a column has four at most, 996 to 999.
FEW_AMOUNTS = 5
# Of choices after others, at least: half steps have one, 1,5 and 2,5 and 3,5.
FEW_SECOND = 2
# So many choices in one answer are no number.
NO_NUMBER = 3


@dataclass(frozen=True)
class Evidence:
    """The evidence of different texts on how numbers among them are written.

    Attributes
    ----------
    decimals : frozenset of str
        Signs that are proven to stand before decimals.
    open : frozenset of str
        Signs with three digits behind them, which may be thousands, in other texts.
    thousands : bool
        Whether all of those are thousands, by the whole numbers beside them.
    enough : bool
        Whether there are enough of both to tell.
    """

    decimals: frozenset[Decimal]
    open: frozenset[Decimal]
    thousands: bool
    enough: bool


def evidence_of(texts: Iterable[str]) -> Evidence:
    """Return the evidence of different texts.

    Parameters
    ----------
    texts : iterable of str

    Examples
    --------
    >>> found = evidence_of(["1,5", "51,082"])
    >>> sorted(found.decimals), sorted(found.open)
    ([','], [','])
    >>> evidence_of(["51,082", "463"]).thousands
    True
    """
    decimals: set[Decimal] = set()
    opened: list[Decimal] = []
    small = large = False
    amounts = 0
    for text in texts:
        found = MARKED.fullmatch(text)
        if found is None:
            below = BELOW_THOUSAND.fullmatch(text) is not None
            small = small or below
            amounts += AMOUNT.fullmatch(text) is not None
            large = large or (not below and WHOLE.fullmatch(text) is not None)
            continue
        proven, undecided = _meaning(found)
        decimals |= proven
        opened += undecided
    return Evidence(
        decimals=frozenset(decimals),
        open=frozenset(opened),
        thousands=small and not large,
        enough=len(opened) >= FEW and amounts >= FEW_AMOUNTS,
    )


def are_choices(texts: Collection[str]) -> bool:
    """Return whether different texts are answers of several choices, which look like decimals.

    They may be such, and either have codes of one digit, or some answer has three choices.

    Parameters
    ----------
    texts : collection of str

    Examples
    --------
    >>> are_choices(["1", "2", "3", "1,2", "2,3"]), are_choices(["1", "1,5", "2", "2,5", "5"])
    (True, False)
    >>> are_choices(["1", "2", "10", "1,2", "2,10"]), are_choices(["1", "2", "10", "1,2", "1,2,10"])
    (False, True)
    """
    return may_be_choices(texts) and (
        all(map(FEW_CODES.fullmatch, texts))
        or any(text.count(",") >= NO_NUMBER - 1 for text in texts)
    )


def may_be_choices(texts: Collection[str]) -> bool:
    """Return whether different texts may be answers of several choices, by codes below a hundred.

    Choices stand in their order, each is the only one of some answer, and more than one comes after
    another.

    Parameters
    ----------
    texts : collection of str

    Examples
    --------
    >>> may_be_choices(["1", "2", "10", "1,2", "2,10"]), may_be_choices(["1", "2", "1,5", "2,10"])
    (True, False)
    """
    if not all(map(CHOICES.fullmatch, texts)):
        return False
    answers = [[int(code) for code in text.split(",")] for text in texts]
    several = [answer for answer in answers if len(answer) > 1]
    alone = {answer[0] for answer in answers if len(answer) == 1}
    return (
        all(sorted(set(answer)) == answer and alone.issuperset(answer) for answer in several)
        and len({code for answer in several for code in answer[1:]}) >= FEW_SECOND
    )


def _meaning(found: re.Match[str]) -> tuple[set[Decimal], list[Decimal]]:
    """Return the sign of decimals that a number proves, and that which it leaves open."""
    whole, group, mark, rest, power = found.group("whole", "group", "mark", "rest", "power")
    sign, other = (SIGNS[0], SIGNS[1]) if mark == SIGNS[0] else (SIGNS[1], SIGNS[0])
    if group == mark:
        # 1,234,567; 1,234,5 is no number.
        return ({other} if len(rest) == 3 and not power else set()), []
    if group or power or len(rest) != 3 or not 1 <= len(whole) <= 3 or whole[0] == "0":
        return {sign}, []
    return set(), [sign]


def fitting(texts: Collection[str]) -> list[Notation]:
    """Return the notations that some of the texts are written in, the plain one first.

    Parameters
    ----------
    texts : collection of str

    Examples
    --------
    >>> fitting(["1,5", "3"])
    [('.', ''), (',', '')]
    """
    found = [PLAIN]
    signs = set("".join(texts))
    if any(COMMA.fullmatch(text) for text in texts):
        found.append((",", ""))
    for notation, pattern in GROUPED.items():
        if notation[1] in signs and any(pattern.fullmatch(text) for text in texts):
            found.append(notation)
    return found


def choose(
    notations: Sequence[Notation], evidence: Evidence, *, elsewhere: Collection[Decimal]
) -> Notation:
    """Return the notation of a column; with the same sign twice if it is open what that means.

    Parameters
    ----------
    notations : sequence of pairs of str
        In which all of it can be read, or as much in one as in another.
    evidence : Evidence
        Of the column.
    elsewhere : collection of str
        Signs of decimals that other columns prove.

    Examples
    --------
    >>> comma = [(",", ""), (".", ",")]
    >>> choose(comma, evidence_of(["51,082"]), elsewhere=["."])
    ('.', ',')
    >>> choose(comma, evidence_of(["51,082"]), elsewhere=[])
    (',', ',')
    """
    proven = evidence.decimals or frozenset(elsewhere)
    if len(proven) == 1:
        notations = [each for each in notations if each[0] in proven] or notations
    if len({decimal for decimal, _ in notations}) == 1:
        return notations[0]
    if not evidence.open:
        # Whatever stands before decimals, there are none.
        return next((each for each in notations if each[0] == "."), notations[0])
    if len(evidence.open) > 1:
        return (SIGNS[0], SIGNS[0])
    (sign,) = evidence.open
    if evidence.thousands and evidence.enough and not elsewhere:
        return next((each for each in notations if each[1] == sign), notations[0])
    if sign == "." and not evidence.thousands and not elsewhere:
        return PLAIN
    return (sign, sign)


def texts_alone(cells: Cells, *, codes: frozenset[str]) -> list[str]:
    """Return the different texts of the cells of a column that are there and have no type.

    Parameters
    ----------
    cells : Cells
    codes : set of str
        Text that means that a cell is missing.

    Examples
    --------
    >>> from cloakgp.columns.cells import cells_of
    >>> texts_alone(cells_of(["a", 1.5, "a", "NA", None]), codes=frozenset({"NA"}))
    ['a']
    """
    if cells.typed != "text":
        return []
    typed = cells.of_kind("numbers") | cells.of_kind("times") | cells.of_kind("truths")
    return sorted(set(cells.texts()[~typed].tolist()) - codes - {""})
