"""Registry of noises. A new one is a module here, and a line below."""

from __future__ import annotations

from cloakgp.privacy.noise.base import Noise
from cloakgp.privacy.noise.gaussian import GaussianNoise
from cloakgp.privacy.noise.laplace import LaplaceNoise
from cloakgp.utils.names import AUTO, NoiseName

GAUSSIAN = GaussianNoise()
LAPLACE = LaplaceNoise()
NOISES: dict[NoiseName, Noise] = {each.name: each for each in (GAUSSIAN, LAPLACE)}

__all__ = ["GAUSSIAN", "LAPLACE", "NOISES", "Noise", "noise_named"]


def noise_named(name: object) -> Noise:
    """Return the noise of a name, or raise an error that lists all.

    Raises
    ------
    ValueError
        If there is none.

    Examples
    --------
    >>> noise_named("laplace").unit_sd(2.0, 0.0).__round__(3)
    0.707
    """
    for known, noise in NOISES.items():
        if name == known:
            return noise
    raise ValueError(f"noise must be one of {AUTO}, {', '.join(NOISES)}, got {name!r}")
