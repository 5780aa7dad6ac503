"""Registry of noises: what is added to answers. A new one is a module here, and a line below."""

from __future__ import annotations

from cloakgp.privacy.noise.base import Noise
from cloakgp.privacy.noise.gaussian import GaussianNoise
from cloakgp.privacy.noise.laplace import LaplaceNoise
from cloakgp.utils.names import NoiseName

GAUSSIAN = GaussianNoise()
LAPLACE = LaplaceNoise()
NOISES: dict[NoiseName, Noise] = {each.name: each for each in (GAUSSIAN, LAPLACE)}

__all__ = ["GAUSSIAN", "LAPLACE", "NOISES", "Noise", "noise_for", "noise_named", "noises_for"]


def noise_named(name: object) -> Noise:
    """Return the noise of a name, or say which there are.

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
    raise ValueError(f"noise must be one of auto, {', '.join(NOISES)}, got {name!r}")


def noise_for(noise: object, *, epsilon: float, delta: float) -> NoiseName:
    """Return the noise of a budget, after checking it.

    Parameters
    ----------
    noise : {"auto", "gaussian", "laplace"}
        "auto" is Laplace noise where δ is 0, and Gaussian noise where there is one.
    epsilon, delta : float

    Raises
    ------
    ValueError
        If there is no such noise, or none of this budget.

    Examples
    --------
    >>> noise_for("auto", epsilon=1.0, delta=0.0)
    'laplace'
    """
    law = noise_named(("laplace" if delta == 0 else "gaussian") if noise == "auto" else noise)
    law.check(epsilon, delta)
    return law.name


def noises_for(noise: object, *, epsilon: float, delta: float) -> tuple[NoiseName, ...]:
    """Return the noises of a budget among which its use may choose, after checking it.

    Without a δ there is Laplace noise alone. With one, Gaussian noise is better whenever its sd on
    a question of sensitivity 1 is no larger: whatever Laplace noise can ask, it can ask as well.

    Parameters
    ----------
    noise : {"auto", "gaussian", "laplace"}
        "auto" for a choice.
    epsilon, delta : float

    Raises
    ------
    ValueError
        If there is no such noise, or none of this budget.

    Examples
    --------
    >>> noises_for("auto", epsilon=1.0, delta=1e-5)
    ('gaussian', 'laplace')
    >>> noises_for("auto", epsilon=1.0, delta=0.0)
    ('laplace',)
    """
    simple = noise_for(noise, epsilon=epsilon, delta=delta)
    if noise != "auto" or delta == 0:
        return (simple,)
    if LAPLACE.unit_sd(epsilon, delta) >= GAUSSIAN.unit_sd(epsilon, delta):
        return (GAUSSIAN.name,)
    return (GAUSSIAN.name, LAPLACE.name)
