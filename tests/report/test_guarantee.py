"""Bounds on guesses and tests hold against the best attacker, found by going through them all."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cloakgp import DPGPRegressor, Guarantee, Release, refine
from cloakgp.fitting.visit_plan import plan_visit
from cloakgp.plots import GuaranteeDisplay
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.report.describe import describe
from cloakgp.report.guarantee import guarantee_facts, power_of_tests, right_guess
from cloakgp.report.summary import summarise
from cloakgp.utils.formatting import percent

EPSILON, LAPLACE = 0.7, "laplace"
# Randomised response with e^ε to 1, which is the worst that ε allows.
LAW = np.array([np.exp(EPSILON), 1.0]) / (1 + np.exp(EPSILON))


class Response(Guarantee):
    """The exact curve of randomised response."""

    def delta_at(self, epsilon):
        return float(np.maximum(LAW - np.exp(epsilon) * LAW[::-1], 0).sum())


WORST = Response(epsilon=EPSILON, delta=0.0, mu=0.0, laplace=(EPSILON,))


@pytest.mark.parametrize("belief", [0.0, 0.05, 0.2, 0.4, 0.5, 0.8, 1.0])
def test_guesses_are_those_of_the_best_of_all_answers(belief):
    best = np.maximum(belief * LAW, (1 - belief) * LAW[::-1]).sum()
    assert right_guess(WORST, belief=belief) == pytest.approx(best)


def test_no_test_finds_more():
    for accused in ([], [0], [1], [0, 1]):
        alarms, power = LAW[::-1][accused].sum(), LAW[accused].sum()
        assert power <= power_of_tests(WORST, false_alarms=float(alarms)) + 1e-12


def test_of_a_budget_that_protects_nobody_no_bound_is_told():
    """Where e^ε is no number any more."""
    guarantee = Guarantee(epsilon=1000.0, delta=0.0, mu=0.0, laplace=(1000.0,))
    assert power_of_tests(guarantee, false_alarms=0.05) == pytest.approx(1.0)


def test_the_readme_says_what_is_guessed_under_either_noise():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    said = " ".join(re.sub(r"<!--.*?-->", "", readme).split())
    pure = np.e / (1 + np.e)
    mu = 1.0 / exact_noise_multiplier(1.0, 1e-3)
    gaussian = right_guess(Guarantee(epsilon=1.0, delta=1e-3, mu=mu))
    assert f"guesses right at most {percent(pure)} of the time" in said
    assert f"with Gaussian noise at δ = 0.001, {percent(gaussian)}." in said


@pytest.mark.parametrize(
    ("delta", "noise", "told"),
    [
        (1e-6, "auto", "was expected to be better or nearly as good"),
        (1e-6, "laplace", "was asked for"),
        (0.0, "auto", None),
        (1e-6, "gaussian", None),
    ],
)
@pytest.mark.parametrize("stages", [None, "auto"])
def test_a_delta_that_was_allowed_and_not_used_is_told_in_a_sentence(
    delta, noise, told, stages, tmp_path
):
    model = DPGPRegressor(
        bounds=(0, 1), epsilon=1.0, delta=delta, noise=noise, stages=stages, interval=False
    )
    X = np.linspace(0, 1, 30)[:, None]
    release = model.fit(X, np.linspace(0, 1, 30)).release_
    assert release.measurements[0].answers.noise == ("gaussian" if noise == "gaussian" else LAPLACE)
    release.save(tmp_path / "r.cloak")
    loaded = Release.load(tmp_path / "r.cloak")
    guarantee = describe(loaded)[2].facts[0].text
    plan = dict(model.plan(X, epsilons=()).facts())["protected"]
    for text in (guarantee, plan, loaded._repr_html_(), model._repr_html_()):
        assert ("none of it" in text) == (told is not None)
    if told is not None:
        allowed = f"δ = 1e-06 was allowed, and none of it was used: Laplace noise {told}, and needs"
        assert allowed in guarantee
        assert allowed in loaded._repr_html_()
        assert f"will be used: Laplace noise {told.replace('was', 'is')}, and needs none." in plan


def test_a_delta_that_a_later_visit_used_is_not_told_to_be_unused():
    model = DPGPRegressor(
        bounds=(0, 1), epsilon=1.0, delta=1e-6, noise="laplace", stages=None, interval=False
    )
    X, y = np.linspace(0, 1, 30)[:, None], np.linspace(0, 1, 30)
    first = model.fit(X, y).release_
    pure = refine(first, y, epsilon=0.5)
    assert "δ = 1e-06 was allowed" in describe(pure)[2].facts[0].text
    mixed = refine(first, y, epsilon=0.5, delta=1e-6, noise="gaussian")
    assert "none of it" not in describe(mixed)[2].facts[0].text


def test_parts_of_a_guarantee_are_told_rounded_up():
    parts = [Guarantee(epsilon=one, delta=0.0, mu=0.0, laplace=(one,)) for one in (0.10004, 0.2301)]
    whole = Guarantee(epsilon=0.33014, delta=0.0, mu=0.0, laplace=(0.10004, 0.2301))
    facts = {fact.label: fact.text for fact in guarantee_facts(whole, output="y", parts=parts)}
    told = re.findall(r"ε = ([\d.]+?)[,.](?= |$)", facts["composition"].split("each")[0])
    assert len(told) == 2
    assert all(
        float(said) >= part.epsilon > float(said) - 1e-3
        for said, part in zip(told, parts, strict=True)
    )
    assert "each rounded up" in facts["composition"]


def test_guesses_of_several_visits_hold_however_prices_were_chosen():
    """Who asks again only after a telling answer, at next to no price, is right as ε allows."""
    epsilon, next_to_nothing = 2.0, 1e-3
    both = Guarantee(epsilon=2.001, delta=0.0, mu=0.0, laplace=(epsilon, next_to_nothing))
    facts = {
        fact.label: fact.text
        for fact in guarantee_facts(both, output="y", parts=[both, both], visits=2)
    }
    assert "however the price of each visit was chosen" in facts["visits"]
    told = float(re.search(r"right at most ([\d.]+) %", facts["a guess"])[1]) / 100
    # Laplace noise of scale 1/ε on values that differ by 1: of answers beyond both values nine in
    # ten or so are of the nearer, e^ε to 1.
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400_000)
    answers = truth + rng.laplace(scale=1 / epsilon, size=len(truth))
    telling = (answers < 0) | (answers > 1)
    right = np.mean((answers > 0.5)[telling] == truth[telling])
    assert right == pytest.approx(np.exp(epsilon) / (1 + np.exp(epsilon)), abs=0.005)
    assert told >= right - 0.005
    fixed = {fact.label: fact.text for fact in guarantee_facts(both, output="y", parts=[])}
    assert float(re.search(r"right at most ([\d.]+) %", fixed["a guess"])[1]) / 100 < right - 0.05


def test_a_plan_and_a_summary_of_a_later_visit_say_the_same():
    X, y = np.linspace(0, 1, 30)[:, None], np.linspace(0, 1, 30)
    model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, stages=None, interval=False)
    first = model.fit(X, y).release_
    plan = plan_visit(first, None, new_rows=False, rows=30, grouped=False, epsilon=0.5)
    again = refine(first, y, epsilon=0.5)
    expected = np.exp(1.5) / (1 + np.exp(1.5))
    assert plan.guess == pytest.approx(expected, abs=1e-6)
    assert summarise(again)["guarantee"]["right_guess_at_most"] == pytest.approx(expected, abs=1e-6)
    assert GuaranteeDisplay.from_release(again).right.max() == 1.0
    even = np.interp(0.5, *_curve(again))
    assert even == pytest.approx(expected, abs=1e-3)


def _curve(release):
    display = GuaranteeDisplay.from_release(release)
    return display.beliefs, display.right
