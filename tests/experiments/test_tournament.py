"""The tournament: what was fixed beforehand, how rows are dealt, judged, kept and compared."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from cloakgp.privacy import OutputBounds
from experiments import __main__ as command_line
from experiments.commits import PROJECT
from experiments.pages import BLOCK, Kept
from experiments.raw_tables import encoded_by_hand
from experiments.tournament import analysis, cells, command, entries, judging, protocol, report
from experiments.tournament.cells import FIRST_SPLIT, Budget, Cells, Place, TriedCells, budgets
from experiments.tournament.entries import OURS, Deal, Entry, Told
from experiments.tournament.tables import CLASSES, NUMBERS, WHOLE, Judged, file_of
from experiments.written import Plain

NO_DELTA = Budget(1.0, with_delta=False)
ROWS = 40


@contextmanager
def progress(what, *, steps):
    del what, steps
    yield lambda: None


@pytest.fixture
def table(monkeypatch):
    """A table of numbers with text, dates and a gap, that no package need have."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, ROWS),
            "job": rng.choice(["baker", "nurse"], ROWS),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(ROWS), unit="D"),
        }
    )
    frame["pay"] = 10 + frame["age"] / 10 + rng.normal(size=ROWS)
    frame.loc[3, "pay"] = np.nan
    frame.loc[4, "pay"] = 99.0
    monkeypatch.setattr("experiments.tournament.tables._read", lambda _: frame.copy())
    return Judged("pay", ("a/b",), "pay", ("age", "job", "since"), (0.0, 30.0), dates=("since",))


def dealt_numbers(truth=(0.0, 1.0, 2.0, 3.0)):
    truth = np.array(truth)
    return Deal(
        columns=pd.DataFrame({"x": [0.0, 1.0]}),
        outputs=np.array([0.0, 1.0]),
        columns_test=pd.DataFrame({"x": truth}),
        outputs_test=truth,
        bounds=OutputBounds(0.0, 4.0),
    )


def dealt_classes():
    return Deal(
        columns=pd.DataFrame({"x": [0.0, 1.0]}),
        outputs=np.array(["a", "b"]),
        columns_test=pd.DataFrame({"x": np.zeros(4)}),
        outputs_test=np.array(["a", "a", "a", "b"]),
        bounds=None,
        classes=("a", "b"),
    )


def test_protocol_and_list_of_tables_are_what_was_fixed_beforehand():
    protocol.check_protocol()


def test_another_protocol_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(protocol, "FOLDER", tmp_path)
    (tmp_path / "protocol.md").write_text("as it suits us", encoding="utf-8")
    with pytest.raises(protocol.ProtocolError, match=r"protocol.md is not what was fixed"):
        protocol.check_protocol()


