"""The better noise by forecast, for several outputs and for classes: chosen before y is read."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cloakgp import DPGPClassifier, DPGPMultiOutputRegressor, DPGPRegressor, extend, refine
from cloakgp.fitting.defaults import choose_label_prior
from cloakgp.fitting.forecast import forecast_labels
from cloakgp.fitting.strategies import Budget, Query, choose_strategy, unit_noise_sd
from cloakgp.privacy.accounting import compose
from cloakgp.privacy.noise import GAUSSIAN, LAPLACE, NOISES
from cloakgp.privacy.noise_choice import budgets_at_equal_total, choose_noise
from cloakgp.privacy.questions.classes import Classes

PROJECT = Path(__file__).parents[2]
SPREAD = np.linspace(0.0, 10.0, 60)[:, None]


def law_of(release):
    return release.measurements[0].answers.noise


@pytest.mark.parametrize(("delta", "law"), [(1e-8, "laplace"), (0.05, "gaussian")])
@pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
def test_several_outputs_take_the_better(delta, law):
    y = np.column_stack([np.sin(SPREAD.ravel()), np.cos(SPREAD.ravel())])
    model = DPGPMultiOutputRegressor(
        bounds=[(-1, 1)] * 2, epsilon=1.0, delta=delta, stages=None, learn=None
    )
    assert law_of(model.fit(SPREAD, y).release_.entries) == law


@pytest.mark.parametrize(("delta", "law"), [(1e-8, "laplace"), (0.009, "gaussian")])
def test_classes_take_the_better(delta, law):
    """Many inputs need many questions, which overlap: these suit Gaussian noise."""
    X = np.random.default_rng(0).uniform(size=(100, 5))
    model = DPGPClassifier(classes=[0, 1], epsilon=0.3, delta=delta, learn=None)
    labels = (X[:, 0] > 0.5).astype(int)
    assert law_of(model.fit(X, labels).release_) == law


@pytest.mark.parametrize(
    ("share", "law"), [(0.89, "gaussian"), (0.91, "laplace"), (1.1, "laplace")]
)
def test_a_near_tie_is_laplace_noise(share, law):
    """Gaussian noise keeps less of what forecasts promise."""
    errors = {"gaussian": share, "laplace": 1.0}
    assert choose_noise("auto", epsilon=1.0, delta=1e-4, expected_error=errors.get) == law


def test_nothing_to_choose_from_is_not_forecast():
    for noise, delta, law in (("auto", 0.0, "laplace"), ("gaussian", 1e-4, "gaussian")):
        assert choose_noise(noise, epsilon=1.0, delta=delta, expected_error=None) == law


def test_a_choice_does_not_look_at_labels():
    model = DPGPClassifier(classes=[0, 1], epsilon=1.0, delta=1e-4, learn=None)
    laws = {
        law_of(model.fit(SPREAD, labels).release_)
        for labels in (np.zeros(60, dtype=int), np.arange(60) % 2)
    }
    assert len(laws) == 1


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_forecasts_of_labels_are_posterior_variances(count, noise):
    """Against dense algebra, with every question that the design asks."""
    classes = Classes(labels=tuple(range(count)))
    prior, likelihood = choose_label_prior(SPREAD, classes=classes, link_name="probit")
    budget = Budget(1.0, 0.0 if noise == "laplace" else 1e-3, noise=noise)
    settings = {"prior": prior, "likelihood": likelihood, "classes": classes, "budget": budget}
    found = forecast_labels(SPREAD, query=Query(SPREAD), criterion="bayes", **settings)
    linear = likelihood.linear_prior(prior, SPREAD)
    K = linear.kernel(SPREAD)
    R = choose_strategy(
        SPREAD,
        prior=prior,
        likelihood=likelihood,
        question=classes,
        query=Query(SPREAD),
        budget=budget,
        gap=1e-2,
    ).matrix
    longest = np.linalg.norm(R, ord=2 if noise == "gaussian" else 1, axis=0).max()
    S = R @ (K + np.diag(linear.observation_noise(SPREAD))) @ R.T
    S += (unit_noise_sd(classes, budget) * longest) ** 2 * np.eye(len(R))
    variances = np.diag(K - K @ R.T @ np.linalg.solve(S, R @ K))
    assert found.error == pytest.approx(np.sqrt(variances.mean()), rel=1e-6)


@pytest.mark.parametrize("spent", [[GAUSSIAN.whole(1.0, 1e-5)], [LAPLACE.whole(1.0, 1e-5)]])
def test_visits_compare_noises_at_equal_totals(spent):
    """The dearer one beside what was spent gets the part with which both cost the same."""
    epsilon = 2.0

    def total(name, budget):
        return compose(*spent, NOISES[name].whole(*budget)).epsilon

    whole = (epsilon, 1e-5)
    found = budgets_at_equal_total(NOISES, epsilon=epsilon, delta=1e-5, spent=spent)
    assert found["gaussian"] == whole
    assert found["laplace"][0] < 0.97 * epsilon
    assert total("laplace", found["laplace"]) == pytest.approx(total("gaussian", whole), rel=0.02)
    assert total("laplace", whole) > total("gaussian", whole)


def released(noise, *, delta=1e-3):
    y = np.sin(SPREAD.ravel())
    model = DPGPRegressor(
        bounds=(-1, 1), epsilon=0.5, delta=delta, noise=noise, stages=None, learn=None
    )
    return model.set_params(interval=False, insecure_seed=1).fit(SPREAD, y).release_, y


def preferring(law):
    """A choice of noise whose forecasts always find one law better by far."""

    def choose(noise, *, expected_error, **budget):
        del expected_error
        return choose_noise(noise, expected_error=lambda name: float(name != law), **budget)

    return choose


@pytest.mark.parametrize("first", ["gaussian", "laplace"])
@pytest.mark.parametrize("better", ["gaussian", "laplace"])
def test_people_who_are_asked_again_keep_their_noise(first, better, monkeypatch):
    """Whatever answers forecast, as the price would hang on them."""
    monkeypatch.setattr("cloakgp.fitting.visits.choose_noise", preferring(better))
    release, y = released(first)
    asked = {"epsilon": 0.5, "delta": 1e-3, "insecure_seed": 2}
    again = refine(release, y, **asked)
    assert again.measurements[-1].answers.noise == first
    assert extend(again, SPREAD, y, **asked).measurements[-1].answers.noise == first
    # A budget that does not allow it is no answer's choice.
    without = refine(release, y, epsilon=0.5, insecure_seed=2)
    assert without.measurements[-1].answers.noise == "laplace"
    # Other people pay for their own answers alone, and a limit holds for any prices.
    others = extend(release, SPREAD + 0.05, y, people="disjoint", **asked)
    assert others.measurements[-1].answers.noise == better
    within = refine(release.within(2.0, 0.02), y, **asked)
    assert within.measurements[-1].answers.noise == better


def test_a_law_that_answers_choose_is_no_sum():
    """After a Gaussian answer the law of more δ, in every case, against fixed ones; as docs say."""
    epsilon, delta = 0.5, 0.0125
    first = GAUSSIAN.whole(epsilon, delta)
    totals = {law.name: compose(first, law.whole(epsilon, delta)) for law in (GAUSSIAN, LAPLACE)}
    level = max(total.epsilon for total in totals.values())
    z = np.linspace(-12, 12, 200_001)
    weights = stats.norm.pdf(z)
    # Privacy losses of the first answer, and what is left of the level beside each.
    left = level - (first.mu**2 / 2 + first.mu * z)
    mu = GAUSSIAN.whole(epsilon, delta).mu
    gaussian = stats.norm.cdf(mu / 2 - left / mu) - np.exp(left) * stats.norm.cdf(
        -mu / 2 - left / mu
    )
    laplace = np.select(
        [left >= epsilon, left <= -epsilon],
        [np.zeros_like(left), -np.expm1(left)],
        -np.expm1((left - epsilon) / 2),
    )

    def mean(values):
        return float(np.trapezoid(weights * values, z))

    assert max(mean(gaussian), mean(laplace)) <= delta * (1 + 1e-6)
    ratio = mean(np.maximum(gaussian, laplace)) / delta
    assert ratio == pytest.approx(1 + 1 / 7, abs=0.005)
    assert "pass the stated δ by a seventh" in (PROJECT / "docs" / "noise.md").read_text(
        encoding="utf-8"
    )


def test_why_a_delta_was_not_used_is_told_of_later_visits():
    release, y = released("laplace", delta=1e-12)
    again = refine(release, y, epsilon=0.5, delta=1e-12, insecure_seed=2)
    assert "that of earlier answers, or expected to be" in again.provenance.unused_delta(
        again.guarantee
    )
