"""Imports of release files, whose charges are older than the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from cloakgp.ledger.accounts import Account, checked_account
from cloakgp.ledger.charges import check_unit
from cloakgp.ledger.database import Writing
from cloakgp.ledger.errors import LedgerError
from cloakgp.privacy.accounting import Guarantee
from cloakgp.privacy.cohorts import Cohorts
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.filters import Amount
from cloakgp.privacy.rounding import round_up_decimal
from cloakgp.privacy.spending import GAUSSIAN, LAPLACE, WHOLE_ROWS, Cost, Unit, digest_of
from cloakgp.release import MultiOutputRelease, Release, StatisticsRelease
from cloakgp.release.open import OpenedRelease, load


@dataclass(frozen=True)
class Imported:
    """The result of one file.

    Attributes
    ----------
    path : Path
    charge : int or None
        None if the ledger had all of it.
    epsilon, delta : float
        Of the whole file.
    """

    path: Path
    charge: int | None
    epsilon: float
    delta: float


def import_releases(
    account: Account, paths: Iterable[str | Path], *, reason: str
) -> list[Imported]:
    """Charge releases that were made without this ledger.

    Noisy answers that the ledger has already, by their digests, are not counted again. New ones are
    charged beyond any limit: they are spent. Of tables that have nobody in common, by what the
    release says, the largest amount counts, part by part.

    Parameters
    ----------
    account : Account
    paths : iterable of str or Path
    reason : str

    Raises
    ------
    LedgerError
        If a release is not private, or protects another unit than the account.
    ReleaseFileError
        If a file is no release.
    """
    return [_import(account, Path(path), reason=reason) for path in paths]


def _import(account: Account, path: Path, *, reason: str) -> Imported:
    release = load(path)
    if release.insecure:
        raise LedgerError(
            f"{path} has noise from a seed, which protects no one: no budget covers it"
        )
    unit = _unit(release)
    file = hashlib.sha256(path.read_bytes()).hexdigest()
    with account.database.writing() as writing:
        row = checked_account(account.name, writing.rows)
        check_unit(row["unit"], unit, name=account.name)
        parts = _new_parts(release, file, writing)
        charge = None
        if parts:
            total = _total(parts, _cohorts(release))
            charge = writing.append(
                "imported",
                account=account.name,
                reason=reason,
                unit=unit,
                epsilon=release.guarantee.epsilon,
                delta=release.guarantee.delta,
                release=file,
                draws=[part.digest for part in parts],
                **total.numbers,
            )
    return Imported(
        path=path,
        charge=charge,
        epsilon=release.guarantee.epsilon,
        delta=release.guarantee.delta,
    )


class _Part(NamedTuple):
    """A draw of a release: its digest, its cost, and the table it is about if that is known."""

    digest: str
    cost: Cost
    table: int | None = None


def _new_parts(release: OpenedRelease, file: str, writing: Writing) -> list[_Part]:
    """Return the parts of a release that the ledger does not know."""
    parts = [
        _Part(digest_of(one.answers.values), _cost(one.answers.guarantee), one.strategy.table)
        for one in _measurements(release)
        if one.answers.guarantee.spent
    ]
    if not parts:
        known = any(charge["release"] == file for charge in writing.rows.all("charges"))
        assert not isinstance(release.guarantee, MixedGuarantee)
        parts = [] if known else [_Part(file, _cost(release.guarantee))]
    elif isinstance(release.guarantee, MixedGuarantee):
        known = all(writing.rows.get("draws", part.digest) is not None for part in parts)
        mixed = release.guarantee
        chosen = Cost(mechanism=mixed.mechanism, epsilon=mixed.selection_epsilon)
        # The cost of any choice.
        parts = (
            [] if known else [_Part(f"choice {file}", chosen), _Part(file, _cost(mixed.release))]
        )
    return [part for part in parts if writing.rows.get("draws", part.digest) is None]


def _total(parts: Sequence[_Part], cohorts: Cohorts) -> Amount:
    """Return what parts cost anybody: the largest over cohorts of tables, part by part."""
    amounts = [
        sum(
            (Amount.of(part.cost) for part in parts if part.table is None or part.table in cohort),
            start=Amount(),
        )
        for cohort in cohorts or ({part.table for part in parts},)
    ]
    return reduce(Amount.largest, amounts)


def _entries(release: OpenedRelease) -> OpenedRelease:
    return release.entries if isinstance(release, MultiOutputRelease) else release


def _measurements(release: OpenedRelease) -> tuple[Any, ...]:
    entries = _entries(release)
    return entries.measurements if isinstance(entries, Release) else ()


def _cohorts(release: OpenedRelease) -> Cohorts:
    """Return which tables of a release one person may be in together."""
    entries = _entries(release)
    return entries.cohorts if isinstance(entries, Release) else ()


def _cost(guarantee: Guarantee) -> Cost:
    parts = (*guarantee.laplace, *guarantee.pure)
    pure = sum((Fraction(part) for part in parts), Fraction(0))
    without_delta = "any" if guarantee.pure else LAPLACE
    return Cost(
        mechanism=without_delta if pure else GAUSSIAN,
        mu=guarantee.mu,
        epsilon=round_up_decimal(pure),
        answers=guarantee.answers if guarantee.mu else 0,
        coarseness=guarantee.coarseness,
    )


def _unit(release: OpenedRelease) -> Unit:
    """Return the unit that all measurements of a release protect."""
    if isinstance(release, StatisticsRelease):
        return WHOLE_ROWS[release.neighbours]
    if isinstance(release, MultiOutputRelease):
        # Its groups may be the outputs of one row.
        return "row"
    strategies = [one.strategy for one in _measurements(release)]
    grouped = [
        getattr(one, "groups", None) is not None or getattr(one, "grouping", None) is not None
        for one in strategies
    ]
    return "person" if grouped and all(grouped) else "row"
