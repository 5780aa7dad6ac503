"""Baselines without this package's designs: histograms, and noise on rows or on the mean.

They stand here to be compared with `cloakgp.DPGPRegressor` on equal terms: the same bounds, the
same exact calibration, the same sampler, and what the noisy answers allow is done with them.
"""

from cloakgp.estimators.baselines.direct import DPMeanRegressor, DPRowNoiseRegressor
from cloakgp.estimators.baselines.histogram import DPHistogramRegressor
from cloakgp.estimators.baselines.integral_histogram import DPIntegralHistogramRegressor
from cloakgp.release.histogram import Bins, NoisyHistogram

__all__ = [
    "Bins",
    "DPHistogramRegressor",
    "DPIntegralHistogramRegressor",
    "DPMeanRegressor",
    "DPRowNoiseRegressor",
    "NoisyHistogram",
]
