"""The better noise by forecast, for several outputs and for classes: chosen before y is read."""

import numpy as np
import pytest

from cloakgp import DPGPClassifier, DPGPMultiOutputRegressor, DPGPRegressor, refine
from cloakgp.fitting.defaults import choose_label_prior
from cloakgp.fitting.forecast import forecast_labels
from cloakgp.fitting.strategies import Budget, Query, choose_strategy, unit_noise_sd
from cloakgp.privacy.accounting import compose
from cloakgp.privacy.noise import GAUSSIAN, LAPLACE, NOISES
from cloakgp.privacy.noise_choice import budgets_at_equal_total, choose_noise
from cloakgp.privacy.questions.classes import Classes

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


@pytest.mark.parametrize("first", ["gaussian", "laplace"])
def test_a_visit_counts_what_composes(first):
    """Beside Gaussian noise an ε of Laplace noise costs more than it is worth on its own."""
    y = np.sin(SPREAD.ravel())
    model = DPGPRegressor(
        bounds=(-1, 1), epsilon=1.0, delta=1e-3, noise=first, stages=None, learn=None
    )
    release = model.set_params(interval=False, insecure_seed=1).fit(SPREAD, y).release_
    again = refine(release, y, epsilon=0.5, delta=1e-3, insecure_seed=2)
    assert again.measurements[-1].answers.noise == first
