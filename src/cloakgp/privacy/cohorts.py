r"""Cohorts: which tables of a release one person may be in, and the guarantee that follows.

A release may rest on several tables. If anybody may be in all of them, the guarantees of all
measurements add up. Often it is known that people are in few: in the table of one month, in one
half of the rows. A *cohort* is a set of tables that one person may be in together; a release states
all of them, and its guarantee is the largest over cohorts of the composition of measurements of
tables in one.

Neighbours
    Data sets that differ in the output of one row, or in all outputs of one person with groups, who
    is in the tables of one cohort S and in no other. Which tables these are is public.
Guarantee
    Parallel composition (McSherry 2009, theorem 4) of adaptive compositions: measurements of tables
    outside S see equal outputs, and are, given all answers before, the same function of these and
    of independent noise: post-processing, in whatever order they come. What is left are the
    measurements of S, which compose (`cloakgp.privacy.accounting.compose`). So the largest of these
    guarantees holds of everybody. With a limit, each person's visits are those of S, and the filter
    of `cloakgp.privacy.filters` holds of each cohort on its own.
Assumption
    That people are in no other combination of tables. It is the word of whoever asks: ids, where
    there are some, are compared before anything is drawn (`compare_ids`), and no file can show that
    they are right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

import numpy as np

from cloakgp.privacy.accounting import Guarantee, compose, compose_parallel
from cloakgp.privacy.groups import Groups, checked_groups
from cloakgp.privacy.person_ids import PersonIds, one_kind

Cohorts = tuple[tuple[int, ...], ...]
People = Literal["overlapping", "disjoint"]
OVERLAPPING: People = "overlapping"
DISJOINT: People = "disjoint"

Asked = TypeVar("Asked")


def largest_cohorts(cohorts: Iterable[Iterable[int]]) -> Cohorts:
    """Return cohorts in order, without those within another; none if one holds all tables.

    Parameters
    ----------
    cohorts : iterable of iterables of int

    Examples
    --------
    >>> largest_cohorts([(1,), (2, 0), (0,)])
    ((0, 2), (1,))
    >>> largest_cohorts([(1,), (0, 1)])
    ()
    """
    sets = {frozenset(cohort) for cohort in cohorts}
    # The guarantee of a cohort within another is weaker than that of the other.
    largest = sorted(tuple(sorted(one)) for one in sets if not any(one < other for other in sets))
    return tuple(largest) if len(largest) > 1 else ()


def join_cohorts(
    one: Cohorts, other: Cohorts, *, tables: tuple[Iterable[int], Iterable[int]], people: People
) -> Cohorts:
    """Return the cohorts of two sets of tables together.

    Parameters
    ----------
    one, other : tuple of tuples of int
        Of each; empty if anybody may be in all tables of a set.
    tables : (iterable of int, iterable of int)
        The tables of each. Those that are in both sets are the same tables.
    people : {"overlapping", "disjoint"}
        Whether anybody in tables of the first may be in tables of the other.

    Raises
    ------
    ValueError
        If `people` is no such word, or nobody is to be in both of two sets that share a table.

    Examples
    --------
    >>> months = join_cohorts((), (), tables=([0], [1]), people="disjoint")
    >>> months
    ((0,), (1,))
    >>> join_cohorts(months, (), tables=([0, 1], [2]), people="disjoint")
    ((0,), (1,), (2,))
    >>> join_cohorts(months, (), tables=([0, 1], [2]), people="overlapping")
    ((0, 2), (1, 2))
    >>> join_cohorts((), (), tables=([0], [1]), people="overlapping")
    ()
    """
    check_people(people)
    first, second = (set(each) for each in tables)
    pair = (one or (tuple(first),), other or (tuple(second),))
    if people == DISJOINT:
        if first & second:
            raise ValueError("people of the same table are not disjoint")
        return largest_cohorts([*pair[0], *pair[1]])
    # Whoever is in tables of both is, within each set, in the tables of one of its cohorts: of the
    # tables that both sets have, in those of both cohorts.
    return largest_cohorts(
        {*left} - (second - {*right}) | {*right} - (first - {*left})
        for left in pair[0]
        for right in pair[1]
    )


def check_people(people: str) -> None:
    """Refuse what says nothing of whether people are in several tables.

    Raises
    ------
    ValueError
    """
    if people not in (OVERLAPPING, DISJOINT):
        raise ValueError(f"people must be {OVERLAPPING!r} or {DISJOINT!r}, got {people!r}")


def compare_ids(
    ids: Sequence[Iterable[Hashable]],
    *,
    rows: Mapping[int, int],
    groups: Mapping[int, Groups | None],
    apart: Sequence[Iterable[int]] = (),
) -> Cohorts:
    """Return in which tables persons are together, by their ids.

    Parameters
    ----------
    ids : sequence of iterables of texts or whole numbers
        Whose each row is, of each table, in the tables' order; compared as
        `cloakgp.privacy.person_ids` says.
    rows : mapping of int to int
        How many rows each table has, by its number, in order.
    groups : mapping of int to array of shape (N,) or None
        Of tables in which all rows of a person are protected together: which rows these are, None
        where that is not kept.
    apart : sequence of iterables of int
        Sets of tables; no person may be in two of these sets.

    Raises
    ------
    ValueError
        If there is not one id for each row of each table, ids are text in one and whole numbers in
        another, they put other rows together than are protected together or nothing shows that
        they do not, or a person is in two sets that were said to be apart.

    Examples
    --------
    >>> january, february = ["eve", "bob"], ["ann", "eve"]
    >>> compare_ids([january, february], rows={0: 2, 1: 2}, groups={})
    ()
    >>> compare_ids([january, ["ann"]], rows={0: 2, 1: 1}, groups={})
    ((0,), (1,))
    """
    if len(ids) != len(rows):
        raise ValueError(
            f"ids must be one list for each of {len(rows)} tables, in the order in which they were "
            f"asked, got {len(ids)}"
        )
    whole, kinds = {}, {}
    for place, ((number, count), given) in enumerate(zip(rows.items(), ids, strict=True), 1):
        owners = given if isinstance(given, PersonIds) else list(given)
        if len(owners) != count:
            raise ValueError(
                f"table {place} has {count:,} rows that were asked and {len(owners):,} ids: give "
                "one for each of them, and none for rows that were left out"
            )
        named = PersonIds.of(owners, rows=count)
        kinds[f"table {place}"] = named.kind
        whole[number] = set(named)
        if number not in groups and len(whole[number]) < count:
            raise ValueError(
                f"an id occurs twice in table {place}, whose rows are protected one by one: "
                "give groups, so that all rows of a person are protected together"
            )
        if number not in groups:
            continue
        kept, named_groups = groups[number], checked_groups(named, rows=count)
        if kept is None:
            raise ValueError(
                f"the groups of table {place} are not kept, so nothing shows that these ids put "
                "the same rows together: leave out ids, and say people='disjoint' if nobody is in "
                "two tables"
            )
        if not np.array_equal(np.asarray(named_groups), kept):
            raise ValueError(
                f"the ids of table {place} are not those of its groups: other rows are protected "
                "together"
            )
    one_kind(kinds)
    _check_apart(whole, apart)
    cohorts: dict[str, list[int]] = {}
    for number, persons in whole.items():
        for person in persons:
            cohorts.setdefault(person, []).append(number)
    return largest_cohorts(set(map(tuple, cohorts.values())))


def _check_apart(persons: Mapping[int, set[str]], apart: Sequence[Iterable[int]]) -> None:
    """Refuse persons who are in two sets of tables."""
    sets = [set().union(*(persons[number] for number in numbers)) for numbers in apart]
    for place, one in enumerate(sets):
        shared = len(one.intersection(set().union(*sets[:place])))
        if shared:
            raise ValueError(
                f"{shared:,} people are in two tables that were said to have none in common: "
                "nothing was drawn. Give people='overlapping' with the ids, and the budgets of "
                "those who are in both add up"
            )


def asked_of(cohort: Iterable[int], parts: Iterable[tuple[int, Asked]]) -> list[Asked]:
    """Return what was asked of the tables of one cohort.

    Parameters
    ----------
    cohort : iterable of int
    parts : iterable of (int, object)
        Numbers of tables, and what was asked of them.
    """
    numbers = set(cohort)
    return [part for number, part in parts if number in numbers]


def guarantee_of_cohorts(cohorts: Cohorts, parts: Sequence[tuple[int, Guarantee]]) -> Guarantee:
    """Return the joint guarantee of measurements of several tables.

    Parameters
    ----------
    cohorts : tuple of tuples of int
        Empty: anybody may be in all tables.
    parts : sequence of (int, Guarantee)
        The number of the table that each measurement asked, and its guarantee.

    Examples
    --------
    >>> month = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,))
    >>> print(guarantee_of_cohorts(((0,), (1,)), [(0, month), (1, month)]))
    1-differential privacy
    >>> print(guarantee_of_cohorts((), [(0, month), (1, month)]))
    2-differential privacy
    """
    if not cohorts:
        return compose(*(guarantee for _, guarantee in parts))
    composed = [compose(*each) for each in (asked_of(one, parts) for one in cohorts) if each]
    return composed[0] if len(composed) == 1 else compose_parallel(*composed)


def check_cohorts(cohorts: Cohorts, tables: Iterable[int]) -> None:
    """Refuse cohorts that are not about all tables, or not in order.

    Parameters
    ----------
    cohorts : tuple of tuples of int
    tables : iterable of int

    Raises
    ------
    ValueError
    """
    if not cohorts:
        return
    named = {number for cohort in cohorts for number in cohort}
    if named != set(tables) or cohorts != largest_cohorts(cohorts):
        raise ValueError("the people of its tables are damaged")
