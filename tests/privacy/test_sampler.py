"""The noise really is the discrete Gaussian that the proofs speak of."""

import numpy as np
import pytest
from scipy import stats

from cloakgp.privacy import sampler


def test_small_scale_noise_against_the_discrete_gaussian():
    tau, draws = 2.5, 40_000
    noise = sampler.add_discrete_gaussian(np.zeros(draws, dtype=np.int64), scale=tau, sensitivity=1)
    edges = np.arange(-8, 9)
    mass = np.exp(-(np.arange(-60, 61) ** 2) / (2 * tau**2))
    mass /= mass.sum()
    middle = mass[60 - 8 : 60 + 9]
    observed = np.array([(noise == edge).sum() for edge in edges])
    rest = draws - observed.sum()
    expected = np.append(middle, 1 - middle.sum()) * draws
    # One run in a hundred million fails by chance.
    assert stats.chisquare(np.append(observed, rest), expected).pvalue > 1e-8


def test_large_scale_noise_is_normal_and_exactly_added():
    tau = 1.7 * 2.0**41
    values = np.full(20_000, 2**55 + 1, dtype=np.int64)
    noisy = sampler.add_discrete_gaussian(values, scale=tau, sensitivity=2**40)
    assert stats.kstest((noisy - values) / tau, "norm").pvalue > 1e-8


def test_two_draws_differ():
    zeros = np.zeros(4, dtype=np.int64)
    first, second = (
        sampler.add_discrete_gaussian(zeros, scale=2.0**40, sensitivity=1) for _ in range(2)
    )
    assert not np.array_equal(first, second)


def test_openDPs_own_map_must_agree(monkeypatch):
    class Measurement:
        def map(self, distance):
            return distance**2

        def __call__(self, _):
            raise AssertionError("nothing may be drawn")

    monkeypatch.setattr("opendp.prelude.m.make_gaussian", lambda *_, **__: Measurement())
    with pytest.raises(RuntimeError, match="nothing released"):
        sampler.add_discrete_gaussian(np.zeros(1, dtype=np.int64), scale=10.0, sensitivity=3)


def test_insecure_noise_repeats():
    zeros = np.zeros(3, dtype=np.int64)
    first, again, other = (
        sampler.add_insecure_gaussian(zeros, scale=1e6, seed=seed) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
