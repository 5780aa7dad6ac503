"""The golden files of format versions 2 to 4: one release of every form.

Written by this script, with all that ``write.py`` says of those of version 1: they are kept as they
are. Those of version 2, which wrote numbers and classes as version 3 does, are of statistics and
histograms alone, by the package as it was at commit 754219e; those of versions 3 and 4 by the
commits that added them, of version 4 those alone whose noise is Laplace noise, which is new there.
To see them made anew, put that commit's ``src`` on the path:

    PYTHONPATH=src python tests/data/golden/write_later.py /tmp/golden
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF, Matern

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
    StatisticsRelease,
    refine,
)
from cloakgp.data import ArrayRows
from cloakgp.estimators.baselines import DPHistogramRegressor
from cloakgp.models.features import BinBasis, InputBox
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.statistics import measure_statistics
from cloakgp.release.io.bundle import FORMAT_VERSION

BUDGET = {"bounds": (-2.0, 3.0), "epsilon": 2.0, "delta": 1e-3, "insecure_seed": 20180331}
LABELS = {"epsilon": 3.0, "delta": 1e-3, "insecure_seed": 20180331}
POINTS = np.array([[0.25, 0.5], [4.0, 1 / 3], [9.5, 2.75]])
EPSILONS = (0.0, 0.5, 1.0, 3.0)

rng = np.random.default_rng(20180331)
X = np.column_stack([np.linspace(0.0, 10.0, 14), rng.uniform(0.0, 3.0, size=14)])
y = np.sin(X[:, 0]) + 0.3 * X[:, 1]
WORDS = np.array(["ill", "well", "dead"])[(X[:, 0] // 3.4).astype(int)]
NAMED = pd.DataFrame(X, columns=["naïve Länge", "β"])
QUERY = np.array([[1.0, 1.0], [5.0, 2.0], [8.0, 0.5]])
MANY = np.column_stack([np.linspace(0.0, 10.0, 300), rng.uniform(0.0, 3.0, size=300)])
MANY_Y = np.sin(MANY[:, 0]) + 0.3 * MANY[:, 1]
KERNEL = 2.0 * Matern([3.0, 1.5], nu=1.5)


def regression(**settings: Any) -> DPGPRegressor:
    once = {"noise_variance": 0.2, "learn": None, "stages": None}
    return DPGPRegressor(KERNEL, **{**once, **BUDGET, **settings})


def numbers() -> Any:
    search = DPGridSearchCV(
        regression(), {"noise_variance": [0.1, 1.0]}, selection_epsilon=0.5, cv=2
    )
    return search.fit(NAMED, y).release_


def numbers_averaged_in_two_visits() -> Any:
    model = regression(learn="average", epsilon=60.0, inducing=4, insecure_seed=1)
    model.fit(X, y, QUERY, groups=list("aabbbcdddddefg"))
    return refine(model.release_, y, epsilon=1.0, delta=1e-4, band=None, insecure_seed=7)


def numbers_in_stages() -> Any:
    model = regression(stages="auto", learn="map", noise_variance=None, epsilon=60.0)
    return model.fit(NAMED, y, QUERY).release_


def default_prior_in_stages() -> Any:
    return DPGPRegressor(**BUDGET).fit(X, y, groups=list("aabbbcdddddefg")).release_


def numbers_of_many_rows() -> Any:
    rows = ArrayRows(MANY, MANY_Y, input_names=("length", "β"), chunk_rows=100, jobs=1)
    return regression(inducing=6, learn="map", epsilon=20.0).fit_rows(rows).release_


def classes() -> Any:
    model = DPGPClassifier(classes=["ill", "well", "dead"], learn="map", **LABELS)
    return model.fit(X, WORDS, QUERY).release_


def classes_of_many_rows() -> Any:
    rows = ArrayRows(MANY, MANY_Y > 0.3, chunk_rows=100, jobs=1)
    model = DPGPClassifier(classes=[False, True], inducing=6, learn="map", **LABELS)
    return model.fit_rows(rows).release_


def several_outputs() -> Any:
    model = DPGPMultiOutputRegressor(
        **{**BUDGET, "bounds": [(-2.0, 3.0), (0.0, 1000.0)]},
        coregion=[[1.0, 0.6], [0.6, 2.0]],
        learn=None,
    )
    return model.fit(X[:10], np.column_stack([y, 100 * y**2])[:10], QUERY).release_


def statistics() -> Any:
    model = DPGPRegressorPrivateInputs(
        KERNEL,
        0.2,
        input_bounds=[(0.0, 10.0), (0.0, 3.0)],
        n_features=7,
        neighbours="add-remove",
        **{**BUDGET, "epsilon": 10.0},
    )
    return model.fit(pd.DataFrame(MANY, columns=NAMED.columns), MANY_Y).release_


def statistics_of_bins() -> Any:
    basis = BinBasis(
        kernel=2.0 * RBF([3.0, 1.5]), box=InputBox((0.0, 0.0), (10.0, 3.0)), bins=(3, 2)
    )
    measured = measure_statistics(MANY, MANY_Y, basis=basis, **BUDGET)
    return StatisticsRelease(basis=basis, statistics=measured, noise_variance=0.2)


def histogram_gaussian() -> Any:
    return DPHistogramRegressor(bins=[4, 2], **BUDGET).fit(NAMED, y).release_


def histogram_laplace() -> Any:
    budget = {name: value for name, value in BUDGET.items() if name != "delta"}
    edges = [[0.0, 1.0, 5.0, 10.0], 2]
    return DPHistogramRegressor(bins=edges, noise="laplace", **budget).fit(X, y).release_


def laplace_numbers_in_stages() -> Any:
    settings = {"delta": 0.0, "noise": "laplace", "epsilon": 8.0}
    model = regression(stages="auto", learn="map", noise_variance=None, **settings)
    return model.fit(NAMED, y, QUERY).release_


def laplace_classes() -> Any:
    settings = {**LABELS, "delta": 0.0, "noise": "laplace"}
    model = DPGPClassifier(classes=["ill", "well", "dead"], learn="map", **settings)
    return model.fit(X, WORDS, QUERY).release_


def laplace_then_gaussian() -> Any:
    model = regression(delta=0.0, noise="laplace").fit(X, y, groups=list("aabbbcdddddefg"))
    again = {"epsilon": 1.0, "delta": 1e-4, "noise": "gaussian"}
    return refine(model.release_, y, **again, insecure_seed=7)


RELEASES: tuple[Callable[[], Any], ...] = (
    numbers,
    numbers_averaged_in_two_visits,
    numbers_in_stages,
    default_prior_in_stages,
    numbers_of_many_rows,
    classes,
    classes_of_many_rows,
    several_outputs,
    statistics,
    statistics_of_bins,
    histogram_gaussian,
    histogram_laplace,
    laplace_numbers_in_stages,
    laplace_classes,
    laplace_then_gaussian,
)


def guarantee_of(release: Any) -> dict[str, Any]:
    """Return what a release promises, as numbers."""
    guarantee = release.guarantee
    numbers = {name: getattr(guarantee, name) for name in ("epsilon", "delta", "mu")}
    numbers["deltas"] = [[epsilon, guarantee.delta_at(epsilon)] for epsilon in EPSILONS]
    if FORMAT_VERSION >= 4:
        numbers["laplace"] = getattr(guarantee, "laplace", ())
    if isinstance(guarantee, MixedGuarantee):
        numbers["selection_epsilon"] = guarantee.selection_epsilon
    return numbers


def predictions_of(release: Any) -> dict[str, Any]:
    """Return everything that is predicted, by the name of what is returned."""
    if "class" in getattr(getattr(release, "likelihood", None), "outputs", ""):
        latent = release.predict_latent(POINTS)
        return {
            "classes": list(release.classes),
            "labels": release.predict(POINTS),
            "probabilities": release.predict_proba(POINTS),
            "probabilities_without_privacy_noise": release.predict_proba(
                POINTS, privacy_noise=False
            ),
            "latent": [latent.mean, latent.sd, latent.privacy_sd],
        }
    mean, sd = release.predict(POINTS, return_std=True)
    predictions = {"mean": mean, "sd": sd}
    if hasattr(release, "bins"):
        return predictions
    predictions["sd_of_new_output"] = release.predict(POINTS, return_std=True, new_output=True)[1]
    if not hasattr(release, "columns"):
        predictions["covariance"] = release.predict(POINTS, return_cov=True)[1]
    return predictions


def plain(value: Any) -> Any:
    """Return something as JSON holds it; doubles come back to the last bit."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {name: plain(entry) for name, entry in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def main(folder: Path) -> None:
    """Write every release, and what is expected of it."""
    folder.mkdir(parents=True, exist_ok=True)
    for make in RELEASES:
        release = make()
        path = folder / f"{make.__name__}_version_{FORMAT_VERSION}.cloak"
        release.save(path, overwrite=True)
        expected = {
            "insecure": release.insecure,
            "guarantee": guarantee_of(release),
            "input_names": getattr(release, "input_names", None),
            "output_name": getattr(release, "output_name", None),
            "points": POINTS,
            "predictions": predictions_of(release),
        }
        path.with_suffix(".json").write_text(json.dumps(plain(expected), indent=1) + "\n")
        print(f"{path.stat().st_size:7,} bytes  {path.stem}")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
