"""Noisy statistics: brute force over changed rows, an audit, and what is published."""

import importlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from whole_row_neighbours import spent, table

from cloakgp.models.features import BinBasis, EigenBasis, InputBox
from cloakgp.models.simplex import simplex_corners
from cloakgp.privacy.sampler import add_discrete_gaussian
from cloakgp.privacy.statistics import (
    NEIGHBOURS,
    calibrate_statistics,
    integer_sum,
    measure_statistics,
)

door = importlib.import_module("cloakgp.privacy.statistics")

BOX = InputBox((-1.0,), (3.0,))
WIDE = InputBox((-1.0, 10.0), (3.0, 20.0))
BOUNDS = (100.0, 180.0)
BASES = {
    "eigen": EigenBasis(kernel=ConstantKernel(400.0) * RBF(0.8), box=BOX, wanted=6),
    "eigen, 2d": EigenBasis(kernel=Matern([1.0, 4.0], nu=1.5), box=WIDE, wanted=7),
    "bins": BinBasis(kernel=RBF(1.0), box=BOX, bins=(5,)),
}


def spent_on(basis, X, y, neighbour_tables, *, neighbours, **kept):
    """Return (largest μ over the given neighbours, claimed μ), from the integers that get noise."""

    def measured(*one):
        return measure_statistics(*one, basis=basis, bounds=BOUNDS, neighbours=neighbours, **kept)

    return spent(measured, [(X, y), *neighbour_tables])


def neighbours_of(basis, X, y, *, neighbours, rng, places=6):
    """Replace row 0 by rows all over the box and beyond, at both ends of y; or add, or remove."""
    lo, hi = np.asarray(basis.box.lo), np.asarray(basis.box.hi)
    inputs = [lo + share * (hi - lo) for share in np.linspace(-0.2, 1.2, places)]
    inputs += [lo + rng.uniform(size=len(lo)) * (hi - lo) for _ in range(places)]
    found = []
    for row in inputs:
        for end in (*BOUNDS, 140.0):
            if neighbours == "replace":
                found.append((np.vstack([row, X[1:]]), np.concatenate([[end], y[1:]])))
            else:
                found.append((np.vstack([row, X]), np.concatenate([[end], y])))
    if neighbours == "add-remove":
        found += [(np.delete(X, row, axis=0), np.delete(y, row)) for row in range(len(X))]
    return found


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(sorted(BASES)),
    st.sampled_from(NEIGHBOURS),
    st.sampled_from([None, 0.2, 1.0, 2.5]),
    st.floats(0.1, 10.0),
)
@settings(max_examples=6)
def test_no_changed_row_spends_more_than_claimed(seed, name, neighbours, weighting, epsilon):
    rng, basis = np.random.default_rng(seed), BASES[name]
    X, y = table(rng, box=basis.box)
    most, claimed = spent_on(
        basis,
        X,
        y,
        neighbours_of(basis, X, y, neighbours=neighbours, rng=rng),
        neighbours=neighbours,
        epsilon=epsilon,
        delta=1e-5,
        weighting=weighting,
    )
    assert most <= claimed


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_some_changed_row_spends_all_of_it(neighbours):
    """With bins the bound is attained; the search above would notice a bound that is short."""
    basis, rng = BASES["bins"], np.random.default_rng(0)
    X, y = table(rng, box=basis.box)
    X[0], y[0] = BOX.lo[0], BOUNDS[0]
    most, claimed = spent_on(
        basis,
        X,
        y,
        neighbours_of(basis, X, y, neighbours=neighbours, rng=rng),
        neighbours=neighbours,
        epsilon=1.0,
        delta=1e-5,
    )
    assert 0.999 * claimed <= most <= claimed


def test_some_changed_row_comes_near_with_eigenfunctions():
    basis, rng = BASES["eigen"], np.random.default_rng(0)
    X, y = table(rng, box=basis.box)
    features = basis.features(BOX.reference)
    X[0], y[0] = BOX.reference[np.linalg.norm(features, axis=1).argmax()], BOUNDS[0]
    most, claimed = spent_on(
        basis,
        X,
        y,
        neighbours_of(basis, X, y, neighbours="replace", rng=rng, places=40),
        neighbours="replace",
        epsilon=1.0,
        delta=1e-5,
    )
    assert 0.9 * claimed <= most <= claimed


@pytest.mark.parametrize("name", ["bins", "eigen"])
def test_a_broken_sensitivity_is_caught(name, monkeypatch):
    """Mutation: with a sensitivity 12 % short, the brute force above must object."""
    grid_module = importlib.import_module("cloakgp.privacy.statistics")
    whole = grid_module.integer_sensitivity
    monkeypatch.setattr(grid_module, "integer_sensitivity", lambda **kw: int(0.88 * whole(**kw)))
    basis, rng = BASES[name], np.random.default_rng(0)
    X, y = table(rng, box=basis.box)
    features = basis.features(BOX.reference)
    X[0], y[0] = BOX.reference[np.linalg.norm(features, axis=1).argmax()], BOUNDS[0]
    tables = neighbours_of(basis, X, y, neighbours="replace", rng=rng, places=40)
    most, claimed = spent_on(basis, X, y, tables, neighbours="replace", epsilon=1.0, delta=1e-5)
    assert most > claimed


