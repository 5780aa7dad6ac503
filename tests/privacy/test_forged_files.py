"""Files that state a guarantee which their noise does not keep, and damage that must be named."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import DPGPRegressor, DPGridSearchCV, Release
from cloakgp.estimators.baselines import (
    DPHistogramRegressor,
    DPIntegralHistogramRegressor,
    NoisyHistogram,
)
from cloakgp.estimators.private_inputs import DPGPRegressorPrivateInputs
from cloakgp.privacy.accounting import Guarantee
from cloakgp.release.io.bundle import ReleaseFileError
from cloakgp.release.statistics import StatisticsRelease

# Budgets are as large as it takes.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

X = np.linspace(0, 10, 40)[:, None]
Y = np.sin(X).ravel()
LESS = 1e-6


def test_no_delta_is_negative():
    assert Guarantee(epsilon=1.0, delta=1e-5, mu=5.0, answers=3, coarseness=-1.0).delta_at(1.0) > 0


def statistics_release():
    model = DPGPRegressorPrivateInputs(
        input_bounds=[(0, 10)], bounds=(-1, 1), epsilon=1.0, delta=1e-4, n_features=4
    )
    return model.fit(X, Y).release_


def test_statistics_with_less_noise_than_they_state_are_refused(tmp_path):
    release = statistics_release()
    kept = release.statistics
    forged = replace(
        kept,
        gram_sd=kept.gram_sd * LESS,
        moment_sd=kept.moment_sd * LESS,
        guarantee=replace(kept.guarantee, mu=kept.guarantee.mu / LESS, coarseness=-1e9),
    )
    replace(release, statistics=forged).save(tmp_path / "forged")
    with pytest.raises(ReleaseFileError):
        StatisticsRelease.load(tmp_path / "forged")


@pytest.mark.parametrize(
    "edit", [{"rows": -5}, {"rows": 2.5}, {"rows": "7"}, {"insecure": "no"}, {"guarantee": 0}]
)
def test_edited_statistics_are_refused(tmp_path, edit):
    release = statistics_release()
    if "guarantee" in edit:
        edit = {"guarantee": replace(release.statistics.guarantee, answers=0)}
    replace(release, statistics=replace(release.statistics, **edit)).save(tmp_path / "edited")
    with pytest.raises(ReleaseFileError):
        StatisticsRelease.load(tmp_path / "edited")


@pytest.mark.parametrize("edit", [{"coarseness": -1e9}, {"delta": 7.0}])
def test_a_histogram_with_less_noise_than_it_states_is_refused(tmp_path, edit):
    histogram = DPHistogramRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-4).fit(X, Y).release_
    guarantee = replace(histogram.guarantee, mu=histogram.guarantee.mu / LESS, **edit)
    forged = replace(histogram, noise_sd=histogram.noise_sd * LESS, guarantee=guarantee)
    forged.save(tmp_path / "forged")
    with pytest.raises(ReleaseFileError, match=r"noise is less|delta must|guarantee"):
        NoisyHistogram.load(tmp_path / "forged")


@pytest.mark.parametrize(
    "edit",
    [{"coarseness": -1e6}, {"answers": 0, "coarseness": 0.0}, {"epsilon": 1e-9, "delta": 0.9}],
)
def test_an_edited_choice_is_refused(tmp_path, edit):
    kernel = ConstantKernel(0.3, "fixed") * RBF(2.0, "fixed")
    search = DPGridSearchCV(
        DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3, learn=None),
        {"kernel": [kernel]},
        selection_epsilon=3.0,
        cv=2,
    )
    release = search.fit(X[:12], Y[:12]).release_
    choice = replace(release.choice, worst=replace(release.choice.worst, **edit))
    replace(release, choice=choice).save(tmp_path / "edited")
    with pytest.raises(ReleaseFileError):
        Release.load(tmp_path / "edited")


def test_what_was_fitted_to_a_laplace_histogram_can_be_loaded(tmp_path):
    model = DPIntegralHistogramRegressor(
        bounds=(-1, 1), epsilon=20.0, noise="laplace", learn=None, bins=4
    ).fit(X, Y)
    model.release_.save(tmp_path / "release")
    loaded = Release.load(tmp_path / "release")
    np.testing.assert_array_equal(
        loaded.predict([[2.0, 3.0]]), model.release_.predict([[2.0, 3.0]])
    )
