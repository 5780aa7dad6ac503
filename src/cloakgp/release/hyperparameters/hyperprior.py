"""Hyperpriors: the free hyperparameters, and their prior sds."""

from __future__ import annotations

from dataclasses import dataclass

# Sd of log hyperparameters around their declared values: a factor of 1.4 either way is ordinary.
LOG_SD = 0.35


@dataclass(frozen=True)
class Hyperprior:
    """Which hyperparameters are free, and whether smaller scales of the prior are weighed.

    Attributes
    ----------
    noise_variance, mean : bool
        Whether these are learned; the kernel's own are where they are not marked "fixed". For
        classes, the means are those of the latent functions, and there is no noise variance.
    scale : bool
        Whether predictions are averaged over the prior and those of smaller scales, where it is the
        default one for numbers (`cloakgp.models.scales`).
    """

    noise_variance: bool = True
    mean: bool = True
    scale: bool = False
