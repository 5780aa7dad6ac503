"""Hyperpriors: the free hyperparameters, and their prior sds."""

from __future__ import annotations

from dataclasses import dataclass

# Sd of log hyperparameters around their declared values: a factor of 1.4 either way is ordinary.
LOG_SD = 0.35


@dataclass(frozen=True)
class Hyperprior:
    """Which hyperparameters are free.

    Attributes
    ----------
    noise_variance, mean : bool
        Whether these are learned; the kernel's own are where they are not marked "fixed". For
        classes, the means are those of the latent functions, and there is no noise variance.
    """

    noise_variance: bool = True
    mean: bool = True
