"""Label randomisers: the least error by brute force, and what their guarantees allow."""

import itertools

import numpy as np
import pytest

from cloakgp.privacy import OutputBounds
from experiments.priors import Split
from experiments.randomised_labels import tell
from experiments.rivals.classes import (
    TOLD_LABELS,
    TWO_STAGES,
    VOTES,
    WITHOUT_PRIVACY,
    LabelSplit,
    likelihood_with_prior,
    shares_with_totals,
    tell_with_prior,
    undo_lies,
)
from experiments.rivals.told import (
    Randomiser,
    bins_of_least_error,
    noisy_prior,
    reach_of,
    told_outputs,
    told_ways,
    unbiased_of_least_variance,
)
from experiments.ways import Setting

BOUNDS = OutputBounds(0.0, 10.0)
LEVELS = np.linspace(0.0, 10.0, 9)


def error_of(found, levels, prior):
    off = np.square(found.told - levels[:, None])
    return float((prior[:, None] * found.probabilities * off).sum())


def least_ratio(found):
    columns = found.probabilities
    return float((columns.max(axis=0) / np.maximum(columns.min(axis=0), 1e-300)).max())


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_bins_have_the_least_error_of_all_assignments(epsilon, seed):
    """Beside every way to assign five levels to up to five values, intervals or not."""
    rng = np.random.default_rng(seed)
    levels, prior = np.sort(rng.uniform(0, 10, 5)), rng.dirichlet(np.ones(5))
    least = np.inf
    for bins in range(1, 6):
        for assigned in itertools.product(range(bins), repeat=5):
            if len(set(assigned)) < bins:
                continue
            other = 1.0 / (np.exp(epsilon) + bins - 1)
            probabilities = np.full((5, bins), other)
            probabilities[np.arange(5), assigned] = np.exp(epsilon) * other
            weights = prior[:, None] * probabilities
            values = (weights * levels[:, None]).sum(axis=0) / weights.sum(axis=0)
            least = min(least, error_of(Randomiser(values, probabilities), levels, prior))
    found = bins_of_least_error(levels, prior, epsilon=epsilon)
    assert error_of(found, levels, prior) == pytest.approx(least, rel=1e-9)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    assert least_ratio(found) <= np.exp(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_unbiased_randomiser_is_right_on_average_and_no_worse_than_a_bit(epsilon):
    """Levels are kept on average, and the worst ratio is e^ε."""
    prior = np.full(len(LEVELS), 1 / len(LEVELS))
    reach = BOUNDS.width / 2 / np.tanh(epsilon / 2)
    # The bit's two values are among those that may be told.
    told = np.unique([*reach_of(BOUNDS, epsilon=epsilon), 5.0 - reach, 5.0 + reach])
    found = unbiased_of_least_variance(LEVELS, prior, told, epsilon=epsilon)
    np.testing.assert_allclose(found.probabilities @ found.told, LEVELS, atol=1e-9)
    assert least_ratio(found) <= np.exp(epsilon) * (1 + 1e-6)
    of_the_bit = float(prior @ (reach**2 - np.square(LEVELS - 5.0)))
    assert error_of(found, LEVELS, prior) <= of_the_bit * (1 + 1e-9)


def test_values_that_reach_too_little_are_refused():
    with pytest.raises(ValueError, match="let them reach further"):
        unbiased_of_least_variance(
            LEVELS, np.full(9, 1 / 9), np.linspace(-1.0, 11.0, 20), epsilon=0.5
        )


def test_what_is_told_is_drawn_as_often_as_it_should_be():
    found = bins_of_least_error(LEVELS, np.full(9, 1 / 9), epsilon=1.0)
    rng = np.random.default_rng(0)
    told = found.draw(np.full(40_000, 4), rng)
    shares = [float(np.mean(told == value)) for value in found.told]
    np.testing.assert_allclose(shares, found.probabilities[4], atol=0.01)


def test_a_noisy_prior_is_near_the_shares_where_the_budget_is_large():
    outputs = np.repeat(LEVELS, np.arange(1, 10) * 100)
    found = noisy_prior(
        outputs, LEVELS, setting=Setting(epsilon=50.0), rng=np.random.default_rng(0)
    )
    np.testing.assert_allclose(found, np.arange(1, 10) / 45, atol=2e-3)


def split_of(rows=300):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(rows, 2))
    outputs = BOUNDS.clip(5 + 4 * np.sin(5 * X[:, 0]))
    half = rows * 2 // 3
    return Split(X[:half], outputs[:half], X[half:], outputs[half:], bounds=BOUNDS)


def test_with_plenty_of_budget_what_is_told_is_the_outputs():
    """Up to the levels they are rounded to, and for one bit, which knows no more."""
    split = split_of()
    for name, told in told_ways(split, Setting(epsilon=200.0, insecure_seed=1)):
        if name != "one bit":
            assert np.abs(told - split.outputs).max() < 10 / 15 + 0.2, name


