"""Cosine features: orthonormal over an even spread, of the stated prior, and never too long."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.models.axes import LENGTHSCALE, estimate_class_shares, estimate_shares, lines
from cloakgp.models.cosines import EVEN_SHARE, CosineBasis, with_even_share
from cloakgp.models.features import InputBox

BOX = InputBox((0.0, -1.0), (10.0, 1.0))
SKEWED = np.array([[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]])


def basis(**changes):
    given = {"signal_variance": 3.0, "mean_variance": 2.0, "wanted": 30, **changes}
    return CosineBasis(box=BOX, shares=tuple(SKEWED), **given)


def below(X):
    """The share of rows below each input."""
    pairs = zip(lines(2), basis().tables, strict=True)
    return np.column_stack([line.below(X, box=BOX, table=table) for line, table in pairs])


def spread(rng, rows):
    """Inputs of the density that the shares state."""
    bins = np.array([rng.choice(4, size=rows, p=share) for share in SKEWED]).T
    lo, hi = np.array(BOX.lo), np.array(BOX.hi)
    return lo + (bins + rng.uniform(size=(rows, 2))) / 4 * (hi - lo)


def test_inputs_of_the_stated_density_are_spread_evenly():
    rows = spread(np.random.default_rng(0), 20_000)
    for column in below(rows).T:
        np.testing.assert_allclose(np.quantile(column, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.02)


def test_ends_of_the_box_are_ends_and_inputs_beyond_are_clipped():
    at = below(np.array([[0.0, -1.0], [10.0, 1.0], [-5.0, 7.0]]))
    np.testing.assert_allclose(at, [[0, 0], [1, 1], [0, 1]], atol=1e-12)


def test_features_are_orthonormal_over_an_even_spread_up_to_their_scales(monkeypatch):
    monkeypatch.setattr("cloakgp.models.cosines.LONGEST", 100.0)
    one = basis()
    features = one.features(spread(np.random.default_rng(1), 40_000)) / one.scales
    np.testing.assert_allclose(features.T @ features / 40_000, np.eye(one.count), atol=0.06)


def test_no_row_is_longer_than_one_and_few_are_shortened():
    one = basis()
    features = one.features(np.random.default_rng(2).uniform(-2, 12, size=(3000, 2)))
    assert np.linalg.norm(features, axis=1).max() <= 1 + 1e-12
    inside = one.features(spread(np.random.default_rng(2), 3000))
    assert np.mean(np.linalg.norm(inside, axis=1) > 1 - 1e-9) < 0.25


def test_the_prior_has_the_stated_variance(monkeypatch):
    """Mean over rows, effects and their pairs add up to what was declared."""
    monkeypatch.setattr("cloakgp.models.cosines.LONGEST", 100.0)
    one = basis(wanted=1000)
    features = one.features(spread(np.random.default_rng(3), 20_000))
    variances = np.einsum("nj,jk,nk->n", features, one.weight_covariance, features)
    assert variances.mean() == pytest.approx(3.0 + 2.0, rel=0.02)
    assert one.residual_variance(np.zeros((2, 2))) == pytest.approx([0, 0], abs=1e-9)
    assert basis(wanted=5).residual_variance(np.zeros((1, 2)))[0] > 0.1


def test_of_one_input_variances_fall_as_those_of_a_matern_process():
    one = CosineBasis(
        box=InputBox((0.0,), (1.0,)),
        shares=(np.ones(1),),
        signal_variance=1.0,
        mean_variance=1.0,
        wanted=3,
    )
    found = np.diag(one.weight_covariance) * np.square(one.scales)
    ratio = (1 + (LENGTHSCALE * np.pi) ** 2) / (1 + (2 * LENGTHSCALE * np.pi) ** 2)
    assert found[2] / found[1] == pytest.approx(ratio**2)


def test_many_inputs_have_each_an_effect():
    one = CosineBasis(
        box=InputBox((0.0,) * 50, (1.0,) * 50),
        shares=(np.ones(1),) * 50,
        signal_variance=1.0,
        mean_variance=1.0,
        wanted=51,
    )
    moved = np.full((51, 50), 0.5)
    moved[np.arange(1, 51), np.arange(50)] = 0.9
    features = one.features(moved)
    assert (np.abs(features[1:] - features[0]).max(axis=1) > 1e-3).all()


@given(st.lists(st.floats(-1e4, 1e4), min_size=8, max_size=8), st.floats(1e-3, 1e4))
def test_shares_are_shares_whatever_the_noise(counts, noise_sd):
    shares = estimate_shares(np.array(counts), noise_sd=noise_sd, rows=100.0)
    assert shares.sum() == pytest.approx(1)
    assert (shares > 0).all()
    even = with_even_share(shares)
    assert even.min() >= EVEN_SHARE / 8 * (1 - 1e-12)


def test_shares_are_the_posterior_mean_of_their_halves():
    """Of two bins, a normal prior of the difference and its noisy measurement."""
    found = estimate_shares(np.array([70.0, 30.0]), noise_sd=20.0, rows=100.0)
    prior, noise = 100.0**2 / 3, 2 * 20.0**2
    assert found[0] - found[1] == pytest.approx(prior / (prior + noise) * 0.4)


@pytest.mark.parametrize(
    "forged",
    [
        {"shares": (np.array([0.5, 0.5]),)},
        {"shares": (np.array([0.5, 0.6]), np.array([0.5, 0.5]))},
        {"shares": (np.array([1.0, 0.0]), np.array([0.5, 0.5]))},
        {"shares": (np.eye(2) / 2, np.array([0.5, 0.5]))},
        {"signal_variance": 0.0},
        {"mean_variance": np.nan},
        {"wanted": 0},
        {"wanted": 1025},
    ],
)
def test_forged_bases_are_refused(forged):
    basis().validate()
    with pytest.raises(ValueError, match="damaged"):
        replace(basis(), **forged).validate()


def test_shares_of_two_classes_are_those_of_two_halves():
    for counts in ([700.0, 300.0], [990.0, -20.0]):
        for noise in (1.0, 300.0):
            known = {"noise_sd": noise, "rows": 1000.0}
            np.testing.assert_allclose(
                estimate_class_shares(np.array(counts), **known),
                estimate_shares(np.array(counts), **known),
                atol=1e-12,
            )


def test_shares_of_classes_are_nearer_than_counts():
    """Drawn by their prior, with noise that is about as large."""
    rng, squares = np.random.default_rng(0), []
    for _ in range(300):
        shares = rng.dirichlet(np.ones(5))
        counts = 1000 * shares + rng.normal(scale=150, size=5)
        found = estimate_class_shares(counts, noise_sd=150.0, rows=1000.0)
        assert found.sum() == pytest.approx(1)
        raw = counts / 1000
        squares.append([np.sum((one - shares) ** 2) for one in (found, raw)])
    ours, raw = np.mean(squares, axis=0)
    assert ours < 0.6 * raw
