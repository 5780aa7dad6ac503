"""Classes without a δ, beside randomised response: every label is told truly or at random.

Randomised response (Warner 1965; for C classes Kairouz, Oh and Viswanath 2014) keeps a label with
probability e^ε / (e^ε + C − 1) and tells another, each alike, otherwise: ε-differentially private,
row by row, with nobody trusted. A logistic model is fitted to what was told by the likelihood that
knows the odds of a lie, with a ridge penalty that is the best in hindsight for each table and ε,
which flatters it. Both know the classes and the inputs, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table as Printed
from scipy import optimize, special
from sklearn import datasets
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import StandardScaler

from cloakgp import DPGPClassifier
from cloakgp.utils.arrays import Array
from experiments.datasets import load_hmeq
from experiments.framework import Experiment, Progress, table_titled
from experiments.spread import mean_and_error, with_error

Labels = NDArray[np.intp]
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
OURS, TOLD, COMMON = "cloakgp, default", "randomised response, logistic", "most common class"
WAYS = (OURS, TOLD, COMMON)
HELD_OUT = 0.25


def label_tables() -> dict[str, Callable[[], tuple[Array, Labels]]]:
    """Return readers of inputs and of labels from 0, by name."""

    def of(load: Callable[..., Any], inputs: int) -> tuple[Array, Labels]:
        X, y = load(return_X_y=True)
        return np.asarray(X[:, :inputs], dtype=np.float64), np.asarray(y, dtype=np.intp)

    def loans() -> tuple[Array, Labels]:
        table = load_hmeq()[["BAD", "LOAN", "DELINQ", "DEROG", "CLAGE"]].dropna()
        return table.iloc[:, 1:].to_numpy(dtype=float), table["BAD"].to_numpy(dtype=np.intp)

    return {
        "tumours": lambda: of(datasets.load_breast_cancer, 5),
        "iris": lambda: of(datasets.load_iris, 4),
        "wine": lambda: of(datasets.load_wine, 4),
        "loans": loans,
    }


def tell(labels: Labels, *, epsilon: float, classes: int, rng: np.random.Generator) -> Labels:
    """Return randomised labels. Not for use: the generator is not a cryptographic one.

    Examples
    --------
    >>> tell(np.zeros(4, dtype=int), epsilon=50.0, classes=3, rng=np.random.default_rng(0))
    array([0, 0, 0, 0])
    """
    truly = rng.uniform(size=len(labels)) < truth_probability(epsilon, classes=classes)
    others = (labels + rng.integers(1, classes, size=len(labels))) % classes
    return np.asarray(np.where(truly, labels, others), dtype=np.intp)


def truth_probability(epsilon: float, *, classes: int) -> float:
    """Return how probably a label is told as it is.

    Examples
    --------
    >>> round(truth_probability(1.0, classes=2), 3)
    0.731
    """
    return float(np.exp(epsilon) / (np.exp(epsilon) + classes - 1))


def fit_told(
    X: Array, told: Labels, *, epsilon: float, classes: int, penalty: float
) -> Callable[[Array], Array]:
    """Fit a multinomial logistic model to randomised labels; return probabilities at inputs.

    Parameters
    ----------
    X : array of shape (N, D)
        Standardised.
    told : array of shape (N,)
    epsilon : float
    classes : int
    penalty : float
        Of half the squared coefficients; the level is free.
    """
    likelihood = likelihood_of_told(told, epsilon=epsilon, classes=classes)
    return fit_likelihood(X, likelihood, penalty=penalty)


def likelihood_of_told(told: Labels, *, epsilon: float, classes: int) -> Array:
    """Return how probably `tell` tells of each class what it told, shape (N, C).

    Examples
    --------
    >>> likelihood_of_told(np.array([1]), epsilon=1.0, classes=2).round(3)
    array([[0.269, 0.731]])
    """
    kept = truth_probability(epsilon, classes=classes)
    likelihood = np.full((len(told), classes), (1.0 - kept) / (classes - 1))
    likelihood[np.arange(len(told)), told] = kept
    return likelihood


def fit_likelihood(X: Array, likelihood: Array, *, penalty: float) -> Callable[[Array], Array]:
    """Fit a multinomial logistic model to what was told; return probabilities at inputs.

    Parameters
    ----------
    X : array of shape (N, D)
        Standardised.
    likelihood : array of shape (N, C)
        How probably a row of each class says what it said.
    penalty : float
        Of half the squared coefficients; the level is free.
    """
    classes = likelihood.shape[1]
    design = np.column_stack([np.ones(len(X)), X])
    shape = (design.shape[1], classes)

    def loss(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(shape)
        p = special.softmax(design @ weights, axis=1)
        seen = (p * likelihood).sum(axis=1)
        # ∂ log seen / ∂ logit c = p_c (likelihood_c − seen) / seen.
        slopes = p * (likelihood / seen[:, None] - 1.0)
        ridge = penalty * weights
        ridge[0] = 0.0
        value = -np.log(seen).sum() + 0.5 * float((ridge * weights).sum())
        return float(value), np.asarray((ridge - design.T @ slopes).ravel())

    found = optimize.minimize(
        loss, np.zeros(design.shape[1] * classes), jac=True, method="L-BFGS-B"
    )
    weights = found.x.reshape(shape)
    return lambda new: np.asarray(
        special.softmax(np.column_stack([np.ones(len(new)), new]) @ weights, axis=1)
    )


def accuracies(
    X: Array, y: Labels, *, epsilon: float, rows: int, draw: int
) -> dict[str, float | dict[float, float]]:
    """Return the share of held-out labels that each way tells, of one by penalty."""
    split = ShuffleSplit(1, test_size=HELD_OUT, random_state=draw)
    train, test = next(split.split(X))
    train, classes = train[:rows], int(y.max()) + 1
    scaler = StandardScaler().fit(X[train])
    inputs, new = scaler.transform(X[train]), scaler.transform(X[test])
    model = DPGPClassifier(classes=list(range(classes)), epsilon=epsilon, delta=0.0)
    ours = model.fit(X[train], y[train]).predict(X[test])
    rng = np.random.default_rng((draw, 1))
    told = tell(y[train], epsilon=epsilon, classes=classes, rng=rng)
    by_penalty = {
        penalty: float(
            np.mean(
                fit_told(inputs, told, epsilon=epsilon, classes=classes, penalty=penalty)(
                    new
                ).argmax(axis=1)
                == y[test]
            )
        )
        for penalty in PENALTIES
    }
    common = np.bincount(y[test]).max() / len(test)
    return {OURS: float(np.mean(ours == y[test])), TOLD: by_penalty, COMMON: float(common)}


@dataclass(frozen=True, eq=False)
class Found:
    """Accuracies by ε, table and way, of shape (draws,)."""

    accuracy: Mapping[tuple[float, str, str], Array]


@dataclass(frozen=True)
class RandomisedLabels(Experiment[Found]):
    """Compare classes without a δ with randomised response and a logistic model."""

    name: ClassVar[str] = "randomised-labels"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"draws": 2, "rows": 60, "epsilons": (1.0,), "names": ("iris",)}
    )

    draws: Annotated[int, typer.Option(min=2, help="Splits, with noise of their own.")] = 20
    rows: Annotated[int, typer.Option(min=20, help="The most rows that are fitted.")] = 500
    epsilons: Sequence[float] = (0.3, 1.0, 3.0)
    # Of tables; None: all.
    names: Sequence[str] | None = None

    def compute(self, progress: Progress) -> Found:
        """Fit every table in every way."""
        readers = label_tables()
        chosen = list(readers) if self.names is None else list(self.names)
        found: dict[tuple[float, str, str], Array] = {}
        with progress("labels", steps=len(self.epsilons) * len(chosen) * self.draws) as tick:
            for name in chosen:
                X, y = readers[name]()
                for epsilon in self.epsilons:
                    drawn = []
                    for draw in range(self.draws):
                        drawn.append(accuracies(X, y, epsilon=epsilon, rows=self.rows, draw=draw))
                        tick()
                    for way in (OURS, COMMON):
                        found[epsilon, name, way] = np.array([one[way] for one in drawn])
                    by_penalty = [
                        np.array([one[TOLD][penalty] for one in drawn])  # type: ignore[index]
                        for penalty in PENALTIES
                    ]
                    found[epsilon, name, TOLD] = max(by_penalty, key=np.mean)
        return Found(found)

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out accuracies by ε and table."""
        table = table_titled(
            f"Share of held-out labels told rightly, no δ, at most {self.rows} rows, {self.draws} "
            "splits (se over splits); the logistic model's penalty is the best in hindsight",
            "ε",
            "table",
            right=WAYS,
        )
        for epsilon, name in dict.fromkeys((epsilon, name) for epsilon, name, _ in found.accuracy):
            cells = []
            for way in WAYS:
                mean, error = mean_and_error(found.accuracy[epsilon, name, way][None])
                cells.append(with_error(mean, error, ".3f"))
            table.add_row(f"{epsilon:g}", name, *cells)
        yield table
