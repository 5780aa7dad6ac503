"""Figures of the classification experiments show what was computed."""

from __future__ import annotations

import numpy as np

from experiments import classification, digits, home_equity, stripes
from experiments.classification import Forecast, Outcome, Task
from experiments.digits import Convergence


def outcome(*hits):
    """One draw per count of hits among ten; sure with noise left out."""
    shown = np.array([[[0.2, 0.8]] * 10 for _ in hits])
    sure = np.array([[[0.0, 1.0]] * 10 for _ in hits])
    truths = np.array([[1] * count + [0] * (10 - count) for count in hits])
    return Outcome(integrated=shown, plugged=sure, truths=truths)


def test_a_disc_is_as_large_as_the_release_is_sure():
    drawn = Task(
        X=np.array([[1.0, 1.0], [2.0, 2.0]]),
        y=np.array([True, False]),
        X_test=np.array([[3.0, 4.0], [5.0, 6.0]]),
        y_test=np.array([True, False]),
    )
    probabilities = np.array([[1.0, 0.5], [0.75, 0.0], [0.5, 0.5], [0.5, 0.5]])
    figure = stripes.hinton_figure({"one": probabilities}, drawn=drawn, title="toy")
    (discs,) = figure.axes[0].collections
    expected = stripes.LARGEST_DISC * np.array([1.0, 0.0, 0.5, 1.0, 0, 0, 0, 0])
    np.testing.assert_allclose(discs.get_sizes(), expected)
    np.testing.assert_array_equal(discs.get_array().ravel(), [1, 0, 1, 0, 0, 0, 0, 0])
    offsets = np.asarray(discs.get_offsets()).reshape(4, 2, 2)
    np.testing.assert_allclose(offsets.mean(axis=0), drawn.X_test)
    assert len(np.unique(offsets[:, 0], axis=0)) == 4


def test_the_default_figure_counts_loans():
    count = len(home_equity.COUNTS)
    said = np.linspace(0.1, 0.9, 5)[:, None] + np.zeros(count)
    both = np.stack([1 - said, said], axis=2)
    learned = Task(
        X=np.array([[0.0], [0.0], [2.0]]),
        y=np.array([True, False, True]),
        X_test=home_equity.COUNTS[:, None],
        y_test=np.zeros(count, dtype=bool),
    )
    curves = home_equity.Curves(
        learned=learned,
        releases={
            home_equity.NO_PRIVACY: Forecast(integrated=both[:1], plugged=both[:1]),
            "one": Forecast(integrated=both, plugged=both),
        },
        latent=home_equity.LatentMeans(reference=np.arange(count), private=said),
    )
    upper, lower, latent = home_equity.default_figure(curves, title="toy").axes
    np.testing.assert_array_equal(latent.lines[-1].get_ydata(), np.arange(count))
    heights = np.array([bar.get_height() for bar in upper.patches]).reshape(2, count)
    assert heights[:, 0].tolist() == [1, 1]
    assert heights[:, 2].tolist() == [1, 0]
    np.testing.assert_allclose(lower.lines[-1].get_ydata(), curves.reference)


def test_accuracies_by_inducing_inputs():
    found = {"one": {380.0: {4: outcome(5, 5), 8: outcome(9, 9)}}}
    (axes,) = digits.inducing_figure(found, title="toy").axes
    np.testing.assert_allclose(
        np.asarray(axes.lines[0].get_ydata(orig=False), dtype=float), [50.0, 90.0]
    )


def test_convergence_shows_every_entry_and_their_mean(rng):
    found = Convergence(exact=rng.uniform(size=(4, 6)), private=rng.uniform(size=(4, 6)))
    left, right = digits.convergence_figure(found, title="toy").axes
    for axes, expected in ((left, found.exact), (right, found.private)):
        shown = np.array([line.get_ydata() for line in axes.lines])
        np.testing.assert_allclose(shown[:-1].T, expected)
        np.testing.assert_allclose(shown[-1], expected.mean(axis=1))


def test_reliability_shows_noise_integrated_and_left_out():
    (axes,) = classification.reliability_figure({"one": outcome(6, 6)}, title="toy").axes
    integrated, left_out, _ = axes.lines
    np.testing.assert_allclose(integrated.get_xdata(), [0.8])
    np.testing.assert_allclose(left_out.get_xdata(), [1.0])
    np.testing.assert_allclose([integrated.get_ydata(), left_out.get_ydata()], 0.6)
    assert "20.0 %" in integrated.get_label()
    assert "40.0 %" in left_out.get_label()
