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


def shown(integers):
    return integers


def test_laplace_shares_are_discrete_laplace_noise():
    tau, draws, sharers = 2.5, 8_000, 3
    zeros = np.zeros(draws, dtype=np.int64)
    shares = [
        sampler.add_share_of_laplace(zeros, scale=tau, sensitivity=1, sharers=sharers, hide=shown)
        for _ in range(sharers)
    ]
    noise, q = sum(shares), np.exp(-1 / tau)
    edges = np.arange(-8, 9)
    mass = (1 - q) / (1 + q) * q ** np.abs(edges)
    observed = np.array([(noise == edge).sum() for edge in edges])
    expected = np.append(mass, 1 - mass.sum()) * draws
    assert stats.chisquare(np.append(observed, draws - observed.sum()), expected).pvalue > 1e-8


def test_gaussian_shares_are_normal_noise():
    tau, sharers = 1.7 * 2.0**41, 5
    values = np.full(10_000, 2**55 + 1, dtype=np.int64)
    shares = [
        sampler.add_share_of_gaussian(
            values, scale=tau, sensitivity=2**40, sharers=sharers, hide=shown
        )
        for _ in range(sharers)
    ]
    noise = sum(share - values for share in shares)
    assert stats.kstest(noise / tau, "norm").pvalue > 1e-8


def test_gaussian_shares_add_up_to_the_scale():
    from fractions import Fraction

    for scale in (6.0, 1.7 * 2.0**41, 1e12 / 3):
        for sharers in (1, 2, 3, 7, 10):
            share = Fraction(sampler.share_of_scale(scale, sharers=sharers))
            assert Fraction(scale) ** 2 <= share**2 * sharers
            assert share**2 * sharers <= Fraction(scale) ** 2 * (1 + Fraction(1, 2**50))


def test_gaussian_shares_of_few_steps_are_refused():
    with pytest.raises(ValueError, match="too coarse"):
        sampler.add_share_of_gaussian(
            np.zeros(1, dtype=np.int64), scale=2000.0, sensitivity=1, sharers=9, hide=shown
        )


@pytest.mark.parametrize(("sd", "count"), [(0.6, 2), (0.6, 5), (0.8, 3)])
def test_the_sum_of_discrete_gaussians_is_as_close_to_one_as_the_theorem_says(sd, count):
    """By convolution, where it can be told apart from one."""
    import mpmath

    with mpmath.workdps(60):
        reach = 24

        def law(variance):
            mass = [mpmath.exp(-(mpmath.mpf(t) ** 2) / (2 * variance)) for t in range(-60, 61)]
            return [each / mpmath.fsum(mass) for each in mass]

        one = law(mpmath.mpf(sd) ** 2)
        total = one
        for _ in range(count - 1):
            total = [
                mpmath.fsum(
                    total[i] * one[j - i + 60]
                    for i in range(max(0, j - 60), min(len(total), j + 61))
                    if 0 <= j - i + 60 < len(one)
                )
                for j in range(len(total))
            ]
        exact = law(count * mpmath.mpf(sd) ** 2)
        apart = max(
            abs(mpmath.log(total[60 + t] / exact[60 + t])) for t in range(-reach, reach + 1)
        )
        bound = 10 * mpmath.fsum(
            mpmath.exp(-2 * mpmath.pi**2 * sd**2 * k / (k + 1)) for k in range(1, count)
        )
        assert 0 < apart <= bound


def test_noise_of_any_size_is_hidden_modulo_64_bits():
    values = np.array([2**62, -5], dtype=np.int64)
    found = sampler._wrapped_sum(values, [2**62 + 2**64, -(2**64) * 3 - 1])
    assert [int(each) % 2**64 for each in found] == [2**63, (-6) % 2**64]
