"""Imports: what was spent before counts once, and what the ledger knows not again."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
    baselines,
    refine,
)
from cloakgp.data import ArrayRows
from cloakgp.ledger import LedgerError
from cloakgp.ledger.chain import acting_as
from cloakgp.ledger.database import TableStore
from cloakgp.ledger.imports import import_releases

X, MANY = np.linspace(0, 10, 30)[:, None], np.linspace(0, 10, 300)[:, None]
y = X[:, 0] / 10
BUDGET = {"epsilon": 0.5, "delta": 1e-6}

MADE = {
    "numbers": lambda: DPGPRegressor(bounds=(0, 1), **BUDGET).fit(X, y),
    "classes": lambda: DPGPClassifier(classes=[0, 1], **BUDGET).fit(X, y > 0.5),
    "three classes": lambda: DPGPClassifier(classes=[0, 1, 2], **BUDGET).fit(X, y > 0.5),
    "many rows": lambda: DPGPRegressor(bounds=(0, 1), inducing=3, **BUDGET).fit_rows(
        ArrayRows(X, y)
    ),
    "several outputs": lambda: DPGPMultiOutputRegressor(bounds=[(0, 1), (0, 2)], **BUDGET).fit(
        X, np.column_stack([y, 2 * y])
    ),
    "mean": lambda: baselines.DPMeanRegressor(bounds=(0, 1), **BUDGET).fit(X, y),
    "selection": lambda: DPGridSearchCV(
        DPGPRegressor(bounds=(0, 1), **BUDGET),
        {"noise_variance": [0.1, 0.01]},
        selection_epsilon=0.2,
        cv=3,
    ).fit(X, y),
    "margins": lambda: DPGPRegressor(
        bounds=(0, 1), epsilon=4.0, noise="laplace", calibrate=0.4, inducing=3
    ).fit(MANY, MANY[:, 0] / 10),
    "histogram": lambda: baselines.DPHistogramRegressor(
        bounds=(0, 1), epsilon=0.5, noise="laplace"
    ).fit(X, y),
}


@pytest.fixture
def unlimited(ledger):
    return ledger.open_account("all", epsilon=50.0, delta=1e-6)


@pytest.mark.parametrize("name", MADE)
def test_a_release_that_is_not_known_counts_once(name, ledger, unlimited, tmp_path):
    release = MADE[name]().release_
    release.save(tmp_path / "a.cloak")
    (first,) = import_releases(unlimited, [tmp_path / "a.cloak"], reason="from 2023")
    (again,) = import_releases(unlimited, [tmp_path / "a.cloak"], reason="from 2023")
    assert first.charge is not None
    assert again.charge is None
    epsilon = unlimited.standing.epsilon_if_fixed
    assert epsilon == pytest.approx(release.guarantee.epsilon_at(1e-6), rel=1e-3)
    assert epsilon >= release.guarantee.epsilon_at(1e-6) * (1 - 1e-9)
    assert ledger.verify().sound


@pytest.mark.parametrize("name", sorted(set(MADE) - {"histogram"}))
def test_a_release_that_was_counted_is_known_in_its_file(name, unlimited, tmp_path):
    with unlimited:
        MADE[name]().release_.save(tmp_path / "a.cloak")
    (found,) = import_releases(unlimited, [tmp_path / "a.cloak"], reason="to see")
    assert found.charge is None
    assert unlimited.standing.charges == 1


@pytest.fixture
def two_tables(tmp_path):
    """A file of two tables with nobody in common, as it says, and those of each table."""
    about = {"bounds": (0, 1), "noise": "laplace", "stages": None, "interval": False}
    about |= {"kernel": RBF(3.0), "noise_variance": 0.01, "learn": None, "calibrate": False}
    first = DPGPRegressor(epsilon=0.5, **about).fit(X, y).release_
    second = DPGPRegressor(epsilon=0.25, **about).fit(X + 0.1, y).release_
    both = first.combine(second, same_rows=False, people="disjoint")
    for name, release in (("both", both), ("first", first), ("second", second)):
        release.save(tmp_path / f"{name}.cloak")
    assert both.guarantee.pure_epsilon == pytest.approx(0.5, rel=1e-3)
    return tmp_path


@pytest.mark.parametrize(("people", "total"), [("disjoint", 0.5), ("overlapping", 0.75)])
def test_a_file_that_says_that_nobody_is_in_two_tables_is_not_taken_at_its_word(
    people, total, ledger, unlimited, two_tables
):
    paths = [two_tables / f"{name}.cloak" for name in ("both", "first", "second")]
    with acting_as("clara"):
        found = import_releases(unlimited, paths, reason="from 2023", people=people)
    # Neither of the parts counts again.
    assert [one.charge is None for one in found] == [False, True, True]
    assert unlimited.standing.epsilon_if_fixed == pytest.approx(total, rel=1e-3)
    (entry,) = (one.content for one in ledger.entries() if one.content["kind"] == "imported")
    assert entry.get("people") == ("disjoint" if people == "disjoint" else None)
    assert ledger.names()[entry["who"]] == "clara"
    told = ledger.verify()
    assert told.findings == ()
    assert told.notes == (
        (
            "entry 3 of the account 'all' counts less than the sum of a release's parts: whoever "
            "imported it says that nobody is in all of its tables",
        )
        if people == "disjoint"
        else ()
    )


def test_the_parts_of_a_file_count_once_where_they_come_first(unlimited, two_tables):
    for name in ("first", "both", "second"):
        path = two_tables / f"{name}.cloak"
        import_releases(unlimited, [path], reason="from 2023", people="disjoint")
    assert unlimited.standing.epsilon_if_fixed == pytest.approx(0.75, rel=1e-3)


def test_a_word_that_nobody_is_in_two_tables_is_not_taken_back(unlimited, two_tables):
    for people, is_known in (("disjoint", False), ("overlapping", True)):
        (found,) = import_releases(
            unlimited, [two_tables / "both.cloak"], reason="from 2023", people=people
        )
        assert (found.charge is None) == is_known
    assert unlimited.standing.epsilon_if_fixed == pytest.approx(0.5, rel=1e-3)


def test_a_word_that_changes_nothing_is_not_noted(ledger, unlimited, tmp_path):
    for name in ("numbers", "margins"):
        MADE[name]().release_.save(tmp_path / f"{name}.cloak")
        import_releases(
            unlimited, [tmp_path / f"{name}.cloak"], reason="from 2023", people="disjoint"
        )
    assert not any("people" in entry.content for entry in ledger.entries())
    assert ledger.verify().notes == ()
    with pytest.raises(ValueError, match="overlapping or disjoint"):
        import_releases(unlimited, [], reason="from 2023", people="others")


@pytest.mark.parametrize("name", ["numbers", "histogram", "selection"])
@pytest.mark.parametrize("counted", ["by a fit", "by an import"])
def test_what_another_account_counts_counts_here_once(
    name, counted, ledger, account, unlimited, tmp_path
):
    """Of people of this account who were charged to another by mistake."""
    path = tmp_path / "a.cloak"
    if counted == "by a fit":
        unlimited.publish(lambda: MADE[name]().release_).save(path)
    else:
        MADE[name]().release_.save(path)
        import_releases(unlimited, [path], reason="a mistake")
    spent = unlimited.standing
    assert ledger.verify().notes == ()
    (found,) = import_releases(account, [path], reason="put right")
    (again,) = import_releases(account, [path], reason="put right")
    (there,) = import_releases(unlimited, [path], reason="to see")
    assert found.charge is not None
    assert (again.charge, there.charge) == (None, None)
    assert unlimited.standing == spent
    assert account.standing.epsilon_if_fixed == pytest.approx(spent.epsilon_if_fixed, rel=1e-3)
    told = ledger.verify()
    assert told.findings == ()
    (first,) = (row for row in charges_of(ledger, "all"))
    assert told.notes == (
        f"entry {found.charge} of the account 'people' counts answers that charge {first} of "
        "another account, 'all', counts, too",
    )


def charges_of(ledger, name):
    """The numbers of an account's charges."""
    with ledger.database.reading() as connection:
        return [row["number"] for row in TableStore(connection).all("charges", account=name)]


