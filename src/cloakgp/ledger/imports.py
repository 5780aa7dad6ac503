"""Imports of release files, whose charges are older than the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from cloakgp.ledger import projection
from cloakgp.ledger.accounts import Account, checked_account
from cloakgp.ledger.charges import check_unit
from cloakgp.ledger.database import Writing
from cloakgp.ledger.errors import LedgerError
from cloakgp.ledger.texts import checked_text
from cloakgp.privacy.accounting import Guarantee
from cloakgp.privacy.cohorts import DISJOINT, OVERLAPPING, Cohorts, People
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
    account: Account,
    paths: Iterable[str | Path],
    *,
    reason: str,
    people: People = OVERLAPPING,
) -> list[Imported]:
    """Charge releases that were made without this ledger.

    Noisy answers that the account has already, by their digests, are not counted again; where
    another account has them, auditors see it. New ones are charged beyond any limit: they are
    spent. Of one release all of them add up, unless it kept some rows of its table out of the fit:
    nobody is in both parts.

    Parameters
    ----------
    account : Account
    paths : iterable of str or Path
    reason : str
    people : {"overlapping", "disjoint"}
        "disjoint" confirms what a release says of its own tables, that nobody is in some of them
        together: the largest amount counts, part by part, and not the sum. The entry has this word,
        and who gave it; no file can show that it is right.

    Raises
    ------
    LedgerError
        If a release is not private, or protects another unit than the account; or if there is no
        reason.
    ReleaseFileError
        If a file is no release.
    ValueError
        If ``people`` is another word.
    """
    if people not in (OVERLAPPING, DISJOINT):
        raise ValueError(f"people must be {OVERLAPPING} or {DISJOINT}, got {people!r}")
    checked_text(reason, what="a reason")
    claimed = people == DISJOINT
    return [_import(account, Path(path), reason=reason, claimed=claimed) for path in paths]


def _import(account: Account, path: Path, *, reason: str, claimed: bool) -> Imported:
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
        known = _Known(account.name, writing)
        parts = _new_parts(release, file, known)
        charge = None
        if parts:
            said = _cohorts(release)
            by_construction = _kept_out(release)
            total = _total(parts, said if claimed or by_construction else ())
            # The claim is noted where it counts, with what it saves.
            saved = total != _total(parts, said if by_construction else ())
            charge = writing.append_noted(
                "imported",
                note={"elsewhere": [], "charges_elsewhere": known.elsewhere(parts, file)},
                account=account.name,
                reason=reason,
                unit=unit,
                epsilon=release.guarantee.epsilon,
                delta=release.guarantee.delta,
                release=file,
                draws=[part.digest for part in parts],
                **({"people": DISJOINT} if saved else {}),
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


@dataclass(frozen=True)
class _Known:
    """What an account, and others, have counted.

    Attributes
    ----------
    account : str
    writing : Writing
    """

    account: str
    writing: Writing

    def has(self, digest: str) -> bool:
        """Return whether the account counts a draw."""
        return projection.charge_of_draw(digest, self.account, self.writing.rows) is not None

    def has_release(self, file: str) -> bool:
        """Return whether the account has charged a file, by its digest."""
        charges = self.writing.rows.all("charges", account=self.account)
        return any(charge["release"] == file for charge in charges)

    def elsewhere(self, parts: Sequence[_Part], file: str) -> list[dict[str, object]]:
        """Return the charges of other accounts that count a file, or draws first."""
        rows = self.writing.rows
        drawn = [rows.get("draws", part.digest) for part in parts]
        numbers = {row["charge"] for row in drawn if row is not None}
        return [
            {"account": charge["account"], "charge": charge["number"]}
            for charge in rows.all("charges")
            if charge["account"] != self.account
            and (charge["number"] in numbers or charge["release"] == file)
        ]


def _new_parts(release: OpenedRelease, file: str, known: _Known) -> list[_Part]:
    """Return the parts of a release that an account has not counted."""
    parts = [
        _Part(digest_of(one.answers.values), _cost(one.answers.guarantee), one.strategy.table)
        for one in _measurements(release)
        if one.answers.guarantee.spent
    ]
    if not parts:
        assert not isinstance(release.guarantee, MixedGuarantee)
        parts = [] if known.has_release(file) else [_Part(file, _cost(release.guarantee))]
    elif isinstance(release.guarantee, MixedGuarantee):
        all_known = all(known.has(part.digest) for part in parts)
        mixed = release.guarantee
        chosen = Cost(mechanism=mixed.mechanism, epsilon=mixed.selection_epsilon)
        # The cost of any choice.
        parts = (
            []
            if all_known
            else [_Part(f"choice {file}", chosen), _Part(file, _cost(mixed.release))]
        )
    return [part for part in parts if not known.has(part.digest)]


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


def _kept_out(release: OpenedRelease) -> bool:
    """Return whether cohorts are parts of one table, which the fit itself has divided."""
    entries = _entries(release)
    return isinstance(entries, Release) and entries.kept is not None


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
