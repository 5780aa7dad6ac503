"""Warnings about budgets, bounds and class rates, before anything is spent.

All of them look at what is declared and at the number of rows, and never at a private column.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from numbers import Real

from cloakgp.utils.formatting import amount, odds_factor
from cloakgp.utils.warned import CloakWarning

# Above it the odds may change by more than twenty thousand.
LARGEST_USUAL_EPSILON = 10.0
# Numbers out of one's head have few digits; numbers computed from outputs have many.
USUAL_DIGITS = 4
USUAL_RATE_DIGITS = 3
# Of numbers whose logarithms or roots are declared. With more, lowest amounts would pass for them.
USUAL_DIGITS_BEFORE = 2

Interval = tuple[float, float]

# Whether whoever called has been warned of the whole of which this is a part.
_warned = ContextVar("_warned", default=False)


class PrivacyParameterWarning(CloakWarning):
    """A declared parameter makes the guarantee weak, or looks computed from private data.

    Raised before a private column is read. Nothing it says depends on one.

    Examples
    --------
    >>> import warnings
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=20.0, delta=1e-3)
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     model = model.fit([[0.0], [1.0]], [0, 1])
    >>> [one.category.__name__ for one in found]
    ['PrivacyParameterWarning']
    """


def warn_of_parameters(
    *,
    epsilon: float,
    delta: float | None = None,
    rows: int | None = None,
    bounds: Sequence[Interval] = (),
    mean: float | None = None,
    input_bounds: Sequence[Interval] = (),
    rates: Sequence[float] = (),
) -> None:
    """Warn of all dubious parts of a declaration, except within `already_warned`.

    Parameters
    ----------
    epsilon : float
        Of all that is spent.
    delta : float, optional
        None if the guarantee has none.
    rows : int, optional
        N; None if it is private, or δ is None.
    bounds : sequence of (float, float)
        Of every private output, in output units.
    mean : float, optional
        The declared prior mean of the only output, in its units.
    input_bounds : sequence of (float, float)
        Of private inputs.
    rates : sequence of float
        Declared rates of classes.

    Warns
    -----
    PrivacyParameterWarning
        Once for each doubt, at the line that called this package.

    Examples
    --------
    >>> warn_of_parameters(epsilon=1.0, delta=1e-5, rows=500, bounds=[(0, 100)])
    """
    if _warned.get():
        return
    doubts = [
        *budget_doubts(epsilon=epsilon, delta=delta, rows=rows),
        *bounds_doubts(bounds, of="outputs"),
        *mean_doubts(mean, bounds),
        *bounds_doubts(input_bounds, of="inputs"),
        *rates_doubts(rates),
    ]
    for doubt in doubts:
        warn_caller(doubt, PrivacyParameterWarning)


@contextmanager
def already_warned() -> Iterator[None]:
    """Suppress warnings about parts of a declaration that `warn_of_parameters` has checked.

    Examples
    --------
    >>> with already_warned():
    ...     warn_of_parameters(epsilon=20.0)
    """
    token = _warned.set(True)
    try:
        yield
    finally:
        _warned.reset(token)


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line that called this package, however deep inside it this is called.

    Parameters
    ----------
    message : str
    category : type of Warning
    """
    level, frame = 1, inspect.currentframe()
    package = __name__.partition(".")[0]
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def budget_doubts(
    *, epsilon: float, delta: float | None = None, rows: int | None = None
) -> tuple[str, ...]:
    """Return doubts about a budget.

    Parameters
    ----------
    epsilon : float
    delta : float, optional
    rows : int, optional
        How many rows are in the table.

    Examples
    --------
    >>> for doubt in budget_doubts(epsilon=1.0, delta=0.01, rows=500):
    ...     print(doubt)
    delta = 0.01 is more than one in 500 rows: a mechanism that gives away a row at random could \
meet such a guarantee. Choose a delta well below 0.002.
    """
    doubts = []
    if delta is not None and rows is not None and delta * rows > 1:
        doubts.append(
            f"delta = {delta:.4g} is more than one in {rows:,} rows: a mechanism that gives away a "
            "row at random could meet such a guarantee. Choose a delta well below "
            f"{amount(1 / rows, 2)}."
        )
    if epsilon > LARGEST_USUAL_EPSILON:
        doubts.append(
            f"epsilon = {epsilon:.4g} protects hardly anyone: odds may change by a factor of "
            f"{odds_factor(epsilon)}. Choose 1 or so; above 10 is rarely defensible."
        )
    return tuple(doubts)


def bounds_doubts(bounds: Sequence[Interval], *, of: str = "outputs") -> tuple[str, ...]:
    """Return doubts about bounds.

    Parameters
    ----------
    bounds : sequence of (float, float)
    of : str
        What they are bounds of.

    Examples
    --------
    >>> bounds_doubts([(0, 100)])
    ()

    Logarithms and roots of numbers out of one's head have many digits, too.

    >>> bounds_doubts([(math.log(50), math.log(20_000))])
    ()
    """
    ends = [end for interval in bounds for end in interval]
    exact = [f"{end:.15g}" for end in ends if not _has_usual_digits(end)]
    if not exact:
        return ()
    return (
        f"bounds with as many digits as {' and '.join(exact)} look computed from the data. "
        f"The lowest and highest {of} are themselves private: take bounds from general "
        "knowledge.",
    )


def _has_usual_digits(end: float) -> bool:
    """Return whether a number has few digits, or is a logarithm or a root of one that has fewer."""
    if float(f"{end:.{USUAL_DIGITS}g}") == end:
        return True
    for before, after in (
        (math.exp, math.log),
        (math.expm1, math.log1p),
        (lambda value: 10.0**value, math.log10),
        (math.exp2, math.log2),
        (lambda value: value * value, math.sqrt),
    ):
        with suppress(OverflowError, ValueError):
            few = float(f"{before(end):.{USUAL_DIGITS_BEFORE}g}")
            if math.isclose(after(few), end, rel_tol=1e-14):
                return True
    return False


def mean_doubts(mean: object, bounds: Sequence[Interval]) -> tuple[str, ...]:
    """Return doubts about a prior mean.

    Examples
    --------
    >>> mean_doubts(200.0, [(0, 100)])
    ('the prior mean 200 lies outside the bounds.',)
    """
    # What is no number is refused where the prior is made.
    level = float(mean) if isinstance(mean, Real) else math.nan
    if not math.isfinite(level) or all(lo <= level <= hi for lo, hi in bounds):
        return ()
    return (f"the prior mean {amount(level, 12)} lies outside the bounds.",)


def rates_doubts(rates: Sequence[float]) -> tuple[str, ...]:
    """Return doubts about the declared rates of classes.

    Examples
    --------
    >>> rates_doubts([0.333, 0.333, 0.334]), rates_doubts([0.9999, 0.0001])
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
