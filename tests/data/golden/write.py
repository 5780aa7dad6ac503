"""The golden files: releases of every kind, small, with their predictions as doubles.

These files were written by this script and the package as it was at commit 9090900, format
version 1. They are kept as they are: whatever is changed later must still read them and predict
alike (``tests/test_golden.py``). To see them made anew, put that commit's ``src`` on the path:

    git worktree add /tmp/first 9090900
    PYTHONPATH=/tmp/first/src python tests/data/golden/write.py /tmp/golden

All noise is from fixed seeds, so none of them is private, and the data are invented.

A kind that comes later gets a line in ``RELEASES`` of a script of its own, with the commit that
writes it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cloakgp.baselines import (
    DPHistogramRegressor,
    DPIntegralHistogramRegressor,
    DPMeanRegressor,
    DPRowNoiseRegressor,
)
from cloakgp.baselines.given import release_of_answers
from cloakgp.models.basis import BinBasis, InputBox
from cloakgp.models.gibbs import GibbsKernel
from cloakgp.models.integral import points_as_boxes
from cloakgp.privacy.mixed import MixedGuarantee
from cloakgp.rows import ArrayRows
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
    ManyRowsRelease,
    StatisticsRelease,
)
from cloakgp.models import ExactPrior
from cloakgp.privacy import measure
from cloakgp.privacy.statistics import measure_statistics
from cloakgp.release import Query

BUDGET = {"bounds": (-2.0, 3.0), "epsilon": 2.0, "delta": 1e-3, "insecure_seed": 20180331}
# Answers so clear that hyperparameters are learned from them.
CLEAR = {**BUDGET, "epsilon": 60.0}
LABELS = {"epsilon": 3.0, "delta": 1e-3, "insecure_seed": 20180331}
KERNEL = 2.0 * Matern([3.0, 1.5], nu=1.5)
POINTS = np.array([[0.25, 0.5], [4.0, 1 / 3], [9.5, 2.75]])
EPSILONS = (0.0, 0.5, 1.0, 3.0)

rng = np.random.default_rng(20180331)
X = np.column_stack([np.linspace(0.0, 10.0, 14), rng.uniform(0.0, 3.0, size=14)])
LINE = X[:, :1]
y = np.sin(X[:, 0]) + 0.3 * X[:, 1]
WORDS = np.array(["ill", "well", "dead"])[(X[:, 0] // 3.4).astype(int)]
NAMED = pd.DataFrame(X, columns=["naïve Länge", "β"])
QUERY = np.array([[1.0, 1.0], [5.0, 2.0], [8.0, 0.5]])
NAMED_QUERY = pd.DataFrame(QUERY, columns=NAMED.columns)
MANY = np.column_stack([np.linspace(0.0, 10.0, 300), rng.uniform(0.0, 3.0, size=300)])
MANY_Y = np.sin(MANY[:, 0]) + 0.3 * MANY[:, 1]

RELEASES: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {}


def kind(make: Callable[[], Any]) -> Callable[[], Any]:
    """Write what a function returns under its name."""

    def made() -> tuple[Any, np.ndarray]:
        found = make()
        return found if isinstance(found, tuple) else (found, POINTS)

    RELEASES[make.__name__] = made
    return make


def regression(**settings: Any) -> DPGPRegressor:
    return DPGPRegressor(KERNEL, **{"noise_variance": 0.2, "learn": None, **BUDGET, **settings})


def labels(**settings: Any) -> DPGPClassifier:
    return DPGPClassifier(
        3.0 * Matern([3.0, 1.5], nu=1.5),
        **{"classes": ["ill", "well", "dead"], "learn": None, **LABELS, **settings},
    )


# Many numbers of one output each.


@kind
def exact() -> Any:
    release = regression().fit(NAMED, y, NAMED_QUERY, [1.0, 2.0, 0.5]).release_
    return replace(release, output_name="收入")


@kind
def exact_by_default() -> Any:
    return DPGPRegressor(**BUDGET).fit(X, y).release_


@kind
def exact_trace() -> Any:
    return regression(mechanism="trace", mean=0.25).fit(X, y, QUERY, [1.0, 2.0, 0.5]).release_


@kind
def exact_logdet() -> Any:
    return regression(mechanism="logdet").fit(X, y, QUERY).release_


@kind
def learned() -> Any:
    model = DPGPRegressor(RBF(2.0) + WhiteKernel(0.1), **CLEAR)
    return model.fit(X, y, QUERY).release_


@kind
def averaged() -> Any:
    return DPGPRegressor(2.0 * RBF(2.0), **CLEAR, learn="average").fit(X, y, QUERY).release_


@kind
def two_stages() -> Any:
    model = DPGPRegressor(2.0 * RBF(2.0), **CLEAR, budget_split=0.3)
    return model.fit(X, y, QUERY).release_


@kind
def sparse_fitc() -> Any:
    return regression(inducing=5).fit(X, y, QUERY).release_


@kind
def sparse_dtc() -> Any:
    return regression(inducing=QUERY, approximation="dtc", mechanism="trace").fit(X, y).release_


@kind
def sparse_sor() -> Any:
    return regression(inducing=4, approximation="sor", learn="map").fit(X, y, QUERY).release_


@kind
def functional() -> Any:
    return regression(mechanism="functional").fit(X, y).release_


@kind
def grouped() -> Any:
    return regression().fit(X, y, QUERY, groups=list("aabbbcdddddefg")).release_


@kind
def chosen_by_permute_and_flip() -> Any:
    search = DPGridSearchCV(
        regression(), {"noise_variance": [0.1, 1.0]}, selection_epsilon=0.5, cv=2
    )
    return search.fit(NAMED, y).release_


@kind
def chosen_by_exponential_mechanism() -> Any:
    search = DPGridSearchCV(
        regression(mechanism="trace"),
        {"kernel": [RBF(1.0), RBF(3.0)]},
        selection_epsilon=0.5,
        cv=2,
        mechanism="exponential",
    )
    return search.fit(X, y).release_


@kind
def refined() -> Any:
    first = regression(learn="map").fit(X, y, QUERY, [1.0, 2.0, 0.5]).release_
    return first.refine(y, epsilon=1.0, delta=1e-4, insecure_seed=7)


@kind
def extended() -> Any:
    first = regression().fit(X, y, QUERY).release_
    return first.extend(
        X[:6] + 0.1, y[:6], epsilon=1.0, delta=1e-4, groups=[0, 0, 1, 1, 2, 3], insecure_seed=8
    )


@kind
def combined() -> Any:
    first, again, other = (
        regression(insecure_seed=seed, mechanism=mechanism).fit(X, y, QUERY).release_
        for seed, mechanism in ((1, "bayes"), (2, "trace"), (3, "logdet"))
    )
    return first.combine(again, same_rows=True).combine(other, same_rows=False)


@kind
def refined_extended_and_combined_after_a_choice() -> Any:
    search = DPGridSearchCV(
        regression(), {"noise_variance": [0.1, 1.0]}, selection_epsilon=0.5, cv=2
    )
    release = search.fit(X, y).release_
    release = release.refine(y, QUERY, epsilon=1.0, delta=1e-4, insecure_seed=7)
    release = release.extend(X[:6] + 0.1, y[:6], epsilon=1.0, delta=1e-4, insecure_seed=8)
    noise_variance = release.prior.noise_variance
    again = regression(noise_variance=noise_variance, mean=release.prior.mean, insecure_seed=9)
    return release.combine(again.fit(X, y, QUERY).release_)


@kind
def all_kernels() -> Any:
    kernel = (
        ConstantKernel(0.5, constant_value_bounds="fixed") * RBF([2.0, 1 / 3])
        + Matern([1.0, 3.0], nu=np.inf, length_scale_bounds=(0.1, 10.0))
        + RationalQuadratic(1.1, 0.3)
        + 0.1 * ExpSineSquared(5.0, 60.0)
        + (0.05 * DotProduct(0.3)) ** 2
        + 0.1 * PairwiseKernel(gamma=0.5, metric="laplacian")
        + WhiteKernel(0.1)
    )
    return DPGPRegressor(kernel, 0.2, **BUDGET, learn=None).fit(X, y, QUERY).release_


@kind
def gibbs_kernel() -> Any:
    kernel = 2.0 * GibbsKernel(
        X[::2],
        bandwidth=[2.0, 1.0],
        longest=4.0,
        crowd=2.0,
        radius=[0.5, 0.2],
        weights=np.arange(1.0, 8.0),
        length_scale=[1.0, 0.7],
    )
    return DPGPRegressor(kernel, 0.2, **BUDGET, learn=None).fit(X, y, QUERY).release_


@kind
def nothing_asked() -> Any:
    strategy = np.zeros((0, len(X)))
    answers = measure(strategy, y, **BUDGET)
    return release_of_answers(
        X,
        strategy=strategy,
        answers=answers,
        prior=ExactPrior(kernel=KERNEL, noise_variance=0.2, mean=0.5),
        query=Query(X=QUERY),
    )


# Many rows.


def many_rows(**settings: Any) -> ManyRowsRelease:
    rows = ArrayRows(
        MANY,
        MANY_Y,
        input_names=("length", "β"),
        output_name="income",
        chunk_rows=100,
        jobs=1,
    )
    points = pd.DataFrame(QUERY, columns=["length", "β"])
    weights = None if settings.get("mechanism") == "logdet" else [1.0, 2.0, 0.5]
    return regression(**{"inducing": 6, **settings}).fit_rows(rows, points, weights).release_


@kind
def many_rows_bayes() -> Any:
    return many_rows()


@kind
def many_rows_bayes_dtc() -> Any:
    return many_rows(approximation="dtc")


@kind
def many_rows_trace() -> Any:
    return many_rows(mechanism="trace")


@kind
def many_rows_logdet() -> Any:
    return many_rows(mechanism="logdet", inducing=QUERY)


@kind
def many_rows_learned() -> Any:
    return many_rows(learn="map", epsilon=20.0, approximation="sor")


@kind
def many_rows_averaged() -> Any:
    return many_rows(learn="average", inducing=3)


# Classes.


@kind
def classes_two() -> Any:
    named = labels(classes=[False, True], class_rates=[0.25, 0.75])
    return named.fit(NAMED, y > 0.3, NAMED_QUERY).release_


@kind
def classes_two_trace_logit() -> Any:
    return (
        labels(classes=[1, 7], mechanism="trace", link="logit")
        .fit(X, np.where(y > 0.3, 7, 1), QUERY, [1.0, 2.0, 0.5])
        .release_
    )


@kind
def classes_three() -> Any:
    return labels().fit(X, WORDS, QUERY).release_


@kind
def classes_three_sparse_logdet() -> Any:
    return labels(inducing=5, mechanism="logdet").fit(X, WORDS, QUERY).release_


@kind
def classes_learned() -> Any:
    return labels(learn="map", epsilon=60.0).fit(X, WORDS, QUERY).release_


@kind
def classes_averaged() -> Any:
    model = labels(classes=[0.5, 1.5], learn="average", epsilon=60.0)
    return model.fit(X, np.where(y > 0.3, 0.5, 1.5), QUERY).release_


@kind
def classes_iterated() -> Any:
    model = labels(classes=[0, 1], mechanism="laplace", steps=3)
    return model.fit(X, (y > 0.3).astype(int)).release_


@kind
def classes_iterated_trace() -> Any:
    model = labels(classes=["ill", "well"], mechanism="laplace", criterion="trace")
    return model.fit(X[:9], np.where(y[:9] > 0.3, "ill", "well")).release_


@kind
def classes_combined() -> Any:
    first, again = (
        labels(insecure_seed=seed, mechanism=mechanism).fit(X, WORDS, QUERY).release_
        for seed, mechanism in ((1, "bayes"), (2, "trace"))
    )
    return first.combine(again)


# Inputs that are private too.


def private_inputs(**settings: Any) -> Any:
    model = DPGPRegressorPrivateInputs(
        2.0 * RBF(3.0),
        0.2,
        input_bounds=[(0.0, 10.0)],
        n_features=6,
        **{**BUDGET, "epsilon": 10.0, **settings},
    )
    return model.fit(MANY[:, :1], MANY_Y).release_, POINTS[:, :1]


@kind
def statistics_replace() -> Any:
    return private_inputs()


@kind
def statistics_add_remove() -> Any:
    return private_inputs(neighbours="add-remove")


@kind
def statistics_two_inputs() -> Any:
    model = DPGPRegressorPrivateInputs(
        2.0 * Matern([3.0, 1.5], nu=1.5),
        0.2,
        input_bounds=[(0.0, 10.0), (0.0, 3.0)],
        n_features=7,
        **{**BUDGET, "epsilon": 10.0},
    )
    return model.fit(MANY, MANY_Y).release_


@kind
def statistics_of_bins() -> Any:
    basis = BinBasis(
        kernel=2.0 * RBF([3.0, 1.5]), box=InputBox((0.0, 0.0), (10.0, 3.0)), bins=(3, 2)
    )
    found = measure_statistics(MANY, MANY_Y, basis=basis, **BUDGET)
    return StatisticsRelease(basis=basis, statistics=found, noise_variance=0.2)


# Several outputs.


@kind
def several_outputs() -> Any:
    model = DPGPMultiOutputRegressor(
        **{**BUDGET, "bounds": [(-2.0, 3.0), (0.0, 1000.0)]},
        coregion=[[1.0, 0.6], [0.6, 2.0]],
        learn=None,
    )
    return model.fit(X[:10], np.column_stack([y, 100 * y**2])[:10], QUERY).release_


@kind
def several_outputs_sparse_grouped() -> Any:
    model = DPGPMultiOutputRegressor(
        **{**CLEAR, "bounds": [(-2.0, 3.0), (0.0, 1000.0), (5.0, 6.0)]},
        inducing=3,
        mechanism="trace",
        learn="map",
    )
    outputs = np.column_stack([y, 100 * y**2, 5.5 + y / 10])
    return model.fit(X[:8], outputs[:8], QUERY, groups=[0, 0, 1, 1, 2, 3, 4, 5]).release_


# What one would do without designs.


@kind
def row_noise() -> Any:
    return DPRowNoiseRegressor(KERNEL, 0.2, **BUDGET).fit(X, y).release_


@kind
def noisy_mean() -> Any:
    return DPMeanRegressor(**BUDGET).fit(X, y).release_


@kind
def histogram_gaussian() -> Any:
    return DPHistogramRegressor(bins=[4, 2], **BUDGET).fit(NAMED, y).release_


@kind
def histogram_laplace() -> Any:
    budget = {name: value for name, value in BUDGET.items() if name != "delta"}
    edges = [[0.0, 1.0, 5.0, 10.0], 2]
    model = DPHistogramRegressor(bins=edges, noise="laplace", **budget)
    return model.fit(X, y).release_


@kind
def integral_histogram_gaussian() -> Any:
    model = DPIntegralHistogramRegressor(bins=[4, 2], **BUDGET)
    return model.fit(NAMED, y).release_, points_as_boxes(POINTS)


@kind
def integral_histogram_laplace() -> Any:
    budget = {name: value for name, value in BUDGET.items() if name != "delta"}
    model = DPIntegralHistogramRegressor(bins=5, noise="laplace", learn="average", **budget)
    return model.fit(LINE, y).release_, points_as_boxes(POINTS[:, :1])


def guarantee_of(release: Any) -> dict[str, Any]:
    """Return what a release promises, as numbers."""
    found = release.guarantee
    numbers = {name: getattr(found, name) for name in ("epsilon", "delta", "mu")}
    numbers["deltas"] = [[at, found.delta_at(at)] for at in EPSILONS]
    if isinstance(found, MixedGuarantee):
        numbers["selection_epsilon"] = found.selection_epsilon
    return numbers


def predictions_of(release: Any, points: np.ndarray) -> dict[str, Any]:
    """Return everything that is predicted at points, by the name of what is returned."""
    if hasattr(release, "predict_proba"):
        latent = release.predict_latent(points)
        return {
            "classes": list(release.classes),
            "labels": release.predict(points),
            "probabilities": release.predict_proba(points),
            "probabilities_without_privacy_noise": release.predict_proba(
                points, privacy_noise=False
            ),
            "latent": [latent.mean, latent.sd, latent.privacy_sd],
        }
    mean, sd = release.predict(points, return_std=True)
    found = {"mean": mean, "sd": sd}
    if hasattr(release, "bins"):
        return found
    found["sd_of_new_output"] = release.predict(points, return_std=True, new_output=True)[1]
    if not hasattr(release, "columns"):
        found["covariance"] = release.predict(points, return_cov=True)[1]
    return found


def published_of(release: Any, points: np.ndarray) -> dict[str, Any]:
    """Return what else a release says: its raw predictions, and its function."""
    found = {}
    for name in ("published", "function"):
        try:
            one = getattr(release, name)()
        except (AttributeError, ValueError):
            continue
        if name == "published":
            found[name] = [one.values, np.diag(one.noise_cov)]
        else:
            found[name] = [one(points), one.noise_sd(points)]
    return found


def plain(value: Any) -> Any:
    """Return something as JSON holds it; doubles come back to the last bit."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def main(folder: Path) -> None:
    """Write every release, and what is expected of it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in RELEASES.items():
        release, points = make()
        path = folder / f"{name}.cloak"
        release.save(path, overwrite=True)
        expected = {
            "insecure": release.insecure,
            "guarantee": guarantee_of(release),
            "input_names": getattr(release, "input_names", None),
            "output_name": getattr(release, "output_name", None),
            "points": points,
            "predictions": predictions_of(release, points),
            **published_of(release, points),
        }
        path.with_suffix(".json").write_text(json.dumps(plain(expected), indent=1) + "\n")
        print(f"{path.stat().st_size:7,} bytes  {name}")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
