"""What all baselines owe to scikit-learn and to whoever trusts them with outputs."""

import pickle

import numpy as np
import pandas as pd
import pytest
from laplace_neighbours import loss_over_neighbours
from neighbours import ACHIEVED_SHARE, door, spent_over_neighbours
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.estimator_checks import check_estimator

from cloakgp.estimators.baselines import (
    DPHistogramRegressor,
    DPIntegralHistogramRegressor,
    DPMeanRegressor,
    DPRowNoiseRegressor,
)

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

BUDGET = {"bounds": (-3.0, 7.0), "epsilon": 1.0, "delta": 1e-4}
GAUSSIAN = {
    "histogram": DPHistogramRegressor(4, **BUDGET),
    "integral": DPIntegralHistogramRegressor(4, **BUDGET, learn=None),
    "rows": DPRowNoiseRegressor(**BUDGET, learn=None),
    "mean": DPMeanRegressor(**BUDGET),
}
LAPLACE = {
    "histogram": DPHistogramRegressor(4, **BUDGET, noise="laplace"),
    "integral": DPIntegralHistogramRegressor(4, **BUDGET, noise="laplace", learn=None),
}
ALL = {
    **GAUSSIAN,
    **{f"{name}, laplace": model for name, model in LAPLACE.items()},
    "integral, learned": DPIntegralHistogramRegressor(3, **BUDGET),
}


def table(seed=0, rows=12):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 5, size=(rows, 2))
    X[1] = X[0]
    return X, np.where(rng.uniform(size=rows) < 0.5, -3.0, 7.0)


# --- privacy ---


@pytest.mark.parametrize("model", GAUSSIAN.values(), ids=GAUSSIAN)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_gaussian_baselines_spend_what_they_claim(model, epsilon):
    X, y = table()
    one = clone(model).set_params(epsilon=epsilon)
    spent, claimed = spent_over_neighbours(
        lambda outputs: one.fit(X, outputs).guarantee_.mu, y, bounds=BUDGET["bounds"]
    )
    assert ACHIEVED_SHARE * claimed <= spent <= claimed
    assert one.guarantee_.delta_at(epsilon) <= 1e-4
    assert one.guarantee_.epsilon == epsilon


@pytest.mark.parametrize("model", LAPLACE.values(), ids=LAPLACE)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_laplace_baselines_spend_what_they_claim(model, epsilon):
    X, y = table()
    one = clone(model).set_params(epsilon=epsilon)
    spent, claimed = loss_over_neighbours(
        lambda outputs: one.fit(X, outputs).guarantee_.epsilon, y, bounds=BUDGET["bounds"]
    )
    assert ACHIEVED_SHARE * claimed <= spent <= claimed
    assert (one.guarantee_.epsilon, one.guarantee_.delta) == (epsilon, 0.0)


@pytest.mark.parametrize("model", GAUSSIAN.values(), ids=GAUSSIAN)
def test_the_check_can_fail(monkeypatch, model):
    """Mutation: a sensitivity that leaves out one per cent is found out."""
    whole = door.integer_sensitivity
    monkeypatch.setattr(
        door, "integer_sensitivity", lambda *args, **kw: int(0.99 * whole(*args, **kw))
    )
    X, y = table()
    spent, claimed = spent_over_neighbours(
        lambda outputs: clone(model).fit(X, outputs).guarantee_.mu, y, bounds=BUDGET["bounds"]
    )
    assert spent > claimed


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ALL if "learned" not in name])
def test_an_attack_on_whole_fits_attains_the_guarantee_and_no_more(name):
    """The likelihood-ratio test on what was published, over many fits to two neighbours."""
    draws, epsilon, delta = 1500, 1.0, 0.05
    X = np.array([[0.0], [1.0], [4.0], [5.0]])
    model = clone(ALL[name]).set_params(epsilon=epsilon, delta=delta)
    lo, hi = BUDGET["bounds"]
    # Less the middle of the bounds, the first answer is the first row's output, ∓5; in the mean,
    # that and what the last row adds.
    middle = 3.0 if name == "mean" else 0.0
    here, there = (
        np.array([first_answer(model.fit(X, [first, 2.0, 2.0, 5.0])) for _ in range(draws)])
        for first in (lo, hi)
    )
    if "laplace" in name:
        allowed, threshold = 0.0, middle - (hi - lo) / 2
    else:
        noise_sd = model.guarantee_.noise_multiplier * (hi - lo)
        # The likelihood ratio of the two normals exceeds e^ε below this.
        allowed, threshold = delta, middle - epsilon * noise_sd**2 / (hi - lo)
    rates = [np.mean(values <= threshold) for values in (here, there)]
    error = np.sqrt(
        (rates[0] * (1 - rates[0]) + np.exp(2 * epsilon) * rates[1] * (1 - rates[1])) / draws
    )
    # Six standard errors: a false alarm in hundreds of millions of runs. The bound is attained.
    assert abs(rates[0] - np.exp(epsilon) * rates[1] - allowed) <= 6 * error


def first_answer(fitted):
    """The first number that was published."""
    if isinstance(fitted, DPHistogramRegressor):
        return fitted.release_.sums[0]
    return fitted.release_.measurements[0].answers.values[0]


