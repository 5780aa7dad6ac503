"""One fit as a function: what it spends, what it learns, and how well its intervals cover."""

from __future__ import annotations

import numpy as np
import pytest
from fits import release_held
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.fitting.bands import ONE_STAGE, Stage
from cloakgp.fitting.defaults import choose_prior, choose_query
from cloakgp.fitting.strategies import Budget, Query, split_budget
from cloakgp.models import ExactPrior
from cloakgp.privacy import Guarantee, OutputBounds, compose
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.release import Hyperprior

BOUNDS = OutputBounds(-3.0, 3.0)


# Of what may be learned, all but how noisy outputs are: that is not asked about then.
NO_SPREAD = Hyperprior(noise_variance=False)


def two(share):
    return Stage(share), Stage(1 - share, 1.0)


def fit(X, y, **changes):
    settings = {
        "prior": choose_prior(X, bounds=BOUNDS),
        "query": choose_query(X),
        "question": BOUNDS,
        "epsilon": 1.0,
        "delta": 1e-3,
    }
    return release_held(X, y, **(settings | changes))


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 5, size=(30, 1))
    return X, np.sin(X[:, 0])


# --- two stages ---

BUDGETS = st.tuples(
    st.floats(0.01, 50.0, exclude_min=True), st.sampled_from([1e-12, 1e-8, 1e-5, 1e-3])
)


@given(budget=BUDGETS, share=st.floats(0.1, 0.9))
def test_two_stages_spend_the_budget_and_no_more(budget, share):
    epsilon, delta = budget
    try:
        stages = split_budget(Budget(epsilon, delta), shares=(share, 1.0 - share))
    except ValueError as error:
        # A stage of so little that δ alone allows it.
        assert "epsilon = 0" in str(error)  # noqa: PT017
        whole = 1 / exact_noise_multiplier(epsilon, delta)
        least = Guarantee(epsilon=0.0, delta=delta, mu=whole * np.sqrt(min(share, 1 - share)))
        assert least.delta_at(0.0) <= delta
        return
    mus = [1 / exact_noise_multiplier(stage.epsilon, stage.delta) for stage in stages]
    both = compose(
        *(
            Guarantee(epsilon=one.epsilon, delta=one.delta, mu=mu)
            for one, mu in zip(stages, mus, strict=True)
        )
    )
    assert both.delta_at(epsilon) <= delta
    assert both.epsilon <= epsilon
    whole = 1 / exact_noise_multiplier(epsilon, delta)
    assert both.mu >= whole * (1 - 1e-5)
    assert mus[0] ** 2 / both.mu**2 == pytest.approx(share, rel=1e-4)


@given(
    epsilon=st.floats(0.02, 20.0),
    delta=st.sampled_from([0.0, 1e-9, 1e-4, 1e-2]),
    weights=st.lists(st.floats(0.1, 1.0), min_size=1, max_size=4),
)
@hypothesis_settings(max_examples=25)
def test_parts_of_laplace_noise_spend_the_budget_and_no_more(epsilon, delta, weights):
    shares = [weight / sum(weights) for weight in weights]
    parts = split_budget(Budget(epsilon, delta, noise="laplace"), shares=shares)
    assert all((part.delta, part.noise) == (delta, "laplace") for part in parts)
    spent = tuple(part.epsilon for part in parts)
    whole = sum(spent)
    assert [part / whole for part in spent] == pytest.approx(shares, rel=1e-12)
    together = compose(
        *(Guarantee(epsilon=one, delta=delta, mu=0.0, laplace=(one,)) for one in spent)
    )
    assert together.delta_at(epsilon) <= delta
    assert together.epsilon <= epsilon
    assert whole >= epsilon * (1 - 2e-6)
    # What δ allows is taken where it is more than a hundredth.
    assert whole <= epsilon or (delta > 0 and len(parts) > 1 and whole > 1.01 * epsilon)


def test_laplace_parts_that_are_larger_than_a_delta_allows_are_caught():
    """Mutation: what one part gains at this δ is no measure for several."""
    parts = split_budget(Budget(1.0, 1e-3, noise="laplace"), shares=(0.4, 0.6))
    larger = tuple(1.02 * part.epsilon for part in parts)
    assert Guarantee(epsilon=1.0, delta=1e-3, mu=0.0, laplace=larger).delta_at(1.0) > 1e-3


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("budget", [(0.1, 1e-6), (1.0, 1e-3), (10.0, 1e-8), (1.0, 1e-12)])
def test_a_split_release_keeps_its_guarantee_and_uses_it(share, budget, table):
    epsilon, delta = budget
    release = fit(*table, epsilon=epsilon, delta=delta, stages=two(share), hyperprior=NO_SPREAD)
    assert len(release.measurements) == 2
    guarantee = release.guarantee
    assert 0.999 * delta <= guarantee.delta_at(epsilon) <= delta
    assert guarantee.epsilon <= epsilon
    assert guarantee.delta == delta
    mus = [measurement.answers.guarantee.mu for measurement in release.measurements]
    assert mus[0] ** 2 / guarantee.mu**2 == pytest.approx(share, rel=1e-3)
    # The noise that was drawn is what it says.
    for one, mu in zip(release.measurements, mus, strict=True):
        assert one.sensitivity_over_noise == pytest.approx(mu, rel=1e-9)


