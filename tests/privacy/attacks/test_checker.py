"""The checker itself: right about mechanisms that are known, and able to find faults.

A table of mutations breaks the package in one place each, and names an attack that must succeed
then. A table of toy mechanisms breaks what no single place of the package holds.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from attacks.checker import Attack, Outcome, ViolationError, check
from attacks.families import BY_NAME, LONG, Table
from attacks.loss import (
    chosen_delta,
    gaussian_delta,
    laplace_delta,
    laplace_loss,
    mp,
    probabilities,
)
from attacks.tape import DependsOnDataError, Draw, Tape, catching
from scipy import stats

from cloakgp.privacy import sampler

TABLE = Table.of(20190417)


def module(name):
    return importlib.import_module(f"cloakgp.{name}")


# Oracles.


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [-2.0, -0.1, 0.0, 0.5, 3.0])
def test_gaussian_delta_is_the_integral_of_the_excess(mu, epsilon):
    grid = np.linspace(-15, 15 + mu, 400_001)
    excess = stats.norm.pdf(grid) - math.exp(epsilon) * stats.norm.pdf(grid, loc=mu)
    expected = np.trapezoid(np.maximum(excess, 0.0), grid)
    found = gaussian_delta(Fraction(mu) ** 2, mp.mpf(epsilon))
    assert float(found) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("shift", [0, 1, 2, 7])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.5, 1.0])
def test_laplace_delta_is_the_sum_of_the_excess(shift, epsilon):
    scale = 2.5
    one, other = (Draw("laplace", (5, at), scale, 9, (0, 0)) for at in (0, shift))
    grid = np.arange(-400, 400)
    weights = np.exp(-np.abs(grid) / scale), np.exp(-np.abs(grid - shift) / scale)
    first, second = (each / each.sum() for each in weights)
    expected = np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
    assert float(laplace_delta(one, other, mp.mpf(epsilon))) == pytest.approx(expected, abs=1e-12)
    assert float(laplace_loss(one, other)) == pytest.approx(shift / scale)


@pytest.mark.parametrize("moved", [(7, 1), (3, 3), (2, 2, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_laplace_noise_on_several_integers_is_never_taken_for_less(moved, epsilon):
    scale, grid = 2.5, np.arange(-60, 60)

    def joint(shifts):
        weights = [np.exp(-np.abs(grid - shift) / scale) for shift in shifts]
        return math.prod(np.ix_(*(each / each.sum() for each in weights)))

    excess = joint([0] * len(moved)) - math.exp(epsilon) * joint(moved)
    expected = np.maximum(excess, 0.0).sum()
    one, other = (Draw("laplace", at, scale, 9, moved) for at in ((0,) * len(moved), moved))
    found = float(laplace_delta(one, other, mp.mpf(epsilon)))
    assert expected <= found + 1e-12
    # And all of it is spent where all of ε is.
    assert laplace_delta(one, other, sum(moved) / mp.mpf(scale) + mp.mpf("1e-40")) == 0


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_probabilities_are_those_of_drawing(noise, rng):
    scores, scale = (3, 0, 2, 2), 1.7
    draw = getattr(rng, noise)
    drawn = np.argmax(np.array(scores) + draw(scale=scale, size=(200_000, 4)), axis=1)
    found = [float(one) for one in probabilities(Draw(noise, scores, scale, 1, (0,)))]
    assert sum(found) == pytest.approx(1.0)
    assert np.bincount(drawn) / 200_000 == pytest.approx(found, abs=0.005)


def test_a_choice_without_a_release_is_randomised_response():
    first, second = (Draw("gumbel", at, 1.0, 1, (0,)) for at in ((1, 0), (0, 1)))
    found = chosen_delta(first, second, [Fraction(0)] * 2, mp.mpf(0.25))
    share = 1 / (1 + math.exp(-1.0))
    assert float(found) == pytest.approx(share - math.exp(0.25) * (1 - share))


def test_the_tape_catches_every_kind_of_noise():
    integers = np.array([3, -5, 8])
    with catching(Tape(index=2)) as tape:
        gaussian = sampler.add_discrete_gaussian(integers, scale=2.0**20, sensitivity=3)
        sampler.add_discrete_laplace(integers, scale=7.0, sensitivity=1)
        for noise in ("exponential", "gumbel"):
            chosen = sampler.report_noisy_max(integers, scale=7.0, sensitivity=1, noise=noise)
            assert chosen == 2
    assert [draw.noise for draw in tape.draws] == ["gaussian", "laplace", "exponential", "gumbel"]
    assert all(draw.integers == (3, -5, 8) for draw in tape.draws)
    assert [draw.sensitivity for draw in tape.draws] == [3, 1, 1, 1]
    assert not np.array_equal(gaussian, integers)
    with catching(Tape(played=tape.draws)):
        again = sampler.add_discrete_gaussian(integers + 1, scale=2.0**20, sensitivity=3)
    np.testing.assert_array_equal(again, gaussian)
    # And nothing is caught any more.
    assert len(sampler.add_discrete_gaussian(integers, scale=2.0, sensitivity=1)) == 3
    assert len(tape.draws) == 4


# Toy mechanisms: the sum of outputs of 0 or 1, on a grid of 2^-40, with noise of sd 2.

STEP = 2**40


def toy(mechanism, *, mu=0.5, tight=None):
    """An attack on a mechanism that returns what it publishes, and how often it asked."""

    def run(y, _):
        public, visits = mechanism(np.asarray(y))
        guarantee = SimpleNamespace(
            epsilon=1.0, mu=mu * math.sqrt(visits), delta=1.0, delta_at=lambda _: 1.0
        )
        return Outcome((guarantee,), public)

    return Attack("toy", lambda _: [[[0, 1, 1], [0, 1, 0]], [[0, 1, 1], [1, 1, 1]]], run, tight)


def noisy_sum(y, *, scale=2 * STEP, sensitivity=STEP):
    total = np.array([int(y.sum()) * STEP])
    return sampler.add_discrete_gaussian(total, scale=float(scale), sensitivity=sensitivity)


def test_a_sound_toy_passes():
    assert check(toy(lambda y: (noisy_sum(y).tobytes(), 1), tight=1e-12)).pairs == 4
    twice = toy(lambda y: (noisy_sum(y).tobytes() + noisy_sum(y).tobytes(), 2), tight=1e-12)
    assert check(twice).share == pytest.approx(1.0)
    check(replace(twice, each=1e-12))


TOYS = {
    "half of the noise": (
        lambda y: (noisy_sum(y, scale=STEP).tobytes(), 1),
        ViolationError,
        "mu is 1,",
    ),
    "half of the sensitivity": (
        lambda y: (noisy_sum(y, sensitivity=STEP // 2).tobytes(), 1),
        ViolationError,
        "more than the sensitivity",
    ),
    "a forgotten visit": (
        lambda y: (noisy_sum(y).tobytes() + noisy_sum(y).tobytes(), 1),
        ViolationError,
        "mu is 0.707",
    ),
    "an output beside the noise": (
        lambda y: (noisy_sum(y).tobytes() + bytes([y[2]]), 1),
        DependsOnDataError,
        "tells more",
    ),
    "noise that depends on the data": (
        lambda y: (noisy_sum(y, scale=(2 + y[2]) * STEP).tobytes(), 1),
        DependsOnDataError,
        "noise depends",
    ),
    "a guarantee that depends on the data": (
        lambda y: (noisy_sum(y).tobytes(), 1 + y[2]),
        DependsOnDataError,
        "guarantee depends",
    ),
    "a visit that depends on the data": (
        lambda y: (b"".join(noisy_sum(y).tobytes() for _ in range(1 + y[2])), 2),
        DependsOnDataError,
        "more often",
    ),
    "no noise": (lambda y: (bytes(y.tolist()), 1), ViolationError, "no noise"),
    "too much noise": (
        lambda y: (noisy_sum(y, scale=3 * STEP).tobytes(), 1),
        ViolationError,
        "wasted",
    ),
}


@pytest.mark.parametrize(("mechanism", "error", "match"), TOYS.values(), ids=list(TOYS))
def test_a_broken_toy_is_found_out(mechanism, error, match):
    with pytest.raises(error, match=match):
        check(toy(mechanism, tight=1e-6))


@pytest.mark.parametrize("place", [0, 1])
def test_a_draw_that_is_never_moved_as_far_is_found_out(place):
    """Though all together spend most of what is stated."""

    def run(y, _):
        sensitivities = [STEP, STEP]
        sensitivities[place] *= 2
        scales = [2 * each for each in sensitivities]
        drawn = [
            noisy_sum(np.asarray(y), scale=scale, sensitivity=each)
            for scale, each in zip(scales, sensitivities, strict=True)
        ]
        guarantee = SimpleNamespace(
            epsilon=1.0, mu=math.hypot(0.5, 0.5), delta=1.0, delta_at=lambda _: 1.0
        )
        return Outcome((guarantee,), b"".join(one.tobytes() for one in drawn))

    wasteful = replace(toy(None, tight=0.3), run=run)
    check(wasteful)
    with pytest.raises(ViolationError, match=f"noise of draw {place} is wasted"):
        check(replace(wasteful, each=0.1))


def test_a_profile_that_is_too_low_is_found_out():
    sound = toy(lambda y: (noisy_sum(y).tobytes(), 1))

    def run(y, table):
        outcome = sound.run(y, table)
        (guarantee,) = outcome.guarantees
        lowered = {**vars(guarantee), "delta_at": lambda _: 1e-9}
        return replace(outcome, guarantees=(SimpleNamespace(**lowered),))

    with pytest.raises(ViolationError, match="does not hold at epsilon"):
        check(replace(sound, run=run))


# Mutations of the package.


def smaller(factor):
    """Make what a function returns smaller."""

    def mutate(whole):
        def mutated(*given, **named):
            found = whole(*given, **named)
            less = found * factor
            return less if isinstance(found, np.ndarray) else type(found)(less)

        return mutated

    return mutate


def larger(whole):
    """Make a matrix a hundredth larger."""
    return lambda *given: 1.01 * whole(*given)


def leaking(whole):
    """Leave the last answer as it is."""

    def mutated(integers, **named):
        found = whole(integers, **named)
        found[-1] = integers[-1]
        return found

    return mutated


def forgetful(whole):
    """Forget the last of several parts, if there are others."""
    return lambda *parts, **named: whole(*(parts[:-1] or parts), **named)


def euclidean(_):
    return lambda _, columns: np.sqrt(np.square(columns).sum(axis=0))


def of_the_greatest_row(_):
    return lambda self, strategy, **_: float(self.lengths(strategy).max())


def halved(whole):
    return property(lambda self: whole.fget(self) / 2)


def of_gaussian_noise_alone(_):
    accounting = module("privacy.accounting")
    return lambda mu, _, epsilon: accounting.gaussian_delta(mu, epsilon)


def ungrouped(_):
    grid = module("privacy.grid")

    def of_strategy(strategy, *, question, groups, noise):  # noqa: ARG001
        longest = float(noise.lengths(strategy).max())
        return grid.Sensitivity.of_one_row(longest, question=question, noise=noise)

    return of_strategy


def clipped_too_far_out(whole):
    return lambda self, outputs: whole(replace(self, hi=self.hi + 0.1 * self.width), outputs)


def moving_less(whole):
    """State that a candidate's error moves a tenth less than it does."""

    def band(*given, **named):
        found = whole(*given, **named)
        return replace(found, sensitivity=0.9 * found.sensitivity)

    return band


