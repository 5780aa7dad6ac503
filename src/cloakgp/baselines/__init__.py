"""What one would do without this package's designs: histograms, and noise on rows or on the mean.

They stand here to be compared with `cloakgp.DPGPRegressor` on equal terms: the same bounds, the
same exact calibration, the same sampler, and what the noisy answers allow is done with them.
"""

from cloakgp.baselines.bins import Bins
from cloakgp.baselines.direct import DPMeanRegressor, DPRowNoiseRegressor
from cloakgp.baselines.histogram import DPHistogramRegressor
from cloakgp.baselines.integral_histogram import DPIntegralHistogramRegressor
from cloakgp.baselines.noisy_histogram import NoisyHistogram

__all__ = [
    "Bins",
    "DPHistogramRegressor",
    "DPIntegralHistogramRegressor",
    "DPMeanRegressor",
    "DPRowNoiseRegressor",
    "NoisyHistogram",
]
