"""Points that stand for a posterior: maxima, averages, and what is impossible."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import special

from cloakgp.release.hyperparameters.quadrature import (
    EVIDENCE,
    IMPOSSIBLE,
    REACH,
    posterior_maximum,
    posterior_points,
)


def quadratic(centre, precision):
    def objective(position):
        moved = position - centre
        return float(moved @ precision @ moved) / 2, precision @ moved

    return objective


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 4))
def test_a_normal_posterior_is_found_with_its_moments(seed, size):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size))
    # The weak prior's 1, and what the answers add.
    precision, centre = np.eye(size) + root @ root.T, rng.normal(size=size)
    objective = quadratic(centre, precision)
    gained = objective(np.zeros(size))[0]
    assume(abs(gained - EVIDENCE) > 1e-3)
    [(best, weight)] = posterior_points(objective, size=size, average=False)
    assert weight == 1.0
    if gained > EVIDENCE:
        np.testing.assert_allclose(best, centre, atol=1e-4)
    else:
        np.testing.assert_array_equal(best, 0)
    np.testing.assert_allclose(posterior_maximum(objective, size=size), centre, atol=1e-4)
    points = posterior_points(objective, size=size, average=True)
    assert len(points) == 1 + 2 * size
    weights = np.array([weight for _, weight in points])
    places = np.array([place for place, _ in points])
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(weights @ places, centre, atol=1e-3)
    spread = (places - centre).T @ ((places - centre) * weights[:, None])
    np.testing.assert_allclose(spread, np.linalg.inv(precision), atol=1e-3)


def test_the_better_of_two_maxima_is_found():
    """One hill near each restart; the one farther from the declared values is higher."""

    def objective(position):
        x = position[0]
        logs = np.array([-8 * (x - 2) ** 2, np.log(0.3) - 8 * (x + 1) ** 2])
        value = -special.logsumexp(logs)
        slope = 16 * special.softmax(logs) @ [x - 2, x + 1]
        return float(value), np.array([slope])

    [(best, _)] = posterior_points(objective, size=1, average=False)
    assert best[0] == pytest.approx(2.0, abs=1e-3)


def hills(position, *, top, height):
    """Two of them: one at −1, of a height, and one at the top."""
    x = position[0]
    logs = np.array([-8 * (x - top) ** 2, np.log(height) - 8 * (x + 1) ** 2])
    slope = 16 * special.softmax(logs) @ [x - top, x + 1]
    return -float(special.logsumexp(logs)), np.array([slope])


@pytest.mark.parametrize("coarse", [None, partial(hills, top=1.8, height=0.3)])
def test_from_a_given_start_alone_its_own_hill_is_found(coarse):
    """Also where a cheaper search has a higher one, and from beyond what is looked for."""
    objective = partial(hills, top=2.0, height=0.3)
    for start, top in ((-1.001, -1.0), (2.001, 2.0), (1e3, 2.0)):
        best = posterior_maximum(objective, size=1, coarse=coarse, start=np.array([start]))
        assert best[0] == pytest.approx(top, abs=1e-3)


def test_a_search_starts_where_a_cheaper_one_ends():
    """At the hill that is the highest there, and on to its top here."""
    starts = []

    def objective(position):
        starts.append(position[0])
        return hills(position, top=2.0, height=0.3)

    for height, best in ((0.3, 2.0), (3.0, -1.0)):
        starts.clear()
        coarse = partial(hills, top=1.8, height=height)
        found = posterior_maximum(objective, size=1, coarse=coarse)
        assert found[0] == pytest.approx(best, abs=1e-3)
        assert starts[0] == pytest.approx(1.8 if best == 2.0 else -1.0, abs=1e-3)
    [(best, _)] = posterior_points(
        objective, size=1, average=False, coarse=partial(hills, top=1.8, height=0.3)
    )
    assert best[0] == pytest.approx(2.0, abs=1e-3)


def test_a_cheaper_search_that_is_impossible_leaves_the_declared_start():
    def impossible(position):  # noqa: ARG001
        raise np.linalg.LinAlgError

    near = quadratic(np.full(2, 2.0), np.eye(2))
    [(best, _)] = posterior_points(near, size=2, average=False, coarse=impossible)
    np.testing.assert_allclose(best, 2.0, atol=1e-6)


def test_the_search_ends_somewhere():
    [(best, _)] = posterior_points(
        lambda x: (-float(x.sum()), -np.ones_like(x)), size=2, average=False
    )
    np.testing.assert_allclose(best, REACH)


def test_what_is_impossible_everywhere_leaves_the_declared_values():
    def objective(position):  # noqa: ARG001
        raise np.linalg.LinAlgError

    [(best, weight)] = posterior_points(objective, size=3, average=False)
    np.testing.assert_array_equal(best, 0)
    assert weight == 1.0


def test_what_is_impossible_somewhere_is_avoided():
    def objective(position):
        if position[0] > 0.4:
            raise np.linalg.LinAlgError
        return float((position - 0.3) @ (position - 0.3)), 2 * (position - 0.3)

    points = posterior_points(objective, size=1, average=True)
    assert all(place[0] <= 0.4 for place, _ in points)
    assert sum(weight for _, weight in points) == pytest.approx(1.0)
    assert IMPOSSIBLE > 1e20


def test_other_errors_are_not_hidden():
    def objective(position):  # noqa: ARG001
        raise RuntimeError("a defect")

    with pytest.raises(RuntimeError, match="a defect"):
        posterior_points(objective, size=1, average=False)