def test_what_is_written_below_the_rules_leaves_these_as_they_were(tmp_path, monkeypatch):
    for name in ("protocol.md", "tables.py"):
        text = (protocol.FOLDER / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(protocol, "FOLDER", tmp_path)
    protocol.check_protocol()
    said = (tmp_path / "protocol.md").read_text(encoding="utf-8")
    (tmp_path / "protocol.md").write_text(said + "A change.\n", encoding="utf-8")
    with pytest.raises(protocol.ProtocolError, match=r"protocol.md .* its SHA-256"):
        protocol.check_protocol()
    (tmp_path / "protocol.md").write_text(said.replace("24 of numbers", "25"), encoding="utf-8")
    with pytest.raises(protocol.ProtocolError, match="its rules have"):
        protocol.check_protocol()


def test_the_tables_of_the_package_are_those_that_were_fixed():
    protocol.check_tables()


def test_other_tables_are_refused(monkeypatch):
    monkeypatch.setattr(protocol, "NUMBERS", NUMBERS[1:])
    with pytest.raises(protocol.ProtocolError, match="are others"):
        protocol.check_tables()


def test_all_tables_can_be_read_and_are_of_different_files():
    every = (*NUMBERS, *CLASSES)
    sources = [source for one in (*every, *WHOLE) for source in one.sources]
    assert len(sources) == len(set(sources))
    assert all(file_of(source).exists() for source in sources)
    assert len(NUMBERS) == 24
    for one in every:
        columns, outputs = one.read()
        assert one.output not in columns
        assert len(columns) == len(outputs) >= 100
        assert not outputs.isna().any()
        if one.bounds is not None:
            assert outputs.between(*one.bounds).all()


def test_rows_without_the_private_value_are_left_out_and_numbers_clipped(table):
    columns, outputs = table.read()
    assert len(columns) == len(outputs) == ROWS - 1
    assert outputs.max() == 30.0
    assert list(columns) == ["age", "job", "since"]


def test_dealt_rows_are_disjoint_and_the_same_for_the_same_number(table):
    first, again, other = (entries.deal(table, number) for number in (0, 0, 1))
    ages = set(first.columns["age"])
    assert ages.isdisjoint(first.columns_test["age"])
    assert len(first.outputs_test) == (ROWS - 1) // 4
    pd.testing.assert_frame_equal(first.columns, again.columns)
    assert set(other.columns["age"]) != ages
    assert len(entries.deal(table, 0, rows=20).outputs) == 20


def test_rows_with_a_gap_that_no_fitted_row_has_are_nobodys(table, monkeypatch):
    columns, outputs = table.read()
    order = np.random.default_rng(0).permutation(len(columns))
    columns.loc[order[0], "age"] = np.nan
    monkeypatch.setattr(Judged, "read", lambda _: (columns, outputs))
    dealt = entries.deal(table, 0)
    assert len(dealt.outputs_test) == (ROWS - 1) // 4 - 1
    assert not dealt.columns_test["age"].isna().any()
    # Where a fitted row has one, too, the row is everybody's.
    columns.loc[order[-1], "age"] = np.nan
    assert len(entries.deal(table, 0).outputs_test) == (ROWS - 1) // 4


def test_rivals_are_given_dates_as_days_and_texts_as_indicators(table):
    dealt = entries.deal(table, 0)
    X, asked = dealt.encoded
    assert X.shape == (len(dealt.outputs), 1 + 2 + 1)
    days = (dealt.columns["since"] - dealt.columns["since"].median()) / pd.Timedelta(days=1)
    np.testing.assert_allclose(X[:, -1], days)
    np.testing.assert_allclose(asked[:, 1] + asked[:, 2], 1.0)


def test_levels_beyond_the_commonest_have_no_indicator():
    frame = pd.DataFrame({"town": [f"town {n // 2}" for n in range(60)] + ["rare"]})
    X, _ = encoded_by_hand(frame, frame, most_levels=entries.COMMON_LEVELS)
    assert X.shape == (61, entries.COMMON_LEVELS)
    assert X[-1].sum() == 0.0


def test_the_score_of_a_normal_law_is_the_closed_form():
    """CRPS of N(0, 1) over outputs that are drawn from it is 1/√π (Gneiting and Raftery 2007)."""
    truth = np.random.default_rng(1).normal(size=20_000)
    told = Told(np.zeros(len(truth)), quantiles=entries.normal_quantiles(np.zeros(len(truth)), 1.0))
    found = cells.figures_of_numbers(told, dealt_numbers(truth))
    assert found["crps"] == pytest.approx(1 / np.sqrt(np.pi), rel=0.02)
    assert found["held"] == pytest.approx(0.9, abs=0.01)
    assert found["width"] == pytest.approx(2 * stats.norm.ppf(0.95), rel=0.02)
    assert found["error"] == pytest.approx(1.0, abs=0.01)


def test_a_prediction_without_quantiles_is_given_the_sd_of_its_errors_within_the_bounds():
    dealt = dealt_numbers()
    mean = np.full(4, 1.5)
    sd = float(np.sqrt(np.mean((mean - dealt.outputs_test) ** 2)))
    given = cells.figures_of_numbers(Told(mean), dealt)
    quantiles = entries.normal_quantiles(mean, sd)
    assert quantiles.min() < 0.0
    said = cells.figures_of_numbers(Told(mean, np.clip(quantiles, 0.0, 4.0)), dealt)
    assert given == said
    # An entry that says quantiles is judged by these, wherever they are.
    beyond = cells.figures_of_numbers(Told(mean, quantiles), dealt)
    assert beyond["width"] > said["width"]
    assert beyond["crps"] > said["crps"]


def test_classes_are_scored_beside_knowing_their_shares():
    dealt = dealt_classes()
    shares = cells.figures_of_classes(Told(np.tile([0.75, 0.25], (4, 1))), dealt)
    assert shares == {"error": pytest.approx(1.0), "wrong": pytest.approx(1.0)}
    certain = cells.figures_of_classes(Told(np.tile([0.0, 1.0], (4, 1))), dealt)
    assert certain["wrong"] == pytest.approx(3.0)
    assert np.isfinite(certain["error"])


def failing(*given):
    del given
    raise RuntimeError("no")


@pytest.mark.parametrize("dealt", [dealt_numbers(), dealt_classes()])
def test_an_entry_that_fails_has_the_error_of_a_constant_and_is_counted(dealt):
    entry = Entry("breaks", True, failing, is_of_classes=bool(dealt.classes))
    [found] = cells.figures_by_tuning(entry, dealt, NO_DELTA.setting(rows=2)).values()
    expected = cells.figures_of(cells.constant(dealt), dealt)
    assert found["failed"] == 1.0
    assert found["error"] == pytest.approx(expected["error"], rel=1e-3)


def test_all_tunings_are_kept_and_of_a_single_one_all_figures():
    dealt = dealt_numbers()
    told = {"good": Told(dealt.outputs_test), "settled": Told(np.full(4, 1.5))}
    setting = NO_DELTA.setting(rows=2)
    found = cells.figures_by_tuning(Entry("two", True, lambda *_: told), dealt, setting)
    assert [(name, set(one)) for name, one in found.items()] == [
        ("good", {"error", "crps"}),
        ("settled", {"error", "crps"}),
    ]
    assert found["settled"]["error"] == pytest.approx(1.0)
    [alone] = cells.figures_by_tuning(
        Entry("one", True, lambda *_: {"all": told["good"]}), dealt, setting
    ).values()
    assert set(alone) == {"error", "crps", "held", "width"}


def tried_of(errors):
    """Cells of the second round: errors by table, entry and tuning, in one split."""
    kept = TriedCells(None)
    for table, by_entry in errors.items():
        kept.known[Place(table, FIRST_SPLIT, 0, str(NO_DELTA))] = {
            entry: {
                tuning: {"error": error, "crps": error / 2} for tuning, error in by_tuning.items()
            }
            for entry, by_tuning in by_entry.items()
        }
    return kept


def settled_errors(errors):
    found = judging.settle_by_others(tried_of(errors)).known
    return {
        place.table: {entry: one["error"] for entry, one in by_entry.items()}
        for place, by_entry in found.items()
    }


def test_a_rival_is_tuned_by_all_other_tables_and_by_nothing_of_its_own():
    errors = {
        "a": {"rival": {"x": 0.1, "y": 0.9}},
        "b": {"rival": {"x": 0.8, "y": 0.5}},
        "c": {"rival": {"x": 0.7, "y": 0.6}},
        "d": {"rival": {"x": 0.6, "y": 0.5}},
    }
    found = settled_errors(errors)
    assert found["a"]["rival"] == 0.9
    # Without "b" x is better in the mean, thanks to "a".
    assert found["b"]["rival"] == 0.8
    for own in (0.0, 5.0):
        errors["a"]["rival"]["x"] = own
        assert settled_errors(errors)["a"]["rival"] == 0.9


def test_the_least_of_all_tunings_is_told_besides():
    kept = tried_of({name: {"rival": {"x": 0.5, "y": 0.4}} for name in "abc"})
    kept.known[Place("a", FIRST_SPLIT, 0, str(NO_DELTA))]["rival"]["x"]["error"] = 0.3
    settled = judging.settle_by_others(kept).known
    assert settled[Place("a", FIRST_SPLIT, 0, str(NO_DELTA))]["rival"] == {
        "error": 0.4,
        "crps": 0.2,
        "least": 0.3,
    }


def test_a_tuning_that_few_tables_allow_is_compared_on_these():
    """By means "few" would win, which only easy tables allow."""
    errors = {name: {"rival": {"x": 1.0, "y": 0.9}} for name in ("hard", "harder", "hardest")}
    for name in ("easy", "easier", "easiest", "own"):
        errors[name] = {"rival": {"x": 0.2, "y": 0.1, "few": 0.3}}
    assert settled_errors(errors)["own"]["rival"] == 0.1
    # Too few allow it to be known.
    alone = {name: errors[name] for name in ("hard", "harder", "hardest", "own")}
    alone["own"] = {"rival": {"x": 0.2, "y": 0.1, "few": 0.0}}
    assert settled_errors(alone)["own"]["rival"] == 0.1


def test_without_privacy_and_where_there_is_no_other_table_the_best_is_judged():
    assert settled_errors({"a": {"rival": {"x": 0.5, "y": 0.4}}})["a"]["rival"] == 0.4
    kept = TriedCells(None)
    for name, error in {"a": 0.1, "b": 0.9, "c": 0.9}.items():
        kept.known[Place(name, FIRST_SPLIT, 0, None)] = {
            "open": {"x": {"error": error}, "y": {"error": 0.5}}
        }
    found = judging.settle_by_others(kept).known
    assert [one["open"]["error"] for one in found.values()] == [0.1, 0.5, 0.5]


def test_an_entry_that_fails_on_one_table_has_its_constant_there_and_is_tuned_elsewhere():
    errors = {name: {"rival": {"x": 0.5, "y": 0.4}} for name in "abcd"}
    errors["a"] = {"rival": {"untouched": 2.0}}
    found = settled_errors(errors)
    assert found["a"]["rival"] == 2.0
    assert found["b"]["rival"] == 0.4


def test_budgets_have_no_delta_or_one_over_the_squared_rows():
    assert [one.setting(rows=10).delta for one in budgets([1.0])] == [0.0, 0.01]


def test_all_splits_of_a_draw_come_before_the_next_draw(table):
    order = [
        (place.draw, place.split, place.budget)
        for _, place, _ in cells.places([table], splits=2, draws=2, of=[NO_DELTA])
    ]
    of = str(NO_DELTA)
    one, two = FIRST_SPLIT, FIRST_SPLIT + 1
    assert order == [
        *((0, one, None), (0, one, of), (0, two, None), (0, two, of)),
        *((1, one, of), (1, two, of)),
    ]


def constant_entries(values):
    """Entries that predict a constant, and count how often they are asked."""
    asked = []

    def of(name, value):
        def predict(dealt, setting):
            asked.append((name, setting.epsilon))
            return {"all": Told(np.full(len(dealt.outputs_test), value))}

        return Entry(name, True, predict)

    return asked, tuple(of(name, value) for name, value in values.items())


def test_kept_cells_are_not_measured_again(table, tmp_path, monkeypatch):
    asked, made = constant_entries({OURS: 14.0, "rival": 15.0})
    monkeypatch.setattr(cells, "entries", lambda setting=None, **_: made if setting else ())
    path = tmp_path / "kept" / "numbers.jsonl"

    def run(splits):
        cells.measure(
            [table],
            TriedCells(path),
            splits=splits,
            draws=1,
            of=[NO_DELTA],
            rows=20,
        )

    run(1)
    assert len(asked) == 2
    run(2)
    assert len(asked) == 4
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["place"][:3] for line in lines if line["place"][3]] == [
        ["pay", FIRST_SPLIT, 0],
        ["pay", FIRST_SPLIT + 1, 0],
    ]
    assert all(line["commit"] for line in lines)
    place = Place("pay", FIRST_SPLIT, 0, str(NO_DELTA))
    assert TriedCells(path).known[place]["rival"]["all"]["error"] > 0


