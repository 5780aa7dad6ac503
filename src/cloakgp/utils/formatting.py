"""Numbers and names as text: few digits, losses of privacy rounded up, nothing that is obeyed."""

from __future__ import annotations

import math
import sys
import traceback
import unicodedata
from pathlib import Path

# Half the width of a 95 % interval, in sds.
NORMAL_95 = 1.959963984540054
# From here on amounts are written with powers of ten.
SHORTEST_IN_POWERS = 1e15
# Control codes, invisible and directional characters, halves of characters, ends of lines.
UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def amount(value: float, digits: int = 6) -> str:
    """Return an amount as people write it, with few digits: without powers of ten.

    Thousands are separated where there are tens of them, so that years stay years.

    Examples
    --------
    >>> amount(22345.6, 3), amount(2026.0, 4), amount(0.01234, 3), amount(2.3e6)
    ('22,300', '2026', '0.0123', '2,300,000')
    >>> amount(123458.07, 12)
    '123,458.07'
    """
    short = f"{value:.{digits}g}"
    rounded = float(short)
    if not SHORTEST_IN_POWERS > abs(rounded) >= 1:
        return short
    plain = f"{rounded:,}".removesuffix(".0")
    return plain if abs(rounded) >= 10_000 else plain.replace(",", "")


def ceiling(value: float, *, digits: int = 3) -> str:
    """Return a positive number with few digits, rounded up, as losses of privacy must be.

    Examples
    --------
    >>> ceiling(2.7182), ceiling(1.0), ceiling(0.0)
    ('2.72', '1', '0')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    # Below the least number of full precision there are no digits to choose, and a step is 0.
    least = sys.float_info.min
    value = least if 0 < value < least else value
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    # The tolerance keeps what is exact but for its last binary digits where it is.
    rounded = math.ceil(value / step * (1 - 1e-12)) * step
    return f"{rounded:,.0f}" if rounded >= 10**digits else f"{rounded:.{digits}g}"


def pair_in_words(epsilon: float, delta: float, *, pure: float = math.inf) -> str:
    """Return (ε, δ) in words, rounded up, or ε alone where that holds without δ, as printed.

    Parameters
    ----------
    epsilon, delta : float
    pure : float
        The ε that holds with no δ; infinite if none does.

    Examples
    --------
    >>> pair_in_words(1.0, 1e-6), pair_in_words(0.99999, 1e-6, pure=0.999999)
    ('(ε, δ) = (1, 1e-06)', 'ε = 1, with no δ')
    """
    if ceiling(max(pure, epsilon)) == ceiling(epsilon):
        return f"ε = {ceiling(epsilon)}, with no δ"
    return f"(ε, δ) = ({ceiling(epsilon)}, {ceiling(delta, digits=4)})"


def left_out(*, without_output: int, without_inputs: int) -> str:
    """Return in sentences how many rows of a table are left out, and why; empty if none is.

    Parameters
    ----------
    without_output : int
        The number of rows without a private value.
    without_inputs : int
        The number of others without some public value.

    Examples
    --------
    >>> left_out(without_output=7, without_inputs=0)[:53]
    '7 more rows have no private value, and are left out: '
    """
    sentences = []
    if without_output:
        sentences.append(
            f"{_more_rows(without_output, 'has', 'have')} no private value, and "
            f"{'is' if without_output == 1 else 'are'} left out: that choice makes public which "
            "rows have none."
        )
    if without_inputs:
        sentences.append(
            f"{_more_rows(without_inputs, 'lacks', 'lack')} a public value, and "
            f"{'is' if without_inputs == 1 else 'are'} left out."
        )
    return " ".join(sentences)


def _more_rows(count: int, one: str, several: str) -> str:
    return f"1 more row {one}" if count == 1 else f"{count:,} more rows {several}"


def odds_factor(epsilon: float) -> str:
    """Return e^ε, rounded up.

    Examples
    --------
    >>> odds_factor(1.0), odds_factor(10.0), odds_factor(50.0)
    ('2.72', '22,100', '10^22')
    """
    if epsilon > math.log(1e9):
        return f"10^{math.ceil(epsilon / math.log(10))}"
    return ceiling(math.exp(epsilon))


def percent(share: float) -> str:
    """Return a share in percent, rounded up.

    Examples
    --------
    >>> percent(0.60487)
    '60.5 %'
    """
    return f"{ceiling(100 * share)} %"


def one_in(share: float) -> str:
    """Return a small share as a remark in brackets, and nothing for a large one, or next to none.

    Examples
    --------
    >>> one_in(1e-5), one_in(0.5)
    (' (1 in 100,000)', '')
    """
    if not sys.float_info.min <= share < 0.1:
        return ""
    return f" (1 in {math.floor((1 + 1e-12) / share):,})"


def bytes_in_words(size: float) -> str:
    """Return a size with two digits.

    Examples
    --------
    >>> bytes_in_words(1234.0), bytes_in_words(2.5e9)
    ('1.2 kB', '2.5 GB')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            share = size / unit
            return f"{share:.2g} {name}" if share < 100 else f"{share:,.0f} {name}"
    return f"{size:.0f} bytes"


def seconds_in_words(seconds: float) -> str:
    """Return a duration in words.

    Examples
    --------
    >>> seconds_in_words(0.2), seconds_in_words(40.0), seconds_in_words(90.0)
    ('a few seconds', 'some 40 seconds', 'some 2 minutes')
    >>> seconds_in_words(9000.0)
    'some 2.5 hours'
    """
    if seconds < 8:
        return "a few seconds"
    if seconds < 60:
        return f"some {seconds:.0f} seconds"
    if seconds < 5400:
        return f"some {math.ceil(seconds / 60):.0f} minutes"
    return f"some {seconds / 3600:.2g} hours"


def short_form(what: str, *, insecure: bool) -> str:
    """Return a public object in one line, marked if its noise came from a fixed seed.

    Examples
    --------
    >>> short_form("Release of 3 noisy answers", insecure=True)
    '<Release of 3 noisy answers. INSECURE: seeded noise, not private.>'
    """
    mark = " INSECURE: seeded noise, not private." if insecure else ""
    return f"<{what}.{mark}>"


def printable(text: str) -> str:
    r"""Return text with escapes for letters that a terminal would obey and not show.

    Names in a release come from whoever made the file: they could move the cursor, and write over
    what was said before.

    Examples
    --------
    >>> printable("age\x1b[2J")
    'age\\x1b[2J'
    """
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in UNPRINTABLE
        else character
        for character in text
    )


def kind_and_place(error: Exception) -> str:
    """Return the class of an error and its place, without its message, which might quote a value.

    Examples
    --------
    >>> try:
    ...     float("a secret")
    ... except ValueError as error:
    ...     kind_and_place(error).partition(" at ")[0]
    'ValueError'
    """
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}, line {last.lineno}"