def test_other_rows_do_not_change_a_rows_integers():
    """The sum of a table is the sum of its rows' own sums, to the last bit, in any order."""
    rng = np.random.default_rng(1)
    for basis in BASES.values():
        X, y = table(rng, rows=30, box=basis.box)
        scaled = np.column_stack([(y - 140) / 40, (y - 110) / 30])
        kept = {"basis": basis, "weighting": 0.9, "step": 2.0**-30}
        whole = integer_sum(X, scaled, **kept)
        single = sum(integer_sum(X[n : n + 1], scaled[n : n + 1], **kept) for n in range(30))
        assert np.array_equal(whole, single)
        order = rng.permutation(30)
        assert np.array_equal(whole, integer_sum(X[order], scaled[order], **kept))


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_labels_spend_no_more_than_claimed_and_no_more_than_numbers(neighbours, classes):
    """Corners stand for classes; with bins, adding a row of any class attains the bound."""
    rng = np.random.default_rng(0)
    claims = []
    for name in ("bins", "eigen"):
        basis = BASES[name]
        X, _ = table(rng, box=BOX)
        y = rng.integers(classes, size=len(X)).astype(float)
        X[0], y[0] = BOX.lo[0], 0.0
        changed = [
            (np.vstack([row, rest[0]]), np.concatenate([[label], rest[1]]))
            for row in np.linspace(-2.0, 4.0, 13)
            for label in range(classes)
            for rest in [(X[1:], y[1:]) if neighbours == "replace" else (X, y)]
        ]
        kept = {"neighbours": neighbours, "epsilon": 1.0, "delta": 1e-5, "weighting": 1.5}
        most, claimed = spent(
            lambda X, y, basis=basis, kept=kept: measure_statistics(
                X, y, basis=basis, bounds=(-1, 1), points=simplex_corners(classes), **kept
            ),
            [(X, y), *changed],
        )
        assert most <= claimed
        if name == "bins":
            assert most >= (0.999 if neighbours == "add-remove" else 0.84) * claimed
        numbers = measure_statistics(X, y, basis=basis, bounds=(-1, 1), **kept)
        claims.append(claimed / numbers.guarantee.mu)
    assert claims == pytest.approx([1, 1], rel=1e-6)


def test_points_that_are_not_shortened_are_caught(monkeypatch):
    """Mutation: points longer than half the bounds' width, left as they are."""
    basis = BASES["bins"]
    X, _ = table(np.random.default_rng(0), box=BOX)
    y = np.zeros(len(X))

    def most_of(points):
        return spent(
            lambda X, y: measure_statistics(
                X,
                y,
                basis=basis,
                bounds=(-1, 1),
                points=points,
                epsilon=1.0,
                delta=1e-5,
                neighbours="add-remove",
            ),
            [(X, y), (np.vstack([X, [[0.0]]]), np.append(y, 1.0))],
        )

    long = 3 * simplex_corners(4)
    most, claimed = most_of(long)
    assert most <= claimed
    monkeypatch.setattr(door, "within_ball", lambda v: v)
    most, claimed = most_of(long)
    assert most > claimed


class TooLong:
    """A basis that breaks its promise: long features, and NaN for one input."""

    box, count, exclusive, weight_covariance = BOX, 2, False, np.eye(2)

    def features(self, X):
        return np.where(X > 2.9, np.nan, np.hstack([10 + X, -10 * X]))


def test_a_basis_that_breaks_its_promise_breaks_no_privacy():
    basis, rng = TooLong(), np.random.default_rng(2)
    X, y = table(rng, box=basis.box)
    most, claimed = spent_on(
        basis,
        X,
        y,
        neighbours_of(basis, X, y, neighbours="replace", rng=rng),
        neighbours="replace",
        epsilon=1.0,
        delta=1e-5,
    )
    assert most <= claimed


# --- an audit: an attacker who knows all rows but one ---


def audited_delta(*, noise_share, neighbours, draws, epsilon=1.0, delta=0.05):
    """The δ that a likelihood-ratio attack attains on a row whose input and output change."""
    basis = EigenBasis(kernel=RBF(1.0), box=BOX, wanted=2)
    grid, _ = calibrate_statistics(
        features=basis.count,
        weighting=1.0,
        neighbours=neighbours,
        exclusive=False,
        epsilon=epsilon,
        delta=delta,
    )
    kept = {"basis": basis, "weighting": 1.0, "step": grid.step}
    points = BOX.reference[::5]
    sums = [
        integer_sum(point[None], np.array([[end]]), **kept)
        for point in points
        for end in (-1.0, 1.0)
    ]
    pairs = (
        [(one, np.zeros_like(one)) for one in sums]
        if neighbours == "add-remove"
        else [(one, other) for one in sums for other in sums]
    )
    worst = max(pairs, key=lambda pair: np.linalg.norm((pair[0] - pair[1]).astype(float)))
    scale = grid.scale * noise_share

    def share_above(centre):
        noisy = add_discrete_gaussian(
            np.tile(centre, draws), scale=scale, sensitivity=grid.sensitivity
        ).reshape(draws, -1)
        distances = [np.square((noisy - other) / scale).sum(axis=1) for other in worst]
        return float(np.mean((distances[1] - distances[0]) / 2 > epsilon))

    here, there = (share_above(centre) for centre in worst)
    variance = here * (1 - here) + math.exp(2 * epsilon) * there * (1 - there)
    return here - math.exp(epsilon) * there, math.sqrt(variance / draws)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("draws", [2_000, pytest.param(30_000, marks=pytest.mark.slow)])
