"""Public predictions in words: whether a release goes by one, and what it says of people in it."""

from __future__ import annotations

import numpy as np

from cloakgp.release import Release
from cloakgp.report.columns import input_names
from cloakgp.report.facts import Fact
from cloakgp.utils.formatting import amount

LABEL = "public prediction"


def prediction_facts(release: Release) -> tuple[Fact, ...]:
    """State what became of a public prediction; nothing of a release without one.

    Parameters
    ----------
    release : Release
    """
    trend = release.prior.trend
    if trend is None:
        return ()
    column = input_names(release)[trend.column]
    weight = weight_of(release)
    if weight == 0.0:
        return (
            Fact(
                LABEL,
                f"the noisy answers are far more probable without {column}, and predictions do not "
                "go by it.",
            ),
        )
    by_it = f"predictions go by {column}"
    if not np.isclose(weight, 1.0):
        by_it = (
            f"predictions are an average: {weight:.0%} go by {column}, the others do not, as "
            "probable as each makes the noisy answers"
        )
    return (
        Fact(
            LABEL,
            f"{by_it}. For each 1 that it is higher, they are {amount(slope_of(release), 3)} "
            "higher.",
        ),
    )


def protection_facts(release: Release) -> tuple[Fact, ...]:
    """State what is not protected because of a public prediction.

    Parameters
    ----------
    release : Release
    """
    trend = release.prior.trend
    if trend is None:
        return ()
    column = input_names(release)[trend.column]
    known, rows = release.predictor, release.public_rows
    source = (
        f"{column} was declared to be public, for every row. If it was made from the values of "
        f"{release.output_name} in this table, it tells of them, and no guarantee here covers that."
    )
    if known is not None:
        source = (
            f"{column} comes from another release, which is in this one, with a guarantee of its "
            f"own: {known.guarantee}. Of people whose values are in both, the two add up."
        )
    if rows is not None:
        source = (
            f"{column} comes from {len(rows.X):,} rows with outputs that were declared to be "
            "public, and are in this file. No guarantee here covers the people in these."
        )
    return (Fact(LABEL, source),)


def weight_of(release: Release) -> float:
    """Return the weight of the priors that go by the public prediction.

    Parameters
    ----------
    release : Release
        With a trend.
    """
    if not release.learned:
        return float(release.prior.trend is not None)
    return float(sum(one.weight for one in release.learned if one.prior.trend is not None))


def slope_of(release: Release) -> float:
    """Return how much predictions rise by for each 1 that their public prediction is higher.

    From its least to its greatest value, at the middles of the other inputs.

    Parameters
    ----------
    release : Release
        With a trend.
    """
    trend = release.prior.trend
    assert trend is not None
    low, high = release.input_ranges
    ends = np.tile((low + high) / 2, (2, 1))
    ends[:, trend.column] = low[trend.column], high[trend.column]
    if not ends[1, trend.column] > ends[0, trend.column]:
        return 0.0
    first, last = release.predict_latent(ends).mean
    return float((last - first) / (ends[1, trend.column] - ends[0, trend.column]))
