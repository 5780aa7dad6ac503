"""Plan of a stream: what each person spends in all, and how errors fall; nothing is spent."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cloakgp.estimators.regression import DPGPRegressor
from cloakgp.fitting.plan import Plan
from cloakgp.fitting.visits import Settings, expect_extension
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.cohorts import DISJOINT, People
from cloakgp.privacy.filters import costs_of_release
from cloakgp.privacy.questions import Bands
from cloakgp.release import Release
from cloakgp.streams.correlated import sum_sds
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount, pair_in_words
from cloakgp.utils.names import NoiseChoice


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Expected errors of a stream, in output units.

    Attributes
    ----------
    rows : int
        Of each period.
    first, last : float
        Root mean squared error of the curve at the rows of the first period after it, and at those
        of the last after the last.
    prior : float
        The same with no question.
    band : float or None
        How many times the bands of the last period are as narrow as the bounds; None if it asks in
        none.
    """

    rows: int
    first: float
    last: float
    prior: float
    band: float | None


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
        ε at that δ, of a person who is in as many periods as people may be.
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
        return (
            f"{amount(found.first, 3)} after period 1, {amount(found.last, 3)} after the last "
            f"({amount(found.prior, 3)} "
            f"with no question): root mean squares of the curve at the rows of the period, of "
            f"{found.rows:,} rows each, if the prior is right"
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
    """Return ε at δ of so many periods together, whichever noise they draw.

    Prices are fixed beforehand, so costs add up (`cloakgp.privacy.filters.Amount`).

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
    return max(cost.times(periods).epsilon_at(delta) for cost in costs)


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
    (alone,) = model.forecast(X, groups=groups)
    visit = Settings(epsilon=model.epsilon, delta=model.delta, noise=model.noise, groups=groups)
    known, moved = alone.release, X
    for _ in range(horizon - 1):
        moved = moved if step is None else moved + step
        known = expect_extension(known, moved, people=people, **visit)
    band = None
    first, last = (known.measurements[place].question for place in (0, -1))
    if isinstance(first, OutputBounds) and isinstance(last, Bands):
        band = float((first.hi - first.lo) / np.mean(last.upper - last.lower))
    return Errors(
        rows=len(X),
        first=_typical_sd(alone.release, X),
        last=_typical_sd(known, moved),
        prior=alone.prior_error,
        band=band,
    )


def _typical_sd(release: Release, X: Array) -> float:
    return float(np.sqrt(np.mean(np.square(release.predict_latent(X).sd))))