def test_all_tunings_predict_within_the_bounds():
    found = told_outputs(split_of(), Setting(epsilon=1.0, delta=0.0, insecure_seed=1))
    assert len(found) == 4 * 6
    for predicted in found.values():
        assert np.all((predicted >= 0) & (predicted <= 10))


@pytest.mark.parametrize("epsilon", [0.4, 2.0])
def test_labels_told_with_a_prior_differ_by_e_to_epsilon_at_most(epsilon):
    """By frequencies, under each label, of each answer, for priors that choose each k."""
    rng = np.random.default_rng(2)
    rows = 60_000
    for prior in ([0.25, 0.25, 0.25, 0.25], [0.5, 0.4, 0.05, 0.05], [0.97, 0.01, 0.01, 0.01]):
        shares = np.array(
            [
                np.bincount(
                    tell_with_prior(
                        np.full(rows, label),
                        np.tile(prior, (rows, 1)),
                        epsilon=epsilon,
                        rng=rng,
                    ),
                    minlength=4,
                )
                / rows
                for label in range(4)
            ]
        )
        possible = shares.max(axis=0) > 0
        ratios = shares[:, possible].max(axis=0) / shares[:, possible].min(axis=0)
        assert ratios.max() <= np.exp(epsilon) * 1.06


@pytest.mark.parametrize("epsilon", [0.4, 2.0])
def test_the_likelihood_of_labels_told_with_a_prior_is_how_often_they_are_told(epsilon):
    rng = np.random.default_rng(6)
    rows = 40_000
    for prior in ([0.25, 0.25, 0.25, 0.25], [0.5, 0.4, 0.05, 0.05], [0.01, 0.01, 0.01, 0.97]):
        of_rows = np.tile(prior, (rows, 1))
        for label in range(4):
            told = tell_with_prior(np.full(rows, label), of_rows, epsilon=epsilon, rng=rng)
            seen, counts = np.unique(told, return_counts=True)
            likelihood = likelihood_with_prior(seen, of_rows[: len(seen)], epsilon=epsilon)
            np.testing.assert_allclose(counts / rows, likelihood[:, label], atol=0.01)


@pytest.mark.parametrize("classes", [2, 4])
def test_undoing_lies_finds_the_shares_that_were_told_wrongly(classes):
    rng = np.random.default_rng(7)
    shares = np.arange(1, classes + 1) / np.arange(1, classes + 1).sum()
    labels = rng.choice(classes, size=200_000, p=shares)
    told = tell(labels, epsilon=1.0, classes=classes, rng=rng)
    as_told = np.bincount(told, minlength=classes)[None] / len(told)
    np.testing.assert_allclose(undo_lies(as_told, epsilon=1.0)[0], shares, atol=0.01)


@pytest.mark.parametrize("classes", [2, 3])
def test_with_totals_shares_are_asked_at_the_price_of_the_counts(classes, monkeypatch):
    """One label moves one count by 1 if one of two classes is counted, and else two counts."""
    scales = []

    class Spied:
        def laplace(self, *, scale, size):
            scales.append((scale, size))
            return np.zeros(size)

    monkeypatch.setattr("experiments.rivals.classes.np.random.default_rng", lambda _: Spied())
    counts = np.arange(1.0, 1 + 3 * classes).reshape(3, classes)
    found = shares_with_totals(counts, setting=Setting(epsilon=0.5, delta=0.0), spread=1e9)
    expected = {2: (2.0, (3, 1)), 3: (4.0, (3, 3))}
    assert scales == [expected[classes]]
    np.testing.assert_allclose(found, counts / counts.sum(axis=1, keepdims=True))


def test_with_totals_noise_moves_shares_to_the_overall_ones():
    counts = np.array([[400.0, 600.0], [3.0, 0.0]])
    found = shares_with_totals(
        counts, setting=Setting(epsilon=1.0, delta=0.0, insecure_seed=1), spread=0.1
    )
    np.testing.assert_allclose(found[0], [0.4, 0.6], atol=0.02)
    np.testing.assert_allclose(found[1], [0.4, 0.6], atol=0.08)


def test_a_uniform_prior_is_randomised_response():
    rng = np.random.default_rng(3)
    told = tell_with_prior(
        np.zeros(40_000, dtype=int), np.full((40_000, 3), 1 / 3), epsilon=1.0, rng=rng
    )
    kept = np.exp(1.0) / (np.exp(1.0) + 2)
    np.testing.assert_allclose(
        np.bincount(told) / 40_000, [kept, (1 - kept) / 2, (1 - kept) / 2], atol=0.01
    )


@pytest.fixture
def labels():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)
    return LabelSplit(X[:300], y[:300], X[300:], y[300:], classes=3)


@pytest.mark.parametrize("rival", [TOLD_LABELS, TWO_STAGES, VOTES, WITHOUT_PRIVACY])
def test_rivals_of_classes_learn_where_the_budget_is_large(rival, labels):
    found = rival.predict(labels, Setting(epsilon=30.0, insecure_seed=1))
    for shares in found.values():
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    right = [float(np.mean(one.argmax(axis=1) == labels.labels_test)) for one in found.values()]
    assert max(right) > 0.85
