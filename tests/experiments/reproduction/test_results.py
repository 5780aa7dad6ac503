"""What jobs found: kept at once, never replaced unasked, and compared with a fresh part."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats
from typer.testing import CliRunner

from experiments.datasets import DatasetUnavailableError
from experiments.progress import quietly
from experiments.reproduction import __main__ as command_line
from experiments.reproduction import checking, running
from experiments.reproduction.jobs.base import Found, Job, exactly, named
from experiments.reproduction.results import Kept, Quantity, Results


def noisy(draws, *, rng=None):
    """Means of draws around 3, with a picture; seeded by nothing, if no generator is given."""
    values = 3.0 + np.random.default_rng(rng).normal(scale=0.1, size=draws)
    figure = Figure()
    figure.subplots().plot(values)
    return Found(exactly(constant=7.0) | {"mean": Quantity.of(values)}, {"values": figure})


@pytest.fixture
def jobs():
    return named(
        Job(name, "{draws} draws", 8, noisy, minutes=minutes)
        for name, minutes in (("first", 1.0), ("second", 2.0), ("third", 3.0))
    )


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path)


def test_a_quantity_comes_back_as_it_was_kept(results):
    quantities = {
        "drawn": Quantity(mean=1.5, error=0.25, draws=9, spread=2.0),
        "exact": Quantity(mean=-3.0),
    }
    kept = Kept(quantities, ("a-b.webp",), "settings", 9, 1.5, "abc", "2026-01-01", "Python 3")
    results.put("a", kept)
    assert Results(results.folder).find("a") == kept
    assert Results(results.folder).find("b") is None


def test_two_draws_have_no_standard_error():
    assert Quantity.of(np.array([1.0, 3.0])) == Quantity(mean=2.0, draws=2)
    drawn = np.array([1.0, 3.0, 2.0, 2.0, 2.0])
    assert Quantity.of(drawn).error == pytest.approx(drawn.std(ddof=1) / np.sqrt(5))


def test_an_interrupted_run_goes_on_where_it_was(jobs, results):
    seen = []

    def stops(_):
        raise KeyboardInterrupt

    def counts(name):
        def compute(draws):
            seen.append(name)
            return noisy(draws)

        return compute

    broken = {
        name: Job(name, "", 8, stops if name == "second" else counts(name), minutes=job.minutes)
        for name, job in jobs.items()
    }
    with pytest.raises(KeyboardInterrupt):
        running.run(running.missing(broken, results), results, progress=quietly)
    # The longest first: the third was done, and the first had not begun.
    assert seen == ["third"]
    again = Results(results.folder)
    assert again.names == ("third",)
    whole = {name: Job(name, "", 8, counts(name), minutes=1.0) for name in jobs}
    running.run(running.missing(whole, again), again, progress=quietly)
    assert sorted(seen) == ["first", "second", "third"]
    assert running.missing(whole, Results(results.folder)) == []


def test_what_is_kept_says_how_it_was_made(jobs, results):
    running.run([jobs["first"]], results, progress=quietly, draws=5)
    kept = results.find("first")
    assert kept.settings == "5 draws"
    assert kept.draws == kept.quantities["mean"].draws == 5
    assert kept.commit
    assert "numpy" in kept.versions
    [file] = kept.pictures
    assert results.picture(file).read_bytes()[8:12] == b"WEBP"


def test_other_settings_are_told_and_not_replaced(jobs, results):
    running.run(jobs.values(), results, progress=quietly)
    assert running.changed(jobs, results) == []
    other = jobs | {"first": Job("first", "{draws} other draws", 8, noisy)}
    assert running.changed(other, results) == ["first"]
    assert running.missing(other, results) == []


def test_a_missing_table_is_told_and_nothing_is_kept(results):
    def unavailable(_):
        raise DatasetUnavailableError("no such table")

    job = Job("a", "", 0, unavailable)
    [failed] = running.run([job], results, progress=quietly)
    assert failed.reason == "no such table"
    assert results.names == ()


@pytest.mark.slow
def test_workers_change_nothing_that_is_exact(jobs, results):
    running.run(jobs.values(), results, progress=quietly, n_jobs=2)
    assert {results.find(name).quantities["constant"].mean for name in jobs} == {7.0}


def test_two_jobs_of_one_name_are_refused(jobs):
    with pytest.raises(ValueError, match="first"):
        named([jobs["first"], jobs["first"]])


def test_fresh_draws_of_the_same_agree():
    """One false alarm in a hundred is allowed; here are a hundred comparisons of equal means."""
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(100):
        one, two = ({"a": Quantity.of(rng.normal(size=8))} for _ in range(2))
        compared = checking.judged(checking.compare(one, two, job="a"))
        alarms += sum(not each.agrees for each in compared)
    assert alarms <= 5


@pytest.mark.parametrize(("name", "by"), [("mean", 1.0), ("constant", 0.2)])
def test_a_falsified_figure_is_noticed(jobs, results, name, by, monkeypatch):
    # Draws are fresh each time, and the same in every run of this: one check in a hundred is wrong.
    fresh = partial(noisy, rng=np.random.default_rng(0))
    jobs = {each: replace(job, compute=fresh) for each, job in jobs.items()}
    running.run(jobs.values(), results, progress=quietly)
    monkeypatch.setattr(command_line, "all_jobs", lambda: jobs)
    check = ["check", "--folder", str(results.folder), "--seed", "0"]
    done = CliRunner().invoke(command_line.app, check)
    assert done.exit_code == 0, done.output
    assert "0 disagree" in done.output
    path = results.folder / "results.json"
    kept = json.loads(path.read_text())
    kept["second"]["quantities"][name][0] += by
    path.write_text(json.dumps(kept))
    done = CliRunner().invoke(command_line.app, check)
    assert done.exit_code == 1
    assert f"second:{name}" in done.output
    assert "1 disagree" in done.output


def test_a_figure_that_is_gone_or_new_is_noticed():
    kept, fresh = exactly(a=1.0, b=1.0), exactly(b=1.0, c=1.0)
    compared = checking.judged(checking.compare(kept, fresh, job="j"))
    assert [one.key for one in compared if not one.agrees] == ["j:a", "j:c"]


def test_welch_is_scipys():

    rng = np.random.default_rng(0)
    one, two = rng.normal(size=12), rng.normal(loc=0.7, scale=2.0, size=7)
    expected = stats.ttest_ind(one, two, equal_var=False).pvalue
    assert checking.welch(Quantity.of(one), Quantity.of(two)) == pytest.approx(expected)


def test_a_subset_fits_its_time_and_is_never_empty(jobs, results):
    for name, job in jobs.items():
        running.run([job], results, progress=quietly)
        kept = results.find(name)
        results.put(name, Kept(**vars(kept) | {"seconds": 60.0}))
    rng = np.random.default_rng(0)
    assert len(checking.subset(jobs, results, seconds=130.0, rng=rng)) == 2
    assert len(checking.subset(jobs, results, seconds=1.0, rng=rng)) == 1


def test_the_commands_compute_list_and_lay_out(jobs, tmp_path, monkeypatch):
    monkeypatch.setattr(command_line, "all_jobs", lambda: jobs)

    def run(*words):
        return CliRunner().invoke(command_line.app, [*words, "--folder", str(tmp_path)])

    assert "3 are computed now" in run("run", "--draws", "5").output
    assert "0 are computed now" in run("run").output
    listed = run("list").output
    assert "second" in listed
    done = run("run", "--only", "sec", "--again")
    assert "1 are computed now" in done.output
    assert Results(tmp_path).find("second").draws == 8
    assert Results(tmp_path).find("first").draws == 5
    assert run("run", "--only", "fourth").exit_code == 2
