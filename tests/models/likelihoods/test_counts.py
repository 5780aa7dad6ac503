"""Counts: moments, quantiles and probabilities against sums of scipy's own masses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cloakgp.models.likelihoods import CountLikelihood, LatentMarginals, Window
from cloakgp.models.likelihoods.counts import (
    HERMITE_NODES,
    LARGEST_LOG_MEAN,
    CountMixture,
    count_distribution,
)

MEAN, VARIANCE = np.log([0.3, 4.0, 40.0]), np.array([0.5, 0.04, 0.2])
FULL = Window(lower=0.0, upper=100.0)
BANDS = Window(
    lower=np.array([0.7, 1.5, 5.0]),
    upper=np.array([1.2, 2.5, 6.0]),
    origin=np.array([0.9, 2.0, 5.5]),
    width=np.array([0.5, 1.0, 1.0]),
)


def latent(row):
    """Log means of one row on a fine grid, and how probable each is."""
    sd = np.sqrt(VARIANCE[row])
    f = MEAN[row] + sd * np.linspace(-8, 8, 161)
    shares = stats.norm.pdf(f, MEAN[row], sd)
    return f, shares / shares.sum()


def brute(row, overdispersion, functions, *, most=2500):
    """Expectations of functions of (f, y), summed over f and y."""
    f, shares = latent(row)
    y = np.arange(most)
    masses = count_distribution(np.exp(f)[:, None], overdispersion).pmf(y)
    joint = shares[:, None] * masses
    return [float((joint * function(f[:, None], y[None, :])).sum()) for function in functions]


@pytest.mark.parametrize("overdispersion", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("row", [0, 1, 2])
def test_accounts_are_those_of_sums_over_counts(row, overdispersion):
    likelihood = CountLikelihood(largest=100, overdispersion=overdispersion)
    accounts = likelihood.accounts(MEAN, VARIANCE, [FULL, BANDS])

    def placed(window):
        one = window.of_rows(slice(row, row + 1))
        return lambda _, y: one.place(np.sqrt(np.minimum(y, 100) + 0.375).ravel())

    g = [placed(FULL), placed(BANDS)]
    for stage in (0, 1):
        expected, crossed = brute(
            row,
            overdispersion,
            [g[stage], lambda f, y, stage=stage: g[stage](f, y) * (f - MEAN[row])],
        )
        assert accounts.expected[stage, row] == pytest.approx(expected, abs=2e-3)
        slope = crossed / VARIANCE[row]
        assert accounts.slope[stage, row] == pytest.approx(slope, abs=4e-3, rel=4e-3)
        for other in (0, 1):
            both, one, another = brute(
                row,
                overdispersion,
                [lambda f, y, s=stage, o=other: g[s](f, y) * g[o](f, y), g[stage], g[other]],
            )
            left = both - one * another
            left -= accounts.slope[stage, row] * accounts.slope[other, row] * VARIANCE[row]
            assert accounts.residual[stage, other, row] == pytest.approx(left, abs=6e-3)


def test_what_accounts_leave_out_has_a_covariance():
    """So that answers have one, whatever stages clipped to."""
    windows = [FULL, BANDS, Window(lower=1.0, upper=3.0)]
    residual = CountLikelihood(100, 0.5).accounts(MEAN, VARIANCE, windows).residual
    for row in range(3):
        assert np.linalg.eigvalsh(residual[:, :, row]).min() > -1e-12


def test_poisson_is_the_limit():
    near, limit = (CountLikelihood(100, each).linearise(MEAN, VARIANCE) for each in (1e-7, 0.0))
    np.testing.assert_allclose(near.expected, limit.expected, atol=1e-5)
    np.testing.assert_allclose(near.residual, limit.residual, atol=1e-5)


def test_cells_of_many_counts_leave_little_out():
    """Masses beyond single counts are taken together: roots differ by an eighth at most."""
    likelihood, mean = CountLikelihood(20_000, 0.1), np.log([5000.0])
    account = likelihood.linearise(mean, np.array([0.01]))
    y = np.arange(15_000)
    f = mean + 0.1 * np.linspace(-8, 8, 41)
    shares = stats.norm.pdf(f, mean, 0.1)
    masses = (shares / shares.sum()) @ count_distribution(np.exp(f)[:, None], 0.1).pmf(y)
    roots = np.sqrt(np.minimum(y, 20_000) + 0.375)
    variance = masses @ roots**2 - (masses @ roots) ** 2
    assert account.expected[0] == pytest.approx(masses @ roots, abs=0.02)
    assert account.residual[0] + account.slope[0] ** 2 * 0.01 == pytest.approx(variance, rel=0.01)


class Known:
    """Latent functions that are known up to N(MEAN, VARIANCE), under two priors."""

    def __init__(self, *overdispersions, apart=0.0):
        self.overdispersions = overdispersions
        self.apart = apart

    def marginals(self, X):
        return [
            LatentMarginals(
                weight=1 / len(self.overdispersions),
                prior=None,
                likelihood=CountLikelihood(100, each),
                mean=MEAN[:, None] + place * self.apart,
                variance=VARIANCE[:, None],
                noise_share=np.zeros((len(X), 1)),
            )
            for place, each in enumerate(self.overdispersions)
        ]


@pytest.mark.parametrize("overdispersions", [(0.0,), (0.7,), (0.0, 0.7)])
def test_probabilities_and_quantiles_are_those_of_the_mixture(overdispersions):
    exposure = np.array([1.0, 2.0, 0.5])
    functions = Known(*overdispersions)
    counts = functions.marginals(MEAN)[0].likelihood.predictive(functions, MEAN, exposure)
    for row in range(3):
        f, shares = latent(row)
        means = exposure[row] * np.exp(f)
        y = np.arange(1500)
        cdf = np.mean(
            [shares @ count_distribution(means[:, None], each).cdf(y) for each in overdispersions],
            axis=0,
        )
        assert counts.above(0)[row] == pytest.approx(1 - cdf[0], abs=2e-4)
        assert counts.above(7.5)[row] == pytest.approx(1 - cdf[7], abs=2e-3)
        for q in (0.05, 0.5, 0.9, 0.99):
            found = int(counts.quantile(q)[row])
            # The least with that much, but for what 20 nodes leave out of a mixture.
            assert cdf[found] >= q - 2e-3
            assert found == 0 or cdf[found - 1] <= q + 2e-3


def mixture(log_mean, overdispersion):
    """Two new counts, of rates with sds of 0.1 and 0.3."""
    log_means = log_mean + np.array([[0.1], [0.3]]) * HERMITE_NODES
    means = np.exp(np.minimum(log_means, LARGEST_LOG_MEAN))
    return CountMixture(((1.0, means, overdispersion),))


@pytest.mark.parametrize("overdispersion", [0.0, 1e-3, 0.5, 1000.0])
def test_quantiles_are_the_least_with_that_much(overdispersion):
    counts = mixture(3.0, overdispersion)
    for q in (1e-300, 0.05, 0.5, 0.95, 1 - 1e-12):
        found = counts.quantile(q)
        assert (counts.up_to(found) >= q).all()
        assert (counts.up_to(found - 1) < q)[found > 0].all()


@pytest.mark.parametrize("overdispersion", [0.0, 1e-9, 0.5, 1000.0])
@pytest.mark.parametrize("log_mean", [25.0, 60.0, 345.0, 690.0, 1e4, np.inf])
def test_quantiles_end_for_any_mean(log_mean, overdispersion):
    counts = mixture(log_mean, overdispersion)
    found = np.array([counts.quantile(q) for q in (0.001, 0.05, 0.5, 0.999)])
    assert np.isfinite(found).all()
    assert (np.diff(found, axis=0) >= 0).all()
    if overdispersion < 1 and log_mean < 600:
        # They are in proportion to their means.
        known = np.log([mixture(20.0, overdispersion).quantile(q) for q in (0.05, 0.5)])
        np.testing.assert_allclose(np.log(found[1:3]), known + log_mean - 20.0, atol=1e-3)
    assert (counts.above(5.0) > 0.02).all()


@pytest.mark.parametrize("log_mean", [3.0, 19.0, 21.0, 345.0])
def test_above_half_a_count_more_is_above_the_count(log_mean):
    """Where smaller ones stand for enormous counts, too."""
    counts = mixture(log_mean, 40.0)
    for whole in (-1.0, 0.0, 2.0, 3000.0):
        np.testing.assert_array_equal(counts.above(whole + 0.7), counts.above(whole))


def test_nothing_is_told_of_counts_whose_mean_is_unknown():
    counts = CountMixture(((1.0, np.array([[2.0] * 20, [np.nan] * 20]), 0.5),))
    np.testing.assert_array_equal(counts.quantile(0.5), [1.0, np.nan])


def test_rates_have_the_moments_of_lognormals():
    functions, likelihood = Known(0.7), CountLikelihood(100, 0.7)
    asked = {"return_std": True, "return_cov": False}
    mean, sd = likelihood.predict(functions, MEAN, new_output=False, **asked)
    _, new_sd = likelihood.predict(functions, MEAN, new_output=True, **asked)
    for row in range(3):
        rate = stats.lognorm(s=np.sqrt(VARIANCE[row]), scale=np.exp(MEAN[row]))
        assert mean[row] == pytest.approx(rate.mean())
        assert sd[row] == pytest.approx(rate.std())
        first, second = brute(row, 0.7, [lambda _, y: y, lambda _, y: y**2])
        assert new_sd[row] == pytest.approx(np.sqrt(second - first**2), rel=2e-3)
        assert likelihood.rate_quantile(functions, MEAN, 0.3)[row] == pytest.approx(rate.ppf(0.3))


def test_quantiles_of_rates_are_those_of_their_mixture():
    """Not of one lognormal law of its moments: of three parts 2 apart, two are below the mean."""
    functions, likelihood = Known(0.1, 0.1, 4.0, apart=2.0), CountLikelihood(100, 0.7)
    for q in (0.025, 0.5, 0.6, 0.975):
        found = np.log(likelihood.rate_quantile(functions, MEAN, q))
        below = [stats.norm.cdf(found, MEAN + 2 * k, np.sqrt(VARIANCE)) for k in range(3)]
        np.testing.assert_allclose(np.mean(below, axis=0), q, rtol=1e-9)


@pytest.mark.parametrize(
    ("largest", "overdispersion"), [(0, 0.1), (10**9, 0.1), (5, -0.1), (5, np.nan), (5, 1e4)]
)
def test_what_is_no_likelihood_is_refused(largest, overdispersion):
    with pytest.raises(ValueError, match="must be from"):
        CountLikelihood(largest, overdispersion).validate()
