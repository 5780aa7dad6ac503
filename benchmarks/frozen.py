"""Frozen bits: digests of seeded releases over all kinds of fits, to compare two checkouts.

``python -m benchmarks.frozen`` prints a digest for each release; with ``--against CHECKOUT`` those
of another checkout beside them, computed by the same interpreter, and by how much predictions
differ. Digests depend on the machine's linear algebra: no file keeps them. A digest is of
predictions and their sds, and of the sd of the noise of every measurement.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import cloakgp
from cloakgp import DPGPClassifier, DPGPMultiOutputRegressor, DPGPRegressor, extend, refine
from cloakgp.data import ArrayRows

SEED = 7
GAUSSIAN = {"epsilon": 1.0, "delta": 1e-3, "noise": "gaussian", "insecure_seed": SEED}
LAPLACE = {"epsilon": 1.0, "delta": 0.0, "noise": "laplace", "insecure_seed": SEED}
LATER = {"epsilon": 0.5, "delta": 1e-3, "noise": "gaussian", "insecure_seed": SEED + 50}
POINTS = np.linspace(0.0, 10.0, 25)[:, None]


def _numbers(count: int) -> tuple[Any, Any, list[str]]:
    rng = np.random.default_rng(count)
    X = rng.uniform(0.0, 10.0, size=(count, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=count)
    return X, y, [f"p{number // 2}" for number in range(count)]


def _regression(budget: dict[str, Any], *, rows: int = 120, **settings: Any) -> Any:
    X, y, _ = _numbers(rows)
    return DPGPRegressor(bounds=(-2, 2), **budget, **settings).fit(X, y).release_


def _grouped(budget: dict[str, Any]) -> Any:
    X, y, who = _numbers(120)
    return DPGPRegressor(bounds=(-2, 2), **budget).fit(X, y, groups=who).release_


def _rows(budget: dict[str, Any], *, grouped: bool = False, **settings: Any) -> Any:
    X, y, who = _numbers(3000)
    rows = ArrayRows(X, y, groups=who if grouped else None)
    model = DPGPRegressor(bounds=(-2, 2), inducing=12, **budget, **settings)
    return model.fit_rows(rows).release_


def _classes(budget: dict[str, Any], *, labels: int = 2, passes: bool = False) -> Any:
    X, y, _ = _numbers(3000 if passes else 120)
    edges = np.linspace(-1.0, 1.0, labels + 1)[1:-1]
    declared = list(range(labels))
    model = DPGPClassifier(classes=declared, inducing=12 if passes else None, **budget)
    if passes:
        return model.fit_rows(ArrayRows(X, np.digitize(y, edges))).release_
    return model.fit(X, np.digitize(y, edges)).release_


def _columns(budget: dict[str, Any], **settings: Any) -> Any:
    X, y, _ = _numbers(60)
    both = np.column_stack([y, 10.0 * np.cos(X[:, 0])])
    model = DPGPMultiOutputRegressor(bounds=[(-2, 2), (-20, 20)], **budget, **settings)
    return model.fit(X, both).release_


def _columns_of_rows(budget: dict[str, Any]) -> Any:
    X, y, _ = _numbers(3000)
    both = np.column_stack([y, 10.0 * np.cos(X[:, 0])])
    model = DPGPMultiOutputRegressor(bounds=[(-2, 2), (-20, 20)], inducing=12, **budget)
    return model.fit_rows(ArrayRows(X, both)).release_


def _refined(*, passes: bool) -> Any:
    X, y, _ = _numbers(3000 if passes else 120)
    first = _rows(GAUSSIAN, stages=None) if passes else _regression(GAUSSIAN)
    return refine(first, ArrayRows(X, y) if passes else y, POINTS, **LATER)


def _extended(*, passes: bool) -> Any:
    X, y, _ = _numbers(200)
    first = _rows(GAUSSIAN, stages=None) if passes else _regression(GAUSSIAN)
    return extend(first, X, y, POINTS, **LATER)


FITS: dict[str, Callable[[], Any]] = {
    "numbers, Gaussian": lambda: _regression(GAUSSIAN),
    "numbers, Laplace": lambda: _regression(LAPLACE),
    "numbers, one stage": lambda: _regression(GAUSSIAN, stages=None, interval=False),
    "numbers, nothing learned": lambda: _regression(GAUSSIAN, learn=None),
    "numbers, averaged": lambda: _regression(GAUSSIAN, learn="average"),
    "numbers, trace": lambda: _regression(GAUSSIAN, criterion="trace"),
    "numbers, logdet": lambda: _regression(GAUSSIAN, criterion="logdet"),
    "numbers, inducing inputs": lambda: _regression(GAUSSIAN, inducing=12),
    "numbers, interval searched": lambda: _regression(GAUSSIAN, rows=700, inducing=12),
    "numbers, groups, Gaussian": lambda: _grouped(GAUSSIAN),
    "numbers, groups, Laplace": lambda: _grouped(LAPLACE),
    "rows, Gaussian": lambda: _rows(GAUSSIAN),
    "rows, Laplace": lambda: _rows(LAPLACE),
    "rows, stages": lambda: _rows(GAUSSIAN, stages=[(0.4, None), (0.6, 1.0)], interval=False),
    "rows, groups": lambda: _rows(GAUSSIAN, grouped=True),
    "two classes, Gaussian": lambda: _classes(GAUSSIAN),
    "three classes, Laplace": lambda: _classes(LAPLACE, labels=3),
    "two classes, rows": lambda: _classes(GAUSSIAN, passes=True),
    "three classes, rows": lambda: _classes(GAUSSIAN, labels=3, passes=True),
    "several outputs, Gaussian": lambda: _columns(GAUSSIAN),
    "several outputs, Laplace": lambda: _columns(LAPLACE, interval=False),
    "several outputs, rows": lambda: _columns_of_rows(GAUSSIAN),
    "refined": lambda: _refined(passes=False),
    "refined, rows": lambda: _refined(passes=True),
    "extended": lambda: _extended(passes=False),
    "extended, rows": lambda: _extended(passes=True),
}


def published_numbers(release: Any) -> list[float]:
    """Return what a release predicts at some points, and the sds of the noise that it states."""
    inner = getattr(release, "entries", release)
    sds = [float(one.answers.noise_sd) for one in inner.measurements]
    if inner.likelihood.linear:
        mean, sd = release.predict(POINTS, return_std=True)
        return [*np.ravel(mean).tolist(), *np.ravel(sd).tolist(), *sds]
    return [*np.ravel(release.predict_proba(POINTS)).tolist(), *sds]


def digest(numbers: list[float]) -> str:
    """Return the first half of the SHA-256 of some numbers."""
    return hashlib.sha256(np.array(numbers, dtype="<f8").tobytes()).hexdigest()[:32]


def measure(only: str = "", *, older: bool = False) -> dict[str, list[float]]:
    """Return the numbers of every release whose name has a text in it.

    An older checkout lacks methods that were written since: what needs them is left out.
    """
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fit in FITS.items():
            if only in name:
                with suppress(*[AttributeError] * older):
                    found[name] = published_numbers(fit())
    return found


def _of_checkout(checkout: Path, *, only: str) -> dict[str, list[float]]:
    here = Path(__file__).resolve()
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(
        [sys.executable, str(here), "--numbers", "--only", only],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    numbers: dict[str, list[float]] = json.loads(done.stdout)
    return numbers


def main() -> None:
    """Print digests of this checkout, beside those of another one if it is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--numbers", action="store_true", help="Print numbers as JSON.")
    parser.add_argument("--only", default="", help="Those whose name has this in it.")
    options = parser.parse_args()
    mine = measure(options.only, older=options.numbers)
    if options.numbers:
        print(json.dumps(mine))
        return
    print(f"{Path(cloakgp.__file__).parent}")
    other = {} if options.against is None else _of_checkout(options.against, only=options.only)
    for name, numbers in mine.items():
        line = f"{name:28} {digest(numbers)}"
        if name in other:
            theirs = np.array(other[name])
            if digest(other[name]) == digest(numbers):
                line += "  equal"
            elif theirs.shape == np.shape(numbers):
                line += f"  differs by {np.abs(theirs - numbers).max():.1e}"
            else:
                line += "  of another shape"
        print(line)


if __name__ == "__main__":
    main()