def test_ours_alone_is_measured_again_where_everything_is_kept(table, tmp_path, monkeypatch):
    asked, made = constant_entries({OURS: 14.0, "rival": 15.0})
    monkeypatch.setattr(cells, "entries", lambda setting=None, **_: made if setting else ())
    kept = TriedCells(None)
    cells.measure([table], kept, splits=2, draws=1, of=[NO_DELTA], rows=20)
    asked, made = constant_entries({OURS: 14.5, "rival": 15.0})

    def again():
        found = Cells(tmp_path / "again.jsonl")
        cells.measure_again([table], found, where=kept, of=[NO_DELTA], rows=20)
        return found

    found = again()
    again()
    assert [name for name, _ in asked] == [OURS, OURS]
    assert set(found.known) == {place for place in kept.known if place.budget}
    assert all(set(figures) == {OURS} for figures in found.known.values())
    for place, figures in found.known.items():
        assert figures[OURS]["error"] != kept.known[place][OURS]["all"]["error"]


def test_ours_again_stands_beside_the_kept_rivals_and_beside_itself():
    kept, tables = cells_of({OURS: np.full((9, 2), 0.7), "rival": np.full((9, 2), 0.6)})
    later, _ = cells_of({OURS: np.full((9, 1), 0.5)})
    shown = {
        table.title.partition(":")[0]: Plain.of(table).rows
        for table in report.lay_out_again(kept, later, tables, kind="classes", of=[NO_DELTA])
        if "share" not in table.title
    }
    # Of the one split where it was measured again.
    assert list(map(tuple, shown["ours again, log loss, no δ"])) == [
        (OURS, "0.500"),
        ("rival", "0.600"),
    ]
    [[name, cell]] = shown["ours again, log loss less ours, no δ"]
    assert name == "rival"
    assert cell.startswith("+.10")
    assert cell.endswith("0 ▲")
    [[name, cell]] = shown["ours then and again, log loss less ours, no δ"]
    assert name == report.BEFORE
    assert cell.startswith("+.20")


