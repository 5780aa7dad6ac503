"""Counts, as people fit them: rates, whole numbers, exposures, files and later visits."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from forging import write_forged
from scipy.stats import nbinom, norm
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import DPGPClassifier, DPGPRegressor, ReleaseFileError, extend, load, refine
from cloakgp.models.likelihoods import CountLikelihood
from cloakgp.plots import display_of
from cloakgp.report.describe import describe

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

RNG = np.random.default_rng(5)
X = np.linspace(0.0, 10.0, 150)[:, None]
RATE = np.exp(1.0 + 0.8 * np.sin(X[:, 0] / 2))
EXPOSURE = RNG.uniform(0.5, 3.0, len(X))
Y = RNG.negative_binomial(4, 4 / (4 + EXPOSURE * RATE))


def model(**changes):
    chosen = {"bounds": (0, 60), "epsilon": 20.0, "likelihood": "counts", "insecure_seed": 3}
    return DPGPRegressor(**(chosen | {"gap": 0.1} | changes))


@pytest.fixture(scope="module")
def release():
    return model().fit(X, Y, exposure=EXPOSURE).release_


def test_rates_are_near_the_truth(release):
    error = np.log(release.predict(X) / RATE)
    assert np.sqrt(np.mean(error**2)) < 0.2
    sd = release.predict_latent(X).sd
    assert 0.3 < np.sqrt(np.mean((error / sd) ** 2)) < 2.0


def test_intervals_hold_new_counts_of_any_exposure(release):
    exposure = np.tile([0.5, 10.0], len(X) // 2)
    mean = exposure * RATE
    lower, upper = release.predict_interval(X, coverage=0.9, exposure=exposure)
    assert np.array_equal(lower, np.round(lower))
    # Of what is not known of rates and scatter, intervals have their part, too.
    truth = nbinom(4, 4 / (4 + mean))
    assert 0.87 < np.mean(truth.cdf(upper) - truth.cdf(lower - 1)) < 0.98
    assert release.predict_quantile(X, 0.5).shape == (len(X),)
    quantiles = release.predict_quantile(X, [0.1, 0.9])
    np.testing.assert_array_equal(quantiles[:, 1], release.predict_quantile(X, 0.9))
    none = 1 - release.probability_above(X, 0, exposure=exposure)
    assert np.mean(np.abs(none - truth.pmf(0))) < 0.05


def test_the_spread_of_counts_is_learned(release):
    assert 0.1 < release.fitted.likelihood.overdispersion < 0.7
    counts = np.random.default_rng(1).poisson(EXPOSURE * RATE)
    poisson = model().fit(X, counts, exposure=EXPOSURE).release_
    assert poisson.fitted.likelihood.overdispersion < 0.1
    declared = model(overdispersion=0).fit(X, counts, exposure=EXPOSURE).release_
    assert declared.fitted.likelihood.overdispersion == 0
    assert not any(each.about_spread for each in declared.measurements)


def test_in_other_units_of_exposure_rates_are_in_others(release):
    fitted = model().fit(X, Y, exposure=EXPOSURE * 12).release_
    np.testing.assert_allclose(fitted.predict(X) * 12, release.predict(X), rtol=0.1)


def test_without_exposure_it_is_one():
    plain, ones = (
        model(epsilon=1.0, learn=None).fit(X, Y, exposure=each).release_
        for each in (None, np.ones(len(X)))
    )
    np.testing.assert_array_equal(plain.predict(X), ones.predict(X))


def test_it_is_saved_loaded_told_and_drawn(release, tmp_path):
    release.save(tmp_path / "counts.cloak")
    again = load(tmp_path / "counts.cloak")
    for predict in (
        lambda one: one.predict(X, estimate="mean"),
        lambda one: one.predict_interval(X, exposure=EXPOSURE)[1],
    ):
        np.testing.assert_array_equal(predict(again), predict(release))
    told = "\n".join(fact.text for section in describe(again) for fact in section.facts)
    assert "from 0 to 60" in told
    assert "negative binomial" in told
    points = again.measurements[0].strategy.X_query
    spread = np.sqrt(np.mean(np.square(again.predict_latent(points).sd)))
    assert f"have an sd of {spread:.4g} " in told
    assert "of the logarithm of the rate: 0.1 is a tenth" in told
    assert f"{EXPOSURE.min():.4g} to {EXPOSURE.max():.4g}" in told
    frame = release.predict_frame(pd.DataFrame(X))
    assert list(frame) == ["median", "sd", "lower", "upper"]
    assert (frame["lower"] < frame["median"]).all()
    assert (frame["median"] < frame["upper"]).all()
    assert display_of(again).draw().axes[0].get_ylabel() == "y"
    with pytest.raises(ValueError, match="raw predictions"):
        release.published()
    with pytest.raises(ValueError, match="no covariance"):
        release.predict(X, return_cov=True)


def test_files_that_do_not_fit_themselves_are_refused(release, tmp_path):
    path = tmp_path / "odd.cloak"
    write_forged(replace(release, likelihood=CountLikelihood(61), learned=()), path)
    with pytest.raises(ReleaseFileError, match="not counted as it says"):
        load(path)
    [first, *others] = release.measurements
    negative = replace(first, strategy=replace(first.strategy, row_exposure=-EXPOSURE))
    write_forged(replace(release, measurements=(negative, *others)), path)
    with pytest.raises(ReleaseFileError, match="exposure"):
        load(path)


def test_more_is_known_after_later_visits():
    first = model(epsilon=1.0).fit(X, Y, exposure=EXPOSURE).release_
    budget = {"epsilon": 5.0, "delta": 0.0, "gap": 0.1, "insecure_seed": 7}
    again = refine(first, Y, **budget)
    both = extend(again, X + 20.0, Y, exposure=EXPOSURE, **budget)
    assert again.predict_latent(X).sd.mean() < first.predict_latent(X).sd.mean()
    assert both.predict_latent(X + 20).sd.mean() < again.predict_latent(X + 20).sd.mean()
    exposures = [each.strategy.row_exposure for each in both.measurements]
    assert all(np.array_equal(each, EXPOSURE) for each in exposures)
    with pytest.raises(ValueError, match="those that are asked again have theirs"):
        refine(first, Y, exposure=EXPOSURE, **budget)
    numbers = DPGPRegressor(bounds=(0, 60), epsilon=1.0, learn=None, stages=None).fit(X, Y)
    with pytest.raises(ValueError, match="exposure is of counts"):
        extend(numbers.release_, X, Y, exposure=EXPOSURE, **budget)


def test_one_count_is_near_what_quadrature_says():
    """One row, one answer, its prior and likelihood written out."""
    kernel = ConstantKernel(0.5, "fixed") * RBF(1.0, "fixed")
    chosen = {"kernel": kernel, "mean": 6.0, "learn": None, "stages": None, "overdispersion": 0.3}
    row, exposure = np.zeros((2, 1)), np.array([2.0, 2.0])
    fitted = model(noise="gaussian", delta=1e-3, epsilon=8.0, **chosen)
    release = fitted.fit(row, [9, 14], exposure=exposure).release_
    [measurement] = release.measurements
    asked, sd = measurement.strategy.matrix, measurement.noise_sd
    answers = measurement.residuals()[:, 0]
    f = np.log(6.0) + np.sqrt(0.5) * np.linspace(-6, 6, 121)
    y = np.arange(61)
    roots = np.sqrt(y + 0.375)
    posterior = norm.pdf(f, np.log(6.0), np.sqrt(0.5))
    for place, one in enumerate(f):
        mean = 2.0 * np.exp(one)
        masses = nbinom(1 / 0.3, 1 / (1 + 0.3 * mean)).pmf(y)
        away = answers[:, None, None] - (
            asked[:, :1, None] * roots[None, :, None] + asked[:, 1:, None] * roots[None, None, :]
        )
        density = norm.pdf(away, scale=sd).prod(axis=0)
        posterior[place] *= masses @ density @ masses
    posterior /= posterior.sum()
    known = release.predict_latent([[0.0]])
    exact = posterior @ f
    exact_sd = np.sqrt(posterior @ f**2 - exact**2)
    assert known.mean[0] == pytest.approx(exact, abs=0.15 * exact_sd)
    assert known.sd[0] == pytest.approx(exact_sd, rel=0.15)


def test_groups_are_protected_together():
    groups = np.arange(len(X)) // 3
    release = model(epsilon=2.0).fit(X, Y, exposure=EXPOSURE, groups=groups.tolist()).release_
    assert all(np.array_equal(each.strategy.groups, groups) for each in release.measurements)


def test_plans_are_of_roots():
    plan = model().plan(X, epsilons=[])
    assert "of the square root of a count" in str(plan)
    assert model(memory=4.0).plan_fit((40_000, 2)).by_passes
    assert not model(memory=4.0).plan_fit((40_000, 2), grouped=True).by_passes


@pytest.mark.parametrize(
    ("changes", "exposure", "error"),
    [
        ({"bounds": (-1, 60)}, None, "counts are not below 0|begin at 0"),
        ({"bounds": (0, 60.5)}, None, "whole numbers"),
        ({"output_transform": "log"}, None, "scatter by their likelihood"),
        ({"noise_variance": 1.0}, None, "scatter by their likelihood"),
        ({"overdispersion": -1.0}, None, "overdispersion must be"),
        ({"mean": 0.0}, None, "must be positive"),
        ({"likelihood": "poisson"}, None, "must be one of normal, counts"),
        ({"likelihood": "normal", "overdispersion": 1.0}, None, "is of counts"),
        ({"likelihood": "normal"}, EXPOSURE, "goes with likelihood='counts'"),
        ({}, EXPOSURE[1:], "one number for each"),
        ({}, -EXPOSURE, "positive and finite"),
        ({}, EXPOSURE * np.nan, "positive and finite"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, exposure, error):
    with pytest.raises(ValueError, match=error) as caught:
        model(**changes).fit(X, np.full(len(X), 12345.678), exposure=exposure)
    assert "12345" not in str(caught.value)


def test_predictions_refuse_what_makes_no_sense(release):
    refused = re.compile("between 0 and 1|must be positive|one for each row")
    for call in (
        lambda: release.predict_interval(X, coverage=1.0),
        lambda: release.predict_quantile(X, [0.5, 0.0]),
        lambda: release.probability_above(X, 1, exposure=0.0),
        lambda: release.predict_quantile(X, 0.5, exposure=EXPOSURE[1:]),
    ):
        with pytest.raises(ValueError, match=refused):
            call()
    labels = DPGPClassifier(classes=[0, 1], epsilon=1.0, learn=None).fit(X, (Y > 2).astype(int))
    with pytest.raises(TypeError, match="no quantiles"):
        labels.release_.predict_interval(X)


def test_an_estimator_is_cloned_and_kept():
    made = clone(model(overdispersion=0.1)).fit(X[:20], Y[:20])
    assert pickle.loads(pickle.dumps(made)).release_.likelihood.overdispersion == 0.1


def test_numbers_have_intervals_and_probabilities_of_their_gaussian():
    numbers = DPGPRegressor(bounds=(0, 60), epsilon=9.0, learn=None, stages=None, interval=False)
    known = numbers.fit(X, Y).release_
    mean, sd = known.predict(X, return_std=True, new_output=True)
    lower, upper = known.predict_interval(X, coverage=0.9)
    np.testing.assert_allclose(upper, np.clip(norm.ppf(0.95, mean, sd), 0, 60))
    np.testing.assert_allclose(lower, np.clip(norm.ppf(0.05, mean, sd), 0, 60))
    np.testing.assert_allclose(known.probability_above(X, 5.0), norm.sf(5.0, mean, sd))
    assert (known.probability_above(X, -1.0) == 1.0).all()
    with pytest.raises(ValueError, match="exposure is of counts"):
        known.predict_quantile(X, 0.5, exposure=1.0)
