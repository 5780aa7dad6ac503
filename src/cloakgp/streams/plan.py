"""Plan of a stream: what each person spends in all, and how errors fall; nothing is spent."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from cloakgp.estimators.regression import DPGPRegressor
from cloakgp.fitting.plan import Plan
from cloakgp.fitting.strategies import Budget, Query, scale_noise
from cloakgp.fitting.thinning import Thinned
from cloakgp.fitting.visits import Settings, expect_extension, expect_places
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.cohorts import DISJOINT, People
from cloakgp.privacy.filters import costs_of_release
from cloakgp.privacy.groups import checked_groups
from cloakgp.privacy.questions import Bands
from cloakgp.release import Release
from cloakgp.release.bands import choose_bands
from cloakgp.streams.correlated import sum_sds
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount, pair_in_words, percent
from cloakgp.utils.names import DEFAULT_BAND, NoiseChoice

# Of more rows a few places stand for all.
HELD_ROWS = 500
# In which noises may be divided among periods, each counted on its own.
MOST_WAYS = 64


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Expected errors of a stream, in output units.

    Attributes
    ----------
    rows : int
        Of each period: as many as there are of the first so far.
    first, last : float
        Root mean squared error of the curve at the rows of the first period after it, and at those
        of the last after the last.
    prior : float
        The same with no question.
    band : float or None
        How many times the bands of the last period are as narrow as the bounds; None if it asks in
        none.
    within : float
        How far off errors may be as a share, since a few places stand for many rows; 0 if none do.
    """

    rows: int
    first: float
    last: float
    prior: float
    band: float | None
    within: float = 0.0


@dataclass(frozen=True, kw_only=True)
class StreamPlan(Plan):
    """What a stream will cost, and what it is expected to be worth.

    Attributes
    ----------
    horizon : int
    epsilon, delta : float
        Of each period.
    people : {"overlapping", "disjoint"}
    total : float
        ε at that δ, at most, of a person who is in as many periods as people may be.
    unit : str
        Whom it is about: "row" or "person".
    errors : Errors or None
        None if they cannot be forecast.
    """

    subject = "a stream"

    horizon: int
    epsilon: float
    delta: float
    people: People
    total: float
    unit: str
    errors: Errors | None = None

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return labels and texts."""
        each = pair_in_words(self.epsilon, self.delta, pure=self._pure(self.epsilon))
        total = pair_in_words(self.total, self.delta, pure=self._pure(self.total))
        who = "person" if self.unit == "person" else "row"
        many = f"{self.horizon:,} period{'s' if self.horizon > 1 else ''}"
        spends = (
            f"{total} in all, that of their one period: nobody is in two, as you declare"
            if self.people == DISJOINT
            else f"{total} in all, for one who is in all of {many}"
        )
        return (
            ("periods", f"{many}, {each} each"),
            (f"each {who} spends", spends),
            ("expected error", self._errors()),
            ("correlated noise", self._correlated()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, for JSON."""
        return asdict(self)

    def _pure(self, epsilon: float) -> float:
        return epsilon if self.delta == 0 else float("inf")

    def _errors(self) -> str:
        if self.errors is None:
            return (
                "it cannot be forecast: that takes a table of numbers, of which some rows are "
                "there and are held"
            )
        found = self.errors
        few = (
            f", within some {percent(found.within)}, as a few places stand for the rows"
            if found.within
            else ""
        )
        return (
            f"{amount(found.first, 3)} after period 1, {amount(found.last, 3)} after the last "
            f"({amount(found.prior, 3)} "
            f"with no question): root mean squares of the curve at the rows of the period, of "
            f"{found.rows:,} rows each, such as there are of the first so far, if the prior is "
            f"right{few}"
        )

    def _correlated(self) -> str:
        independent, correlated = sum_sds(self.horizon, people=self.people)
        gain = independent / correlated
        sums = (
            "of the same questions in every period a sum over all would have a noise sd of "
            f"{amount(correlated, 3)} single ones, and {amount(independent, 3)} with "
            "independent noise"
        )
        if gain <= 1:
            return f"{sums}, which is no worse, and is drawn"
        if self.errors is None or self.errors.band is None:
            return f"{sums}. Independent noise is drawn, so that later periods can ask in bands"
        cheaper = self.errors.band
        verdict = "a larger gain" if cheaper > gain else "a smaller gain"
        return (
            f"{sums}, {amount(gain, 3)} times as much. Independent noise is drawn, so that "
            "later periods "
            f"can ask in bands: those of the last are expected to be {amount(cheaper, 3)} times "
            "as narrow "
            f"as the bounds, {verdict}"
        )


