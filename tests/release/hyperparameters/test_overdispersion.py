"""The overdispersion of counts: its posterior, by quadrature, and what releases then claim."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import DPGPRegressor
from cloakgp.models.likelihoods.counts import count_distribution
from cloakgp.release.hyperparameters.overdispersion import (
    LOG_OVERDISPERSION_SD,
    USUAL_OVERDISPERSION,
    gauss_nodes,
    log_density,
    with_learned_overdispersion,
)
from cloakgp.release.posterior.mixture import WeightedPrior, answered_tables, windows_of

X = np.linspace(20, 80, 300)[:, None]
RATE = np.exp(X[:, 0] / 40)


def fitted(truth, *, epsilon, seed=0, **settings):
    rng = np.random.default_rng(seed)
    counts = count_distribution(RATE, truth).rvs(random_state=rng)
    model = DPGPRegressor(
        bounds=(0, 50), epsilon=epsilon, likelihood="counts", insecure_seed=seed, **settings
    )
    return model.fit(X, counts).release_


def test_nodes_of_a_fine_normal_law_are_those_of_gauss_and_hermite():
    places = np.linspace(-8, 8, 801)
    nodes, shares = gauss_nodes(places, special.softmax(-(places**2) / 2), count=3)
    np.testing.assert_allclose(nodes, [-np.sqrt(3), 0.0, np.sqrt(3)], atol=1e-6)
    np.testing.assert_allclose(shares, [1 / 6, 2 / 3, 1 / 6], atol=1e-6)


@pytest.mark.parametrize(("shares", "expected"), [([0, 1, 0], [2.0]), ([0.5, 0, 0.5], [1.0, 4.0])])
def test_a_law_of_few_places_has_these_for_nodes(shares, expected):
    places = np.array([1.0, 2.0, 4.0])
    nodes, found = gauss_nodes(places, np.array(shares, dtype=float), count=3)
    np.testing.assert_allclose(nodes, expected)
    assert found.sum() == pytest.approx(1.0)


@pytest.fixture(scope="module")
def of_one_rate():
    """Counts of one rate, so that what answers say of it is an integral over one number."""
    model = DPGPRegressor(
        ConstantKernel(1.0, "fixed") * RBF(1e6, "fixed"),
        bounds=(0, 50),
        mean=3.0,
        epsilon=2.0,
        delta=1e-4,
        noise="gaussian",
        likelihood="counts",
        insecure_seed=3,
    )
    counts = count_distribution(np.full(300, 3.0), 4.0).rvs(random_state=np.random.default_rng(1))
    return model.fit(X, counts).release_


def exact_log_density(release, likelihood):
    """Of the answers to sums of roots, each normal given the rate, integrated over it."""
    located = [one for one in release.measurements if one.question.locates]
    tables, values = answered_tables(release.prior, located)
    [table], [stages] = tables, windows_of(likelihood, located)
    f = release.prior.mean + np.linspace(-4, 4, 161)
    logs = stats.norm.logpdf(f, release.prior.mean)
    for place, one in enumerate(f):
        account = likelihood.accounts(
            np.full(len(X), one), np.full(len(X), 1e-8), [window for _, window in stages]
        )
        kinds = np.repeat(np.arange(len(stages)), [count for count, _ in stages])
        mean = (table.questions * account.expected[kinds]).sum(axis=1)
        left = account.residual[np.ix_(kinds, kinds)]
        covariance = np.einsum("in,jn,ijn->ij", table.questions, table.questions, left)
        covariance += np.eye(len(mean))
        logs[place] += stats.multivariate_normal.logpdf(values[:, 0], mean, covariance)
    return special.logsumexp(logs)


def test_its_density_is_that_of_the_answers_integrated_over_rates(of_one_rate):
    """Up to one constant; the law of the answers given the rate is the same in both."""
    located = [one for one in of_one_rate.measurements if one.question.locates]
    gaps = []
    for overdispersion in (0.1, 2.0, 12.0):
        likelihood = replace(of_one_rate.likelihood, overdispersion=overdispersion)
        one = WeightedPrior(prior=of_one_rate.prior, likelihood=likelihood, weight=1.0)
        gaps.append(log_density(one, located) - exact_log_density(of_one_rate, likelihood))
    assert np.ptp(gaps) < 0.3


def test_its_values_have_the_moments_of_its_posterior(of_one_rate):
    release = of_one_rate
    one = WeightedPrior(prior=release.prior, likelihood=release.likelihood, weight=1.0)
    found = with_learned_overdispersion([one], release.measurements)
    logs = np.linspace(-4.5, 4.5, 49)
    densities = []
    for each in logs:
        own = USUAL_OVERDISPERSION * np.exp(each)
        likelihood = replace(release.likelihood, overdispersion=own)
        densities.append(log_density(replace(one, likelihood=likelihood), release.measurements))
    shares = special.softmax(np.array(densities) - (logs / LOG_OVERDISPERSION_SD) ** 2 / 2)
    weights = np.array([each.weight for each in found])
    nodes = np.log([each.likelihood.overdispersion / USUAL_OVERDISPERSION for each in found])
    mean, sd = shares @ logs, np.sqrt(shares @ logs**2 - (shares @ logs) ** 2)
    assert weights @ nodes == pytest.approx(mean, abs=0.05 * sd)
    assert np.sqrt(weights @ nodes**2 - (weights @ nodes) ** 2) == pytest.approx(sd, rel=0.1)


def test_what_is_not_known_of_it_is_in_errors_and_limits():
    """Counts of α = 8, most of them 0: one value of it told a tenth of the error."""
    errors, held = [], []
    for seed in range(2):
        release = fitted(8.0, epsilon=1.0, seed=seed)
        lower, upper = release.predict_limits(X)
        errors.append(np.sqrt(np.mean((release.predict(X) - RATE) ** 2)) / release.accuracy().error)
        held.append(np.mean((lower <= RATE) & (upper >= RATE)))
    assert max(errors) < 3.0
    assert np.mean(held) > 0.8


@pytest.mark.slow
def test_limits_hold_rates_that_are_drawn_from_the_prior():
    """With an overdispersion that is, too; as the page says."""
    settings = {"bounds": (0, 50), "mean": np.e, "likelihood": "counts"}
    declared = DPGPRegressor(epsilon=9.0, learn=None, stages=None, **settings).fit(X, RATE > 2)
    covariance = declared.release_.prior.kernel(X) + 1e-8 * np.eye(len(X))
    held = []
    for seed, overdispersion in enumerate((0.03, 0.25, 2.0)):
        rng = np.random.default_rng(seed)
        rates = np.exp(rng.multivariate_normal(np.full(len(X), 1.0), covariance))
        counts = count_distribution(rates, overdispersion).rvs(random_state=rng)
        model = DPGPRegressor(epsilon=1.0, insecure_seed=seed, **settings)
        lower, upper = model.fit(X, counts).release_.predict_limits(X)
        held.append(np.mean((lower <= rates) & (rates <= upper)))
    assert np.mean(held) > 0.8


def test_where_no_question_tells_of_it_the_prior_is_averaged_over():
    release = fitted(2.0, epsilon=0.3)
    assert not any(one.about_spread for one in release.measurements)
    found = [one.likelihood.overdispersion for one in release.learned]
    assert min(found) < 0.3 < 2.0 < max(found)
    lower, upper = release.predict_limits(X)
    assert np.mean((lower <= RATE) & (upper >= RATE)) > 0.8


def test_one_that_is_declared_is_kept():
    for declared in (0.0, 2.0):
        release = fitted(2.0, epsilon=1.0, overdispersion=declared)
        assert [one.likelihood.overdispersion for one in release.learned] == [declared]