@pytest.mark.parametrize("model", ALL.values(), ids=ALL)
def test_nothing_that_is_kept_holds_an_output(model):
    """Outputs that are recognisable to the last digit are in no attribute, pickled or shown."""
    X, _ = table()
    y = np.random.default_rng(1).uniform(-3, 7, size=12)
    fitted = clone(model).fit(X, y)
    stored = pickle.dumps(fitted)
    for output in y:
        assert np.float64(output).tobytes() not in stored
        assert repr(float(output)) not in repr(fitted) + repr(fitted.release_)
    sums = [y[rows].sum() - 2.0 * len(rows) for rows in ([*range(12)], *([j] for j in range(12)))]
    for exact in sums:
        assert np.float64(exact).tobytes() not in stored


@pytest.mark.parametrize("model", ALL.values(), ids=ALL)
@pytest.mark.parametrize(
    "y", [np.full(12, "secret"), [123.456] * 11, [123.456] * 11 + [np.nan], None]
)
def test_no_message_shows_an_output(model, y):
    X, _ = table()
    with pytest.raises(ValueError, match=r"y|Input") as caught:
        clone(model).fit(X, y)
    assert "secret" not in str(caught.value)
    assert "123" not in str(caught.value)


@pytest.mark.parametrize("model", ALL.values(), ids=ALL)
def test_outputs_beyond_the_bounds_are_clipped(model):
    X, y = table()
    seeded = clone(model).set_params(insecure_seed=0)
    wild = np.where(y > 0, 1e12, -1e12)
    np.testing.assert_array_equal(seeded.fit(X, y).predict(X), seeded.fit(X, wild).predict(X))


@pytest.mark.parametrize("model", ALL.values(), ids=ALL)
def test_noise_is_fresh_and_seeded_noise_says_so(model):
    X, y = table()
    first, second = (clone(model).fit(X, y) for _ in range(2))
    assert not np.array_equal(first.predict(X), second.predict(X))
    assert not first.release_.insecure
    seeded = clone(model).set_params(insecure_seed=3).fit(X, y)
    assert seeded.release_.insecure
    assert "INSECURE" in repr(seeded.release_)


# --- scikit-learn ---


@pytest.mark.parametrize(
    "model",
    [
        DPHistogramRegressor(bounds=(-100, 100), epsilon=1, delta=1e-3, insecure_seed=0),
        DPHistogramRegressor(
            3, bounds=(-100, 100), epsilon=1, noise="laplace", clip=False, insecure_seed=0
        ),
        DPMeanRegressor(bounds=(-100, 100), epsilon=1, delta=1e-3, insecure_seed=0),
        DPRowNoiseRegressor(bounds=(-100, 100), epsilon=1, delta=1e-3, learn=None, insecure_seed=0),
        DPIntegralHistogramRegressor(
            3, bounds=(-100, 100), epsilon=1, delta=1e-3, learn=None, insecure_seed=0
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scikit_learns_own_checks(model):
    results = check_estimator(model, on_skip=None, on_fail="raise")
    assert sum(result["status"] == "passed" for result in results) > 40


@pytest.mark.parametrize("model", ALL.values(), ids=ALL)
def test_predictions_and_their_sds(model):
    X, y = table()
    fitted = clone(model).fit(X, y)
    mean, sd = fitted.predict(X[:5], return_std=True)
    assert mean.shape == sd.shape == (5,)
    np.testing.assert_array_equal(mean, fitted.predict(X[:5]))
    assert (sd > 0).all()
    if not isinstance(fitted, DPHistogramRegressor):
        also, covariance = fitted.predict(X[:5], return_cov=True)
        np.testing.assert_array_equal(also, mean)
        np.testing.assert_allclose(np.diag(covariance), sd**2, rtol=1e-6)
        with pytest.raises(ValueError, match="not both"):
            fitted.predict(X, return_std=True, return_cov=True)


@pytest.mark.parametrize("model", ALL.values(), ids=ALL)
def test_names_are_kept_and_unfitted_models_say_so(model):
    X, y = table()
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    with pytest.raises(NotFittedError):
        _ = clone(model).guarantee_
    fitted = clone(model).fit(pd.DataFrame(X, columns=["age", "weight"]), y)
    assert fitted.feature_names_in_.tolist() == ["age", "weight"]
    over_boxes = isinstance(fitted, DPIntegralHistogramRegressor)
    assert fitted.release_.input_names == (
        ("age from", "weight from", "age to", "weight to") if over_boxes else ("age", "weight")
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"bounds": None}, "bounds"),
        ({"bounds": (1, 0)}, "bound"),
    ],
)
@pytest.mark.parametrize("model", ALL.values(), ids=ALL)
def test_bad_budgets(model, change, complaint):
    with pytest.raises(ValueError, match=complaint):
        clone(model).set_params(**change).fit(*table())


@pytest.mark.parametrize(
    "model", [DPHistogramRegressor(3, **BUDGET), DPIntegralHistogramRegressor(3, **BUDGET)]
)
def test_gaussian_noise_needs_a_delta_and_noise_a_known_name(model):
    with pytest.raises(ValueError, match="delta"):
        clone(model).set_params(delta=None).fit(*table())
    with pytest.raises(ValueError, match="noise"):
        clone(model).set_params(noise="cauchy").fit(*table())


@pytest.mark.parametrize(
    "model",
    [DPRowNoiseRegressor(**BUDGET, kernel=RBF()), DPIntegralHistogramRegressor(3, **BUDGET)],
)
def test_what_can_be_learned_has_a_name(model):
    with pytest.raises(ValueError, match="learn"):
        clone(model).set_params(learn="all").fit(*table())