def test_cells_with_many_tunings_are_read_as_they_were_kept(tmp_path):
    path = tmp_path / "numbers.jsonl"
    kept = TriedCells(path)
    one, two, three = (Place("pay", number, 0, None) for number in range(3))
    kept.put(one, {OURS: {"untouched": {"error": 0.5, "held": 0.9}}, "r": {"x": {"error": 0.1}}})
    later = {"x": {"error": 0.2, "crps": 0.1}, "y": {"error": 0.3, "crps": 0.2}}
    kept.put(two, {"r": later, "s": {"x": {"error": 0.4}, "z": {"error": 0.5}}})
    again = TriedCells(path)
    # Names go on where they were.
    again.put(three, {"r": {"z": {"error": 0.7}, "y": {"error": 0.6}}})
    read = TriedCells(path).known
    assert read == again.known
    assert read[one] == kept.known[one]
    assert read[two] == {"r": later, "s": {"x": {"error": 0.4}, "z": {"error": 0.5}}}
    assert read[three]["r"] == {"z": {"error": 0.7}, "y": {"error": 0.6}}


def test_a_line_that_is_of_no_cell_is_not_passed_over(tmp_path):
    path = tmp_path / "numbers.jsonl"
    path.write_text('{"tunings": {}}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="without a place"):
        Cells(path)


def cells_of(values):
    """Cells of a few tables with given errors by entry: arrays of shape (tables, cells)."""
    kept = Cells(None)
    tables = []
    for number in range(len(next(iter(values.values())))):
        name = f"table {number}"
        tables.append(Judged(name, ("a/b",), "y", ("x",), (0.0, 1.0)))
        for split, _ in enumerate(next(iter(values.values()))[number]):
            kept.put(
                Place(name, split, 0, str(NO_DELTA)),
                {
                    entry: {"error": float(errors[number][split]), "least": 0.1, "crps": 0.2}
                    for entry, errors in values.items()
                },
            )
    return kept, tables


def test_a_rival_that_is_worse_on_all_tables_is_behind_and_an_equal_one_is_not_told_apart():
    rng = np.random.default_rng(0)
    ours = rng.uniform(0.5, 0.9, (12, 3))
    kept, tables = cells_of(
        {
            OURS: ours,
            "worse": ours + rng.uniform(0.05, 0.15, (12, 3)),
            "better": ours - rng.uniform(0.05, 0.15, (12, 3)),
            "equal": ours + np.tile([[0.1], [-0.1]], (6, 1)),
        }
    )
    found = analysis.differences(analysis.observe(kept, tables, budget=NO_DELTA, figure="error"))
    assert {name: one.verdict for name, one in found.items()} == {
        "worse": "ahead",
        "better": "behind",
        "equal": "not told apart",
    }
    assert found["worse"].lower < 0.1 < found["worse"].upper
    assert found["worse"].wins == 0
    assert found["better"].wins == found["better"].tables == 12


def test_tables_are_the_clusters():
    """Many cells of few tables say no more than few of them where tables differ."""
    few = np.array([[0.1], [0.3], [-0.1], [0.2]])
    found = [
        analysis.differences(
            analysis.observe(
                *cells_of({OURS: np.zeros((4, n)), "rival": np.tile(few, (1, n))}),
                budget=NO_DELTA,
                figure="error",
            )
        )["rival"]
        for n in (1, 50)
    ]
    assert found[0].mean == pytest.approx(found[1].mean)
    assert found[0].p == found[1].p
    assert found[0].upper == pytest.approx(found[1].upper)


def test_a_split_that_not_all_tables_have_does_not_count():
    kept, tables = cells_of({OURS: np.tile([[0.5, 0.7, 9.0]], (3, 1))})
    third = [place for place in kept.known if place.split == 2]
    del kept.known[third[-1]]
    found = analysis.observe(kept, tables, budget=NO_DELTA, figure="error")
    assert found.cells == 2
    np.testing.assert_allclose(found.entries[OURS], 0.6)


def test_signs_are_tested_exactly_where_there_are_few():
    """All 2ⁿ signs by hand."""
    values = np.array([0.3, 0.1, -0.05, 0.2, 0.4, 0.25])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 6)).reshape(6, -1).T
    means = (signs * values).mean(axis=1)
    expected = np.mean(np.abs(means) >= values.mean() - 1e-12)
    assert analysis.sign_test(values, seed=0) == pytest.approx(expected)


