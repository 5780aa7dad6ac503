"""What looks dubious about a budget and bounds, told before anything is spent."""

from __future__ import annotations

from cloakgp.numerals import odds_factor

# Above it the odds may change by more than twenty thousand.
LARGEST_USUAL_EPSILON = 10.0
# Bounds out of one's head have few digits; bounds computed from outputs have many.
USUAL_DIGITS = 4


def doubts(
    *, epsilon: float, delta: float, bounds: tuple[float, float], rows: int
) -> tuple[str, ...]:
    """Return what looks dubious about a budget and bounds, before anything is spent.

    Parameters
    ----------
    epsilon, delta : float
    bounds : (float, float)
        In output units.
    rows : int
        How many rows are in the table.

    Examples
    --------
    >>> for doubt in doubts(epsilon=1.0, delta=0.01, bounds=(0, 100), rows=500):
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
    exact = [f"{end:.15g}" for end in bounds if float(f"{end:.{USUAL_DIGITS}g}") != end]
    if exact:
        found.append(
            f"bounds with as many digits as {' and '.join(exact)} look computed from the data. "
            "The lowest and highest outputs are themselves private: take bounds from general "
            "knowledge."
        )
    return tuple(found)
