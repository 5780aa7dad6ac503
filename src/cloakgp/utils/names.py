"""Names of links, noises, transforms and the criteria of noise alone, and the default gap: options.

Nothing is imported here, so that the command line knows them before numpy is loaded.
"""

from typing import Literal

CriterionName = Literal["logdet", "trace"]
CRITERIA: tuple[CriterionName, ...] = ("logdet", "trace")

LinkName = Literal["probit", "logit"]
LINKS: tuple[LinkName, ...] = ("probit", "logit")

# The unit ball in which columns of a strategy lie, by its norm.
Ball = Literal["l1", "l2"]

# The name of a noise, one of `cloakgp.privacy.noise.NOISES`, which others may extend; or the choice
# of the best by forecast.
NoiseName = str
NoiseChoice = str
AUTO: NoiseChoice = "auto"

# The header of an answer about a table that tells remarks on it, as a list of JSON.
REMARKS_HEADER = "Cloakgp-Remarks"
# The column of a model's public predictions, among the public columns of a release.
PUBLIC_PREDICTION = "public prediction"

# Certified relative distance from the best design at which to stop.
DEFAULT_GAP = 1e-3
# To how many predicted sds on either side of what is predicted a later visit clips: "auto" goes by
# what a release has counted (`cloakgp.fitting.visits`), None clips to the bounds alone.
BandChoice = float | Literal["auto"] | None
# That of "auto", unless counts speak against bands.
DEFAULT_BAND = 1.0

TransformName = Literal["log", "logit"]
# With the root, that of counts, which have a likelihood of their own and no option of this name.
ScaleName = Literal["log", "logit", "root"]
TRANSFORMS: tuple[TransformName, ...] = ("log", "logit")
OutputLikelihood = Literal["normal", "counts"]
OUTPUT_LIKELIHOODS: tuple[OutputLikelihood, ...] = ("normal", "counts")
# Added to bounds of counts before their logarithm is taken: that of none would be no number.
HALF_COUNT = 0.5
Estimate = Literal["median", "mean"]
ESTIMATES: tuple[Estimate, ...] = ("median", "mean")

# What a picture of a release shows.
PictureKind = Literal["prediction", "fan", "calibration"]
PICTURE_KINDS: tuple[PictureKind, ...] = ("prediction", "fan", "calibration")
