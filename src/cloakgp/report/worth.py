r"""Predictive accuracy that a release itself tells: typical errors, and the share explained.

Nothing is compared with outputs: these are the posterior's own expectations at points that a
release holds. Of outputs y over points of one weight each, with f the predicted function,

    Var[y] = Var_x(E[f]) + E_x(var[f]) + E_x(noise),

and the share of it that predictions account for is Var_x(E[f]) / Var[y].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np

from cloakgp.models.likelihoods import QuantileLikelihood
from cloakgp.release import MultiOutputRelease, Release, StatisticsRelease
from cloakgp.release.histogram import NoisyHistogram
from cloakgp.report.clipped import clipped_facts
from cloakgp.report.columns import has_classes, known_inputs
from cloakgp.report.facts import Fact, Section
from cloakgp.report.outputs import AS_FAR_AS
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import NORMAL_95

# Of a box of private inputs: points along a sequence that fills it evenly.
BOX_POINTS = 256
# Of the intervals whose coverage is stated.
STATED_COVERAGE = 0.9


@dataclass(frozen=True)
class Accuracy:
    """What predictions of one output are worth, by the release's own account.

    Attributes
    ----------
    output : str
    error : float
        Typical error of the predicted curve: the root of the mean of its variance.
    new_error : float or None
        The same, of a new person's own value; None if the release does not tell.
    without : float or None
        As ``error``, before anything was asked.
    share : float or None
        Of the spread of outputs, what predictions account for.
    nothing : float or None
        As ``new_error``, if the one same value were predicted for everybody.
    sure : str
        How sure that is; empty if the release does not tell.
    """

    output: str
    error: float
    new_error: float | None = None
    without: float | None = None
    share: float | None = None
    nothing: float | None = None
    sure: str = ""


@singledispatch
def accuracies(release: object) -> tuple[Accuracy, ...]:
    """Return what predictions are worth, for each output of numbers; none if nothing is predicted.

    Parameters
    ----------
    release : Release or any other kind of release

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> [accuracy] = accuracies(model.release_)
    >>> accuracy.error < accuracy.new_error
    True
    """
    del release
    return ()


@accuracies.register
def _of_release(release: Release) -> tuple[Accuracy, ...]:
    # Of quantiles, their words say what each is worth.
    if has_classes(release) or isinstance(release.likelihood, QuantileLikelihood):
        return ()
    points = np.vstack([measurement.strategy.X_query for measurement in release.measurements])
    mean, sd = _at(release, points)
    _, new_sd = _at(release, points, new_output=True)
    before = None
    if release.transform is None:
        before = _mean_root(np.sqrt(release.prior.query_variance(points)))
    found = _accuracy(release.output_name, mean, sd, new_sd, without=before)
    return (replace(found, sure=_how_sure(release)),)


@accuracies.register
def _of_several(release: MultiOutputRelease) -> tuple[Accuracy, ...]:
    count = len(release.columns.bounds)
    X = known_inputs(release.entries)[::count, :-1]
    mean, sd = release.predict(X, return_std=True)
    return tuple(
        Accuracy(output=f"output {number + 1}", error=_mean_root(column))
        for number, column in enumerate(sd.T)
        if len(mean)
    )


@accuracies.register
def _of_statistics(release: StatisticsRelease) -> tuple[Accuracy, ...]:
    box = release.basis.box
    lo, hi = np.asarray(box.lo, dtype=float), np.asarray(box.hi, dtype=float)
    # Additive recurrence by powers of the generalised golden ratio (Roberts 2018).
    ratio = 2.0
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (len(lo) + 1))
    steps = np.arange(1, BOX_POINTS + 1)[:, None] * ratio ** -np.arange(1.0, len(lo) + 1)
    points = lo + (hi - lo) * (steps % 1.0)
    mean, sd = release.predict(points, return_std=True)
    _, new_sd = release.predict(points, return_std=True, new_output=True)
    return (_accuracy("the output", mean, sd, new_sd),)


@accuracies.register
def _of_histogram(release: NoisyHistogram) -> tuple[Accuracy, ...]:
    centres = [(edges[1:] + edges[:-1]) / 2 for edges in map(np.asarray, release.bins.edges)]
    points = np.column_stack([each.ravel() for each in np.meshgrid(*centres, indexing="ij")])
    mean, sd = release.predict(points, return_std=True)
    known = np.isfinite(mean) & np.isfinite(sd)
    return (Accuracy(output="the output", error=_mean_root(sd[known])),) if known.any() else ()


def accuracy_section(release: object) -> Section | None:
    """Return what predictions are worth in words, or None if nothing is predicted of numbers.

    Parameters
    ----------
    release : Release or any other kind of release
    """
    found = accuracies(release)
    if not found:
        return None
    facts: list[Fact] = []
    for each in found:
        whose = f" of {each.output}" if len(found) > 1 else ""
        if each.new_error is not None and each.nothing is not None:
            facts.append(
                Fact(
                    "for one person",
                    f"predictions of {each.output} are typically off by {each.new_error:.3g}; "
                    f"knowing nothing of a person, by {each.nothing:.3g}.{each.sure}",
                )
            )
        before = "" if each.without is None else f" ({each.without:.3g} before anything was asked)"
        facts.append(
            Fact(
                f"typical error{whose}",
                f"{each.error:.3g}{before}, of what is predicted for people with the same inputs "
                "on average, where predictions matter. What the noise hides is counted.",
            )
        )
        if each.share is not None:
            facts.append(
                Fact(
                    "explained",
                    f"{_percent(each.share)} of how {each.output} varies between people is "
                    "accounted for by the public columns.",
                )
            )
    if isinstance(release, Release):
        facts += clipped_facts(release)
    if isinstance(release, Release) and not has_classes(release):
        facts += calibration_facts(release)
    return Section("Predictions", (*facts, AS_FAR_AS))


def _how_sure(release: Release) -> str:
    """Say what tells how far people with the same inputs differ."""
    if any(one.about_spread and one.noise_sd > 0 for one in release.measurements):
        return " How far people with the same inputs differ was asked of all of them together."
    if release.fitted_prior.noise_variance != release.prior.noise_variance:
        return (
            " That is not sure: how far people with the same inputs differ was not asked, and is "
            "guessed from sums, which hardly tell."
        )
    return (
        " That is as sure as what was assumed of how far people with the same inputs differ, which "
        "was not asked."
    )


def calibration_facts(release: Release) -> tuple[Fact, ...]:
    """Say what intervals of new outputs rest on; nothing of those that are not calibrated.

    Parameters
    ----------
    release : Release
        Of numbers.
    """
    known = release.calibrated_by
    if known is None:
        return ()
    strata = len(known.counts)
    parts = f" in each of {strata} parts by what is predicted" if strata > 1 else ""
    unsure = 100 * NORMAL_95 * known.coverage_sd(STATED_COVERAGE)
    return (
        Fact(
            "intervals",
            f"for a new person's own value they go by noisy counts of where the values of "
            f"{known.question.sizes.sum():,.0f} lie around what is predicted of them{parts}. "
            f"Those of {100 * STATED_COVERAGE:g} % are to hold that share of these, taken together "
            "and not for each kind of person; noise and numbers leave that unsure by "
            f"{unsure:.2g} percentage points either way (with 95 %). Of new people it is nearly "
            "so, as counts are of those to whom predictions were fitted.",
        ),
    )


def _percent(share: float) -> str:
    return "hardly anything" if share < 0.01 else f"some {100 * share:.0f} %"


def _at(release: Release, points: Array, *, new_output: bool = False) -> tuple[Array, Array]:
    mean, sd = release.predict(points, return_std=True, new_output=new_output)
    return mean, sd


def _accuracy(
    output: str, mean: Array, sd: Array, new_sd: Array, *, without: float | None = None
) -> Accuracy:
    explained = float(np.var(mean))
    total = explained + float(np.mean(np.square(new_sd)))
    return Accuracy(
        output=output,
        error=_mean_root(sd),
        new_error=_mean_root(new_sd),
        without=without,
        share=explained / total if total > 0 else None,
        nothing=float(np.sqrt(total)),
    )


def _mean_root(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
