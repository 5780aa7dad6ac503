"""cloakgp's estimators on a table."""

from __future__ import annotations

import folds
import protocol

from cloakgp import DPGPRegressor
from cloakgp.estimators.baselines import DPHistogramRegressor

ESTIMATORS = {"DPGPRegressor": DPGPRegressor, "DPHistogramRegressor": DPHistogramRegressor}


def answer(arrays, options):
    """Return predictions and times."""
    budget = {
        "bounds": tuple(options["bounds"]),
        "epsilon": options["epsilon"],
        "delta": options["delta"],
    }

    def fit(X, y, _X_query, _draw):
        estimator = ESTIMATORS[options["estimator"]]
        return estimator(**budget, **options["settings"]).fit(X, y).predict

    return folds.cross_validate(arrays, options, fit)


if __name__ == "__main__":
    protocol.main(answer)
