"""Long tails: estimators with a transform, on all ways in which outputs are read."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import (
    DPGPRegressor,
    DPGridSearchCV,
    Release,
    extend,
    refine,
)
from cloakgp.data import ArrayRows

BUDGET = {"bounds": (1, 1000), "epsilon": 1.0, "delta": 1e-4, "noise": "gaussian"}
SPREAD = 0.5


def centre(X):
    return 3.0 + np.sin(X[:, 0])


def skewed(rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(rows, 1))
    return X, np.exp(centre(X) + SPREAD * rng.normal(size=rows))


def shares(rows, seed):
    X, y = skewed(rows, seed)
    return X, y / (20 + y)


@pytest.fixture(scope="module")
def release():
    X, y = skewed(400, 0)
    model = DPGPRegressor(
        **BUDGET, output_transform="log", inducing=15, stages=None, insecure_seed=1
    )
    return model.fit(X, y).release_


def long_tailed(rows, seed):
    """Of which the largest are some thousand times the smallest."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(rows, 1))
    typical = np.exp(6.0 + 1.5 * np.sin(X[:, 0]))
    return X, typical, typical * np.exp(0.8 * rng.normal(size=rows))


def test_it_beats_the_untransformed_default_and_its_limits_hold():
    """By the relative error; of a long tail, absolute ones are about its few largest values."""
    errors, held = {None: [], "log": []}, []
    settings = {**BUDGET, "bounds": (1, 1e6), "inducing": 15}
    for seed in range(2):
        X, _, y = long_tailed(500, seed)
        X_new, typical, y_new = long_tailed(2000, seed + 50)
        for transform, found in errors.items():
            model = DPGPRegressor(**settings, output_transform=transform, insecure_seed=seed + 1000)
            found.append(np.abs(model.fit(X, y).predict(X_new) / typical - 1).mean())
        lower, upper = model.release_.predict_limits(X_new, new_output=True)
        held.append(((y_new >= lower) & (y_new <= upper)).mean())
    assert np.mean(errors["log"]) < 0.5 * np.mean(errors[None])
    assert 0.9 < np.mean(held) < 0.995


def test_means_are_above_medians_and_near_the_truth(release):
    X = np.linspace(1, 9, 30)[:, None]
    median, mean = release.predict(X), release.predict(X, estimate="mean")
    assert (mean > median).all()
    truth = np.exp(centre(X) + SPREAD**2 / 2)
    assert np.abs(mean / truth - 1).mean() < 0.8


