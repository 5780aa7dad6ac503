"""Latent quantiles: moments against sums over outputs and latent values; predictions in order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cloakgp.models import ExactPrior
from cloakgp.models.likelihoods import LatentMarginals, QuantileLikelihood
from cloakgp.models.likelihoods.quantiles import PredictedQuantiles, quantile_likelihood

LEVELS, SCALES = (0.2, 0.5, 0.9), (0.7, 1.0, 2.0)
LIKELIHOOD = QuantileLikelihood(quantiles=LEVELS, scales=SCALES)
MEAN = np.array([[-0.5, 0.1, 1.0], [0.0, 0.2, 4.0]])
VARIANCE = np.array([[0.5, 0.04, 0.2], [2.0, 1.0, 0.01]])
THRESHOLDS = np.array([[0.0, 0.3, 0.9], [-3.0, 0.2, 4.4]])


def by_sums(row, channel):
    """E P and cov(q, P)/v over a fine grid of q; P by the definition of the quantile."""
    sd = np.sqrt(VARIANCE[row, channel])
    q = MEAN[row, channel] + sd * np.linspace(-9, 9, 4001)
    shares = stats.norm.pdf(q, MEAN[row, channel], sd)
    shares /= shares.sum()
    # Outputs are normal, of a location that puts τ of them at or below q.
    location = q - SCALES[channel] * stats.norm.ppf(LEVELS[channel])
    below = stats.norm.cdf(THRESHOLDS[row, channel], location, SCALES[channel])
    expected = shares @ below
    return expected, shares @ (below * (q - MEAN[row, channel])) / sd**2


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("channel", [0, 1, 2])
def test_accounts_are_those_of_sums(row, channel):
    expected, slope = LIKELIHOOD.below(THRESHOLDS, mean=MEAN, variance=VARIANCE)
    theirs = by_sums(row, channel)
    assert expected[row, channel] == pytest.approx(theirs[0], abs=1e-6)
    assert slope[row, channel] == pytest.approx(theirs[1], abs=1e-6)


def test_at_a_quantile_that_is_known_its_level_lies_below_whatever_the_scale():
    none = np.zeros_like(MEAN)
    for factor in (0.1, 1.0, 30.0):
        scales = tuple(factor * scale for scale in SCALES)
        expected, _ = QuantileLikelihood(LEVELS, scales).below(MEAN, mean=MEAN, variance=none)
        np.testing.assert_allclose(expected, np.tile(LEVELS, (2, 1)))


def test_the_account_is_of_the_quantile_next_to_the_median():
    account = LIKELIHOOD.account(THRESHOLDS, mean=MEAN, variance=VARIANCE)
    expected, slope = LIKELIHOOD.below(THRESHOLDS, mean=MEAN, variance=VARIANCE)
    np.testing.assert_array_equal(account.expected, expected[:, 1])
    np.testing.assert_array_equal(account.slope, slope[:, 1])
    spread = account.residual + account.slope**2 * VARIANCE[:, 1]
    np.testing.assert_allclose(spread, expected[:, 1] * (1 - expected[:, 1]))


def test_prior_quantiles_are_those_of_normal_outputs():
    prior = ExactPrior(kernel=None, noise_variance=0.0, mean=3.0)
    alike = QuantileLikelihood(LEVELS, (2.0, 2.0, 2.0))
    np.testing.assert_allclose(alike.means(prior), stats.norm.ppf(LEVELS, 3.0, 2.0))
    linear = alike.linearise(np.array(alike.means(prior))[[1]], np.ones(1))
    assert (linear.expected[0], linear.residual[0]) == pytest.approx((3.0, 4.0))
    assert alike.linear_prior(prior, MEAN).noise_variance == 4.0


class Known:
    """Latent quantiles that are known up to their variances, under a few likelihoods."""

    def __init__(self, *likelihoods):
        self.likelihoods = likelihoods

    def marginals(self, X):
        return [
            LatentMarginals(
                weight=1 / len(self.likelihoods),
                prior=None,
                likelihood=each,
                mean=MEAN,
                variance=VARIANCE,
                noise_share=np.zeros((len(X), 3)),
            )
            for each in self.likelihoods
        ]


PREDICTING = {"return_std": False, "return_cov": False, "new_output": False}


def test_quantiles_of_new_outputs_are_those_of_the_mixture_over_what_is_not_known():
    """Oracle: outputs drawn from the model of each quantile."""
    predicted = LIKELIHOOD.predict(Known(LIKELIHOOD), MEAN, **PREDICTING)
    rng = np.random.default_rng(0)
    for channel, (level, scale) in enumerate(zip(LEVELS, SCALES, strict=True)):
        q = rng.normal(MEAN[0, channel], np.sqrt(VARIANCE[0, channel]), size=400_000)
        y = q + scale * (rng.normal(size=q.size) - stats.norm.ppf(level))
        assert predicted[0, channel] == pytest.approx(np.quantile(y, level), abs=0.02)


def test_averages_of_priors_go_by_mean_and_scatter_between_them():
    one = LIKELIHOOD.predict(Known(LIKELIHOOD), MEAN, **PREDICTING)
    same = LIKELIHOOD.predict(Known(LIKELIHOOD, LIKELIHOOD), MEAN, **PREDICTING)
    np.testing.assert_allclose(one, same)


def test_predictions_that_cross_are_sorted(monkeypatch):
    monkeypatch.setitem(globals(), "MEAN", MEAN[:, ::-1].copy())
    predicted = LIKELIHOOD.predict(Known(LIKELIHOOD), MEAN, **PREDICTING)
    assert (np.diff(predicted, axis=1) >= 0).all()
    lower, upper = LIKELIHOOD.curve_limits(Known(LIKELIHOOD), MEAN, reach=1.96)
    assert (np.diff(lower, axis=1) >= 0).all()
    assert (lower <= upper).all()


@pytest.mark.parametrize("asked", PREDICTING)
def test_spreads_are_refused(asked):
    with pytest.raises(ValueError, match="predict_limits"):
        LIKELIHOOD.predict(Known(LIKELIHOOD), MEAN, **{**PREDICTING, asked: True})


def test_a_normal_distribution_is_the_same_through_its_quantiles():
    """Oracle: scipy's, also between quantiles and beyond them."""
    truth = stats.norm(2.0, 3.0)
    known = PredictedQuantiles(
        steps=stats.norm.ppf(LEVELS),
        values=truth.ppf(LEVELS)[None, :],
        spread=np.full((1, 3), 3.0),
    )
    levels = np.array([0.01, 0.2, 0.4, 0.7, 0.9, 0.995])
    np.testing.assert_allclose(known.quantile(levels)[0], truth.ppf(levels))
    for threshold in (-9.0, -1.0, 2.0, 5.0, 12.0):
        assert known.above(threshold)[0] == pytest.approx(truth.sf(threshold))


@pytest.mark.parametrize(
    "changes",
    [
        {"quantiles": ()},
        {"quantiles": (0.5, 0.2, 0.9)},
        {"quantiles": (0.2, 0.2, 0.9)},
        {"quantiles": (0.0, 0.5, 0.9)},
        {"quantiles": (0.2, 0.5, 1.0)},
        {"quantiles": (0.2, 0.5, float("nan"))},
        {"scales": (1.0, 1.0)},
        {"scales": (1.0, 0.0, 1.0)},
        {"scales": (1.0, float("inf"), 1.0)},
        {"in_common": 1.5},
        {"in_common": float("nan")},
    ],
)
def test_what_are_no_quantiles_is_refused(changes):
    with pytest.raises(ValueError, match="quantiles are damaged"):
        QuantileLikelihood(**({"quantiles": LEVELS, "scales": SCALES} | changes)).validate()


def test_other_likelihoods_are_told_apart():
    from cloakgp.models.likelihoods import NUMBERS

    assert quantile_likelihood(LIKELIHOOD) is LIKELIHOOD
    with pytest.raises(TypeError, match="not of quantiles"):
        quantile_likelihood(NUMBERS)