def total_of(periods: int, *, epsilon: float, delta: float, noise: NoiseChoice = "auto") -> float:
    """Return the most ε at δ of so many periods together, whichever noise each of them draws.

    Prices are fixed beforehand, so costs add up (`cloakgp.privacy.filters.Amount`). Some periods
    may draw Gaussian noise and others Laplace noise, which together may cost more than all of one
    kind. Of very many periods ways to divide them are taken together, and count for more than any
    of them.

    Parameters
    ----------
    periods : int
    epsilon, delta : float
        Of each.
    noise : {"auto", "gaussian", "laplace"}

    Examples
    --------
    >>> total_of(12, epsilon=1.0, delta=0.0)
    12.0
    >>> round(total_of(12, epsilon=1.0, delta=1e-5, noise="gaussian"), 1)
    4.0
    """
    costs = costs_of_release(epsilon, delta, noise=noise)
    if len(costs) == 1:
        return costs[0].times(periods).epsilon_at(delta)
    one, other = costs
    # From so many of the other noise to so many.
    apart = -(-(periods + 1) // MOST_WAYS)
    ways = [(few, min(few + apart - 1, periods)) for few in range(0, periods + 1, apart)]
    return max(
        (one.times(periods - few) + other.times(many)).epsilon_at(delta) for few, many in ways
    )


def forecast_errors(
    model: DPGPRegressor,
    X: Array,
    *,
    horizon: int,
    people: People,
    step: Array | None = None,
    groups: Sequence[Hashable] | None = None,
) -> Errors:
    """Forecast the errors of a stream whose periods have the inputs of the first.

    Parameters
    ----------
    model : DPGPRegressor
        With its kernel.
    X : array of shape (N, D)
        Public inputs of the first period.
    horizon : int
    people : {"overlapping", "disjoint"}
    step : array of shape (D,), optional
        From a period to the next: the length in the place of the time. None if it is no input.
    groups : sequence of N texts or whole numbers, optional

    Returns
    -------
    Errors
    """
    units = checked_groups(groups, rows=len(X))
    (alone,) = model.forecast(X, groups=groups, thins=len(X) > HELD_ROWS)
    move: Array | float = 0.0 if step is None else step
    known, few, widths = alone.release, None, None
    if alone.within:
        first = known.prior
        assert isinstance(first, ExactPrior | SparsePrior)
        # The places of the forecast, which stand for the rows with less noise than they have.
        few = Thinned.of(X, prior=first, query=Query(X=X), groups=units)
    at = X if few is None else few.table.X
    for number in range(1, horizon):
        moved = at + number * move
        if few is None:
            visit = Settings(
                epsilon=model.epsilon, delta=model.delta, noise=model.noise, groups=groups
            )
            known = expect_extension(known, moved, people=people, **visit)
            continue
        widths = _widths(known, moved, each=few.table.each)
        known = expect_places(
            replace(known, hyperprior=None),
            replace(few.table, X=moved, number=number),
            query=Query(X=few.query.X + number * move, weights=few.query.weights),
            budget=scale_noise(
                Budget(model.epsilon, model.delta, noise=alone.noise), factor=few.units
            ),
        )
    band = None
    question, last = (known.measurements[place].question for place in (0, -1))
    if isinstance(question, OutputBounds) and isinstance(last, Bands):
        widths = last.upper - last.lower if widths is None else widths
        band = float((question.hi - question.lo) / np.mean(widths))
    return Errors(
        rows=len(X),
        first=_typical_sd(alone.release, at),
        last=_typical_sd(known, at + (horizon - 1) * move),
        prior=alone.prior_error,
        band=band,
        within=alone.within,
    )


def _widths(known: Release, places: Array, *, each: float) -> Array:
    """Return how wide bands of single rows are at places that stand for the means of some.

    Those of the places themselves are wider, as a mean is clipped less than what it is of.
    """
    question = known.measurements[0].question
    assert isinstance(question, OutputBounds)
    found = known.predict_latent(places)
    noise = each * known.prior.observation_noise(places)
    bands = choose_bands(
        found.mean, np.square(found.sd) + noise, width=DEFAULT_BAND, bounds=question
    )
    return np.asarray(bands.upper - bands.lower)


def _typical_sd(release: Release, X: Array) -> float:
    return float(np.sqrt(np.mean(np.square(release.predict_latent(X).sd))))
