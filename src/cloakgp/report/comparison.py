"""Comparison of two releases: their guarantees, their sharpness, and where they disagree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloakgp.models.likelihoods.quantiles import QuantileLikelihood
from cloakgp.release import Release
from cloakgp.report.columns import input_names
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


def compare_releases(first: Release, second: Release, X: Array | None = None) -> Comparison:
    """Compare two releases about the same columns, at no cost in privacy.

    Parameters
    ----------
    first, second : Release
        Of numbers.
    X : array of shape (P, D), optional
        As `Release.predict` takes them; where the rows of both are, if not given.

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
    if first.class_labels or second.class_labels:
        raise ValueError("releases of numbers are compared, and one of these is of classes")
    if any(isinstance(each.likelihood, QuantileLikelihood) for each in (first, second)):
        raise ValueError(
            "releases of numbers are compared, and one of these is of quantiles: compare what both "
            "predict, q_50 and its limits, say"
        )
    if input_names(first) != input_names(second) or first.output_name != second.output_name:
        raise ValueError("the releases are about different columns")
    if first.transform != second.transform or first.schema != second.schema:
        raise ValueError("the releases have different schemas or transforms")
    if X is None:
        X = np.unique(np.vstack([first.known_inputs, second.known_inputs]), axis=0)
    one, other = first.predict_latent(X), second.predict_latent(X)
    scale = np.maximum(one.sd, other.sd)
    distance = np.abs(one.mean - other.mean)
    apart = np.divide(distance, scale, out=np.zeros_like(distance), where=scale > 0)
    (mean, sd), (other_mean, other_sd) = (
        each.predict(X, return_std=True) for each in (first, second)
    )
    return Comparison(
        X=X, first=mean, second=other_mean, first_sd=sd, second_sd=other_sd, apart=apart
    )


def describe_comparison(first: Release, second: Release, found: Comparison) -> tuple[Section, ...]:
    """Return a comparison in words.

    Parameters
    ----------
    first, second : Release
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
            tuple(Fact(name, f"{headline(each)}; {each.n_rows:,} rows") for name, each in both),
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
