"""Comparison of two releases: their guarantees, their sharpness, and where they disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cloakgp.release import OneOutputRelease
from cloakgp.release.points import points_of
from cloakgp.report.columns import input_names, public_columns
from cloakgp.report.describe import headline
from cloakgp.report.facts import Fact, Section
from cloakgp.report.measurements import root_mean_square
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount

# Where they disagree most: so many places are told.
SHOWN = 5
# Predictions differ by more than chance where they are so many sds apart.
APART = 2.0


@dataclass(frozen=True, eq=False)
class Comparison:
    """Predictions of two releases at the same places.

    Attributes
    ----------
    X : array of shape (P, D)
    first, second : arrays of shape (P,)
        Predictions, in output units.
    first_sd, second_sd : arrays of shape (P,)
    apart : array of shape (P,)
        How far they are apart, in the larger of both sds, on the scale that was asked.
    """

    X: Array
    first: Array
    second: Array
    first_sd: Array
    second_sd: Array
    apart: Array


def compare_releases(
    first: OneOutputRelease, second: OneOutputRelease, X: Any = None
) -> Comparison:
    """Compare two releases about the same columns, at no cost in privacy.

    Parameters
    ----------
    first, second : OneOutputRelease
        Of numbers; of public inputs, of whole rows, or one of each.
    X : array-like or table of shape (P, D), optional
        As `predict` takes it; rows that lack an input are left out. If not given, where the rows of
        both are; where none are known, points that lie evenly over the ranges of both. Releases
        with different schemas need raw columns.

    Raises
    ------
    ValueError
        If they are about different columns, or about classes or quantiles.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0)
    >>> release = model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_
    >>> float(compare_releases(release, release).apart.max())
    0.0
    """
    both = (first, second)
    if any(each.class_labels for each in both):
        raise ValueError("releases of numbers are compared, and one of these is of classes")
    if any(each.of_quantiles for each in both):
        raise ValueError(
            "releases of numbers are compared, and one of these is of quantiles: compare what both "
            "predict, q_50 and its limits, say"
        )
    one_schema = first.schema == second.schema
    columns = [
        input_names(each) if one_schema else tuple(sorted(public_columns(each))) for each in both
    ]
    if columns[0] != columns[1] or first.output_name != second.output_name:
        raise ValueError("the releases are about different columns")
    if first.transform != second.transform:
        raise ValueError("the releases have different transforms")
    if X is None:
        if not one_schema:
            raise ValueError(
                "the releases have different schemas: give raw rows at which to compare them (--at)"
            )
        known = np.vstack([each.known_inputs for each in both])
        X = known if len(known) else np.vstack([each.even_inputs for each in both])
        X = np.unique(X, axis=0)
    points = [points_of(each, X) for each in both]
    kept = points[0].known & points[1].known
    own = [each.X[kept[each.known]] for each in points]
    if not kept.any():
        raise ValueError("every row lacks an input without which there is no prediction")
    (one, one_sd), (other, other_sd) = (
        each.predict_asked(rows) for each, rows in zip(both, own, strict=True)
    )
    scale, distance = np.maximum(one_sd, other_sd), np.abs(one - other)
    apart = np.divide(distance, scale, out=np.zeros_like(distance), where=scale > 0)
    (mean, sd), (other_mean, second_sd) = (
        each.predict(rows, return_std=True) for each, rows in zip(both, own, strict=True)
    )
    return Comparison(
        X=own[0], first=mean, second=other_mean, first_sd=sd, second_sd=second_sd, apart=apart
    )


def describe_comparison(
    first: OneOutputRelease, second: OneOutputRelease, found: Comparison
) -> tuple[Section, ...]:
    """Return a comparison in words.

    Parameters
    ----------
    first, second : OneOutputRelease
    found : Comparison
    """
    both = (("first", first), ("second", second))
    sds = (found.first_sd, found.second_sd)
    far = found.apart > APART
    places = [place for place in np.argsort(-found.apart)[:SHOWN] if far[place]]
    names = input_names(first)
    return (
        Section(
            "Guarantee",
            tuple(Fact(name, f"{headline(each)}; {_protected(each)}") for name, each in both),
        ),
        Section(
            "Sharpness",
            tuple(
                Fact(name, f"a typical sd of {amount(root_mean_square(sd), 4)}, in output units")
                for (name, _), sd in zip(both, sds, strict=True)
            ),
        ),
        Section(
            "Predictions",
            (
                Fact(
                    "difference",
                    f"{amount(root_mean_square(found.first - found.second), 4)} (root mean "
                    "square over "
                    f"{len(found.X):,} places).",
                ),
                Fact(
                    "more than chance",
                    f"at {int(far.sum()):,} of {len(found.X):,} places they are more than "
                    f"{APART:g} of the larger sd apart.",
                ),
                *(
                    Fact(
                        f"place {number + 1}",
                        ", ".join(
                            f"{name} {amount(value, 4)}"
                            for name, value in zip(names, found.X[place], strict=True)
                        )
                        + f": {amount(found.first[place], 4)} and "
                        f"{amount(found.second[place], 4)}, "
                        f"{amount(found.apart[place], 2)} sds apart.",
                    )
                    for number, place in enumerate(places)
                ),
            ),
        ),
    )


def _protected(release: OneOutputRelease) -> str:
    rows = release.known_rows
    count = "a private number of rows" if rows is None else f"{rows:,} rows"
    return f"{count}, whose inputs are private too" if release.private_inputs else count
