"""Conformal margins in a fit: which rows are kept out, in which cells they are counted.

Rows are kept out by a draw that depends on no output. They are asked one question, with the whole
budget, as no other question is about them. All of this is decided by public numbers. Cells are
those of twelve tried with which intervals of 80 to 95 % were narrowest, or nearly, on simulated
scores of six laws, at Laplace noise of .03 to 1.4 % of the rows (25 draws of each).
"""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import shuffle

from cloakgp.fitting.strategies import Budget
from cloakgp.release.margins import least_count, noise_part, quantile_of_noise

# Where cells of distances end, in predictive sds: each a fifth further than the one before, from a
# tenth to two and a half; and far off, where few predictions are, two more. What lies beyond a
# distance is a sum over cells, so that noise adds up over those further out.
NEAREST, NEAR, STEP, FAR = 0.1, 2.5, 1.2, (4.0, 8.0)
CELLS = np.concatenate(
    [NEAR * STEP ** -np.arange(np.log(NEAR / NEAREST) / np.log(STEP))[::-1], FAR]
)
# The coverage that must be possible if rows are to be kept out.
LEAST_COVERAGE = 0.9
# At most this much of a table is kept out.
MOST_KEPT = 0.5


def kept_share(calibrate: object) -> float:
    """Return the share of the rows that is kept out of a fit; 0 if none is.

    Parameters
    ----------
    calibrate : "auto", False or float
        As for `DPGPRegressor`.

    Raises
    ------
    ValueError
        If it is none of these.

    Examples
    --------
    >>> kept_share(0.1), kept_share("auto"), kept_share(False)
    (0.1, 0.0, 0.0)
    """
    if calibrate is False or calibrate == "auto":
        return 0.0
    number = isinstance(calibrate, Real) and not isinstance(calibrate, bool)
    # Written so that NaN fails.
    if not (number and 0 < float(calibrate) < MOST_KEPT):  # type: ignore[arg-type]
        raise ValueError(
            "calibrate must be 'auto', False, or the share of the rows that is kept out of the "
            f"fit, above 0 and below {MOST_KEPT:g}, got {calibrate!r}"
        )
    return float(calibrate)  # type: ignore[arg-type]


def count_kept(rows: int, *, share: float) -> int:
    """Return how many rows are kept out, at least one.

    Parameters
    ----------
    rows : int
        N.
    share : float
    """
    return max(round(share * rows), 1)


def choose_kept(rows: int, *, share: float, random_state: int) -> NDArray[np.bool_]:
    """Return which rows are kept out, shape (N,): that share of them, by a draw.

    Parameters
    ----------
    rows : int
        N.
    share : float
    random_state : int
        Public.
    """
    kept = np.zeros(rows, dtype=bool)
    order = shuffle(np.arange(rows), random_state=random_state)
    kept[order[: count_kept(rows, share=share)]] = True
    return kept


def check_kept(budget: Budget, *, rows: int) -> None:
    """Refuse to keep out so few rows that no interval of 90 % can be told from all.

    Parameters
    ----------
    budget : Budget
    rows : int
        That are kept out.

    Raises
    ------
    ValueError
    """
    sd = budget.law.between_indicators * budget.unit_sd()
    reach = sd * quantile_of_noise(budget.law, 1, 1.0 - noise_part(LEAST_COVERAGE))
    if least_count(LEAST_COVERAGE, rows=rows) - 1 + reach > rows:
        raise ValueError(
            f"calibrate keeps {rows:,} rows out of the fit, too few at this budget for intervals "
            f"of {100 * LEAST_COVERAGE:g} %: keep more, or give calibrate='auto'"
        )