def twice_counted(whole):
    """Add the last chunk's answers twice."""

    def merge(self, other):
        found = whole(self, other)
        return replace(found, integers=found.integers + other.integers)

    return merge


def keeping_outputs(whole):
    def fit(self, X, y, *given, **named):
        self.kept_ = float(np.sum(y))
        return whole(self, X, y, *given, **named)

    return fit


# What is broken, how, and an attack that finds it out.
MUTATIONS = {
    "sensitivity halved": ("privacy.grid", "integer_sensitivity", smaller(0.5), "trace"),
    "longest column a millionth short": (
        "privacy.noise.balls",
        "column_lengths",
        smaller(1 - 3e-6),
        "cloak, logdet",
    ),
    "groups forgotten": ("privacy.grid", "Sensitivity.of_strategy", ungrouped, "groups, trace"),
    "an estimator that keeps a sum of outputs": (
        "estimators.regression",
        "DPGPRegressor.fit",
        keeping_outputs,
        "logdet",
    ),
    "clipped too far out": (
        "privacy.questions.bounds",
        "OutputBounds.clip",
        clipped_too_far_out,
        "bayes",
    ),
    "a measurement forgotten": (
        "privacy.cohorts",
        "compose",
        forgetful,
        "refine, extend and combine",
    ),
    "a step forgotten": ("privacy.cohorts", "compose", forgetful, "classes combined"),
    "a chunk counted twice": (
        "privacy.ask",
        "_Answered.merge",
        twice_counted,
        "arrays in chunks",
    ),
    "labels encoded a hundredth too large": (
        "privacy.questions.classes",
        "Classes.encode",
        larger,
        "three classes in chunks",
    ),
    "an answer about labels without noise": (
        "privacy.ask",
        "with_noise",
        leaking,
        "classes in CSV",
    ),
    "Laplace noise halved": (
        "privacy.noise.laplace",
        "LaplaceNoise.distance",
        smaller(0.5),
        "histogram, Laplace",
    ),
    "Laplace noise by Euclidean lengths": (
        "privacy.noise.laplace",
        "LaplaceNoise.lengths",
        euclidean,
        "Laplace, given questions",
    ),
    "Laplace noise by the greatest row of a group": (
        "privacy.noise.laplace",
        "LaplaceNoise.gauge",
        of_the_greatest_row,
        "Laplace, groups, trace",
    ),
    "one indicator instead of two": (
        "privacy.questions.classes",
        "Classes.absolute_distance",
        halved,
        "Laplace, three classes",
    ),
    "a stage with Laplace noise forgotten": (
        "privacy.cohorts",
        "compose",
        forgetful,
        "Laplace, two stages",
    ),
    "a visit with Gaussian noise forgotten": (
        "privacy.cohorts",
        "compose",
        forgetful,
        "Laplace, then Gaussian",
    ),
    "Laplace noise beside Gaussian left out": (
        "privacy.accounting",
        "mixed_delta",
        of_gaussian_noise_alone,
        "Laplace, then Gaussian",
    ),
    "private inputs a hundredth short": (
        "privacy.statistics",
        "integer_sensitivity",
        smaller(0.99),
        "private bins, replaced",
    ),
    "a choice's sensitivity a tenth short": (
        "privacy.selection",
        "error_band",
        moving_less,
        "select, exponential",
    ),
}


def test_what_mutations_break_is_always_attacked_whole():
    """Without them, these attacks fail: see `test_families`."""
    assert not LONG & {name for *_, name in MUTATIONS.values()}


@pytest.mark.parametrize(
    ("where", "what", "mutate", "name"), MUTATIONS.values(), ids=list(MUTATIONS)
)
def test_a_broken_package_is_found_out(where, what, mutate, name, monkeypatch):
    owner = module(where)
    *path, last = what.split(".")
    for part in path:
        owner = getattr(owner, part)
    monkeypatch.setattr(owner, last, mutate(getattr(owner, last)))
    with pytest.raises((ViolationError, DependsOnDataError)) as caught:
        check(BY_NAME[name], TABLE)
    assert "wasted" not in str(caught.value)