def test_the_attack_attains_no_more_than_the_claim(neighbours, draws):
    attained, error = audited_delta(noise_share=1.0, neighbours=neighbours, draws=draws)
    # Six standard errors: a false alarm in hundreds of millions of runs.
    assert attained <= 0.05 + 6 * error
    # The worst pair of inputs in the box comes near the bound over all features.
    assert attained >= 0.04 - 6 * error


@pytest.mark.parametrize(
    ("noise_share", "draws"),
    [(0.5, 4_000), pytest.param(0.8, 30_000, marks=pytest.mark.slow)],
)
def test_the_audit_notices_too_little_noise(noise_share, draws):
    """Mutation: noise that is short exceeds the claim."""
    attained, error = audited_delta(noise_share=noise_share, neighbours="replace", draws=draws)
    assert attained > 0.05 + 6 * error


# --- what is published ---


@pytest.mark.parametrize("name", sorted(BASES))
def test_statistics_are_unbiased_with_the_stated_noise(name):
    basis, rng = BASES[name], np.random.default_rng(3)
    X, y = table(rng, rows=20, box=basis.box)
    features = basis.features(X)
    centred = np.clip(y, *BOUNDS) - 140.0
    draws = [
        measure_statistics(X, y, basis=basis, bounds=BOUNDS, epsilon=1.0, delta=1e-3)
        for _ in range(60)
    ]
    first = draws[0]
    moments = np.array([draw.moments for draw in draws]) - features.T @ centred
    moments /= first.moment_sd
    grams = np.array([draw.gram for draw in draws]) - features.T @ features
    assert np.array_equal(grams, grams.transpose(0, 2, 1))
    diagonal = np.diagonal(grams, axis1=1, axis2=2) / first.gram_sd
    for standardised in (moments, diagonal):
        assert abs(standardised.mean()) < 5.5 / math.sqrt(standardised.size)
        assert standardised.std() == pytest.approx(1, abs=5.5 / math.sqrt(2 * standardised.size))
    beside = grams[:, *np.triu_indices(basis.count, 1)] / first.gram_sd
    if basis.exclusive:
        assert not beside.any()
    else:
        spread = 5.5 / math.sqrt(4 * beside.size)
        assert beside.std() == pytest.approx(math.sqrt(0.5), abs=spread)


def test_what_neighbours_say_of_the_number_of_rows():
    basis = BASES["eigen"]
    X, y = table(np.random.default_rng(4), box=basis.box)
    kept = {"basis": basis, "bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-3}
    assert measure_statistics(X, y, neighbours="replace", **kept).rows == len(X)
    assert measure_statistics(X, y, neighbours="add-remove", **kept).rows is None


def test_seeded_noise_repeats_and_says_so():
    basis = BASES["eigen"]
    X, y = table(np.random.default_rng(5), box=basis.box)
    kept = {"basis": basis, "bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-3}
    one, two = (measure_statistics(X, y, insecure_seed=4, **kept) for _ in range(2))
    assert np.array_equal(one.gram, two.gram)
    assert one.insecure
    free = measure_statistics(X, y, **kept)
    assert not free.insecure
    assert not np.array_equal(free.gram, measure_statistics(X, y, **kept).gram)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"bounds": None}, "bounds"),
        ({"neighbours": "friends"}, "neighbours"),
        ({"weighting": -1.0}, "weighting"),
    ],
)
def test_bad_settings(change, complaint):
    kept = {"basis": BASES["eigen"], "bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-3} | change
    with pytest.raises(ValueError, match=complaint):
        measure_statistics([[0.0]], [150.0], **kept)


def test_tables_beyond_the_grid_are_refused(monkeypatch):
    def tiny(**kw):
        grid, guarantee = calibrate_statistics(**kw)
        return type(grid)(grid.step, grid.sensitivity, grid.scale, most_rows=2), guarantee

    monkeypatch.setattr(door, "calibrate_statistics", tiny)
    with pytest.raises(ValueError, match="at most 2 rows"):
        measure_statistics(
            np.zeros((3, 1)), np.zeros(3), basis=BASES["eigen"], bounds=BOUNDS, epsilon=1, delta=0.1
        )
