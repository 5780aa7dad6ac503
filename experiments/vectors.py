"""Inputs that are vectors: digits as pixels and as components, by one scale and by many.

The default kernel gives many inputs of one unit one scale (`cloakgp.models.defaults.input_scales`).
Beside it, a scale for each of them, its range, as inputs of several units have; the kernel that the
2021 paper declares for images of 15 × 15; and logistic regression without privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import Kernel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cloakgp import DPGPClassifier
from cloakgp.models import default_latent_kernel
from cloakgp.utils.arrays import Array
from experiments.datasets import load_mnist_subset
from experiments.digits import KERNEL, LOW_OR_HIGH, task
from experiments.framework import Experiment, Progress, RowDraws, Rows, table_titled
from experiments.spread import draw_by_draw, means_with_errors

# Of components; and the inverse of the penalty of logistic regression.
COMPONENTS, INVERSE_PENALTY = 16, 0.1
MEASURES = "accuracy, %", "log loss"


@dataclass(frozen=True, eq=False)
class Images:
    """Images to learn from and to be judged on, with a budget.

    Attributes
    ----------
    X, X_test : arrays of shape (n, D), (P, D)
    labels, labels_test : arrays of shape (n,), (P,)
    delta : float
        At ε = 1.
    declared : Kernel, optional
        That of a paper.
    """

    X: Array
    labels: NDArray[Any]
    X_test: Array
    labels_test: NDArray[Any]
    delta: float
    declared: Kernel | None = None

    @property
    def classes(self) -> list[Any]:
        """All classes."""
        return sorted(set(self.labels.tolist()) | set(self.labels_test.tolist()))


def eights(draw: int, *, components: int | None, rows: int) -> Images:
    """Return scikit-learn's images of 8 × 8, ten digits, three quarters to learn from.

    Parameters
    ----------
    draw : int
        Of the split.
    components : int, optional
        How many principal components of those to learn from stand for pixels.
    rows : int
        To learn from, at most.
    """
    X, labels = load_digits(return_X_y=True)
    X, X_test, labels, labels_test = train_test_split(X, labels, random_state=draw)
    X, labels = X[:rows], labels[:rows]
    if components is not None:
        axes = PCA(components).fit(X)
        X, X_test = axes.transform(X), axes.transform(X_test)
    return Images(X, labels, X_test, labels_test, delta=1e-5)


def fifteens(draw: int, *, rows: int) -> Images:
    """Return images of 15 × 15 as in the 2021 paper, low digits against high.

    Parameters
    ----------
    draw : int
        Of the images.
    rows : int
        To learn from, at most.
    """
    one = task(load_mnist_subset(), seed=draw, classes=LOW_OR_HIGH)
    return Images(one.X[:rows], one.y[:rows], one.X_test, one.y_test, delta=0.01, declared=KERNEL)


TASKS: Mapping[str, Callable[[int, int], Images]] = MappingProxyType(
    {
        "ten digits, 16 components": lambda draw, rows: eights(
            draw, components=COMPONENTS, rows=rows
        ),
        "ten digits, 64 pixels": lambda draw, rows: eights(draw, components=None, rows=rows),
        "low or high, 225 pixels": lambda draw, rows: fifteens(draw, rows=rows),
    }
)


def scale_for_each(X: Array) -> Kernel:
    """Return the default kernel of classes as it would be for inputs of several units.

    Parameters
    ----------
    X : array of shape (N, D)
    """
    return default_latent_kernel(X, blocks=range(X.shape[1]))


def measured(images: Images, *, insecure_seed: int | None = None) -> dict[str, tuple[float, ...]]:
    """Return accuracy and log loss of every way.

    Parameters
    ----------
    images : Images
    insecure_seed : int, optional
        For tests.
    """
    kernels = {"untouched defaults": None, "a scale for each": scale_for_each(images.X)}
    if images.declared is not None:
        kernels["the paper's kernel, declared"] = images.declared
    found = {}
    for name, kernel in kernels.items():
        model = DPGPClassifier(
            kernel=kernel,
            classes=images.classes,
            epsilon=1.0,
            delta=images.delta,
            insecure_seed=insecure_seed,
        ).fit(images.X, images.labels)
        found[name] = _measures(model.predict_proba(images.X_test), images)
    free = make_pipeline(StandardScaler(), LogisticRegression(C=INVERSE_PENALTY, max_iter=1000))
    free.fit(images.X, images.labels)
    found["logistic regression, no privacy"] = _measures(free.predict_proba(images.X_test), images)
    return found


def _measures(probabilities: Array, images: Images) -> tuple[float, ...]:
    classes = np.array(images.classes)
    hits = classes[probabilities.argmax(axis=1)] == images.labels_test
    return (
        100.0 * float(hits.mean()),
        float(log_loss(images.labels_test, probabilities, labels=classes)),
    )


Found = dict[tuple[str, str], list[tuple[float, ...]]]


@dataclass(frozen=True)
class Vectors(Experiment[Found]):
    """Classes of images from pixels and components, by one scale for all and by a scale for each.

    Attributes
    ----------
    draws : int
    rows : int
        To learn from, at most.
    insecure_seed : int, optional
        For tests.
    """

    name: ClassVar[str] = "vectors"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({"draws": 2, "rows": 60})

    draws: RowDraws = 10
    rows: Rows = 1347
    insecure_seed: int | None = None

    def compute(self, progress: Progress) -> Found:
        """Return what is measured, draw by draw."""

        def measure(name: str, draw: int) -> dict[str, tuple[float, ...]]:
            return measured(TASKS[name](draw, self.rows), insecure_seed=self.insecure_seed)

        with progress("vectors", steps=len(TASKS) * self.draws) as tick:
            return draw_by_draw(tuple(TASKS), draws=self.draws, measure=measure, tick=tick)

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out means over draws with their standard errors."""
        table = table_titled("Images at ε = 1", "images", "way", right=MEASURES)
        for (name, way), draws in found.items():
            table.add_row(name, way, *means_with_errors(draws))
        yield table