@pytest.mark.usefixtures("any_evidence")
def test_the_second_stage_is_designed_with_what_the_first_taught(table):
    X, y = table
    settings = {"stages": two(0.5), "insecure_seed": 3, "epsilon": 20.0}
    learning = fit(X, y, hyperprior=NO_SPREAD, **settings)
    plain = fit(X, y, **settings)
    first, second = (
        [measurement.strategy.matrix for measurement in release.measurements]
        for release in (learning, plain)
    )
    np.testing.assert_array_equal(first[0], second[0])
    assert first[1].shape != second[1].shape or not np.allclose(first[1], second[1])
    assert learning.learned
    assert not plain.learned


def test_stages_have_their_own_noise(table):
    X, _ = table
    release = fit(X, np.zeros(30), stages=two(0.5), insecure_seed=3)
    one, other = (part.answers.values / part.answers.noise_sd for part in release.measurements)
    short = min(len(one), len(other))
    assert not np.allclose(one[:short], other[:short], atol=1e-6)


def test_a_stage_that_delta_alone_would_allow_is_stated_at_a_smaller_one(table):
    release = fit(*table, epsilon=0.01, delta=0.01, stages=two(0.05))
    small, large = (one.answers.guarantee for one in release.measurements)
    assert 0 < small.delta < large.delta == 0.01
    assert small.epsilon > 0
    assert 0.999 * 0.01 <= release.guarantee.delta_at(0.01) <= 0.01


def test_where_delta_alone_would_allow_every_stage_there_is_one(table):
    release = fit(*table, epsilon=0.001, delta=0.2, stages=two(0.5))
    assert len(release.measurements) == 1
    assert (release.guarantee.epsilon, release.guarantee.delta) == (0.001, 0.2)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (1.0, 0.0), (np.inf, 0.1), (1.0, 1.0)])
def test_budgets_are_checked_before_anything_is_designed(epsilon, delta, table, monkeypatch):
    monkeypatch.setattr("cloakgp.fitting.held.choose_strategy", None)
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        fit(*table, epsilon=epsilon, delta=delta)


# --- one stage ---


@pytest.mark.parametrize("criterion", ["bayes", "trace", "logdet"])
def test_one_stage_spends_the_budget(criterion, table):
    release = fit(*table, criterion=criterion)
    assert len(release.measurements) == 1
    assert (release.guarantee.epsilon, release.guarantee.delta) == (1.0, 1e-3)
    assert 0.999e-3 <= release.guarantee.delta_at(1.0) <= 1e-3
    assert release.measurements[0].strategy.certificate.criterion == criterion
    assert not release.learned
    assert not release.insecure


def test_names_and_learning_reach_the_release(table):
    release = fit(
        *table, input_names=["age"], output_name="height", hyperprior=Hyperprior(mean=False)
    )
    assert release.input_names == ("age",)
    assert release.output_name == "height"
    assert release.hyperprior == Hyperprior(mean=False)
    assert release.fitted_prior.mean == release.prior.mean
    averaged = fit(*table, hyperprior=Hyperprior(), average=True)
    assert averaged.average
    assert len(averaged.learned) > 1


def test_progress_is_told_of_both_stages(table):
    once, twice = [], []
    fit(*table, progress=once.append)
    fit(*table, progress=twice.append, stages=two(0.5))
    assert len(twice) > len(once) >= 1


@pytest.mark.parametrize("stages", [ONE_STAGE, two(0.5)])
def test_the_questions_do_not_look_at_y(stages, table):
    """With the first answers equal, also those of the second stage."""
    X, y = table
    first, second = (
        fit(X, outputs, stages=stages).measurements[0].strategy.matrix for outputs in (y, -y)
    )
    np.testing.assert_array_equal(first, second)


# --- intervals ---


def coverage(draws, *, learn=False, declared=None):
    """Shares of latent values and of new outputs inside their 95 % intervals, over draws."""
    rng = np.random.default_rng(20260101)
    truth = ExactPrior(kernel=ConstantKernel(0.25) * RBF(1.0), noise_variance=0.04, mean=0.0)
    latent, outputs = [], []
    for seed in range(draws):
        X, points = rng.uniform(0, 6, size=(60, 1)), rng.uniform(0, 6, size=(6, 1))
        both = np.vstack([X, points])
        root = np.linalg.cholesky(truth.query_covariance(both) + 1e-9 * np.eye(66))
        f = root @ rng.normal(size=66)
        y = f + 0.2 * rng.normal(size=66)
        release = fit(
            X,
            y[:60],
            prior=truth if declared is None else declared,
            query=Query(X=np.linspace(0, 6, 20)[:, None]),
            epsilon=4.0,
            insecure_seed=seed,
            hyperprior=Hyperprior() if learn else None,
            gap=1e-2,
        )
        for new, values, seen in ((False, f, latent), (True, y, outputs)):
            mean, std = release.predict(points, return_std=True, new_output=new)
            seen.append(np.abs(values[60:] - mean) < 1.959964 * std)
    return float(np.mean(latent)), float(np.mean(outputs))


def test_intervals_cover_95_percent():
    latent, outputs = coverage(250)
    assert 0.93 <= latent <= 0.97
    assert 0.93 <= outputs <= 0.97


@pytest.mark.slow
def test_intervals_cover_95_percent_of_many():
    latent, outputs = coverage(3000)
    assert 0.94 <= latent <= 0.96
    assert 0.94 <= outputs <= 0.96


@pytest.mark.slow
def test_intervals_with_learned_hyperparameters_cover_nearly_as_much():
    wrong = ExactPrior(kernel=ConstantKernel(0.5) * RBF(1.6), noise_variance=0.08, mean=0.2)
    for declared in (None, wrong):
        latent, outputs = coverage(400, learn=True, declared=declared)
        assert 0.88 <= latent <= 0.98
        assert 0.90 <= outputs <= 0.98
