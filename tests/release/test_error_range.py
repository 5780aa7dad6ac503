"""The range of the error for one person: against draws, and truths from the prior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import ConstantKernel

from cloakgp import DPGPMultiOutputRegressor, DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.fitting.calibration import COARSE_CELLS
from cloakgp.models import default_kernel
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy.questions.calibration import CalibrationQuestion
from cloakgp.release.accuracy import LIKELY
from cloakgp.release.calibration import Calibration
from cloakgp.release.error_range import (
    LOG_COUNTED_SD,
    LOG_LAW_SD,
    LOG_OWN_SD,
    error_range,
    known_noise,
)
from cloakgp.release.hyperparameters.noise import LOG_NOISE_SD
from cloakgp.release.new_outputs import NewNumbers

WIDE = {"declared": (-100.0, 100.0), "bounds": (-100.0, 100.0)}
LEVELS = (0.1, 0.9)


def range_of(covariance, *, noise, log_noise_sd, **changes):
    """Of outputs with a noise variance whose mean is what predictions go by."""
    sd = np.sqrt(np.diag(covariance) + noise)
    new = NewNumbers(changes.pop("mean", np.zeros(len(sd))), sd, **WIDE | changes)
    found = error_range(new, covariance=covariance, log_noise=(1.0, log_noise_sd), probability=0.8)
    assert found.with_outside is None
    return found.within


def draws_of(covariance, *, noise, log_noise_sd, rng, size=20_000):
    """Errors of curves, and noise sds, of the law that is meant."""
    values, vectors = np.linalg.eigh(covariance)
    points = len(covariance)
    curves = rng.normal(size=(size, points)) @ (vectors * np.sqrt(np.maximum(values, 0))).T
    log_sds = 0.5 * np.log(noise) - log_noise_sd**2 + log_noise_sd * rng.normal(size=size)
    return curves, np.exp(log_sds)


def smooth(lengthscale):
    points = np.linspace(0, 1, 60)
    return np.exp(-(((points[:, None] - points) / lengthscale) ** 2))


@pytest.mark.parametrize("lengthscale", [0.01, 0.2, 10.0])
@pytest.mark.parametrize("log_noise_sd", [0.05, 0.4])
def test_the_law_is_that_of_draws(lengthscale, log_noise_sd, rng):
    """Of one direction, of a few and of many; of noise that is known well or not."""
    covariance, known = smooth(lengthscale), {"noise": 0.5, "log_noise_sd": log_noise_sd}
    curves, sds = draws_of(covariance, **known, rng=rng)
    assert np.mean(sds**2) == pytest.approx(0.5, rel=0.03)
    errors = np.sqrt(np.mean(curves**2, axis=1) + sds**2)
    np.testing.assert_allclose(
        range_of(covariance, **known), np.quantile(errors, LEVELS), rtol=0.06
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150])
def test_curves_of_any_size_have_a_range(scale):
    """Squares of their covariances are nothing, or no numbers."""
    found = range_of(scale * smooth(0.2), noise=0.0, log_noise_sd=0.1)
    usual = range_of(smooth(0.2), noise=0.0, log_noise_sd=0.1)
    np.testing.assert_allclose(found, np.sqrt(scale) * np.asarray(usual), rtol=1e-9)


@pytest.mark.parametrize("lengthscale", [0.01, 0.2, 10.0])
def test_of_transformed_outputs_it_is_that_of_draws_in_their_units(lengthscale, rng):
    transform = OutputTransform("log", (1.0, 400.0))
    covariance, known = 0.1 * smooth(lengthscale), {"noise": 0.2, "log_noise_sd": 0.3}
    mean = np.linspace(2.0, 5.0, 60)
    curves, sds = draws_of(covariance, **known, rng=rng, size=2000)
    noise = sds[:, None, None] * rng.normal(size=(2000, 60, 20))
    outputs = np.exp(np.clip((mean + curves)[:, :, None] + noise, 0.0, np.log(400.0)))
    errors = np.sqrt(np.mean(np.square(outputs - np.exp(mean)[:, None]), axis=(1, 2)))
    found = range_of(
        covariance,
        **known,
        mean=mean,
        transform=transform,
        declared=transform.ends,
        bounds=transform.bounds,
    )
    np.testing.assert_allclose(found, np.quantile(errors, LEVELS), rtol=0.12)


def test_without_a_curve_it_is_that_of_the_noise():
    found = range_of(np.zeros((3, 3)), noise=4.0 * np.exp(2 * 0.3**2), log_noise_sd=0.3)
    np.testing.assert_allclose(found, 2.0 * np.exp(0.3 * 1.2816 * np.array([-1, 1])), rtol=0.01)


def test_noise_that_was_given_leaves_nothing_open():
    new = NewNumbers(np.zeros(3), np.ones(3), **WIDE)
    assert error_range(new, covariance=np.eye(3), log_noise=None, probability=0.8) is None


# Residuals over a predictive sd: narrower, as predicted, wider; of short tails, and of long ones.
RESIDUALS = {
    "narrow": stats.norm(scale=0.5),
    "uniform": stats.uniform(loc=-1.5, scale=3.0),
    "off centre": stats.norm(loc=0.5, scale=0.9),
    "long tails": stats.t(6, scale=0.8),
}


def counted(law, *, rows, noise, rng):
    """Predictions with counts in four strata of a table whose residuals have a law."""
    shares = np.diff(law.cdf(np.concatenate([[-np.inf], COARSE_CELLS, [np.inf]])))
    counts = rng.multinomial(rows // 4, shares, size=4) + noise * rng.normal(size=(4, len(shares)))
    question = CalibrationQuestion(
        mean=np.zeros(2),
        sd=np.ones(2),
        cells=COARSE_CELLS,
        strata=np.array([-1.0, 0.0, 1.0]),
        middles=np.array([-1.5, -0.5, 0.5, 1.5]),
        sizes=np.full(4, rows / 4),
    )
    known = Calibration(counts=counts, question=question, noise_sd=noise)
    return NewNumbers(np.linspace(-2, 2, 40), np.ones(40), **WIDE, calibration=known)


def range_by_counts(new):
    return error_range(new, covariance=np.eye(40), log_noise=(1.0, 0.3), probability=LIKELY).within


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "noise"), [(2000, 18.0), (4000, 10.0)])
def test_by_counts_it_holds_the_law_of_the_residuals_as_often_as_it_says(rows, noise, rng):
    """With the least rows that are counted, and their noise."""
    held, claimed = [], []
    for _ in range(10):
        for law in RESIDUALS.values():
            new = counted(law, rows=rows, noise=noise, rng=rng)
            truth = np.sqrt(law.var() + law.mean() ** 2)
            low, high = range_by_counts(new)
            claimed.append(new.typical_error() / truth)
            held.append(low <= truth <= high)
    assert np.mean(held) > LIKELY - 2.5 * np.sqrt(LIKELY * (1 - LIKELY) / len(held))
    assert np.median(claimed) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("name", RESIDUALS)
def test_counts_of_many_rows_tell_the_error_whatever_noise_variance_is_assumed(name, rng):
    law = RESIDUALS[name]
    new = counted(law, rows=200_000, noise=18.0, rng=rng)
    low, high = range_by_counts(new)
    assert np.log(high / low) == pytest.approx(2 * 1.2816 * LOG_COUNTED_SD, rel=0.05)
    assert low < new.typical_error() < high
    # Between cells, and beyond the last, a smooth law stands for the one that was drawn.
    assert new.typical_error() == pytest.approx(np.sqrt(law.var() + law.mean() ** 2), rel=0.12)


def test_more_rows_and_less_noise_by_counts_leave_less_open(rng):
    widths = []
    for rows, noise in ((2000, 18.0), (8000, 16.0), (400_000, 16.0)):
        low, high = range_by_counts(counted(stats.norm(), rows=rows, noise=noise, rng=rng))
        widths.append(np.log(high / low))
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 1.05 * 2 * 1.2816 * LOG_COUNTED_SD < 1.1 * widths[-1] < widths[0]


def drawn(kind, *, rows, seed, new=400, again=False):
    """Inputs and outputs of a curve from the prior, of noise from its prior and of three laws."""
    rng = np.random.default_rng((seed, 1))
    X, Z = rng.uniform(size=(rows + new, 2)), rng.uniform(size=(150, 2))
    kernel = default_kernel(X, width=1.0)
    covariance = kernel(Z) + 1e-8 * np.eye(150)
    root = kernel(X, Z) @ np.linalg.inv(covariance) @ np.linalg.cholesky(covariance)
    curve = root @ rng.normal(size=150)
    if again:
        curve = root @ rng.normal(size=150)
    noise_sd = 0.3 * np.exp(LOG_NOISE_SD * rng.normal())
    law = ("uniform", "normal", "long tails")[seed % 3]
    y = curve + noise_sd * residuals(law, rng, len(X))
    return X, 100.0 * 5.0 ** np.clip(y / np.log(5.0), -1.0, 1.0) if kind == "log" else y, kernel


def released(kind, *, rows, epsilon, seed):
    """Outputs of a curve that is drawn from the prior; bounds are three times as wide as it is."""
    X, y, kernel = drawn(kind, rows=rows, seed=seed)
    model = DPGPRegressor(
        bounds=(20.0, 500.0) if kind == "log" else (-1.5, 1.5),
        epsilon=epsilon,
        kernel=kernel,
        gap=0.1,
        interval=False,
        output_transform="log" if kind == "log" else None,
        inducing=40 if rows > 250 else None,
        insecure_seed=seed,
    )
    if kind == "passes":
        release = model.fit_rows(ArrayRows(X[:rows], y[:rows])).release_
    else:
        release = model.fit(X[:rows], y[:rows]).release_
    return release, X[rows:], y[rows:]


def test_more_rows_and_budget_tell_the_noise_better():
    unsure = []
    for rows, epsilon in ((60, 0.3), (100, 1.0), (100, 10.0)):
        release, *_ = released("plain", rows=rows, epsilon=epsilon, seed=0)
        unsure.append(known_noise(release.measurements)[1])
    assert unsure[0] == LOG_NOISE_SD
    assert unsure == sorted(unsure, reverse=True)
    # 100 rows alone leave the logarithm of their sd unsure by about .1, and the law is not known.
    assert 0.07**2 < unsure[-1] ** 2 - LOG_LAW_SD**2 < 0.15**2
    # Of the noise of one of several outputs an answer about all leaves what was not known before.
    for count in (2, 5):
        mean, own = known_noise(release.measurements, count=count)
        assert own**2 == pytest.approx(unsure[-1] ** 2 + LOG_OWN_SD**2)
        # It is as often larger as smaller than what is claimed.
        assert np.log(mean) == pytest.approx(2.0 * (LOG_LAW_SD**2 + LOG_OWN_SD**2))


def test_of_rows_that_were_asked_twice_the_last_answer_counts():
    release, *_ = released("plain", rows=100, epsilon=10.0, seed=0)
    [asked] = [one for one in release.measurements if one.about_spread]
    noisier = replace(asked, answers=replace(asked.answers, noise_sd=50.0 * asked.noise_sd))
    assert known_noise([noisier, asked]) == known_noise([asked])
    assert known_noise([asked, noisier]) == known_noise([noisier]) != known_noise([asked])


def residuals(law, rng, size):
    """Draw numbers of mean square 1: of short tails, normal, and of long ones."""
    if law == "uniform":
        return rng.uniform(-np.sqrt(3), np.sqrt(3), size=size)
    if law == "normal":
        return rng.normal(size=size)
    return rng.standard_t(4, size=size) / np.sqrt(2.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "rows", "epsilon", "draws"),
    [
        ("plain", 60, 0.5, 60),
        ("plain", 120, 3.0, 60),
        ("log", 60, 0.5, 60),
        ("log", 120, 3.0, 60),
        ("passes", 600, 4.0, 30),
        ("counted", 1900, 3.0, 30),
    ],
)
def test_truths_from_the_prior_lie_in_the_range_as_often_as_it_says(kind, rows, epsilon, draws):
    """Whatever the law of residuals is, which nobody asked."""
    held = []
    for seed in range(draws):
        release, X, y = released(kind, rows=rows, epsilon=epsilon, seed=seed)
        assert release.is_calibrated == (kind == "counted")
        error = np.sqrt(np.mean(np.square(release.predict(X) - y)))
        low, high = release.accuracy().between
        held.append(low <= error <= high)
    assert np.mean(held) > LIKELY - 2.5 * np.sqrt(LIKELY * (1 - LIKELY) / draws)


@pytest.mark.slow
def test_truths_of_several_outputs_lie_in_the_range_of_each():
    """Whose noises are alike by chance alone."""
    held = []
    for seed in range(30):
        X, first, kernel = drawn("plain", rows=150, seed=seed)
        # Of the same inputs.
        second = drawn("plain", rows=150, seed=seed, again=True)[1]
        Y = np.column_stack([first, 15.0 + 10.0 * second])
        model = DPGPMultiOutputRegressor(
            bounds=[(-1.5, 1.5), (0, 30)],
            epsilon=2.0,
            # In squared widths of the bounds.
            kernel=ConstantKernel(1 / 9) * kernel,
            gap=0.1,
            interval=False,
            insecure_seed=seed,
        )
        release = model.fit(X[:150], Y[:150]).release_
        errors = np.sqrt(np.mean(np.square(release.predict(X[150:]) - Y[150:]), axis=0))
        for error, told in zip(errors, release.accuracies(), strict=True):
            held.append(told.between[0] <= error <= told.between[1])
    assert np.mean(held) > LIKELY - 2.5 * np.sqrt(LIKELY * (1 - LIKELY) / 30)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1.0, 3.0, 7.0])
def test_truths_of_outputs_of_other_noises_lie_in_the_range_of_each(times):
    """In widths of the bounds, the noise of one is so many times that of the other."""
    held, draws = [], 8
    noises = 0.08 * np.sqrt(times) ** np.array([-1.0, 1.0])
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 10, (900, 1))
        curves = np.column_stack([0.5 + 0.2 * np.sin(X[:, 0]), 0.45 + 0.01 * X[:, 0]])
        Y = np.clip(curves + noises * rng.normal(size=curves.shape), 0, 1) * [10, 100]
        model = DPGPMultiOutputRegressor(
            bounds=[(0, 10), (0, 100)], epsilon=3.0, gap=0.1, insecure_seed=seed
        )
        release = model.fit(X[:250], Y[:250]).release_
        errors = np.sqrt(np.mean(np.square(release.predict(X[250:]) - Y[250:]), axis=0))
        for error, told in zip(errors, release.accuracies(), strict=True):
            held.append(told.between[0] <= error <= told.between[1])
    assert np.mean(held) > LIKELY - 2.5 * np.sqrt(LIKELY * (1 - LIKELY) / (2 * draws))
