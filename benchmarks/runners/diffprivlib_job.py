"""diffprivlib's linear regression, and its random forest on binned outputs.

It has no regression forest: outputs are binned, the classifier learns the bins, and predictions are
the middles of the bins that it names. Inputs are scaled to [-1, 1] by their public range, and
outputs by the declared bounds, so that no coordinate is far from 0, where its noise would be vast.
Both mechanisms are purely ε-private, and protect the inputs too.
"""

from __future__ import annotations

import warnings

import folds
import numpy as np
import protocol
from diffprivlib.models import LinearRegression, RandomForestClassifier


def answer(arrays, options):
    """Return predictions and times."""
    lo, hi = options["bounds"]
    lowest, highest = arrays["X"].min(axis=0), arrays["X"].max(axis=0)
    dimensions = arrays["X"].shape[1]
    box = (-np.ones(dimensions), np.ones(dimensions))

    def scaled(X):
        return 2 * (X - lowest) / (highest - lowest) - 1

    def linear(X, y, _X_query, _draw):
        model = LinearRegression(epsilon=options["epsilon"], bounds_X=box, bounds_y=(-1.0, 1.0))
        model.fit(scaled(X), 2 * (np.clip(y, lo, hi) - lo) / (hi - lo) - 1)
        return lambda points: lo + (model.predict(scaled(points)) + 1) * (hi - lo) / 2

    def forest(X, y, _X_query, _draw):
        bins = options["output_bins"]
        edges = np.linspace(lo, hi, bins + 1)
        model = RandomForestClassifier(
            epsilon=options["epsilon"], bounds=box, classes=np.arange(bins)
        )
        model.fit(scaled(X), np.digitize(np.clip(y, lo, hi), edges[1:-1]))
        middles = (edges[1:] + edges[:-1]) / 2
        return lambda points: middles[model.predict(scaled(points)).astype(int)]

    fit = {"linear": linear, "forest": forest}[options["estimator"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return folds.cross_validate(arrays, options, fit)


if __name__ == "__main__":
    protocol.main(answer)
