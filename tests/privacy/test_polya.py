"""Pólya numbers: their law, drawn exactly; and that shares of them are discrete Laplace noise."""

from __future__ import annotations

import heapq
import secrets
from collections import Counter
from fractions import Fraction
from functools import partial, reduce

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from cloakgp.privacy.polya import (
    _keeps_two_over_e,
    draw_bernoulli_exp,
    draw_poisson,
    draw_polya,
)

# One run in a hundred million fails by chance.
CHANCE = 1e-8
# Of a law that is gone through.
ENOUGH = Fraction(1, 10**6)


def polya(shape, scale, *, most):
    """The probabilities of 0, …, most."""
    k, q = np.arange(most + 1), np.exp(-1 / scale)
    logs = gammaln(k + shape) - gammaln(shape) - gammaln(k + 1) + k * np.log(q)
    return np.exp(logs + shape * np.log1p(-q))


class Choose(Exception):
    """A path ends at a choice, of outcomes with these probabilities."""

    def __init__(self, probabilities):
        self.probabilities = probabilities


class Uniform:
    """A uniform whole number below n, of which no more is decided than is asked."""

    def __init__(self, n, choose):
        self.n, self.choose, self.value = n, choose, None

    def _below(self, k):
        if self.value is not None:
            return self.value < k
        likely = Fraction(min(max(k, 0), self.n), self.n)
        return self.choose([1 - likely, likely]) == 1

    def __index__(self):
        if self.value is None:
            self.value = self.choose([Fraction(1, self.n)] * self.n)
        return self.value

    def __lt__(self, k):
        return self._below(k)

    def __ge__(self, k):
        return not self._below(k)

    def __bool__(self):
        return not self._below(1)

    def __eq__(self, k):
        return self._below(1) if k == 0 and self.value is None else int(self) == k

    __hash__ = None

    def __radd__(self, other):
        return other + int(self)

    def __rlshift__(self, other):
        return other << int(self)


def laws(draw, *, paths_gone=8_000):
    """The exact probabilities of what a function of uniform numbers returns, and what is left.

    So many paths are gone, the likeliest first.
    """
    found, rest = Counter(), Fraction(1)
    paths = [(-1.0, (), Fraction(1))]
    for _ in range(paths_gone):
        if rest < ENOUGH:
            break
        _, path, probability = heapq.heappop(paths)
        followed = iter(path)

        def choose(probabilities, followed=followed):
            if probabilities in ([0, 1], [1, 0]):
                return probabilities.index(1)
            try:
                return next(followed)
            except StopIteration:
                raise Choose(probabilities) from None

        try:
            found[draw(partial(Uniform, choose=choose))] += probability
            rest -= probability
        except Choose as choice:
            for number, each in enumerate(choice.probabilities):
                taken = probability * each
                heapq.heappush(paths, (-float(taken), (*path, number), taken))
    return found, rest


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 4)])
def test_exponential_coins_are_exact(exponent):
    found, left = laws(lambda below: draw_bernoulli_exp(exponent, below))
    assert float(found[True]) <= np.exp(-float(exponent)) <= float(found[True] + left)


def test_coins_of_two_over_e_are_exact():
    found, left = laws(_keeps_two_over_e)
    assert float(found[True]) <= 2 / np.e <= float(found[True] + left)


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), Fraction(4, 5)])
def test_poisson_numbers_are_exact(rate):
    found, left = laws(lambda below: draw_poisson(rate, below))
    for count in range(3):
        exact = stats.poisson.pmf(count, float(rate))
        assert float(found[count]) <= exact <= float(found[count] + left)


@pytest.mark.parametrize("scale", [1, 2])
def test_polya_numbers_are_exact(scale):
    """On few levels: the blocks of the last and its thinning are gone through."""
    found, left = laws(
        lambda below: draw_polya(Fraction(1, 20), scale=Fraction(scale), below=below)
    )
    exact = polya(0.05, float(scale), most=4)
    assert left < Fraction(1, 20)
    for count in range(5):
        assert float(found[count]) <= exact[count] <= float(found[count] + left)


@pytest.mark.parametrize(
    ("shape", "scale"),
    [
        (Fraction(1, 3), Fraction(7, 2)),
        (Fraction(1), Fraction(9, 4)),
        (Fraction(1, 10), Fraction(8)),
    ],
)
def test_draws_against_the_law(shape, scale):
    draws, most = 20_000, 25
    drawn = [draw_polya(shape, scale=scale, below=secrets.randbelow) for _ in range(draws)]
    expected = polya(float(shape), float(scale), most=most) * draws
    counts = Counter(drawn)
    observed = np.array([counts[each] for each in range(most + 1)], dtype=float)
    # With fewer in each, χ² is exceeded more often than its law says at so small a chance.
    few = expected < 50
    observed = np.append(observed[~few], draws - observed[~few].sum())
    expected = np.append(expected[~few], draws - expected[~few].sum())
    assert stats.chisquare(observed, expected).pvalue > CHANCE


def test_fine_draws_are_gamma_numbers():
    """A Pólya number of a large τ, over τ, is a gamma number of its shape."""
    scale = Fraction(3 * 2**40 + 1)
    drawn = [draw_polya(Fraction(1, 4), scale=scale, below=secrets.randbelow) for _ in range(4000)]
    assert stats.kstest(np.array(drawn) / float(scale), "gamma", args=(0.25,)).pvalue > CHANCE


@pytest.mark.parametrize("sharers", [1, 2, 3, 10])
def test_shares_are_discrete_laplace_noise(sharers):
    """By convolution: n differences of Pólya numbers of shape 1/n, to the last digits."""
    scale, most = 2.5, 400
    one = polya(1 / sharers, scale, most=most)
    geometric = reduce(np.convolve, [one] * sharers)[: most + 1]
    q = np.exp(-1 / scale)
    np.testing.assert_allclose(geometric, (1 - q) * q ** np.arange(most + 1), rtol=1e-9)
    share = np.convolve(one, one[::-1])
    noise = reduce(np.convolve, [share] * sharers)
    middle = len(noise) // 2
    t = np.arange(-30, 31)
    np.testing.assert_allclose(
        noise[middle + t], (1 - q) / (1 + q) * q ** np.abs(t), rtol=1e-9, atol=1e-15
    )
