"""Names of links, noises, transforms and the criteria of noise alone, and the default gap: options.

Nothing is imported here, so that the command line knows them before numpy is loaded.
"""

from typing import Literal

CriterionName = Literal["logdet", "trace"]
CRITERIA: tuple[CriterionName, ...] = ("logdet", "trace")

LinkName = Literal["probit", "logit"]
LINKS: tuple[LinkName, ...] = ("probit", "logit")

NoiseName = Literal["gaussian", "laplace"]
NoiseChoice = Literal["auto", "gaussian", "laplace"]
NOISE_CHOICES: tuple[NoiseChoice, ...] = ("auto", "gaussian", "laplace")

# Certified relative distance from the best design at which to stop.
DEFAULT_GAP = 1e-3

TransformName = Literal["log", "logit"]
TRANSFORMS: tuple[TransformName, ...] = ("log", "logit")
Estimate = Literal["median", "mean"]
ESTIMATES: tuple[Estimate, ...] = ("median", "mean")
