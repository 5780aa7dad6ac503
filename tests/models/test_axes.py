"""Axes of private columns: functions orthonormal over rows, bins that are one per row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.models.axes import Circle, Levels, Line, Lines, even_shares, lines
from cloakgp.models.cosines import CosineBasis
from cloakgp.models.features import InputBox

CORNER = 0.5**0.5
BOX = InputBox((0.0, 0.0, 0.0, 0.0, -1.0, -1.0, 0.0), (10.0, *(CORNER,) * 3, 1.0, 1.0, 1.0))
AXES = (Line(0), Levels((1, 2, 3)), Circle(4, 5), Levels((6,)))
SHARES = (
    np.array([0.6, 0.2, 0.1, 0.1]),
    np.array([0.2, 0.7, 0.1]),
    np.array([0.1, 0.2, 0.3, 0.4]),
    np.array([0.9, 0.1]),
)


def basis(**changes):
    asked = {"signal_variance": 2.0, "mean_variance": 1.0, "wanted": 40, **changes}
    return CosineBasis(box=BOX, shares=SHARES, axes=AXES, **asked)


def spread(rng, rows):
    """Inputs of the density that the shares state."""
    places = [rng.choice(len(share), size=rows, p=share) for share in SHARES]
    inside = [
        (place + rng.uniform(size=rows)) / len(share)
        for place, share in zip(places, SHARES, strict=True)
    ]
    return basis().points_at(np.column_stack(inside))


shares_of_levels = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=9).map(
    lambda parts: np.array(parts) / sum(parts)
)


@given(shares_of_levels)
def test_functions_of_levels_are_orthonormal_whatever_the_shares(shares):
    table = Levels(tuple(range(len(shares)))).table(shares)
    products = np.column_stack([np.ones(len(shares)), table])
    np.testing.assert_allclose(
        products.T @ (shares[:, None] * products), np.eye(len(shares)), atol=1e-9
    )


@given(shares_of_levels)
def test_variances_of_levels_are_those_of_equal_and_independent_effects(shares):
    """By brute force: the variances of the coefficients of effects of variance v."""
    count = len(shares)
    axis = Levels(tuple(range(count)))
    coefficients = axis.table(shares).T * shares
    covariance = count / (count - 1) * coefficients @ coefficients.T
    np.testing.assert_allclose(axis.variances(shares), np.diag(covariance))
    # Over rows, all effects together vary as they would without functions.
    whole = count / (count - 1) * (1 - np.square(shares).sum())
    assert axis.variances(shares).sum() == pytest.approx(whole)


def test_even_levels_vary_as_much_as_a_number():
    for axis in (Line(0), Circle(0, 1), Levels((0, 1, 2))):
        [shares] = even_shares([axis])
        assert axis.variances(shares).sum() == pytest.approx(1.0)


def test_features_of_mixed_axes_are_orthonormal_over_rows(monkeypatch):
    monkeypatch.setattr("cloakgp.models.cosines.LONGEST", 100.0)
    one = basis()
    features = one.features(spread(np.random.default_rng(0), 60_000)) / one.scales
    # Rare levels in pairs have products of large values.
    np.testing.assert_allclose(features.T @ features / 60_000, np.eye(one.count), atol=0.15)
    np.testing.assert_allclose(features[:, 1:].mean(axis=0), 0, atol=0.05)


def test_rows_lie_in_the_bins_that_the_shares_count():
    X = spread(np.random.default_rng(1), 20_000)
    for axis, shares in zip(AXES, SHARES, strict=True):
        found = axis.bin_of(X, box=BOX, bins=len(shares))
        np.testing.assert_allclose(np.bincount(found) / len(X), shares, atol=0.02)


def test_lines_together_are_each_line():
    X = np.random.default_rng(2).uniform(-1, 11, size=(30, 3))
    box = InputBox((0.0,) * 3, (10.0, 5.0, 20.0))
    tables = [
        line.table(np.array(share))
        for line, share in zip(lines(3), ([0.5, 0.5], [0.9, 0.1], [0.2, 0.8]), strict=True)
    ]
    together = Lines.of(lines(3), box=box, tables=tables).functions(X)
    apart = [
        line.functions(X, box=box, table=table)
        for line, table in zip(lines(3), tables, strict=True)
    ]
    np.testing.assert_array_equal(together, np.hstack(apart))


def test_typical_inputs_are_medians_and_the_commonest():
    found = basis().typical
    assert found[0] == pytest.approx(10 * 0.25 * 0.5 / 0.6)
    np.testing.assert_allclose(found[1:4], [0, CORNER, 0])
    angle = 2 * np.pi * 3.5 / 4
    np.testing.assert_allclose(found[4:], [np.cos(angle), np.sin(angle), 0.0])


def test_what_is_left_out_is_what_no_feature_has():
    whole, few = basis(wanted=1024), basis(wanted=6)
    assert whole.residual_variance(np.zeros((1, 7)))[0] == 0.0
    kept = few.prior_variances[1:].sum()
    every = whole.prior_variances[1:].sum()
    assert few.residual_variance(np.zeros((2, 7))) == pytest.approx([every - kept] * 2)


def test_axes_have_the_names_of_their_columns():
    names = ("age", "job: cook", "job: clerk", "job: (other)", "when: year cos", "when: year sin")
    called = [axis.called([*names, "age: missing"]) for axis in AXES]
    assert called == ["age", "job", "when: year", "age: missing"]


@pytest.mark.parametrize(
    "axes",
    [
        (Line(0),),
        (Line(0), Levels((1, 2, 3)), Circle(4, 5), Levels((5,))),
        (Line(0), Levels((1, 2, 3)), Circle(4, 5), Line(7)),
    ],
)
def test_axes_that_do_not_take_every_input_once_are_refused(axes):
    basis().validate()
    with pytest.raises(ValueError, match="its axes do not fit"):
        CosineBasis(
            box=BOX, shares=SHARES, axes=axes, signal_variance=1.0, mean_variance=1.0, wanted=5
        ).validate()


def test_shares_of_another_number_of_levels_are_refused():
    forged = (SHARES[0], np.array([0.5, 0.5]), *SHARES[2:])
    with pytest.raises(ValueError, match="damaged"):
        CosineBasis(
            box=BOX, shares=forged, axes=AXES, signal_variance=1.0, mean_variance=1.0, wanted=5
        ).validate()
