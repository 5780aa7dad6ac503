"""Noisy residuals: brute force over changed rows, and what is published."""

import importlib
import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF
from whole_row_neighbours import BOUNDS, BOX, neighbours_of, spent, table

from cloakgp.models.cosines import CosineBasis
from cloakgp.models.features import BinBasis
from cloakgp.models.simplex import simplex_corners
from cloakgp.privacy.residuals import (
    SPREAD_WEIGHT,
    integer_sum,
    measure_residuals,
    residuals_sensitivity,
)
from cloakgp.privacy.statistics import NEIGHBOURS

door = importlib.import_module("cloakgp.privacy.residuals")

BASES = {
    "cosines": CosineBasis(
        box=BOX,
        shares=(np.array([0.7, 0.1, 0.1, 0.1]), np.full(4, 0.25)),
        signal_variance=100.0,
        mean_variance=100.0,
        wanted=12,
    ),
    "bins": BinBasis(kernel=RBF(1.0), box=BOX, bins=(2, 2)),
}


def measured(X, y, *, basis, neighbours="replace", epsilon=1.0, weights=None, **changes):
    if weights is None:
        weights = np.linspace(-20.0, 20.0, basis.count)
    given = {"centre": 137.0, "half_width": 9.0, **changes}
    return measure_residuals(
        X,
        y,
        basis=basis,
        bounds=BOUNDS,
        weights=weights,
        epsilon=epsilon,
        delta=1e-5,
        neighbours=neighbours,
        **given,
    )


@pytest.mark.parametrize("half_width", [9.0, 70.0, 1e-300])
@pytest.mark.parametrize("name", sorted(BASES))
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_no_changed_row_spends_more_than_claimed(neighbours, name, half_width):
    basis, rng = BASES[name], np.random.default_rng(0)
    X, y = table(rng)
    tables = [(X, y), *neighbours_of(X, y, neighbours=neighbours, rng=rng)]
    most, claimed = spent(
        lambda X, y: measured(X, y, basis=basis, neighbours=neighbours, half_width=half_width),
        tables,
    )
    assert most <= claimed


def worst_tables(neighbours):
    """Of bins the bound is attained: one row goes from the lower end of its band to the upper."""
    rng = np.random.default_rng(0)
    X, y = table(rng)
    X[0], y[0] = BOX.lo, BOUNDS[0]
    return [(X, y), *neighbours_of(X, y, neighbours=neighbours, rng=rng)]


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_some_changed_row_spends_all_of_it(neighbours):
    most, claimed = spent(
        lambda X, y: measured(X, y, basis=BASES["bins"], neighbours=neighbours),
        worst_tables(neighbours),
    )
    assert 0.999999 * claimed <= most <= claimed


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_a_broken_sensitivity_is_caught(neighbours, monkeypatch):
    """Mutation: a hundredth short, and the brute force above must object."""
    whole = door.integer_sensitivity
    monkeypatch.setattr(door, "integer_sensitivity", lambda **kw: int(0.99 * whole(**kw)))
    most, claimed = spent(
        lambda X, y: measured(X, y, basis=BASES["bins"], neighbours=neighbours),
        worst_tables(neighbours),
    )
    assert most > claimed


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1), st.floats(-1, 1))
def test_the_proved_bound_holds(v, other, length, another, cosine):
    """Of any two features of norm at most 1, at any angle, with any two residuals."""
    squares = [length * v, another * other]
    apart = squares[0] ** 2 + squares[1] ** 2 - 2 * cosine * squares[0] * squares[1]
    spread = SPREAD_WEIGHT**2 * (v**2 - other**2) ** 2
    assert math.sqrt(max(apart, 0) + spread) <= residuals_sensitivity(neighbours="replace") * (
        1 + 1e-12
    )
    alone = squares[0] ** 2 + SPREAD_WEIGHT**2 * (v**2 - 0.5) ** 2
    assert math.sqrt(alone) <= residuals_sensitivity(neighbours="add-remove") * (1 + 1e-12)


def test_the_bound_would_not_hold_of_a_large_weight():
    """Mutation: with γ = 2 a pair of residuals lies further apart than 2."""
    assert (
        max(
            math.sqrt((a + b) ** 2 * (1 + 4 * (a - b) ** 2))
            for a, b in itertools.product(np.linspace(0, 1, 50), repeat=2)
        )
        > 2.01
    )


def test_other_rows_do_not_change_a_rows_integers():
    rng = np.random.default_rng(1)
    for basis in BASES.values():
        X, y = table(rng, rows=30)
        kept = {
            "basis": basis,
            "weights": np.linspace(-20.0, 20.0, 2 * basis.count).reshape(-1, 2),
            "centre": 137.0,
            "half_width": 9.0,
            "step": 2.0**-30,
        }
        values = np.column_stack([y, y - 3.0])
        whole = integer_sum(X, values, **kept)
        single = sum(integer_sum(X[n : n + 1], values[n : n + 1], **kept) for n in range(30))
        assert np.array_equal(whole, single)


def test_sums_are_those_of_clipped_residuals():
    basis, rng = BASES["cosines"], np.random.default_rng(2)
    X, y = table(rng, rows=50)
    found = measured(X, y, basis=basis, epsilon=1e7)
    features = basis.features(X)
    residuals = np.clip(y, *BOUNDS) - 137.0 - features @ np.linspace(-20.0, 20.0, basis.count)
    scaled = np.clip(residuals / 9.0, -1, 1)
    np.testing.assert_allclose(found.moments, 9.0 * features.T @ scaled, atol=0.05)
    assert found.squares == pytest.approx(np.sum(scaled**2 - 0.5), abs=0.01)


