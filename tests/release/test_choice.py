"""A release whose prior was chosen from private data states what the choice cost, for ever."""

import numpy as np
import pytest

from cloakgp import DPGPRegressor, DPGridSearchCV, Release, refine
from cloakgp.report.describe import headline

X = np.linspace(0, 5, 20)[:, None]
Y = np.sin(X[:, 0])


@pytest.fixture(params=["permute-and-flip", "exponential"])
def search(request):
    model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3)
    grid = {"mean": [-0.5, 0.5]}
    return DPGridSearchCV(model, grid, selection_epsilon=5.0, mechanism=request.param).fit(X, Y)


def test_the_release_states_the_whole_cost(search, tmp_path):
    total = search.guarantee_
    assert total.epsilon > 3.0
    assert search.release_.guarantee == total
    assert search.best_estimator_.guarantee_ == total
    search.release_.save(tmp_path / "a")
    loaded = Release.load(tmp_path / "a")
    assert loaded.guarantee == total
    assert headline(loaded).startswith(f"({total.epsilon:.3g}"[:3])


def test_later_visits_add_to_it(search):
    first = search.release_
    later = refine(first, Y, epsilon=0.5, delta=1e-3)
    assert later.guarantee.epsilon > first.guarantee.epsilon
    assert first.learn().guarantee == first.guarantee
    plain = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3, mean=first.prior.mean).fit(X, Y)
    combined = first.combine(plain.release_)
    assert combined.guarantee.epsilon > first.guarantee.epsilon
    with pytest.raises(ValueError, match="chosen from private data"):
        plain.release_.combine(first)


def test_a_pure_guarantee_implies_the_gaussian_one_that_words_use(search):
    """ε-DP against the trade-off curve of μ-Gaussian DP, on a grid of false alarms."""
    from scipy.stats import norm

    spent = search.release_.choice.epsilon
    mu = np.sqrt(search.guarantee_.mu**2 - search.release_.choice.worst.mu**2)
    alarms = np.linspace(1e-6, 1 - 1e-6, 2001)
    pure = np.maximum.reduce(
        [np.zeros_like(alarms), 1 - np.exp(spent) * alarms, np.exp(-spent) * (1 - alarms)]
    )
    gaussian = norm.cdf(norm.ppf(1 - alarms) - mu)
    assert (pure >= gaussian - 1e-12).all()
    assert (np.abs(pure - gaussian).min()) < 1e-3
