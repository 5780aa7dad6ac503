"""Gaussian-process mathematics on public inputs. Nothing here ever sees an output."""

from cloakgp.models.covariance import (
    ConditionedCovariance,
    LinearisedCovariance,
    OutputCovariance,
)
from cloakgp.models.defaults import (
    default_kernel,
    default_latent_kernel,
    default_noise_variance,
    matern_kernel,
    scales_by_block,
)
from cloakgp.models.exact import ExactPrior
from cloakgp.models.kernels.gibbs import GibbsKernel, gibbs_kernel
from cloakgp.models.kernels.integral import IntegralRBF, points_as_boxes
from cloakgp.models.kernels.linear import LinearKernel
from cloakgp.models.latent import NotPositiveDefiniteError
from cloakgp.models.prior import Prior
from cloakgp.models.row_noise import RowNoisePrior
from cloakgp.models.sparse import APPROXIMATIONS, Approximation, SparsePrior, kmeans_centres

__all__ = [
    "APPROXIMATIONS",
    "Approximation",
    "ConditionedCovariance",
    "ExactPrior",
    "GibbsKernel",
    "IntegralRBF",
    "LinearKernel",
    "LinearisedCovariance",
    "NotPositiveDefiniteError",
    "OutputCovariance",
    "Prior",
    "RowNoisePrior",
    "SparsePrior",
    "default_kernel",
    "default_latent_kernel",
    "default_noise_variance",
    "gibbs_kernel",
    "kmeans_centres",
    "matern_kernel",
    "points_as_boxes",
    "scales_by_block",
]
