"""Strategies in the ℓ1 ball: what they answer, their norms, and what they are compared with."""

import numpy as np
import pytest

from cloakgp.design import design_strategy, design_strategy_l1


@pytest.fixture
def smoother():
    places = np.linspace(0.0, 10.0, 30)
    weights = np.exp(-np.square(np.linspace(0.0, 10.0, 8)[:, None] - places))
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("criterion", ["trace", "logdet"])
@pytest.mark.parametrize("grouped", [False, True])
def test_its_answers_give_the_predictions_and_its_columns_keep_to_the_ball(
    smoother, criterion, grouped
):
    groups = np.arange(30) // 3 if grouped else None
    design = design_strategy_l1(smoother, criterion=criterion, groups=groups, gap=0.03)
    np.testing.assert_allclose(design.reconstruction @ design.strategy, smoother, atol=1e-7)
    lengths = np.abs(design.strategy).sum(axis=0)
    most = lengths if groups is None else np.bincount(groups, weights=lengths)
    assert most.max() == pytest.approx(1.0, rel=1e-9)


def test_rows_that_nothing_shares_are_asked_on_their_own():
    design = design_strategy_l1(np.diag([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(
        np.sort(np.abs(design.strategy), axis=0)[:-1], np.zeros((2, 3)), atol=1e-9
    )


def test_one_prediction_needs_one_answer(smoother):
    design = design_strategy_l1(smoother[:1])
    expected = np.abs(smoother[0]).max()
    assert len(design.strategy) == 1
    assert np.abs(design.reconstruction).item() == pytest.approx(expected, rel=1e-6)
    assert design.certificate.gap < 1e-3


def test_no_factorisation_is_worse_than_those_it_compares(smoother):
    def mean_square(reconstruction):
        return np.square(reconstruction).sum()

    found = mean_square(design_strategy_l1(smoother).reconstruction)
    assert found <= mean_square(smoother) * (1 + 1e-9)
    assert found <= len(smoother) * np.abs(smoother).sum(axis=0).max() ** 2 * (1 + 1e-9)


@pytest.mark.parametrize("criterion", ["trace", "logdet"])
def test_the_certificate_compares_with_the_euclidean_ball(smoother, criterion):
    found = design_strategy_l1(smoother, criterion=criterion, gap=0.01)
    best = design_strategy(smoother, criterion=criterion, gap=0.01)
    if criterion == "trace":
        sizes = [np.square(each.reconstruction).sum() for each in (found, best)]
    else:
        values = [np.linalg.svd(each.reconstruction, compute_uv=False) for each in (found, best)]
        sizes = [np.exp(2 * np.log(each[: len(values[1])]).mean()) for each in values]
    ratio = sizes[0] / sizes[1]
    assert ratio - 1 <= found.certificate.gap <= 1.05 * ratio
    assert ratio >= 1 - 0.01


def test_nothing_to_predict_asks_nothing():
    assert design_strategy_l1(np.zeros((2, 3))).strategy.shape[0] == 0