def test_tunings_of_the_first_round_are_there_for_every_budget_and_rival():
    found = json.loads((command.FIRST / "tunings.json").read_text(encoding="utf-8"))
    for kind in ("numbers", "classes"):
        assert set(found[kind]) == set(map(str, budgets()))
        for budget in budgets():
            asked = entries.entries(classes=kind == "classes", setting=budget.setting(rows=9))
            named = {one.name for one in asked if one.name != OURS}
            assert named <= set(found[kind][str(budget)])
            assert ["untouched"] not in found[kind][str(budget)].values()


def test_every_table_has_a_place_on_the_page():
    page = (PROJECT / "docs" / "tournament.md").read_text(encoding="utf-8")
    shown = [
        number
        for match in BLOCK.finditer(page)
        for number in range(int(match["first"]), int(match["last"] or match["first"]) + 1)
    ]
    assert shown == list(range(1, len(Kept.read("tournament").tables) + 1))


@pytest.mark.slow
def test_what_is_kept_for_the_page_is_what_the_kept_cells_come_to():
    first, mended = command.first_round()
    found = command.Found(
        {kind: TriedCells(command.KEPT / f"{kind}.jsonl") for kind in command.KINDS},
        first=first,
        mended=mended,
    )
    shown = [each for each in command.Tournament().tables(found) if not isinstance(each, str)]
    assert [Plain.of(table) for table in shown] == list(Kept.read("tournament").tables)


def test_cells_that_failed_count_and_are_measured_anew_apart():
    """All of ours that ever failed, as the first commit that has them says."""
    first, mended = command.first_round()
    known, anew = first["numbers"].known, mended.known
    failed = {place for place, figures in known.items() if figures.get(OURS, {}).get("failed")}
    assert failed == set(anew)
    assert {(place.table, place.split) for place in failed} == {
        ("teenagers' weights", 1),
        ("teenagers' weights", 2),
    }
    assert len(failed) == 16
    assert all(known[place][OURS]["error"] > 2.3 > anew[place][OURS]["error"] for place in failed)


def test_what_failed_is_laid_out_as_it_is_mended_and_without_its_table():
    ours = np.full((4, 2), 0.5)
    kept, tables = cells_of({OURS: ours, "rival": np.full((4, 2), 0.6)})
    place = Place("table 1", 0, 0, str(NO_DELTA))
    mended = Cells(None)
    mended.known = {place: kept.known[place]}
    # Of another place, which did not fail.
    mended.known[Place("table 2", 0, 0, str(NO_DELTA))] = {OURS: {"error": 9.0, "crps": 9.0}}
    entry = {"error": 2.9, "least": 2.9, "crps": 2.0, "failed": 1.0, "held": 0.5}
    kept.known[place] = kept.known[place] | {OURS: entry}
    shown = {
        table.title: Plain.of(table)
        for table in report.lay_out_doubts(kept, tables, of=[NO_DELTA], mended=mended)
    }
    by_name = {title.partition(":")[0]: table.rows for title, table in shown.items()}
    assert set(by_name) == {
        "share in our 90 % intervals of single tables",
        "RMSE after mending, no δ",
        "RMSE after mending less ours, no δ",
        "CRPS after mending less ours, no δ",
        "RMSE of tables where no cell failed less ours, no δ",
        "CRPS of tables where no cell failed less ours, no δ",
    }
    assert [list(row) for row in by_name["RMSE after mending, no δ"]] == [
        [OURS, "0.500"],
        ["rival", "0.600"],
    ]
    [(_, told)] = by_name["RMSE of tables where no cell failed less ours, no δ"]
    assert told.startswith("+.10")
    assert any("of 3 tables" in title for title in shown)
    # What counts has the failure in it: (.5 · 7 + 2.9)/8.
    [first, *_] = report.lay_out(kept, tables, kind="numbers", of=[NO_DELTA])
    assert Plain.of(first).rows[0][1] == "0.800"


