"""Choice of a noise: the law that a budget gets, by its name or by forecast.

``noise="auto"`` means one thing everywhere: among the registered noises that the budget and the
criterion allow, the one whose forecast of error is least. A forecast is made of public things and
of earlier answers alone, so that the choice tells nothing. Near-ties go to a law that needs no δ,
and among those to the first of the registry: beside them, releases with Gaussian noise were a tenth
worse than forecasts said on twelve tables (``docs/noise.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from cloakgp.privacy.budgets import check_budget
from cloakgp.privacy.noise import NOISES, Noise, noise_named
from cloakgp.utils.names import AUTO, Ball, NoiseName

# A law is taken before others that are expected to leave more than this share of its error.
LEAD = 0.9


def check_noise(noise: object, *, epsilon: float, delta: float) -> None:
    """Refuse a budget that is none, a noise that is none, or one that the budget does not allow.

    Parameters
    ----------
    noise : str
        A noise's name, or "auto".
    epsilon, delta : float

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_noise("auto", epsilon=1.0, delta=0.0)
    """
    noises_for(noise, epsilon=epsilon, delta=delta)


def noises_for(
    noise: object,
    *,
    epsilon: float,
    delta: float,
    balls: Collection[Ball] = ("l1", "l2"),
    part: bool = False,
) -> tuple[NoiseName, ...]:
    """Return the noises among which a release may choose, those that need no δ first.

    A law is left out where another one can ask whatever it can, with no more noise: where that
    one's sd on a question of sensitivity 1 is no larger, and its ball holds the other's. The
    Euclidean ball holds that of absolute sums.

    Parameters
    ----------
    noise : str
        A noise's name, or "auto" for a choice.
    epsilon, delta : float
    balls : collection of {"l1", "l2"}
        In which the criterion knows questions; of a noise that is named, the criterion says it.
    part : bool
        Whether it is part of a budget that was checked.

    Raises
    ------
    ValueError
        If there is no such noise, or none of this budget.

    Examples
    --------
    >>> noises_for("auto", epsilon=1.0, delta=1e-5)
    ('laplace', 'gaussian')
    >>> noises_for("auto", epsilon=1.0, delta=0.0)
    ('laplace',)
    """
    if noise != AUTO:
        named = noise_named(noise)
        named.check(epsilon, delta)
        check_budget(epsilon, delta, pure=True, part=part)
        return (named.name,)
    allowed = [law for law in NOISES.values() if delta or not law.needs_delta]
    for law in allowed:
        law.check(epsilon, delta)
    check_budget(epsilon, delta, pure=True, part=part)
    allowed = [law for law in allowed if law.ball in balls] or allowed
    allowed.sort(key=lambda law: law.needs_delta)
    left: list[Noise] = []
    for place, law in enumerate(allowed):
        others = [*left, *allowed[place + 1 :]]
        if not any(_covers(other, law, epsilon=epsilon, delta=delta) for other in others):
            left.append(law)
    return tuple(law.name for law in left)


def _covers(law: Noise, other: Noise, *, epsilon: float, delta: float) -> bool:
    """Return whether a law asks whatever another can, with no more noise."""
    return law.ball in ("l2", other.ball) and (
        law.unit_sd(epsilon, delta) <= other.unit_sd(epsilon, delta)
    )


def choose_noise(
    noise: object,
    *,
    epsilon: float,
    delta: float,
    expected_error: Callable[[NoiseName], float],
    balls: Collection[Ball] = ("l1", "l2"),
    part: bool = False,
) -> NoiseName:
    """Return the noise of a release: the one that is named, or the best by forecast.

    It is the first of `noises_for` of which 0.9 of the expected error is at most the least that is
    expected of any.

    Parameters
    ----------
    noise : str
        A noise's name, or "auto".
    epsilon, delta : float
    expected_error : callable
        The error that a release with some noise is expected to have; not called without a choice.
    balls : collection of {"l1", "l2"}
    part : bool
        As for `noises_for`.

    Raises
    ------
    ValueError
        As `noises_for`.

    Examples
    --------
    >>> choose_noise("auto", epsilon=1.0, delta=0.0, expected_error=lambda noise: 0.0)
    'laplace'
    >>> nearly_alike = {"gaussian": 0.95, "laplace": 1.0}.__getitem__
    >>> choose_noise("auto", epsilon=1.0, delta=1e-5, expected_error=nearly_alike)
    'laplace'
    """
    possible = noises_for(noise, epsilon=epsilon, delta=delta, balls=balls, part=part)
    if len(possible) == 1:
        return possible[0]
    errors = {name: expected_error(name) for name in possible}
    least = min(errors.values())
    # Written so that NaN, of which no forecast is less, does not leave none.
    return next((name for name in possible if LEAD * errors[name] <= least), possible[0])
