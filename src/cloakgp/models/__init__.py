"""Gaussian-process mathematics on public inputs. Nothing here ever sees an output."""

from cloakgp.models.defaults import default_kernel, default_noise_variance
from cloakgp.models.exact import ExactPrior
from cloakgp.models.inducing import kmeans_centres
from cloakgp.models.kernels import NotPositiveDefiniteError
from cloakgp.models.output_covariance import ConditionedCovariance, OutputCovariance
from cloakgp.models.prior import Prior
from cloakgp.models.sparse import APPROXIMATIONS, Approximation, SparsePrior

__all__ = [
    "APPROXIMATIONS",
    "Approximation",
    "ConditionedCovariance",
    "ExactPrior",
    "NotPositiveDefiniteError",
    "OutputCovariance",
    "Prior",
    "SparsePrior",
    "default_kernel",
    "default_noise_variance",
    "kmeans_centres",
]