def test_intervals_of_single_tables_are_told_by_their_quartiles():
    kept, tables = cells_of({OURS: np.full((5, 1), 0.5)})
    for number, share in enumerate((0.95, 0.7, 0.9, 0.8, 1.0)):
        kept.known[Place(f"table {number}", 0, 0, str(NO_DELTA))][OURS]["held"] = share
    [row] = Plain.of(report.held_by_table(kept, tables, of=[NO_DELTA])).rows
    assert list(row) == [str(NO_DELTA), "table 1", "0.700", "0.800", "0.900", "0.950", "1.000"]


@pytest.mark.parametrize("folder", [command.FIRST, command.KEPT])
def test_kept_cells_were_measured_by_what_is_committed(folder):
    for kind in command.KINDS:
        path = folder / f"{kind}.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        kept = [one for one in map(json.loads, lines) if "place" in one]
        commits = {one["commit"] for one in kept}
        assert not [one for one in commits if one.endswith("+") or one == "unknown"]
        if folder == command.KEPT:
            assert len(commits) <= 1
            assert min((one["place"][1] for one in kept), default=FIRST_SPLIT) == FIRST_SPLIT


def test_a_page_says_by_what_it_is_headed():
    kept, tables = cells_of({OURS: np.full((3, 2), 0.5), "rival": np.full((3, 2), 0.6)})
    first, *_ = report.lay_out(kept, tables, kind="numbers", of=[NO_DELTA])
    assert first.title == ("RMSE, no δ: mean of 3 tables, 2 splits and draws of each")


def test_whole_tables_are_for_entries_that_grow_with_rows():
    setting = NO_DELTA.setting(rows=9)
    whole = {one.name for one in entries.entries(classes=False, whole=True, setting=setting)}
    assert OURS in whole
    assert "noise on every row, GP" not in whole


def test_rivals_that_need_a_delta_have_no_cells_without():
    with_delta, without = (
        {one.name for one in entries.entries(classes=False, setting=each.setting(rows=9))}
        for each in (Budget(1.0, with_delta=True), NO_DELTA)
    )
    assert with_delta - without >= {"papers' cloaking, exact noise"}
    assert without < with_delta


def test_ways_without_privacy_are_judged_apart():
    assert {one.is_private for one in entries.entries(classes=False)} == {False}
    assert {one.is_private for one in entries.entries(classes=True)} == {False}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
def test_the_small_version_judges_numbers_and_classes(tmp_path):
    run = CliRunner().invoke(
        command_line.app,
        [
            *("tournament", "--fast", "--kind", "numbers", "--kind", "classes"),
            *("--output-dir", str(tmp_path)),
        ],
    )
    assert run.exit_code == 0, run.output
    assert OURS in run.output
    assert "nothing is measured yet" not in run.output


def test_titles_say_where_columns_are_of_fewer_tables():
    one = SimpleNamespace(tables=["a", "b"], cells=1)
    fewer = SimpleNamespace(tables=["a"], cells=1)
    assert report._scale({1: one, 2: fewer}) == "1 to 2 tables, one split and draw of each"
    assert report._scale({1: one}) == "2 tables, one split and draw of each"


def not_ahead(title, *, behind=()):
    """Rivals and ε of which a kept table has no ▲; none is ahead of ours, but for those named."""
    [table] = [one for one in Kept.read("tournament").tables if one.title.startswith(title + ":")]
    cells = [
        (row[0], name.removeprefix("ε = "), cell)
        for row in table.rows
        for name, cell in zip(table.columns[1:], row[1:], strict=True)
    ]
    assert [one[:2] for one in cells if "▼" in one[2]] == list(behind)
    return {(rival, epsilon) for rival, epsilon, cell in cells if "▲" not in cell}


HISTOGRAMS = {"histogram", "default GP on a histogram"}


@pytest.mark.parametrize("budget", ["no δ", "δ = 1/N²"])
def test_what_docs_say_of_who_is_ahead_is_what_marks_show(budget):
    """Sentences above the tables of docs/tournament.md, in the README and the paper."""
    # With failures counted.
    for measure in ("RMSE", "CRPS"):
        left = not_ahead(f"{measure} less ours, {budget}")
        assert {(rival, epsilon) for rival in HISTOGRAMS for epsilon in ("0.1", "0.3")} <= left
        assert ("default GP on a histogram", "3") in left
        at_one = {rival for rival, epsilon in left if epsilon == "1"}
        assert at_one == (set() if budget == "no δ" else HISTOGRAMS)
    # Mended, and without the table: ahead of every rival from ε = 0.3 on.
    for measure in ("RMSE", "CRPS"):
        for of in ("after mending", "of tables where no cell failed"):
            left = not_ahead(f"{measure} {of} less ours, {budget}")
            assert {epsilon for _, epsilon in left} == {"0.1"}
            if budget == "no δ":
                assert {(rival, "0.1") for rival in (*HISTOGRAMS, "noisy mean")} <= left


