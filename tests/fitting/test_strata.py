"""Strata: an interval that would lose a group is widened, and what was clipped is said."""

import re
from dataclasses import replace

import numpy as np
import pytest

from cloakgp import DPGPMultiOutputRegressor, DPGPRegressor, Release, load
from cloakgp.data import ArrayRows
from cloakgp.design.streaming.binning import Partition
from cloakgp.fitting.interval import SearchPlan
from cloakgp.fitting.strata import CHECKS, keep_strata, lost, plan_checked_search
from cloakgp.fitting.strategies import Budget
from cloakgp.fitting.table import Strata
from cloakgp.privacy import Answers, Guarantee, OutputBounds
from cloakgp.privacy.ask import ask
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.report.describe import describe

DECLARED = OutputBounds(-500.0, 1500.0)


def people(rows, *, children, seed=0):
    """Heights by age; some of the people are children of 80 to 150 cm."""
    rng = np.random.default_rng(seed)
    young = rng.uniform(size=rows) < children
    age = np.where(young, rng.uniform(2, 14, size=rows), rng.uniform(15, 90, size=rows))
    height = np.where(young, 80 + 6 * (age - 2), 168.0) + 6 * rng.normal(size=rows)
    return age[:, None], height


def outside_asked(release):
    return [one for one in release.measurements if isinstance(one.question, OutsideQuestion)]


# What is asked, and what follows from it.


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("rows", [500, 3_000, 10**6])
@pytest.mark.parametrize("largest", [1, 3])
def test_what_a_question_costs_buys_what_is_stated(rows, largest, noise):
    budget = Budget(1.0, 1e-3 if noise == "gaussian" else 0.0, noise=noise)
    plan = plan_checked_search(DECLARED, budget=budget, rows=rows * largest, largest_group=largest)
    assert len(plan.checks) == CHECKS
    assert plan.check_share <= NOISES[noise].shares.check
    # Oracle: the mechanism itself.
    groups = np.repeat(np.arange(4), largest)
    noise_sd = ask(
        np.ones((1, len(groups))),
        np.zeros(len(groups)),
        question=OutsideQuestion(0.0, 1.0),
        epsilon=plan.checks[0].epsilon,
        delta=plan.checks[0].delta,
        groups=groups,
        noise=noise,
    ).noise_sd
    assert noise_sd / (rows * largest) <= 0.035 * (1 + 1e-4)


def test_nobody_asks_where_it_tells_nothing():
    pure = Budget(1.0, 0.0, noise="laplace")
    few = plan_checked_search(DECLARED, budget=pure, rows=250)
    assert few.rounds
    assert not few.checks
    assert not plan_checked_search(DECLARED, budget=pure, rows=60).rounds
    of_two = plan_checked_search(DECLARED, budget=pure, rows=600, outputs=2)
    assert of_two.rounds
    assert not of_two.checks


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("outputs", [2, 3])
def test_several_outputs_share_what_one_may_take(outputs, noise):
    budget = Budget(1.0, 1e-5 if noise == "gaussian" else 0.0, noise=noise)
    plan = plan_checked_search(DECLARED, budget=budget, rows=20_000, outputs=outputs)
    assert len(plan.checks) == CHECKS * outputs
    assert outputs * plan.check_share <= NOISES[noise].shares.check
    power = budget.law.power
    parts = [(budget.unit_sd() / part.unit_sd()) ** power for part in plan.checks]
    assert sum(parts) == pytest.approx(len(plan.checks) * plan.check_share, rel=1e-3)


def kept(outside, *, found, noise_sd=1.0):
    """Return what becomes of an interval, given who lies outside of each that is asked about."""
    sizes = np.full(len(outside[0]), 100.0)
    strata = Strata(cells=Partition(np.zeros((len(sizes), 1)), np.ones(1)), sizes=sizes)
    told = iter(outside)

    def asking(question, **_):
        question.validate()
        values = np.asarray(next(told)) - sizes / 2
        return Answers(values[:, None], noise_sd, Guarantee(epsilon=1.0, delta=0.0, mu=0.1))

    plan = SearchPlan(checks=(Budget(0.1, 0.0, noise="laplace"),) * CHECKS)
    return keep_strata(asking, found=found, declared=DECLARED, plan=plan, strata=lambda: strata)


