"""Tables of the classification experiments hold what was computed."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import breast_cancer, classification, digits, home_equity
from experiments.classification import Forecast, Outcome, Task


def outcome(*hits, confidence=0.8):
    """One draw per count of hits among ten, always sure of class 1 by so much."""
    shown = np.array([[[1 - confidence, confidence]] * 10 for _ in hits])
    truths = np.array([[1] * count + [0] * (10 - count) for count in hits])
    return Outcome(integrated=shown, plugged=shown, truths=truths)


def rows(table):
    """The cells of a table, row by row."""
    return list(zip(*(list(column.cells) for column in table.columns), strict=True))


def test_accuracies_stand_beside_the_published_and_the_papers():
    found = {"papers": outcome(*13 * [6, 4]), "ours": outcome(*13 * [8, 7])}
    table = classification.accuracy_report(
        found, title="toy", published={"papers": 0.69}, against="papers"
    )
    # Differences of 0.2 and 0.3: their mean, and 0.05 / √25.
    assert rows(table) == [
        ("papers", "69", "50.0 ± 2.0", "", "30.0", "30.0"),
        ("ours", "", "75.0 ± 1.0", "+25.0 ± 1.0", "5.0", "5.0"),
    ]


def test_probabilities_can_be_judged_by_other_labels():
    found, judged = {"ours": outcome(*13 * [8, 7])}, {"ours": outcome(*26 * [8])}
    table = classification.accuracy_report(found, title="toy", calibration=judged)
    assert rows(table) == [("ours", "75.0 ± 1.0", "0.0", "0.0")]


def test_without_published_figures_there_is_no_column_for_them():
    table = classification.accuracy_report({"ours": outcome(8, 7)}, title="toy")
    assert [column.header for column in table.columns][:2] == ["method", "accuracy, %"]


def test_curves_are_told_by_count():
    count = len(home_equity.COUNTS)

    def said(*shares):
        positive = np.tile(np.array(shares)[:, None], (1, count))
        both = np.stack([1 - positive, positive], axis=2)
        return Forecast(integrated=both, plugged=both)

    blank = Task(X=np.zeros((1, 1)), y=np.ones(1), X_test=np.zeros((1, 1)), y_test=np.ones(1))
    curves = home_equity.Curves(
        learned=blank,
        releases={home_equity.NO_PRIVACY: said(0.5), "one": said(*13 * [0.6, 0.4])},
        latent=home_equity.LatentMeans(reference=np.zeros(1), private=np.zeros((2, 1))),
    )
    reference, private = rows(home_equity.curves_report(curves, title="toy"))
    assert reference[:3] == ("no privacy", "", "50")
    assert private[:3] == ("one", "10.0 ± 0.0", "50 ± 10")


def test_pairs_of_figure_8():
    found = {"no privacy": {380.0: {4: outcome(*5 * [5]), 8: outcome(*5 * [9])}}}
    table = digits.inducing_report(found, title="toy")
    assert rows(table) == [("no privacy", "380", "50.0 ± 0.0", "90.0 ± 0.0")]


def test_a_budget_without_a_method_has_an_empty_cell():
    both = {name: outcome(*5 * [5]) for name in breast_cancer.methods(1.0)}
    fewer = {name: outcome(*5 * [9]) for name in breast_cancer.methods(3.0)}
    found = rows(breast_cancer.budgets_report({1.0: both, 3.0: fewer}, title="toy"))
    by_name = {name: cells for name, *cells in found}
    assert by_name[breast_cancer.PAPERS] == ["50.0 ± 0.0", ""]
    assert by_name[breast_cancer.DECLARED] == ["50.0 ± 0.0", "90.0 ± 0.0"]
    assert len(by_name) == len(both)


@pytest.mark.parametrize(("value", "shown"), [(0.06, "+6.0 ± 1.0"), (-0.06, "-6.0 ± 1.0")])
def test_differences_show_their_sign(value, shown):
    assert classification.percent(classification.Mean(value=value, error=0.01), sign="+") == shown