@pytest.mark.parametrize("budget", ["no δ", "δ = 1/N²"])
def test_what_docs_say_of_the_second_round_is_what_marks_show(budget):
    """In docs/tournament.md, the README, docs/evidence.md and the paper."""
    for measure in ("RMSE", "CRPS"):
        left = not_ahead(f"second round, {measure} less ours, {budget}")
        assert {epsilon for _, epsilon in left} <= {"0.1", "0.3"}
        at_third = {rival for rival, epsilon in left if epsilon == "0.3"}
        assert at_third == (set() if budget == "no δ" else HISTOGRAMS)
        assert ("noisy mean", "0.1") in left
    told, votes = "labels told at random", "noisy votes in cells"
    behind = [(told, "3")] if budget == "no δ" else []
    left = not_ahead(f"second round, log loss less ours, {budget}", behind=behind)
    beside = {
        "0.1": {votes} if budget == "no δ" else set(),
        "0.3": set(),
        "1": set() if budget == "no δ" else {"LP-2ST", votes},
        # Of all, or all but noisy votes.
        "3": {told, "LP-2ST"} if budget == "no δ" else {told, "LP-2ST", votes},
    }
    for epsilon, rivals in beside.items():
        assert {rival for rival, at in left if at == epsilon} == rivals
    not_ahead(f"second round, share told wrongly less ours, {budget}", behind=[(told, "3")])


def test_the_paper_says_of_classes_what_marks_show():
    """By the sets of the test above."""
    paper = (PROJECT / "docs" / "paper" / "paper.typ").read_text(encoding="utf-8")
    assert (
        "in log loss, ahead of every rival at $eps = 0.3$, at 0.1 with a $delta$, and at 1 without "
        "one; noisy votes cannot be told from it at 0.1 without a $delta$ and at 1 with one, nor "
        "can LP-2ST there. At 3 labels told at random, with the odds of their lies undone, are "
        "ahead of it without a $delta$, and cannot be told from it with one."
    ) in paper


@pytest.mark.parametrize("budget", ["no δ", "δ = 1/N²"])
def test_what_docs_say_of_ours_again_is_what_marks_show(budget):
    tables = Kept.read("tournament").tables
    for one in tables:
        if one.title.startswith("ours again") and "less ours" in one.title:
            assert not any("▼" in cell for row in one.rows for cell in row)
    [then] = [
        one
        for one in tables
        if one.title.startswith(f"ours then and again, log loss less ours, {budget}")
    ]
    [[_, *cells]] = then.rows
    assert ["▲" in cell for cell in cells] == [False, False, True, True]
    left = not_ahead(f"ours again, log loss less ours, {budget}")
    votes, local = "noisy votes in cells", {"labels told at random", "LP-2ST"}
    assert {rival for rival, epsilon in left if epsilon == "3"} == local
    assert {rival for rival, epsilon in left if epsilon == "1"} == set()
    at_third = {rival for rival, epsilon in left if epsilon == "0.3"}
    assert at_third == ({votes} if budget == "no δ" else set())
    assert {rival for rival, epsilon in left if epsilon == "0.1"} == {votes}
    if budget == "no δ":
        wrongly = not_ahead(f"ours again, share told wrongly less ours, {budget}")
        assert not any(epsilon == "1" for _, epsilon in wrongly)


@pytest.mark.parametrize("budget", ["no δ", "δ = 1/N²"])
def test_what_docs_say_of_our_numbers_again_is_what_marks_show(budget):
    """By intervals of differences, and by rivals that are not behind."""
    tables = {one.title.partition(":")[0]: one for one in Kept.read("tournament").tables}
    for figure in ("RMSE", "CRPS"):
        [[_, *cells]] = tables[f"ours then and again, {figure} less ours, {budget}"].rows
        assert not any("▲" in cell or "▼" in cell for cell in cells)
        assert all("(−" in cell for cell in cells)
        left = not_ahead(f"ours again, {figure} less ours, {budget}")
        assert not any(epsilon in ("1", "3") for _, epsilon in left)
    at_third = [
        {
            rival
            for rival, epsilon in not_ahead(f"ours again, {figure} less ours, {budget}")
            if epsilon == "0.3"
        }
        for figure in ("RMSE", "CRPS")
    ]
    histograms = {"histogram", "default GP on a histogram"}
    if budget == "no δ":
        assert at_third == [set(), {"histogram"}]
    else:
        assert at_third[0] == histograms


def test_figures_that_docs_name_of_the_second_round_are_the_least():
    tables = {one.title.partition(":")[0]: one for one in Kept.read("tournament").tables}

    def of_rivals(title):
        return [row for row in tables[title].rows if row[0] != OURS and "not private" not in row[0]]

    gp, features = "default GP on a histogram", "boosted clipped residuals, features"
    for title, names in (
        ("second round, RMSE, no δ", {2: "histogram", 3: gp, 4: gp}),
        ("second round, RMSE, δ = 1/N²", {2: gp, 3: gp, 4: features}),
        ("second round, RMSE, least, no δ", {1: "histogram", 2: gp, 3: gp, 4: features}),
    ):
        rows = of_rivals(title)
        for place, name in names.items():
            least = min(float(row[place]) for row in rows)
            assert name in {row[0] for row in rows if float(row[place]) == least}
    ours = [float(cell) for cell in tables["second round, RMSE, least, no δ"].rows[0][1:]]
    least = [
        min(float(row[place]) for row in of_rivals("second round, RMSE, least, no δ"))
        for place in (1, 2, 3, 4)
    ]
    # Well below ours, like it, and above it.
    assert least[0] < ours[0] - 0.05
    assert least[1] < ours[1] - 0.01
    assert least[2] == pytest.approx(ours[2], abs=0.005)
    assert least[3] > ours[3] + 0.005
    for with_delta in ("no δ", "δ = 1/N²"):
        failed = [
            one
            for one in Kept.read("tournament").tables
            if one.title.startswith(f"second round, share of cells that failed, {with_delta}")
        ]
        assert len(failed) == 2
        assert all(set(one.rows[0][1:]) == {"0.000"} for one in failed)
    # Ours is ahead of none of them in the share told wrongly at ε = 3, and behind one.
    wrong = {
        row[0]: row[4] for row in tables["second round, share told wrongly less ours, no δ"].rows
    }
    assert [name for name, cell in wrong.items() if "▼" in cell] == ["labels told at random"]
    losses = {row[0]: float(row[4]) for row in tables["second round, log loss, no δ"].rows}
    assert min(losses["labels told at random"], losses["LP-2ST"]) < losses[OURS]


