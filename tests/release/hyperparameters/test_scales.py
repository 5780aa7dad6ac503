"""Smaller scales are weighed by how probable they make the answers, where these are few."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from cloakgp import DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.fitting.held import HeldTable
from cloakgp.models.scales import SCALES
from cloakgp.release import Hyperprior

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 10, size=(60, 1))
NARROW = 5.0 + 0.1 * np.sin(X[:, 0]) + 0.02 * RNG.normal(size=60)


def fitted(y, *, epsilon=0.5, **changes):
    model = DPGPRegressor(
        bounds=(0, 100), epsilon=epsilon, insecure_seed=1, interval=False, **changes
    )
    return model.fit(X, y).release_


def test_weights_are_shares_of_the_evidence():
    """In one stage and with nothing else free, the answers are jointly normal."""
    release = fitted(NARROW, stages=None, delta=1e-3)
    [measurement] = release.measurements
    questions, answers = measurement.strategy.matrix, measurement.answers
    learned = release.learn(Hyperprior(noise_variance=False, mean=False, scale=True)).learned
    assert len(learned) == len(SCALES)
    posterior = []
    for one in learned:
        outputs = one.prior.kernel(X) + one.prior.noise_variance * np.eye(len(X))
        covariance = questions @ outputs @ questions.T
        covariance += answers.noise_sd**2 * np.eye(len(covariance))
        law = multivariate_normal(np.zeros(len(covariance)), covariance)
        posterior.append(law.pdf(answers.values[:, 0]))
    expected = np.array(posterior) / np.sum(posterior)
    np.testing.assert_allclose([one.weight for one in learned], expected, rtol=1e-6)


def test_wide_bounds_and_few_answers_leave_less_to_noise():
    """Over draws, a narrow column is predicted better than by the scale of its bounds alone."""
    errors = {True: [], False: []}
    for seed in range(12):
        model = DPGPRegressor(bounds=(0, 100), epsilon=0.5, insecure_seed=seed, interval=False)
        release = model.fit(X, NARROW).release_
        for scale in errors:
            told = release.learn(Hyperprior(scale=scale)).predict(X)
            errors[scale].append(np.square(told - NARROW).mean())
    assert np.mean(errors[True]) < 0.9 * np.mean(errors[False])


@pytest.mark.parametrize(
    ("changes", "considered"),
    [
        ({}, True),
        ({"epsilon": 3.0}, False),
        ({"noise_variance": 4.0}, False),
        ({"public_prediction": (X[:9], NARROW[:9])}, False),
        ({"likelihood": "counts"}, False),
        ({"learn": None}, None),
    ],
)
def test_where_they_are_considered(changes, considered):
    hyperprior = fitted(np.round(NARROW), **changes).hyperprior
    assert (None if hyperprior is None else hyperprior.scale) is considered


@pytest.mark.parametrize(("noise", "delta"), [("laplace", 0.0), ("gaussian", 1e-3)])
def test_they_are_considered_when_all_was_asked(monkeypatch, noise, delta):
    """Stages are designed for one scale: those of a smaller one could not refute it."""
    considered, learn = [], HeldTable.learn

    def watched(table, release, asked, *, hyperprior, average):
        considered.append(hyperprior.scale)
        return learn(table, release, asked, hyperprior=hyperprior, average=average)

    monkeypatch.setattr(HeldTable, "learn", watched)
    release = fitted(NARROW, epsilon=2.0, noise=noise, delta=delta)
    assert len(release.measurements) == len(considered) > 1
    assert considered == [*[False] * (len(considered) - 1), True]


def test_rows_in_passes_have_one_scale():
    model = DPGPRegressor(bounds=(0, 100), epsilon=0.5, inducing=10, insecure_seed=1)
    release = model.fit_rows(ArrayRows(X, NARROW)).release_
    assert len(release.learned) == 1


def test_persons_count_not_rows():
    model = DPGPRegressor(bounds=(0, 100), epsilon=3.0, insecure_seed=1, interval=False)
    persons = pd.Series(np.arange(60) // 3, name="person")
    assert model.fit(X, NARROW, groups=persons).release_.hyperprior.scale
