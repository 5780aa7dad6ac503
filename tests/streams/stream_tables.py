"""Small months of simulated people, and streams of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import DPGPRegressor, Stream

BOUNDS = (-3.0, 7.0)
KERNEL = ConstantKernel(4.0) * RBF(2.0)


def month(number, *, rows=6, seed=0, people=None):
    """Rows of a month, of people that no other month has."""
    rng = np.random.default_rng([seed, number + 100])
    return pd.DataFrame(
        {
            "day": 30.0 * number + np.sort(rng.uniform(0, 30, size=rows)).round(2),
            "age": rng.uniform(0, 5, size=rows).round(3),
            "who": [f"p{number}-{row}" for row in range(rows)] if people is None else people,
            "pay": np.where(rng.uniform(size=rows) < 0.5, *BOUNDS),
        }
    )


def months(count, **settings):
    """So many months, and the start of another, which closes the last of them."""
    return [month(number, **settings) for number in range(count + 1)]


def model(**settings):
    """An estimator that asks once, with a declared prior."""
    usual = {"epsilon": 1.0, "noise": "laplace", "stages": None, "interval": False, "learn": None}
    return DPGPRegressor(KERNEL, 1.0, bounds=BOUNDS, **{**usual, **settings})


def stream(source, folder, *, estimator=None, **settings):
    """A stream of months of thirty days."""
    declared = {
        "output": "pay",
        "inputs": ["age"],
        "time": "day",
        "origin": 0,
        "length": 30,
        "horizon": 3,
        "people": "disjoint",
    }
    return Stream(estimator or model(), source, folder=folder, **{**declared, **settings})
