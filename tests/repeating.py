"""Noise that is drawn alike in every run, for tests of what is true of most draws and not of all.

The law is that of the sampler, whose own tests draw from the operating system's randomness. All
else goes on as ever: what is asked, calibrated, counted and published.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

sampler = importlib.import_module("cloakgp.privacy.sampler")


class _Repeating:
    """Stands for a measurement of OpenDP's, whose privacy map it keeps."""

    def __init__(self, real: Any, publish: Any) -> None:
        self.map, self._publish = real.map, publish

    def __call__(self, integers: list[int]) -> Any:
        return self._publish(integers)


# None that tests draw their tables by: noise would go with them.
SEED = 20190417


@contextmanager
def repeating_noise(seed: int = SEED) -> Iterator[None]:
    """Draw all noise by a seed while a block runs."""
    rng, real = np.random.default_rng(seed), sampler._opendp()

    def added(draw: Any, scale: float, integers: list[int]) -> list[int]:
        noise = np.rint(draw(scale=scale, size=len(integers)))
        return [value + int(each) for value, each in zip(integers, noise, strict=True)]

    def gaussian(*spaces: Any, scale: float) -> _Repeating:
        one = real.m.make_gaussian(*spaces, scale=scale)
        return _Repeating(one, partial(added, rng.normal, scale))

    def laplace(*spaces: Any, scale: float) -> _Repeating:
        one = real.m.make_laplace(*spaces, scale=scale)
        return _Repeating(one, partial(added, rng.laplace, scale))

    def noisy_max(domain: Any, metric: Any, divergence: Any, *, scale: float) -> _Repeating:
        one = real.m.make_noisy_max(domain, metric, divergence, scale=scale)
        draw = rng.exponential if divergence == real.measures.max_divergence() else rng.gumbel
        return _Repeating(
            one, lambda scores: int(np.argmax(scores + draw(scale=scale, size=len(scores))))
        )

    m = SimpleNamespace(make_gaussian=gaussian, make_laplace=laplace, make_noisy_max=noisy_max)
    stands = SimpleNamespace(**{**vars(real), "m": m})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "_opendp", lambda: stands)
        below = random.Random(seed).randrange
        patch.setattr(sampler, "secrets", SimpleNamespace(randbelow=below))
        yield