def test_sds_and_limits_agree_with_draws(release):
    """Of the median curve and of new outputs: the release's own normal law, taken back."""
    X = np.array([[2.0], [7.0]])
    latent = release.predict_latent(X)
    draws = np.exp(latent.mean + latent.sd * np.random.default_rng(0).normal(size=(400_000, 2)))
    level, sd = release.predict(X, return_std=True)
    np.testing.assert_allclose(level, np.median(draws, axis=0), rtol=0.01)
    np.testing.assert_allclose(sd, draws.std(axis=0), rtol=0.03)
    _, covariance = release.predict(X, return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), sd, rtol=1e-6)
    limits = release.predict_limits(X)
    np.testing.assert_allclose(limits, np.quantile(draws, [0.025, 0.975], axis=0), rtol=0.02)
    noise = np.sqrt(release.fitted_prior.noise_variance)
    new = draws * np.exp(noise * np.random.default_rng(1).normal(size=draws.shape))
    mean, sd = release.predict(X, return_std=True, new_output=True, estimate="mean")
    np.testing.assert_allclose(mean, new.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(sd, new.std(axis=0), rtol=0.1)
    curve = draws * np.exp(noise**2 / 2)
    mean, sd = release.predict(X, return_std=True, estimate="mean")
    np.testing.assert_allclose(mean, curve.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(sd, curve.std(axis=0), rtol=0.03)
    np.testing.assert_allclose(
        release.predict_limits(X, estimate="mean"),
        np.quantile(curve, [0.025, 0.975], axis=0),
        rtol=0.02,
    )


@pytest.mark.parametrize("bounds", [(1, 1e6), (1e-6, 1e6)])
def test_no_sd_is_more_than_half_the_width_of_the_bounds(bounds):
    """Where nothing is known the tail of a lognormal law is far beyond; limits are within."""
    X, y = skewed(12, 0)
    model = DPGPRegressor(bounds=bounds, epsilon=0.01, output_transform="log", insecure_seed=1)
    made = model.fit(X, y).release_
    points, half = np.array([[0.0], [5.0], [1e3], [1e3 + 1]]), (bounds[1] - bounds[0]) / 2
    for new_output in (False, True):
        for estimate in ("median", "mean"):
            asked = {"new_output": new_output, "estimate": estimate}
            _, sd = made.predict(points, return_std=True, **asked)
            assert (sd <= half).all()
            assert sd[-1] == half
            frame = made.predict_frame(points, **asked)
            np.testing.assert_array_equal(frame["sd"], sd)
            _, covariance = made.predict(points, return_cov=True, **asked)
            np.testing.assert_allclose(np.sqrt(np.diag(covariance)), sd, rtol=1e-6)
            assert np.linalg.eigvalsh(covariance).min() >= -1e-6 * half**2


def test_files_and_tables_give_output_units(release, tmp_path):
    release.save(tmp_path / "incomes.cloak")
    again = Release.load(tmp_path / "incomes.cloak")
    X = np.linspace(0, 10, 5)[:, None]
    assert again.transform == release.transform
    np.testing.assert_array_equal(again.predict(X), release.predict(X))
    frame = again.predict_frame(X, estimate="mean")
    assert list(frame) == ["mean", "sd", "lower", "upper"]
    assert list(again.predict_frame(X)) == ["median", "sd", "lower", "upper"]
    assert (frame["lower"] >= 1).all()
    assert (frame["upper"] <= 1000).all()
    assert again.output_bounds == pytest.approx((1, 1000)) or again.output_bounds[1] < 1000


def test_later_visits_transform_what_they_read(release):
    """Raw outputs are given every time; predictions stay near the truth."""
    _, y = skewed(400, 0)
    more, added = skewed(300, 5)
    later = refine(release, y, epsilon=1.0, delta=1e-4, insecure_seed=3)
    both = extend(later, more, added, epsilon=1.0, delta=1e-4, insecure_seed=4)
    assert both.transform == release.transform
    X_new = np.linspace(1, 9, 40)[:, None]
    error = np.abs(np.log(both.predict(X_new)) - centre(X_new)).mean()
    assert error < 0.35


@pytest.mark.usefixtures("few_learning_cells")
def test_groups_and_many_rows():
    X, y = skewed(6000, 3)
    settings = {
        **BUDGET,
        "delta": 1e-5,
        "inducing": 15,
        "insecure_seed": 1,
        "output_transform": "log",
    }
    model = DPGPRegressor(**settings).fit_rows(ArrayRows(X, y))
    X_new = np.linspace(1, 9, 40)[:, None]
    assert np.abs(np.log(model.predict(X_new)) - centre(X_new)).mean() < 0.25
    assert model.release_.output_bounds == (1.0, 1000.0)
    refined = refine(model.release_, ArrayRows(X, y), epsilon=1.0, delta=1e-5, insecure_seed=2)
    assert np.abs(np.log(refined.predict(X_new)) - centre(X_new)).mean() < 0.25
    people = [row // 2 for row in range(400)]
    grouped = DPGPRegressor(
        **BUDGET, output_transform="log", inducing=15, stages=None, insecure_seed=1
    )
    grouped.fit(X[:400], y[:400], groups=people)
    assert np.isfinite(grouped.predict(X_new)).all()


def test_shares_stay_shares():
    X, y = shares(400, 1)
    model = DPGPRegressor(
        bounds=(0.01, 0.99),
        epsilon=1.0,
        delta=1e-4,
        output_transform="logit",
        inducing=15,
        stages=None,
        insecure_seed=1,
    ).fit(X, y)
    frame = model.release_.predict_frame(X[:50], new_output=True)
    assert frame["lower"].between(0.01, 0.99).all()
    assert frame["upper"].between(0.01, 0.99).all()
    truth = 1 / (1 + 20 / np.exp(centre(X)))
    assert np.abs(model.predict(X) - truth).mean() < 0.1
    mean, sd = model.predict(X[:5], return_std=True, estimate="mean")
    assert ((mean > 0) & (mean < 1) & (sd > 0) & (sd < 0.5)).all()


def test_the_grid_search_compares_transformed_outputs():
    X, y = skewed(150, 2)
    inner = DPGPRegressor(**{**BUDGET, "delta": 1e-3}, output_transform="log", insecure_seed=1)
    search = DPGridSearchCV(inner, {"noise_variance": [0.25, 1.0]}, selection_epsilon=1.0, cv=2)
    assert np.isfinite(search.fit(X, y).predict([[5.0]], estimate="mean")).all()


def test_other_transforms_are_not_combined(release):
    X, y = skewed(400, 0)
    plain = DPGPRegressor(
        release.prior.kernel, bounds=(1, 1000), epsilon=1.0, delta=1e-4, insecure_seed=2
    ).fit(X, y)
    with pytest.raises(ValueError, match="cannot be combined"):
        release.combine(plain.release_)


def test_declared_means_are_in_output_units():
    X, y = skewed(50, 0)
    settings = {
        **BUDGET,
        "output_transform": "log",
        "learn": None,
        "insecure_seed": 1,
        "delta": 1e-3,
    }
    model = DPGPRegressor(**settings, mean=20.0).fit(X, y)
    assert model.release_.prior.mean == pytest.approx(np.log(20))
    with pytest.raises(ValueError, match="mean must be within the bounds"):
        DPGPRegressor(**settings, mean=0.1).fit(X, y)
    with pytest.raises(ValueError, match="estimate"):
        model.release_.predict([[1.0]], estimate="mode")
