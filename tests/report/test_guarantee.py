"""What is said of a guarantee is so."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from cloakgp import DPGPClassifierPrivateInputs, DPGPRegressor, Guarantee, Release, refine
from cloakgp.fitting.visit_plan import plan_visit
from cloakgp.plots import GuaranteeDisplay
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.guesses import right_guess
from cloakgp.report.describe import describe
from cloakgp.report.guarantee import guarantee_facts
from cloakgp.report.summary import summarise
from cloakgp.utils.formatting import percent

LAPLACE = "laplace"


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


def test_deltas_are_told_rounded_up():
    delta = 1.00004e-6
    part = Guarantee(epsilon=1.0, delta=delta, mu=1 / exact_noise_multiplier(1.0, delta))
    facts = {each.label: each.text for each in guarantee_facts(part, output="y", parts=[part] * 2)}
    pairs = re.findall(r"\(1, ([\d.e-]+)\)", facts["composition"] + facts["guarantee"])
    pairs += re.findall(r"δ = ([\d.e-]+) \(", facts["in words"])
    pairs += re.findall(r">([\d.]+e-06)<", part._repr_html_())
    assert len(pairs) == 5
    assert all(delta <= float(told) <= delta * 1.001 for told in pairs)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_what_is_compared_is_what_the_neighbours_are(neighbours):
    model = DPGPClassifierPrivateInputs(
        input_bounds=[(0, 1)],
        classes=["no", "yes"],
        epsilon=1.0,
        delta=1e-3,
        neighbours=neighbours,
    )
    X = np.linspace(0, 1, 40)[:, None]
    release = model.fit(X, np.where(X[:, 0] > 0.5, "yes", "no")).release_
    facts = {fact.label: fact.text for section in describe(release) for fact in section.facts}
    plan = dict(model.plan(40, n_inputs=1).facts())
    present = neighbours == "add-remove"
    ends = "in the table as that it is not"
    assert (ends in facts["a guess"]) == (ends in plan["a guess"]) == present
    assert ("with a person's row as without it" in facts["in words"]) == present
    assert ("for one value of a person's row as for another" in facts["in words"]) == (not present)
    assert ("two values" in facts["beliefs"]) == (not present)
    # A row that goes and one that comes are two steps, each of μ.
    assert ("two values" in facts) == present
    twice = Guarantee(epsilon=1.0, delta=1e-3, mu=2 * release.guarantee.mu).epsilon_at(1e-3)
    told = facts["two values" if present else "several rows"]
    said = float(re.search(r"ε = ([\d.]+) at the same δ", told)[1])
    assert twice <= said <= twice + 0.01


def stopped_odds(mu, epsilon, *, visits):
    """How often odds move by more than e^ε for an adversary who then asks no more.

    Each visit adds N(m²/2, m²) to the logarithm of the likelihood ratio, with m² = μ²/visits: its
    density within ±ε, on a grid of places (the trapezium rule).
    """
    places = np.linspace(-epsilon, epsilon, 1001)
    weights = np.full(len(places), places[1] - places[0])
    weights[[0, -1]] /= 2
    m = mu / np.sqrt(visits)
    density = norm.pdf(places, m**2 / 2, m)
    steps = norm.pdf(places[:, None] - places[None, :], m**2 / 2, m)
    for _ in range(visits - 1):
        density = steps @ (weights * density)
    return 1 - float(weights @ density)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-2), (1.0, 1e-3), (0.2, 1e-3), (3.0, 1e-6)])
def test_odds_of_who_stops_when_they_have_moved_are_told(epsilon, delta):
    whole = Guarantee(epsilon=epsilon, delta=delta, mu=1 / exact_noise_multiplier(epsilon, delta))
    part = replace(whole, mu=whole.mu / np.sqrt(20))
    once, adaptive = (
        float(re.search(r"probability ([\d.]+) % at most", facts["beliefs"])[1]) / 100
        for facts in (
            {fact.label: fact.text for fact in guarantee_facts(whole, output="y", parts=parts)}
            for parts in ([whole], [part] * 20)
        )
    )
    assert once == pytest.approx(stopped_odds(whole.mu, epsilon, visits=1), rel=0.01)
    found = stopped_odds(whole.mu, epsilon, visits=20)
    assert 1.2 * once < found < adaptive < 3 * found


def test_odds_are_told_of_who_knows_all_others_and_only_where_that_says_much():
    strong = Guarantee(epsilon=1.0, delta=1e-3, mu=1 / exact_noise_multiplier(1.0, 1e-3))
    facts = {each.label: each.text for each in guarantee_facts(strong, output="y", parts=[strong])}
    assert facts["beliefs"].startswith("for an attacker who knows everything but one person's y, ")
    weak = Guarantee(epsilon=0.2, delta=1e-2, mu=1 / exact_noise_multiplier(0.2, 1e-2))
    labels = [each.label for each in guarantee_facts(weak, output="y", parts=[weak, weak])]
    assert "beliefs" not in labels
    assert "a guess" in labels


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
