"""Plans say beforehand what releases turn out to be, and read no private entry."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.fitting.schedule import whole_guarantee
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy import Guarantee
from cloakgp.privacy.guesses import right_guess, right_guess_of_any
from cloakgp.privacy.noise import NOISES
from cloakgp.report.measurements import describe_design
from cloakgp.report.worth import middle_of
from cloakgp.utils.formatting import percent

ROWS = 80
X = np.random.default_rng(2).uniform(0, 10, size=(ROWS, 2))
PEOPLE = [number // 4 for number in range(ROWS)]
BUDGET = {"epsilon": 1.0, "delta": 1e-3}


class Unreadable:
    """Something in the place of private outputs that fails whoever looks at it."""

    def __len__(self):
        return ROWS

    def __array__(self, *_, **__):
        raise AssertionError("a private entry was read")


def facts(plan):
    return dict(plan.facts())


@pytest.mark.parametrize("people", [None, PEOPLE], ids=["rows", "people"])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_a_release_is_as_planned(people, delta):
    model = DPGPRegressor(
        bounds=(-3, 3), epsilon=1.0, delta=delta, learn=None, interval=False, insecure_seed=1
    )
    plan = model.plan(X, groups=people, epsilons=())
    release = model.fit(X, np.sin(X[:, 0]), groups=people).release_
    assert len(release.measurements) == plan.stages
    asked = sum(measurement.strategy.n_answers for measurement in release.measurements)
    assert asked == pytest.approx(plan.questions, rel=0.5)
    assert 0.5 < len(release.to_bytes()) / plan.file_bytes < 2
    _, sd = release.predict(X, return_std=True)
    assert plan.forecast.error == pytest.approx(np.sqrt(np.mean(sd**2)), rel=0.25)
    assert plan.noise == release.measurements[0].answers.noise


@pytest.mark.parametrize(
    ("changed", "scale"),
    [
        ({}, ""),
        ({"output_transform": "log"}, "of the logarithm (0.1 is a factor of 1.1 either way): "),
        ({"output_transform": "logit", "bounds": (0.01, 0.99)}, "of the log odds: "),
        ({"likelihood": "counts", "bounds": (0, 30)}, "of the square root of a count (chance"),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_what_is_predicted_is_called_as_the_release_will_call_it(changed, scale, declared):
    """Of a transformed output it is a median, and errors are on the scale of the transform."""
    scatter = "overdispersion" if "likelihood" in changed else "noise_variance"
    settings = {"bounds": (1, 100), **BUDGET, **changed}
    if declared:
        settings[scatter] = 0.2
    plan = DPGPRegressor(**settings).plan(X, epsilons=())
    release = DPGPRegressor(**settings).fit(X, np.full(ROWS, settings["bounds"][1] / 2)).release_
    middle = middle_of(release).replace("rate", "average")
    told = facts(plan)["expected error"]
    assert told.startswith(scale)
    assert f"The predicted {middle} of people" in told
    if not declared:
        assert f"redictions of the {middle} of people" in plan.lead()


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_questions_that_are_not_certified_closely_are_told_so_before_and_after(noise):
    delta = 0.0 if noise == "laplace" else 1e-3
    model = DPGPRegressor(
        bounds=(-3, 3), epsilon=1.0, delta=delta, noise=noise, stages=None, interval=False,
        learn=None, insecure_seed=1,
    )  # fmt: skip
    plan = model.plan(X, epsilons=())
    certified = plan.forecast.release.measurements[0].strategy.certificate.gap
    short = certified > 0.01
    assert short == (noise == "laplace")
    assert ("not certified to be within 1 % of the best" in facts(plan)["questions"]) == short
    assert percent(certified) in facts(plan)["questions"]
    release = model.fit(X, np.sin(X[:, 0])).release_
    said = describe_design(release.measurements[0].strategy.certificate)
    assert ("is the best bound known" in said) == short


def test_rows_in_passes_are_told_that_bounds_for_laplace_noise_do_not_close():
    rows = ArrayRows(X, Unreadable(), chunk_rows=30)
    for noise in ("gaussian", "laplace"):
        delta = 0.0 if noise == "laplace" else 1e-3
        model = DPGPRegressor(bounds=(-3, 3), epsilon=1.0, delta=delta, noise=noise, inducing=6)
        told = "under Laplace noise no known bound" in facts(model.plan(rows))["questions"]
        assert told == (noise == "laplace")


def test_groups_are_counted_and_cost_error():
    model = DPGPRegressor(bounds=(-3, 3), **BUDGET)
    alone, together = (model.plan(X, groups=whose, epsilons=()) for whose in (None, PEOPLE))
    assert together.forecast.error > 1.2 * alone.forecast.error
    assert (together.table.people, together.table.most_rows) == (20, 4)
    told = facts(together)["rows"]
    assert "80 of 20 people: 4 each on average, and 4 at most" in told
    assert told.endswith("of whichever person weighs most in the questions.")
    assert "which rows are the same person" in facts(together)["becomes public"]


def test_several_budgets_are_side_by_side():
    plan = DPGPRegressor(bounds=(-3, 3), **BUDGET).plan(X[:20], epsilons=[0.3, 3])
    assert [each.epsilon for each in plan.forecasts] == [0.3, 1.0, 3.0]
    errors = [each.error for each in plan.forecasts]
    assert errors == sorted(errors, reverse=True)
    assert len(plan.budgets()) == 4
    assert str(plan).count("\n") >= 10
    assert json.loads(json.dumps(plan.to_dict()))["forecasts"][0]["error"] == errors[0]


def test_how_far_people_differ_is_not_made_up():
    """A tenth of the bounds was taken for it, whatever the table."""
    model = DPGPRegressor(bounds=(-3, 3), **BUDGET)
    plan = model.plan(X[:20], epsilons=[3.0])
    assert "for one person cannot be forecast" in facts(plan)["expected error"]
    assert [line[3] for line in plan.budgets()[1:]] == ["not known"] * 2
    assert [each["output_error"] for each in plan.to_dict()["forecasts"]] == [None] * 2
    declared = model.set_params(noise_variance=0.49).plan(X[:20], epsilons=())
    found = declared.forecast
    assert found.output_error == pytest.approx(np.hypot(found.error, 0.7))
    told = f"off by {found.output_error:.3g}; a constant guess, by "
    assert told + f"{np.hypot(found.prior_error, 0.7):.3g}." in facts(declared)["expected error"]


@pytest.mark.parametrize("classes", [["a", "b"], ["a", "b", "c"]])
def test_of_classes_the_error_is_not_known_and_all_else_is(classes):
    model = DPGPClassifier(classes=classes, **BUDGET, learn=None, insecure_seed=1)
    plan = model.plan(X)
    assert "depends on the labels" in facts(plan)["expected error"]
    assert set(facts(plan)) == set(facts(DPGPRegressor(bounds=(0, 2), **BUDGET).plan(X)))
    release = model.fit(X, np.array(classes)[np.arange(ROWS) % len(classes)]).release_
    asked = sum(measurement.answers.values.size for measurement in release.measurements)
    assert asked == plan.questions
    assert 0.6 < len(release.to_bytes()) / plan.file_bytes < 1.6
    assert plan.noise == release.measurements[0].answers.noise
    assert plan.budgets() == (plan.budgets()[0],)


@pytest.mark.parametrize("people", [None, PEOPLE], ids=["rows", "people"])
def test_a_plan_of_classes_knows_whether_a_delta_will_be_used(people):
    """As the release does: by public inputs alone."""
    model = DPGPClassifier(classes=["a", "b"], epsilon=1.0, delta=1e-6, insecure_seed=1)
    plan = model.plan(X, groups=people)
    release = model.fit(X, np.where(X[:, 0] > 5, "a", "b"), groups=people).release_
    assert (plan.noise, release.measurements[0].answers.noise) == ("laplace", "laplace")
    assert "with no δ. δ = 1e-06 is allowed, and none of it" in facts(plan)["protected"]
    assert plan.guess == pytest.approx(right_guess(release.guarantee))


@pytest.mark.parametrize("of", ["numbers", "classes"])
def test_rows_in_chunks_are_planned_without_private_entries(of):
    rows = ArrayRows(X, Unreadable(), input_names=("a", "b"), groups=PEOPLE, chunk_rows=30)
    if of == "classes":
        rows = ArrayRows(X, Unreadable(), input_names=("a", "b"), chunk_rows=30)
        model = DPGPClassifier(classes=["a", "b"], **BUDGET, inducing=6, insecure_seed=1)
        others = ArrayRows(X, np.where(X[:, 0] > 5, "a", "b"))
    else:
        model = DPGPRegressor(bounds=(-3, 3), **BUDGET, inducing=6, insecure_seed=1)
        others = ArrayRows(X, np.sin(X[:, 0]))
    plan = model.plan(rows)
    assert plan.how.by_passes
    assert plan.forecasts == ()
    assert plan.table.rows == ROWS
    assert "a, b" in facts(plan)["becomes public"]
    assert "row by row" not in facts(plan)["becomes public"]
    if of == "numbers":
        assert plan.table.people == 20
        assert "read in passes" in facts(plan)["expected error"]
    release = model.fit_rows(others).release_
    assert max(len(one.answers.values) for one in release.measurements) <= plan.questions
    assert len(release.to_bytes()) < 3 * plan.file_bytes


def test_stages_numbers_and_size_of_rows_in_passes_are_as_planned():
    """One stage, its numbers and its sums alone were planned, whatever came."""
    rng = np.random.default_rng(3)
    inputs = rng.uniform(0, 10, (4000, 2))
    rows = ArrayRows(inputs, np.sin(inputs[:, 0]) + 0.3 * rng.normal(size=4000))
    model = DPGPRegressor(bounds=(-30, 30), epsilon=0.3, inducing=40, insecure_seed=1)
    plan = model.plan(rows)
    assert (plan.stages, plan.questions) == (3, 120)
    assert facts(plan)["questions"].startswith("some 120 numbers, with noise, in up to 3 stages.")
    assert "the file will have up to about " in facts(plan)["takes"]
    release = model.fit_rows(rows).release_
    located = [one for one in release.measurements if one.question.locates]
    assert 1 < len(located) <= plan.stages
    assert sum(one.strategy.n_answers for one in located) <= plan.questions
    assert 0.4 < len(release.to_bytes()) / plan.file_bytes < 1.2
    alone = model.set_params(stages=None, learn=None).plan(rows)
    assert "in one stage." in facts(alone)["questions"]
    assert "the file will have about " in facts(alone)["takes"]
    assert alone.seconds < plan.seconds


def test_tables_of_more_than_numbers_are_planned_by_their_columns():
    table = pd.DataFrame({"age": X[:, 0], "job": ["cook", "clerk"] * (ROWS // 2)})
    plan = DPGPRegressor(bounds=(-3, 3), **BUDGET).plan(table, epsilons=())
    assert plan.table.columns == ("age", "job")
    assert plan.table.n_inputs == len(plan.table.names) == 4


@pytest.mark.parametrize(("noise", "delta"), [("gaussian", 1e-3), ("laplace", 0.0)])
def test_guesses_are_bounded(noise, delta):
    """By the ε–δ curve of one answer; without a known noise by that of any such mechanism."""
    said = right_guess(whole_guarantee(Budget(1.0, delta, noise=noise)))
    if noise == "gaussian":
        known = Guarantee(epsilon=1.0, delta=delta, mu=1 / NOISES[noise].unit_sd(1.0, delta))
    else:
        known = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(0.5, 0.5))
    assert (1 + known.delta_at(0.0)) / 2 <= said + 1e-9
    assert said <= right_guess_of_any(1.0, delta)


def test_bounds_of_zero_and_one_are_remarked_on_whatever_the_column_holds():
    told = [
        facts(DPGPRegressor(bounds=bounds, **BUDGET).plan(X, epsilons=())).get("remark", "")
        for bounds in ((0, 1), (0, 2))
    ]
    assert "declare classes" in told[0]
    assert told[1] == ""
