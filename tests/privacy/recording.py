"""What a mechanism would have hidden: its draws of noise, recorded instead of made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest

# Integers to which noise would be added, and its scale, of every draw.
Draws = list[tuple[np.ndarray, float]]


def recorded(
    run: Callable[[], Any],
    *,
    noise: Literal["gaussian", "laplace"],
    published: Sequence[np.ndarray] | None = None,
) -> tuple[Any, Draws]:
    """Run a mechanism that draws no noise; return its result and what it would have hidden.

    Parameters
    ----------
    run : callable
    noise : {"gaussian", "laplace"}
        Whose draws are recorded.
    published : sequence of arrays, optional
        What every draw returns, in turn; the integers themselves if not given.
    """
    draws: Draws = []

    def record(integers, *, scale, sensitivity):  # noqa: ARG001
        draws.append((integers, scale))
        return integers if published is None else published[len(draws) - 1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"cloakgp.privacy.noise.{noise}.add_discrete_{noise}", record)
        return run(), draws
