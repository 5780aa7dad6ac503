"""Gradients of kernels: those of somebody's own are tried before anything is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from counting_keeper import Counting
from sklearn.gaussian_process.kernels import (
    RBF,
    Hyperparameter,
    Kernel,
    StationaryKernelMixin,
    WhiteKernel,
)

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPQuantileRegressor,
    DPGPRegressor,
    DPGridSearchCV,
)
from cloakgp.data import ArrayRows
from cloakgp.privacy.spending import counted_by
from cloakgp.release.hyperparameters.gradients import check_gradient

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

X = np.linspace(0.0, 10.0, 30)[:, None]
NUMBERS = 50.0 + 30.0 * np.sin(X.ravel())
BUDGET = {"epsilon": 8.0, "delta": 1e-3}
OF_NUMBERS = {"bounds": (0, 100), **BUDGET}
NO_GRADIENT = "the kernel gives no gradient"


class Own(StationaryKernelMixin, Kernel):
    """A kernel with one hyperparameter, whose gradient is of some shape, if it has one."""

    def __init__(self, scale=2.0, scale_bounds=(1e-3, 1e3), gradient=None):
        self.scale = scale
        self.scale_bounds = scale_bounds
        self.gradient = gradient

    @property
    def hyperparameter_scale(self):
        return Hyperparameter("scale", "numeric", self.scale_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        distances = np.abs(X[:, :1] - (X if Y is None else Y)[:, 0])
        matrix = 400.0 * np.exp(-distances / self.scale)
        if not eval_gradient or self.gradient == "ignored":
            return matrix
        if self.gradient is None:
            raise NotImplementedError
        gradient = matrix * distances / self.scale
        return matrix, {
            "right": gradient[:, :, None],
            "flat": gradient,
            "twice": np.dstack([gradient, gradient]),
            "small": gradient[:1, :1, None],
        }[self.gradient]

    def diag(self, X):
        return np.full(len(X), 400.0)


@pytest.mark.parametrize("gradient", [None, "ignored", "flat", "twice", "small"])
def test_kernels_without_a_gradient_are_refused(gradient):
    with pytest.raises(ValueError, match=NO_GRADIENT):
        check_gradient(Own(gradient=gradient), X[:2])


@pytest.mark.parametrize("gradient", [None, "ignored", "twice", "small"])
def test_nor_do_sums_with_white_noise_have_one(gradient):
    with pytest.raises(ValueError, match=NO_GRADIENT):
        check_gradient(Own(gradient=gradient) + WhiteKernel(), X[:2])


def test_kernels_with_a_gradient_or_nothing_to_learn_are_not():
    for kernel in (RBF(), Own(gradient="right"), Own(scale_bounds="fixed")):
        check_gradient(kernel, X[:2])


def test_what_else_is_wrong_with_a_kernel_is_said():
    with pytest.raises(ValueError, match="same number of dimensions"):
        check_gradient(RBF([1.0, 2.0]), X[:2])


def fits(**settings):
    """Return fits of every kind, by name."""
    labels = NUMBERS > 50.0
    counts, both = np.round(NUMBERS), np.column_stack([NUMBERS, NUMBERS])
    several = {**OF_NUMBERS, "bounds": [(0, 100)] * 2}
    numbers = DPGPRegressor(**OF_NUMBERS, **settings)
    classes = DPGPClassifier(classes=[False, True], **BUDGET, **settings)
    quantiles = DPGPQuantileRegressor(**OF_NUMBERS, **settings)
    outputs = DPGPMultiOutputRegressor(**several, **settings)
    of_counts = DPGPRegressor(likelihood="counts", **OF_NUMBERS, **settings)
    search = DPGridSearchCV(numbers, {"mean": [40.0, 50.0]}, selection_epsilon=1.0, cv=2)
    return {
        "numbers": lambda: numbers.fit(X, NUMBERS),
        "numbers in passes": lambda: numbers.fit_rows(ArrayRows(X, NUMBERS)),
        "classes": lambda: classes.fit(X, labels),
        "classes in passes": lambda: classes.fit_rows(ArrayRows(X, labels)),
        "quantiles": lambda: quantiles.fit(X, NUMBERS),
        "quantiles in passes": lambda: quantiles.fit_rows(ArrayRows(X, NUMBERS)),
        "outputs": lambda: outputs.fit(X, both),
        "outputs in passes": lambda: outputs.fit_rows(ArrayRows(X, both)),
        "counts": lambda: of_counts.fit(X, counts),
        "candidates": lambda: search.fit(X, NUMBERS),
    }


@pytest.mark.parametrize("kind", list(fits()))
def test_nothing_is_drawn_for_a_kernel_that_cannot_be_learned(kind):
    """The first answers were drawn, and then nothing could be learned from them."""
    keeper = Counting()
    with counted_by(keeper), pytest.raises(ValueError, match=NO_GRADIENT):
        fits(kernel=Own())[kind]()
    assert keeper.costs == []


@pytest.mark.parametrize("kind", ["numbers", "classes", "quantiles", "numbers in passes"])
@pytest.mark.parametrize(
    "settings",
    [{"kernel": Own(), "learn": None}, {"kernel": Own(scale_bounds="fixed")}],
    ids=["learn=None", "fixed"],
)
def test_kernels_of_which_nothing_is_learned_need_no_gradient(kind, settings):
    assert fits(**settings)[kind]().release_.measurements