def test_figures_that_docs_name_as_the_least_are_these():
    """The best rival, and the best in hindsight, of docs/tournament.md and the README."""
    tables = {one.title.partition(":")[0]: one for one in Kept.read("tournament").tables}

    def best(title, *, also=()):
        rows = [row for row in tables[title].rows if row[0] != OURS and "not private" not in row[0]]
        rows = [row for row in rows if row[0] not in also]
        columns = zip(*(row[1:] for row in rows), strict=True)
        least = [min(map(float, column)) for column in columns]
        return [
            {row[0] for row in rows if float(row[place]) == value}
            for place, value in enumerate(least, start=1)
        ]

    features, gp = "boosted clipped residuals, features", "default GP on a histogram"
    for title, named in (
        ("RMSE, no δ", (None, gp, gp, gp)),
        ("RMSE, δ = 1/N²", (None, "histogram", "histogram", gp)),
        ("RMSE, least, no δ", (gp, gp, features, features)),
        ("RMSE, least, δ = 1/N²", ("histogram", gp, features, features)),
    ):
        for name, found in zip(named, best(title), strict=True):
            assert name is None or name in found
    without = best("log loss, least, no δ", also=("models without privacy",))
    assert "noisy votes in cells" in without[0]
    assert "labels told at random" in without[3]
    boosting, forest = (float(row[1]) for row in tables["RMSE, no δ"].rows[-2:])
    assert forest < boosting
    # In hindsight rivals are well ahead at small ε, of ours as mended, too.
    for with_delta in ("no δ", "δ = 1/N²"):
        mended = tables[f"RMSE after mending, {with_delta}"].rows[0][1:3]
        least = tables[f"RMSE, least, {with_delta}"]
        for place, ours in enumerate(mended, start=1):
            others = [float(row[place]) for row in least.rows if "not private" not in row[0]]
            assert min(others) < float(ours) - 0.01


def test_what_docs_say_of_classes_is_what_marks_show():
    """In "What came out" of docs/tournament.md."""
    shown = Kept.read("tournament").tables
    tables = {each.title.partition(":")[0]: each.rows for each in shown}
    rivals = {"labels told at random", "LP-2ST", "noisy votes in cells"}
    for budget in ("no δ", "δ = 1/N²"):
        table = tables[f"log loss less ours, {budget}"]
        assert {row[0] for row in table} == rivals
        for row in table:
            assert all("▲" in cell for cell in row[1:4])
            votes = row[0] == "noisy votes in cells" and budget == "no δ"
            assert ({"▲", "▼"} & set(row[4])) == ({"▲"} if votes else set())
        wrong = {row[0]: row[4] for row in tables[f"share told wrongly less ours, {budget}"]}
        assert {name for name, cell in wrong.items() if "▼" in cell} == {"labels told at random"}
        told = tables[f"share told wrongly less ours, {budget}"]
        [votes] = [row[1:] for row in told if row[0] == "noisy votes in cells"]
        assert not [cell for cell in votes if {"▲", "▼"} & set(cell)]
    # Of log loss without δ, noisy votes are the next best up to ε = 1.
    _, *columns = zip(*tables["log loss, no δ"], strict=True)
    names = [row[0] for row in tables["log loss, no δ"]]
    for column in columns[:3]:
        by_name = dict(zip(names, map(float, column), strict=True))
        assert min(rivals, key=lambda name: by_name[name]) == "noisy votes in cells"


def test_docs_say_how_many_splits_there_are():
    """In docs/tournament.md and docs/evidence.md."""
    titles = [each.title for each in Kept.read("tournament").tables]
    splits = []
    for first in ("RMSE, no δ: ", "log loss, no δ: "):
        [title] = [one for one in titles if one.startswith(first)]
        splits.append(int(title.split(", ")[-1].split()[0]))
    words = dict(enumerate(("four", "five", "six", "seven", "eight", "nine", "ten"), start=4))
    fewer, more = (words[count] for count in sorted(splits))
    numbers, classes = (words[count] for count in splits)
    page, evidence = (
        (PROJECT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("tournament", "evidence")
    )
    said = f"{numbers.capitalize()} splits of each table of numbers and {classes} of classes"
    assert said in page
    assert f"{fewer} or {more} splits with one draw of each table" in evidence