# --- labels: points for classes ---


def of_labels(X, y, *, basis, neighbours, points, half_width=1.0, reach=0.3):
    """Residuals of labels, about predictions that go as far as `reach` in every coordinate."""
    size = (basis.count, points.shape[1])
    return measured(
        X,
        y,
        basis=basis,
        neighbours=neighbours,
        points=points,
        weights=reach * np.linspace(-1.0, 1.0, math.prod(size)).reshape(size),
        centre=0.0,
        half_width=half_width,
    )


def labelled_tables(classes, *, neighbours):
    """Of a first row at the lower end, of the last class; and all that can come of one row."""
    rng = np.random.default_rng(0)
    X, _ = table(rng)
    y = rng.integers(classes, size=len(X)).astype(float)
    X[0], y[0] = BOX.lo, classes - 1
    outputs = range(classes)
    return [(X, y), *neighbours_of(X, y, neighbours=neighbours, rng=rng, outputs=outputs)]


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("name", sorted(BASES))
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_no_changed_label_spends_more_than_claimed(neighbours, name, classes):
    points = simplex_corners(classes) + 0.2
    for half_width, reach in ((1.0, 0.3), (0.4, 0.0), (1e-300, 2.0)):
        most, claimed = spent(
            partial(
                of_labels,
                basis=BASES[name],
                neighbours=neighbours,
                points=points,
                half_width=half_width,
                reach=reach,
            ),
            labelled_tables(classes, neighbours=neighbours),
        )
        assert most <= claimed


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_the_noise_of_labels_does_not_grow_with_classes(neighbours, classes):
    """By √(2C/(C − 1)) in one bin corners are apart, at most 2, which is what is claimed."""
    points = simplex_corners(classes)
    most, claimed = spent(
        lambda X, y: of_labels(
            X, y, basis=BASES["bins"], neighbours=neighbours, points=points, reach=0.0
        ),
        labelled_tables(classes, neighbours=neighbours),
    )
    apart = math.sqrt(2 * classes / (classes - 1)) / 2 if neighbours == "replace" else 1.0
    assert most == pytest.approx(apart * claimed, rel=1e-6)
    numbers = measured(*table(np.random.default_rng(0)), basis=BASES["bins"], neighbours=neighbours)
    assert claimed == pytest.approx(numbers.guarantee.mu, rel=1e-6)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_labels_whose_points_are_not_shortened_are_caught(neighbours, monkeypatch):
    """Mutation: each coordinate is clipped by itself, and the brute force above must object."""
    monkeypatch.setattr(door, "within_ball", lambda v: np.clip(v, -1.0, 1.0))
    most, claimed = spent(
        lambda X, y: of_labels(
            X,
            y,
            basis=BASES["bins"],
            neighbours=neighbours,
            points=simplex_corners(7),
            half_width=0.3,
            reach=0.0,
        ),
        labelled_tables(7, neighbours=neighbours),
    )
    assert most > 1.1 * claimed


def test_sums_of_labels_are_those_of_their_points():
    basis, points = BASES["cosines"], simplex_corners(3)
    X, y = labelled_tables(3, neighbours="replace")[0]
    found = measured(
        X,
        y,
        basis=basis,
        epsilon=1e7,
        points=points,
        weights=np.zeros((basis.count, 2)),
        centre=0.0,
        half_width=2.0,
    )
    features = basis.features(X)
    np.testing.assert_allclose(found.moments, features.T @ points[y.astype(int)], atol=0.02)
    assert found.squares == pytest.approx(len(X) * (0.25 - 0.5), abs=0.01)


def test_noise_is_as_stated():
    basis, rng = BASES["cosines"], np.random.default_rng(3)
    X, y = table(rng, rows=20)
    exact = measured(X, y, basis=basis, epsilon=1e7)
    draws = [measured(X, y, basis=basis) for _ in range(60)]
    moments = np.array([one.moments for one in draws]) - exact.moments
    moments /= draws[0].moment_sd
    squares = (np.array([one.squares for one in draws]) - exact.squares) / draws[0].squares_sd
    for standardised in (moments, squares):
        assert abs(standardised.mean()) < 5.5 / math.sqrt(standardised.size)
        assert standardised.std() == pytest.approx(1, abs=5.5 / math.sqrt(2 * standardised.size))


@pytest.mark.parametrize(
    "forged",
    [
        {"noise_sd": 0.01},
        {"noise_sd": math.nan},
        {"half_width": 0.0},
        {"squares": math.inf},
        {"weights": np.zeros(2)},
    ],
)
def test_forged_residuals_are_refused(forged):
    X, y = table(np.random.default_rng(4))
    found = measured(X, y, basis=BASES["cosines"])
    found.validate()
    with pytest.raises(ValueError, match="its"):
        replace(found, **forged).validate()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"neighbours": "friends"}, "neighbours"),
        ({"weights": np.zeros(2)}, "weights"),
        ({"half_width": 0.0}, "half width"),
        ({"centre": math.nan}, "centre"),
    ],
)
def test_bad_settings(change, complaint):
    X, y = table(np.random.default_rng(5))
    with pytest.raises(ValueError, match=complaint):
        measured(X, y, basis=BASES["cosines"], **change)