def test_an_interval_is_widened_until_no_stratum_is_lost():
    found = OutputBounds(100.0, 200.0)
    same, once = kept([[2.0, 15.0]], found=found)
    assert (same, len(once)) == (found, 1)
    wider, twice = kept([[2.0, 90.0], [0.0, 1.0]], found=found)
    assert (wider, len(twice)) == (OutputBounds(0.0, 300.0), 2)
    assert [(one.question.lo, one.question.hi) for one in twice] == [(100.0, 200.0), (0.0, 300.0)]
    # Widened once more it would be nearly all that was declared.
    assert kept([[2.0, 90.0], [0.0, 90.0]], found=found)[0] == OutputBounds(-300.0, 600.0)
    assert kept([[90.0, 0.0]], found=OutputBounds(0.0, 600.0))[0] == DECLARED


def test_what_was_declared_is_no_end_of_an_interval():
    """Nobody can lie beyond it: it is declared of all."""
    _, [one] = kept([[0.0, 0.0]], found=OutputBounds(-500.0, 0.0))
    assert (one.question.lo, one.question.hi) == (None, 0.0)
    assert kept([[90.0]], found=DECLARED) == (DECLARED, ())


@pytest.mark.parametrize("strata", [4, 8])
def test_noise_alone_loses_a_stratum_in_one_table_of_twenty_at_most(strata):
    rng = np.random.default_rng(0)
    draws = rng.laplace(size=(4_000, strata)) * 10.0 / np.sqrt(2)
    false = [lost(one, sizes=np.full(strata, 50.0), noise_sd=10.0).any() for one in draws]
    assert 0.03 < np.mean(false) < 0.05 + 4 * np.sqrt(0.05 / 4_000)


# Fits.


@pytest.fixture(scope="module")
def lost_children():
    X, y = people(1_000, children=0.1)
    model = DPGPRegressor(bounds=(40, 200), epsilon=1.0, inducing=25, insecure_seed=3)
    return X, y, model.fit(X, y).release_


def test_children_of_a_table_of_people_are_not_lost(lost_children):
    """Without the question about strata 135 to 195 is taken, and they are said to be 150 cm."""
    _, _, release = lost_children
    assert release.measurements[0].question.limits == (40.0, 200.0)
    assert len(outside_asked(release)) == 1
    age = np.linspace(2, 14, 50)
    mean, sd = release.predict(age[:, None], return_std=True, new_output=True)
    assert abs(np.mean(mean - 80 - 6 * (age - 2))) < 12
    assert np.mean(np.abs(mean - 80 - 6 * (age - 2)) < 1.96 * sd) > 0.9


def test_all_of_the_budget_is_spent(lost_children):
    parts = [one.answers.guarantee.laplace for one in lost_children[2].measurements]
    assert sum(map(sum, parts)) == pytest.approx(1.0, rel=1e-3)


def said_of(release):
    return {fact.label: fact.text for section in describe(release) for fact in section.facts}


def test_words_say_what_was_clipped_and_of_whom():
    X, y = people(1_500, children=0.04)
    model = DPGPRegressor(bounds=(40, 400), epsilon=1.0, learn=None, stages=None, inducing=10)
    taken = 0
    for seed in range(3):
        release = model.set_params(insecure_seed=seed).fit(X, y).release_
        question = release.measurements[0].question
        if question.limits == (40.0, 400.0):
            assert "clipped" not in said_of(release)
            continue
        taken += 1
        said = said_of(release)["clipped"]
        outside = np.mean((y < question.lo) | (y > question.hi))
        share, off = re.search(r"about (\S+) % of all, give or take (\S+) perc", said).groups()
        assert abs(float(share) - 100 * outside) < 2 * float(off)
        if question.lo > 40:
            assert f"values of y under {question.lo:.4g} as {question.lo:.4g}" in said
    assert taken


def test_few_rows_are_told_that_nobody_asked():
    X, y = people(250, children=0.0)
    model = DPGPRegressor(bounds=(-500, 1500), epsilon=1.0, learn=None, stages=None)
    release = model.set_params(insecure_seed=1).fit(X, y).release_
    assert not outside_asked(release)
    assert "is not known: too few rows" in said_of(release)["clipped"]
    shares = re.search(
        r"about (\S+) % of all, give or take (\S+) perc", said_of(release)["clipped"]
    )
    assert float(shares[1]) <= float(shares[2])


