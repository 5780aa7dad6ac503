"""What looks dubious about a budget, bounds and rates, told before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence

from cloakgp.numerals import odds_factor

# Above it the odds may change by more than twenty thousand.
LARGEST_USUAL_EPSILON = 10.0
# Numbers out of one's head have few digits; numbers computed from outputs have many.
USUAL_DIGITS = 4
USUAL_RATE_DIGITS = 3


def budget_doubts(*, epsilon: float, delta: float, rows: int) -> tuple[str, ...]:
    """Return what looks dubious about a budget.

    Parameters
    ----------
    epsilon, delta : float
    rows : int
        How many rows are in the table.

    Examples
    --------
    >>> for doubt in budget_doubts(epsilon=1.0, delta=0.01, rows=500):
    ...     print(doubt)
    delta = 0.01 is more than one in 500 rows: a mechanism that gives away a row at random could \
meet such a guarantee. Choose a delta well below 0.002.
    """
    found = []
    if delta * rows > 1:
        found.append(
            f"delta = {delta:.4g} is more than one in {rows:,} rows: a mechanism that gives away a "
            f"row at random could meet such a guarantee. Choose a delta well below {1 / rows:.2g}."
        )
    if epsilon > LARGEST_USUAL_EPSILON:
        found.append(
            f"epsilon = {epsilon:.4g} protects hardly anybody: odds may change by a factor of "
            f"{odds_factor(epsilon)}. Choose 1 or so; above 10 is rarely defensible."
        )
    return tuple(found)


def exact_bounds(bounds: tuple[float, float]) -> tuple[str, ...]:
    """Return what looks dubious about bounds, in output units.

    Examples
    --------
    >>> exact_bounds((0, 100))
    ()
    """
    exact = [f"{end:.15g}" for end in bounds if float(f"{end:.{USUAL_DIGITS}g}") != end]
    if not exact:
        return ()
    return (
        f"bounds with as many digits as {' and '.join(exact)} look computed from the data. "
        "The lowest and highest outputs are themselves private: take bounds from general "
        "knowledge.",
    )


def exact_rates(rates: Sequence[float]) -> tuple[str, ...]:
    """Return what looks dubious about the declared rates of classes.

    Examples
    --------
    >>> exact_rates([0.333, 0.333, 0.334]), exact_rates([0.9999, 0.0001])
    ((), ())
    """
    exact = []
    for rate in rates:
        rarer = min(rate, 1.0 - rate)
        if abs(float(f"{rarer:.{USUAL_RATE_DIGITS}g}") - rarer) > 1e-9 * rarer:
            exact.append(f"{rate:.15g}")
    if not exact:
        return ()
    return (
        f"class rates with as many digits as {' and '.join(exact)} look counted in the data. The "
        "shares of the classes are themselves private: take rates from general knowledge.",
    )
