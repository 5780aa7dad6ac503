"""Catch the integers to which noise would be added, and decide what comes out instead.

All privacy noise is drawn by OpenDP, through ``_opendp`` of `cloakgp.privacy.sampler`. Here
something else goes by that name: it notes what was to be hidden, and by how much noise. What it
returns for one data set it returns for its neighbours too, as in a proof of adaptive composition:
whatever is asked later may depend on earlier answers, and must depend on no data.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest

sampler = importlib.import_module("cloakgp.privacy.sampler")

Noise = Literal["gaussian", "laplace", "exponential", "gumbel"]
# Of which custodians add shares.
SHARED: tuple[Noise, ...] = ("gaussian", "laplace")


class DependsOnDataError(AssertionError):
    """Something that is not hidden by noise differs between neighbours."""


@dataclass(frozen=True)
class Draw:
    """One draw of noise.

    Attributes
    ----------
    noise : {"gaussian", "laplace", "exponential", "gumbel"}
        The last two are those of a noisy maximum.
    integers : tuple of int
        What noise was to be added to: private.
    scale : float
    sensitivity : int
        How far the mechanism says that the integers can move.
    result : tuple of int
        What was returned.
    """

    noise: Noise
    integers: tuple[int, ...]
    scale: float
    sensitivity: int
    result: tuple[int, ...]

    @property
    def public(self) -> tuple[Noise, int, float, int]:
        """What must not depend on data."""
        return self.noise, len(self.integers), self.scale, self.sensitivity


@dataclass
class Tape:
    """The draws of one run, in order.

    Attributes
    ----------
    index : int
        What every noisy maximum chooses.
    played : sequence of Draw or None
        Of another run, whose results are returned again.
    seed : int
        Of what is returned if there is no other run.
    """

    index: int = 0
    played: Sequence[Draw] | None = None
    seed: int = 0
    draws: list[Draw] = field(default_factory=list)

    def draw(self, noise: Noise, integers: Sequence[int], *, scale: float, told: int) -> list[int]:
        """Note a draw, and return its result."""
        if not all(isinstance(integer, int) for integer in integers):
            raise TypeError("noise was to be added to something that is no Python integer")
        if self.played is not None:
            if len(self.draws) == len(self.played):
                raise DependsOnDataError("noise is drawn more often for one data set")
            result = self.played[len(self.draws)].result
        elif noise in ("exponential", "gumbel"):
            result = (self.index,)
        else:
            result = self._noisy(integers, scale=scale)
        self.draws.append(Draw(noise, tuple(integers), scale, told, result))
        return list(result)

    def _noisy(self, integers: Sequence[int], *, scale: float) -> tuple[int, ...]:
        generator = np.random.default_rng([self.seed, len(self.draws)])
        noise = generator.normal(scale=scale, size=len(integers))
        return tuple(one + round(other) for one, other in zip(integers, noise, strict=True))


class _Measurement:
    """An OpenDP measurement that notes what it measures. Its privacy map is OpenDP's own."""

    def __init__(self, tape: Tape, noise: Noise, scale: float, real: Any) -> None:
        self._tape, self._noise, self._scale, self._real = tape, noise, scale, real
        self._told: int | None = None

    def map(self, sensitivity: int) -> float:
        self._told = sensitivity
        mapped: float = self._real.map(sensitivity)
        return mapped

    def __call__(self, integers: Sequence[int]) -> Any:
        assert self._told is not None, "noise was added before its guarantee was checked"
        result = self._tape.draw(self._noise, integers, scale=self._scale, told=self._told)
        return result[0] if self._noise in ("exponential", "gumbel") else result


class _CatchingOpenDP:
    """Stands for what the sampler takes of OpenDP; noise that it does not know is an error."""

    def __init__(self, real: Any, tape: Tape) -> None:
        self._real = real

        def gaussian(*spaces: Any, scale: float) -> _Measurement:
            real_one = real.m.make_gaussian(*spaces, scale=scale)
            return _Measurement(tape, "gaussian", scale, real_one)

        def laplace(*spaces: Any, scale: float) -> _Measurement:
            real_one = real.m.make_laplace(*spaces, scale=scale)
            return _Measurement(tape, "laplace", scale, real_one)

        def noisy_max(domain: Any, metric: Any, divergence: Any, *, scale: float) -> _Measurement:
            real_one = real.m.make_noisy_max(domain, metric, divergence, scale=scale)
            pure = divergence == real.measures.max_divergence()
            noise: Noise = "exponential" if pure else "gumbel"
            return _Measurement(tape, noise, scale, real_one)

        self.m = SimpleNamespace(
            make_gaussian=gaussian, make_laplace=laplace, make_noisy_max=noisy_max
        )

    def __getattr__(self, name: str) -> Any:
        if name not in ("integers", "metrics", "measures"):
            raise AttributeError(f"the tape does not know {name} of OpenDP")
        return getattr(self._real, name)


@contextmanager
def catching(tape: Tape) -> Iterator[Tape]:
    """Let every draw of noise go to a tape."""
    with pytest.MonkeyPatch.context() as patch:
        catching = _CatchingOpenDP(sampler._opendp(), tape)
        patch.setattr(sampler, "_opendp", lambda: catching)
        for noise in SHARED:
            module = importlib.import_module(f"cloakgp.privacy.noise.{noise}")
            patch.setattr(module, f"add_share_of_{noise}", partial(_share, tape, noise))
        yield tape


def _share(
    tape: Tape,
    noise: Noise,
    integers: Any,
    *,
    scale: float,
    sensitivity: int,
    sharers: int,
    hide: Any,
) -> Any:
    """Note what one of several custodians adds a share to, as if it added all of the noise.

    Neighbours differ at one of them, and all shares together are noise of this scale.
    """
    assert sharers >= 1
    drawn = tape.draw(noise, integers.tolist(), scale=scale, told=sensitivity)
    cost = (
        sampler.Cost.of_gaussian(sensitivity=sensitivity, scale=scale, answers=len(integers))
        if noise == "gaussian"
        else sampler.Cost.of_pure(noise, sensitivity=sensitivity, scale=scale)
    )
    return sampler.spend(cost, lambda: hide(np.array(drawn, dtype=np.int64)))


def pairs(draws: Sequence[Draw], others: Sequence[Draw]) -> Generator[tuple[Draw, Draw]]:
    """Go through the draws of two data sets that got the same results.

    Raises
    ------
    DependsOnDataError
        If noise was not drawn alike.
    """
    if len(draws) != len(others):
        raise DependsOnDataError("noise is drawn more often for one data set")
    for one, other in zip(draws, others, strict=True):
        if one.public != other.public:
            raise DependsOnDataError("the noise depends on the data")
        yield one, other
