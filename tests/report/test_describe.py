"""What is said about a release is true, and says everything that matters."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from cloakgp import DPGPMultiOutputRegressor, DPGPRegressor, Release
from cloakgp.models import default_kernel
from cloakgp.release.io.codec import to_tree
from cloakgp.report.columns import input_names
from cloakgp.report.describe import describe, headline
from cloakgp.report.facts import Fact, Section, as_text
from cloakgp.utils.formatting import ceiling, odds_factor, one_in, percent


def _release(*, width: int = 2, names: tuple[str, ...] = (), **options: object) -> Release:
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 50, size=(40, width))
    settings = {
        "bounds": (-3.0, 3.0),
        "epsilon": 1.0,
        "delta": 0.01,
        "noise": "gaussian",
        "criterion": "trace",
        "learn": None,
        **options,
    }
    made = DPGPRegressor(**settings).fit(X, np.sin(X[:, 0])).release_
    return replace(made, input_names=names, output_name="height")


def _facts(release: Release) -> dict[str, str]:
    return {fact.label: fact.text for section in describe(release) for fact in section.facts}


def test_everything_a_custodian_needs_is_there():
    text = as_text(describe(_release(names=("age", "weight"))))
    for needed in (
        "(ε, δ) = (1, 0.01)",
        "μ = 0.533",
        "1 in 100",
        "e^ε = 2.72",
        "age, weight",
        "any other from -3 to 3",
        "Matern",
        "the exact Gaussian process",
        "rows: 40",
        "least mean square noise",
        "height",
    ):
        assert needed in text, needed
    assert "INSECURE" not in text
    assert "NOT PRIVATE" not in text


def test_amounts_are_not_told_in_powers_of_ten():
    incomes = _release(bounds=(0.0, 2e6), names=("age", "weight"))
    told = as_text(section for section in describe(incomes) if section.title != "Prior")
    assert "any other from 0 to 2,000,000" in told
    assert "e+" not in told
    model = DPGPRegressor(bounds=(0.0, 2e6), epsilon=1.0)
    plan = str(model.plan(np.linspace(0, 10, 30)[:, None], epsilons=[]))
    assert "0 to 2,000,000" in plan
    assert "e+" not in plan


def test_guesses_tests_and_beliefs_are_those_of_gaussian_privacy():
    release = _release()
    mu, facts = release.guarantee.mu, _facts(release)
    assert percent(norm.cdf(mu / 2)) in facts["a guess"]
    assert percent(norm.cdf(norm.ppf(0.05) + mu)) in facts["a test"]
    # The privacy loss is N(μ²/2, μ²); simulated here, and told there in closed form.
    losses = np.random.default_rng(0).normal(mu**2 / 2, mu, size=400_000)
    exceeded = float((np.abs(losses) > 1.0).mean())
    told = float(facts["beliefs"].split("probability ")[1].split(" %")[0]) / 100
    assert told == pytest.approx(exceeded, abs=3e-3)
    assert told > release.guarantee.delta


def test_other_pairs_of_the_guarantee_are_rounded_up():
    release = _release()
    for pair in _facts(release)["the same, at other δ"].split("; "):
        epsilon, delta = (float(part.split(" = ")[1]) for part in pair.split(" at "))
        assert release.guarantee.delta_at(epsilon) <= delta
        assert release.guarantee.delta_at(epsilon - 0.02) > delta


def test_two_rows_of_a_person_cost_more():
    release = _release()
    told = float(_facts(release)["several rows"].split("ε = ")[1].split(" ")[0])
    doubled = replace(release.guarantee, mu=2 * release.guarantee.mu)
    assert told == pytest.approx(doubled.epsilon_at(0.01), rel=5e-3)


def test_noise_is_in_output_units():
    release = _release()
    facts = _facts(release)
    assert f"sd {release.measurements[0].answers.noise_sd:.4g}" in facts["answers"]
    raw = math.sqrt(np.diag(release.published().noise_cov).mean())
    assert f"noise of {raw:.4g} (root mean square)" in facts["answers"]


def test_combined_releases_tell_parts_and_total():
    one, other = _release(), _release(criterion="logdet")
    both = one.combine(other)
    facts = _facts(both)
    assert "(ε, δ) = (1.59, 0.01)" in facts["guarantee"]
    assert "2 measurements, of (1, 0.01), (1, 0.01)" in facts["composition"]
    assert {"answers 1", "design 1", "answers 2", "design 2"} <= set(facts)
    assert "least volume" in facts["design 2"]
    assert facts["rows"] == "40"
    apart = one.combine(other, same_rows=False)
    assert _facts(apart)["rows"] == "40 + 40, in 2 tables"
    assert len(apart.known_inputs) == 80


def test_differing_bounds_are_all_told():
    one, other = _release(mean=0.0), _release(bounds=(-1.0, 8.0), mean=0.0)
    other = replace(other, prior=one.prior)
    both = one.combine(other)
    assert both.output_bounds == (-3.0, 8.0)
    assert "-3 to 3 and -1 to 8" in _facts(both)["height"]


def test_seeded_noise_is_told_first_and_loudly():
    release = _release(insecure_seed=1)
    first = describe(release)[0]
    assert first.title == "NOT PRIVATE"
    assert "NOT PRIVATE" in first.facts[0].text
    assert "Do not publish" in first.facts[0].text
    assert "FIXED SEED" in _facts(release)["answers"]
    assert headline(release) == "INSECURE: seeded noise, not private"
    assert headline(release.combine(_release())).startswith("INSECURE")


def test_sparse_priors_are_told():
    facts = _facts(_release(inducing=5, noise_variance=4.0, mean=1.0))
    assert facts["approximation"] == "FITC, with 5 inducing inputs."
    assert facts["noise sd"].startswith("2,")
    assert facts["mean"] == "1"


def test_asking_nothing_costs_nothing():
    release = _release()
    (one,) = release.measurements
    silent = replace(
        one,
        strategy=replace(
            one.strategy,
            matrix=np.zeros((0, 40)),
            reconstruction=np.zeros((len(one.strategy.X_query), 0)),
        ),
        answers=replace(
            one.answers,
            values=np.zeros((0, 1)),
            noise_sd=0.0,
            guarantee=replace(one.answers.guarantee, mu=0.0, answers=0, coarseness=0.0),
        ),
    )
    facts = _facts(replace(release, measurements=(silent,)))
    assert "nothing depends on any output" in facts["guarantee"]
    assert facts["answers"] == "nothing was asked."
    both = _facts(replace(release, measurements=(silent, one)))
    spent = ceiling(one.guarantee.epsilon, digits=3)
    assert both["composition"].startswith(f"2 measurements, of ε = 0 (nothing asked), ({spent}, ")
    assert f"(ε, δ) = ({spent}, " in both["guarantee"]


def test_inputs_without_names_get_some():
    assert input_names(_release(width=3)) == ("x1", "x2", "x3")
    assert input_names(_release(width=1, names=("age",))) == ("age",)


def test_text_is_wrapped():
    text = as_text([Section("Noise", (Fact("answers", "word " * 50),))], width=40)
    assert max(map(len, text.splitlines())) <= 40


@pytest.mark.parametrize("value", [1e-12, 0.123449, 0.9999, 1.0, 2.7182818, 999.4, 12345.6])
def test_ceilings_are_never_below(value):
    told = float(ceiling(value).replace(",", ""))
    assert value * (1 - 1e-9) <= told <= value * 1.011


def test_numerals_at_their_ends():
    assert ceiling(0.0) == "0"
    assert ceiling(math.inf) == "inf"
    assert odds_factor(0.0) == "1"
    assert odds_factor(5000.0) == "10^2172"
    assert one_in(0.001) == " (1 in 1,000)"
    # Numbers without full precision, as a tiny δ may be.
    for least in (5e-324, 1e-310):
        assert ceiling(least, digits=4) == "2.226e-308"
        assert one_in(least) == ""


def test_learning_that_changed_nothing_says_so():
    """At a tiny budget the answers tell nothing apart, and the declared values stay."""
    X = np.linspace(0, 10, 40)[:, None]
    budget = {"epsilon": 0.01, "delta": 1e-6, "kernel": default_kernel(X, width=1.0)}
    release = DPGPRegressor(bounds=(0, 1), **budget).fit(X, X[:, 0] / 10).release_
    assert len(release.learned) == 1
    assert _facts(release)["learned"].startswith("nothing")


@pytest.mark.parametrize(("epsilon", "stays"), [(0.3, False), (1.0, True)])
def test_priors_that_are_weighed_are_told_from_values_that_were_fitted(epsilon, stays):
    """Few answers: the default prior and those of smaller scales, one of which has most weight."""
    X = np.linspace(0, 10, 40)[:, None]
    budget = {"epsilon": epsilon, "delta": 1e-6, "insecure_seed": 0}
    release = DPGPRegressor(bounds=(0, 1), **budget).fit(X, X[:, 0] / 10).release_
    assert (to_tree(release.fitted_prior) == to_tree(release.prior)) == stays
    told = _facts(release)["learned"].lower()
    assert "predictions average over 3 " in told
    assert ("the declared values are those of most weight" in told) == stays
    assert ("were fitted to the noisy answers" in told) != stays


def test_noise_that_varies_with_the_inputs_is_said_with_numbers():
    X = np.random.default_rng(2).uniform(0, 8, size=(250, 1))
    y = np.sin(X[:, 0]) + 0.1 * np.exp(X[:, 0] / 5) * np.random.default_rng(3).normal(size=250)
    settings = {"epsilon": 4.0, "delta": 1e-3, "inducing": 8, "insecure_seed": 1}
    release = DPGPRegressor(bounds=(-3, 3), **settings).fit(X, y).release_
    prior, facts = release.fitted_prior, _facts(release)
    noise = np.sqrt(prior.observation_noise(prior.scatter.centres))
    assert facts["noise sd"].startswith(f"{noise.min():.3g} to {noise.max():.3g}, of each output")
    text = as_text(describe(release))
    assert "which varies with the inputs" in " ".join(text.split())
    assert "one question about each part of the rows" in " ".join(text.split())


def test_how_far_values_lie_is_told_of_the_outputs_and_not_of_their_unit():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 1))
    model = DPGPMultiOutputRegressor(bounds=[(0, 1), (0, 10)], epsilon=8.0, learn="map")
    release = model.fit(X, X * [1, 10] + rng.normal(scale=[0.1, 1.0], size=(200, 2))).release_
    answers = [text for label, text in _facts(release).items() if label.startswith("answers")]
    assert any("how far values of the outputs lie" in text for text in answers)
    assert any("in units of widths of the outputs'" in text for text in answers)
    assert not any("values of widths" in text for text in answers)
