"""What one row can do to the others on the way to the noise, and what refusals say."""

import importlib
import math

import mpmath
import numpy as np
import pytest
from label_neighbours import encoded_of
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import DPGPRegressor, DPGridSearchCV
from cloakgp.models.features import BinBasis, InputBox
from cloakgp.privacy.accounting import Guarantee
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.entries import read_outputs
from cloakgp.privacy.inputs import checked_paired_outputs, checked_private_inputs
from cloakgp.privacy.questions.classes import Classes

statistics = importlib.import_module("cloakgp.privacy.statistics")


@pytest.mark.parametrize(
    ("classes", "common", "other"),
    [
        ([1, "1"], 1, "1"),
        ([True, "True"], True, "True"),
        ([2**53, 2**53 + 1, 0.5], 2**53 + 1, 0.5),
        ([2**63, 2**63 + 1, -1], 2**63 + 1, -1),
    ],
)
def test_one_label_does_not_change_how_others_are_read(classes, common, other):
    declared = Classes.checked(classes)
    before = encoded_of(declared, [common] * 5)
    after = encoded_of(declared, [common] * 4 + [other])
    np.testing.assert_array_equal(before[:4], after[:4])


def test_a_list_of_numbers_and_text_is_read_as_it_is():
    declared = Classes.checked([1, 2, "other"])
    assert encoded_of(declared, [1, "other", 2]).argmax(axis=1).tolist() == [0, 2, 1]


def test_one_duration_does_not_change_the_others():
    seconds = [np.timedelta64(1, "s")] * 4
    numbers = []
    for last in (np.timedelta64(1, "s"), np.timedelta64(500, "ms")):
        try:
            numbers.append(read_outputs([*seconds, last], rows=5)[:4].tolist())
        except ValueError:
            numbers.append(None)
    assert numbers[0] == numbers[1]


def test_one_private_duration_does_not_change_the_other_rows():
    seconds = [[np.timedelta64(1, "s")]] * 4
    numbers = []
    for last in (np.timedelta64(1, "s"), np.timedelta64(500, "ms")):
        try:
            numbers.append(checked_private_inputs([*seconds, [last]])[:4].tolist())
        except (TypeError, ValueError):
            numbers.append(None)
    assert numbers[0] == numbers[1]


def test_outputs_of_two_columns_do_not_tell_how_many_rows_there_are():
    with pytest.raises(ValueError, match="one dimension") as refusal:
        checked_paired_outputs(np.zeros((7919, 2)), rows=7919)
    assert "7919" not in str(refusal.value)


def moved_over_sensitivity(monkeypatch, tables, **kept):
    seen = []

    def record(integers, *, scale, sensitivity):  # noqa: ARG001
        seen.append((integers, sensitivity))
        return integers

    monkeypatch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
    for X, y in tables:
        statistics.measure_statistics(X, y, bounds=(0, 1), epsilon=1.0, delta=1e-5, **kept)
    (one, sensitivity), (other, _) = seen
    square = sum((int(a) - int(b)) ** 2 for a, b in zip(one, other, strict=True))
    return math.sqrt(square) / sensitivity


def test_a_weighting_of_few_bits_costs_no_privacy(monkeypatch):
    basis = BinBasis(kernel=RBF(), box=InputBox((0.0,), (1.0,)), bins=(2,))
    tables = [([[0.1], [0.1]], [0.0, 1.0]), ([[0.1]], [0.0])]
    moved = [
        moved_over_sensitivity(
            monkeypatch, tables, basis=basis, neighbours="add-remove", weighting=np.float32(value)
        )
        for value in np.linspace(0.5, 3.0, 30)
    ]
    assert max(moved) <= 1


class FewBits:
    """A public basis that gives 32-bit features, too long by a factor."""

    box = InputBox((0.0,), (1.0,))
    count = 3
    exclusive = False
    weight_covariance = np.eye(3)

    def features(self, X):
        angle = 9 * float(X[0, 0])
        direction = [[math.sin(angle), 0.8 * math.cos(angle), 0.6 * math.cos(angle)]]
        return np.array(direction, dtype=np.float32) * np.float32(7)


def test_features_of_few_bits_cost_no_privacy(monkeypatch):
    moved = [
        moved_over_sensitivity(
            monkeypatch,
            [([[x], [0.1]], [0.0, 1.0]), ([[x], [0.1]], [1.0, 1.0])],
            basis=FewBits(),
            weighting=2.0,
        )
        for x in np.linspace(0, 1, 50)
    ]
    assert max(moved) <= 1


def test_two_choices_cost_twice():
    X = np.linspace(0, 10, 12)[:, None]
    y = np.sin(X).ravel()
    kernel = ConstantKernel(0.3, "fixed") * RBF(2.0, "fixed")
    search = DPGridSearchCV(
        DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3, learn=None),
        {"kernel": [kernel]},
        selection_epsilon=3.0,
        cv=2,
    )
    first, second = (search.fit(X, y).release_ for _ in range(2))
    try:
        total = first.combine(second).guarantee
    except ValueError:
        return
    assert total.epsilon > 6


def test_the_mu_of_a_choice_is_rounded_up():
    release = Guarantee(epsilon=1.0, delta=1e-6, mu=0.0)
    for epsilon in (20.0, 25.0, 33.0, 35.0, 36.5):
        mu = MixedGuarantee(
            epsilon=1.0,
            delta=1e-6,
            selection_epsilon=epsilon,
            mechanism="permute-and-flip",
            release=release,
        ).mu
        with mpmath.workdps(60):
            # Φ(−μ/2) ≤ 1/(1 + e^ε).
            assert mpmath.ncdf(-mpmath.mpf(mu) / 2) <= 1 / (1 + mpmath.exp(epsilon))