def test_a_histogram_is_known_by_its_file_if_it_was_published(unlimited, tmp_path):
    unlimited.publish(lambda: MADE["histogram"]().release_).save(tmp_path / "a.cloak")
    (found,) = import_releases(unlimited, [tmp_path / "a.cloak"], reason="to see")
    assert found.charge is None


def test_of_a_refined_release_what_is_new_counts(unlimited, tmp_path):
    with unlimited:
        first = DPGPRegressor(bounds=(0, 1), stages=None, noise="gaussian", **BUDGET)
        first = first.fit(X, y).release_
    spent = unlimited.standing.spent
    refine(first, y, noise="gaussian", **BUDGET).save(tmp_path / "b.cloak")
    (found,) = import_releases(unlimited, [tmp_path / "b.cloak"], reason="made elsewhere")
    assert found.charge is not None
    each = (unlimited.standing.spent - spent).numbers["mu"]
    assert each == pytest.approx(spent.numbers["mu"], rel=1e-3)


def test_what_is_beyond_the_limit_counts_all_the_same(account, tmp_path):
    DPGPRegressor(bounds=(0, 1), epsilon=3.0, delta=1e-6).fit(X, y).release_.save(
        tmp_path / "a.cloak"
    )
    import_releases(account, [tmp_path / "a.cloak"], reason="from 2023")
    assert account.standing.epsilon_if_fixed > 2.9