@pytest.mark.parametrize("grouped", [False, True])
def test_tables_in_passes_ask_as_well(grouped, tmp_path):
    X, y = people(6_000, children=0.1)
    groups = list(np.arange(6_000) // 2) if grouped else None
    rows = ArrayRows(X, y, groups=groups, chunk_rows=1_500)
    model = DPGPRegressor(
        bounds=(40, 200), epsilon=1.0, inducing=10, learn=None, stages=None, insecure_seed=2
    )
    release = model.fit_rows(rows).release_
    release.save(tmp_path / "asked.cloak")
    loaded = Release.load(tmp_path / "asked.cloak")
    [one] = outside_asked(loaded)
    assert loaded.verify(rows, measurement=loaded.measurements.index(one)) == pytest.approx(1.0)
    assert one.strategy.totals.sum() == pytest.approx(3_000 if grouped else 6_000)
    outside = one.question.how_many(one.answers.values, one.strategy.totals)
    truth = np.mean(one.question.place(y) + 0.5) * one.strategy.totals.sum()
    assert outside.sum() == pytest.approx(truth, abs=6 * one.answers.noise_sd)


def standing_out(release):
    """Return a release by whose answers all of one stratum lies outside, and nobody else."""
    [one] = outside_asked(release)
    sizes = one.strategy.totals
    values = np.where(np.arange(len(sizes)) == 1, 0.5, -0.5) * sizes
    answers = replace(one.answers, values=values[:, None])
    others = [
        replace(one, answers=answers) if each is one else each for each in release.measurements
    ]
    return replace(release, measurements=tuple(others)), one.strategy


def test_words_say_of_which_group_values_were_clipped():
    X, y = people(6_000, children=0.0)
    settings = {"bounds": (-500, 1500), "epsilon": 1.0, "learn": None, "stages": None}
    model = DPGPRegressor(**settings, inducing=10, insecure_seed=2)
    kept, strategy = standing_out(model.fit(X[:1500], y[:1500]).release_)
    own = strategy.X[strategy.matrix[1] > 0, 0]
    told = (
        f"of the {len(own):,} rows with x1 {own.min():.3g} to {own.max():.3g} they are about 100 %"
    )
    assert told in said_of(kept)["clipped"]
    passed, strategy = standing_out(model.fit_rows(ArrayRows(X, y)).release_)
    told = f"rows around x1 {strategy.strata.centres[1, 0]:.3g} they are about 100 %"
    assert told in said_of(passed)["clipped"]


# Several outputs.


def two_outputs(rows, *, children, seed=0):
    """Heights of people, and another output that is alike for all."""
    X, height = people(rows, children=children, seed=seed)
    other = np.random.default_rng(seed + 1).normal(5.0, 1.0, size=rows)
    return X, np.column_stack([other, height])


def outside_of(release):
    counted = [(release.counts_of(one), one) for one in release.entries.measurements]
    return [
        (count[0], count[1], one)
        for count, one in counted
        if count is not None and isinstance(count[1], OutsideQuestion)
    ]


@pytest.fixture(scope="module", params=["held", "passes", "grouped passes"])
def two_lost(request):
    rows = 1_200 if request.param == "held" else 4_000
    X, y = two_outputs(rows, children=0.1)
    model = DPGPMultiOutputRegressor(
        bounds=[(-200, 200), (40, 400)],
        epsilon=6.0,
        inducing=8,
        gap=0.1,
        learn=None,
        stages=None,
        insecure_seed=3,
    )
    if request.param == "held":
        return X, y, model.fit(X, y).release_
    groups = list(np.arange(rows)) if request.param == "grouped passes" else None
    return X, y, model.fit_rows(ArrayRows(X, y, groups=groups, chunk_rows=1_500)).release_


def test_the_second_of_two_outputs_is_asked_of_too(two_lost, tmp_path):
    X, y, release = two_lost
    release.save(tmp_path / "two.cloak")
    release = load(tmp_path / "two.cloak")
    asked = outside_of(release)
    assert {output for output, _, _ in asked} >= {0}
    assert release.units.bounds[0].width < 100
    for output, question, one in asked:
        sizes = one.strategy.totals
        assert sizes.sum() == pytest.approx(len(X))
        outside = question.how_many(one.answers.values, sizes)
        truth = np.sum(question.place(y[:, output]) + 0.5)
        off = 6 * one.answers.noise_sd * np.sqrt(len(sizes))
        assert outside.sum() == pytest.approx(truth, abs=off + 1)
    # Nobody loses the children: their interval reaches down to them, or is the declared one.
    assert release.units.bounds[1].lo < 120


def test_words_say_of_each_output_what_was_clipped(two_lost):
    _, _, release = two_lost
    facts = {fact.label: fact.text for section in describe(release) for fact in section.facts}
    assert "By noisy counts these are about" in facts["output 1"]
    unasked = replace(
        release,
        entries=replace(
            release.entries,
            measurements=tuple(
                one
                for one in release.entries.measurements
                if not isinstance(one.question, OutsideQuestion)
            ),
        ),
    )
    facts = {fact.label: fact.text for section in describe(unasked) for fact in section.facts}
    assert "is not known: too few rows" in facts["output 1"]
    assert "clipped, uncounted" not in facts["output 1"]
