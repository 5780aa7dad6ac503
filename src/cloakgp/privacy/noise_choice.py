"""Choice of a noise: the law that a budget gets, by its name or by forecast.

``noise="auto"`` means one thing everywhere: among the registered noises that the budget and the
criterion allow, the one whose forecast of error is least. A forecast is made of public things and
of earlier answers alone, so that the choice tells nothing. Near-ties go to a law that needs no δ,
and among those to the first of the registry (``docs/noise.md``): questions that overlap, as with
Gaussian noise, lean on the prior more than sums over parts of the rows do.

A forecast by earlier answers settles a price by them, too: an ε of Laplace noise, or a μ. Such
prices are no sum (`cloakgp.privacy.filters`), so that a later visit of the same people keeps the
law that they were asked with (`laws_beside`), unless a limit was set beforehand. Within one, equal
budgets are no equal prices beside what was spent: μ² adds up to less than an ε does. Noises are
compared at equal totals (`budgets_at_equal_total`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from cloakgp.privacy.accounting import Guarantee, compose
from cloakgp.privacy.budgets import Pair, check_budget
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.noise import NOISES, Noise, noise_named
from cloakgp.utils.formatting import ceiling
from cloakgp.utils.names import AUTO, Ball, NoiseName

# A law is taken before others that are expected to leave more than this share of its error.
LEAD = 0.9
# To what share of a part equal totals are found, and in how many steps at most.
PRECISION, STEPS = 0.02, 5


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
    check_budget(epsilon, delta, pure=True, part=part)
    allowed = [law for law in NOISES.values() if delta or not law.needs_delta]
    for law in allowed:
        law.check(epsilon, delta)
    allowed = [law for law in allowed if law.ball in balls] or allowed
    allowed.sort(key=lambda law: law.needs_delta)
    left: list[Noise] = []
    for place, law in enumerate(allowed):
        others = [*left, *allowed[place + 1 :]]
        if not any(_covers(other, law, epsilon=epsilon, delta=delta) for other in others):
            left.append(law)
    return tuple(law.name for law in left)


def _covers(law: Noise, other: Noise, *, epsilon: float, delta: float) -> bool:
    """Return whether a law can ask the same questions as another, with no more noise."""
    return law.ball in ("l2", other.ball) and (
        law.unit_sd(epsilon, delta) <= other.unit_sd(epsilon, delta)
    )


def laws_beside(
    allowed: Sequence[NoiseName], *, earlier: Sequence[NoiseName]
) -> tuple[NoiseName, ...]:
    """Return the noises among which answers may choose beside earlier ones about the same people.

    One of them: the latest that is allowed, or, if none is, the first that is. All if nothing was
    asked.

    Parameters
    ----------
    allowed : sequence of str
        By the budget.
    earlier : sequence of str
        Of earlier answers, in their order.

    Examples
    --------
    >>> laws_beside(("laplace", "gaussian"), earlier=["gaussian"])
    ('gaussian',)
    >>> laws_beside(("laplace",), earlier=["gaussian"])
    ('laplace',)
    """
    if not earlier:
        return tuple(allowed)
    return (next((law for law in reversed(earlier) if law in allowed), allowed[0]),)


def budgets_at_equal_total(
    names: Collection[NoiseName], *, epsilon: float, delta: float, spent: Sequence[Guarantee]
) -> dict[NoiseName, Pair]:
    """Return the budget of each noise for one total, including earlier spending.

    The noise with the least total gets all of it; others get the part with which they compose to
    the same ε.

    Parameters
    ----------
    names : collection of str
        Of noises.
    epsilon, delta : float
    spent : sequence of Guarantee

    Examples
    --------
    >>> from cloakgp.privacy.noise import GAUSSIAN
    >>> budgets = budgets_at_equal_total(
    ...     ["gaussian", "laplace"], epsilon=0.5, delta=1e-5, spent=[GAUSSIAN.whole(1.0, 1e-5)]
    ... )
    >>> budgets["gaussian"], round(budgets["laplace"][0], 2)
    ((0.5, 1e-05), 0.19)
    """

    def total(name: NoiseName, part: float) -> float:
        return compose(*spent, noise_named(name).whole(part, delta)).epsilon

    totals = {name: total(name, epsilon) for name in names}
    least = min(totals.values())
    parts = dict.fromkeys(names, epsilon)
    for name in names:
        excess = totals[name] - least
        # Where a total grows by no more than the ε that is added, no such step goes too far.
        for _ in range(STEPS):
            if excess <= PRECISION * parts[name]:
                break
            parts[name] = max(parts[name] - excess, PRECISION * epsilon)
            excess = total(name, parts[name]) - least
    return {name: (part, delta) for name, part in parts.items()}


def unused_delta(
    guarantee: Guarantee | MixedGuarantee,
    *,
    allowed: float,
    noise: object,
    ahead: bool = False,
    later: bool = False,
) -> str:
    """Return in a sentence that a δ is allowed and none of it spent; empty if that is not so.

    None of it is told to be spent where it saves only digits of ε that are not printed.

    Parameters
    ----------
    guarantee : Guarantee or MixedGuarantee
        Of what was spent, or will be.
    allowed : float
    noise : str
        As it was asked for: a name, or "auto" for a choice.
    ahead : bool
        Whether nothing was asked yet.
    later : bool
        Whether there are answers of earlier visits, whose noise may have been kept.

    Examples
    --------
    >>> spent = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,))
    >>> unused_delta(spent, allowed=1e-6, noise="laplace")
    'δ = 1e-06 was allowed, and none of it was used: Laplace noise was asked for, and needs none.'
    """
    if not allowed or not needs_no_delta(guarantee):
        return ""
    was, used = ("is", "will be") if ahead else ("was", "was")
    why = f"{was} asked for"
    if noise == AUTO:
        kept = "that of earlier answers, or " if later else ""
        why = f"{was} {kept}expected to be better or nearly as good"
    return (
        f"δ = {allowed:.4g} {was} allowed, and none of it {used} used: Laplace noise {why}, and "
        "needs none."
    )


def needs_no_delta(guarantee: Guarantee | MixedGuarantee) -> bool:
    """Return whether a δ saves only digits of ε that are not printed.

    Examples
    --------
    >>> needs_no_delta(Guarantee(epsilon=0.99999, delta=1e-6, mu=0.0, laplace=(0.4, 0.6)))
    True
    """
    if not isinstance(guarantee, Guarantee):
        return False
    return ceiling(max(guarantee.pure_epsilon, guarantee.epsilon)) == ceiling(guarantee.epsilon)


def however_priced(
    guarantee: Guarantee | MixedGuarantee, *, visits: int
) -> Guarantee | MixedGuarantee:
    """Return a guarantee that holds however the prices of several visits were chosen, without δ.

    Its ε does (Rogers, Roth, Ullman and Vadhan 2016), and is all that is known of it then: privacy
    losses of the visits add up to a curve only if each price was fixed beforehand. With a δ the
    guarantee is as it was, and assumes that.

    Parameters
    ----------
    guarantee : Guarantee or MixedGuarantee
    visits : int

    Examples
    --------
    >>> both = Guarantee(epsilon=2.0, delta=0.0, mu=0.0, laplace=(1.0, 1.0))
    >>> round(both.delta_at(1.0), 2), round(however_priced(both, visits=2).delta_at(1.0), 2)
    (0.24, 0.56)
    """
    if visits > 1 and isinstance(guarantee, Guarantee) and needs_no_delta(guarantee):
        return replace(guarantee, adaptive=True)
    return guarantee


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