def test_units_and_seeds_are_looked_at(ledger, account, tmp_path):
    DPGPRegressor(bounds=(0, 1), insecure_seed=1, **BUDGET).fit(X, y).release_.save(
        tmp_path / "seeded.cloak"
    )
    with pytest.raises(LedgerError, match="seed"):
        import_releases(account, [tmp_path / "seeded.cloak"], reason="a mistake")
    model = DPGPRegressorPrivateInputs(
        bounds=(0, 1), input_bounds=[(0, 10)], neighbours="add-remove", **BUDGET
    )
    model.fit(X, y).release_.save(tmp_path / "rows.cloak")
    with pytest.raises(LedgerError, match="do not add up"):
        import_releases(account, [tmp_path / "rows.cloak"], reason="a mistake")
    rows = ledger.open_account("rows", epsilon=1.0, delta=1e-6, unit="whole row added or removed")
    assert import_releases(rows, [tmp_path / "rows.cloak"], reason="right")[0].charge
    people = ledger.open_account("patients", epsilon=1.0, delta=1e-6, unit="person")
    DPGPRegressor(bounds=(0, 1), **BUDGET).fit(
        X, y, groups=[row // 3 for row in range(30)]
    ).release_.save(tmp_path / "groups.cloak")
    assert import_releases(people, [tmp_path / "groups.cloak"], reason="right")[0].charge


def test_a_release_of_which_a_part_protects_rows_alone_protects_no_persons(ledger, tmp_path):
    model = DPGPRegressor(bounds=(0, 1), noise="gaussian", **BUDGET)
    groups = [row // 3 for row in range(30)]
    persons, rows = model.fit(X, y, groups=groups).release_, model.fit(X, y).release_
    persons.combine(rows, same_rows=False).save(tmp_path / "mixed.cloak")
    persons.combine(model.fit(X, y, groups=groups).release_).save(tmp_path / "persons.cloak")
    people = ledger.open_account("patients", epsilon=9.0, delta=1e-6, unit="person")
    with pytest.raises(LedgerError, match="would protect one row"):
        import_releases(people, [tmp_path / "mixed.cloak"], reason="a mistake")
    assert people.standing.charges == 0
    assert import_releases(people, [tmp_path / "persons.cloak"], reason="right")[0].charge
    outputs = ledger.open_account("outputs", epsilon=9.0, delta=1e-6)
    assert import_releases(outputs, [tmp_path / "mixed.cloak"], reason="right")[0].charge
