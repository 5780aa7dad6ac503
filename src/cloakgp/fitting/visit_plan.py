"""Plan of a later visit: its cost and what it is expected to be worth, before anything is asked.

Made of public inputs, and of a release that is published already. What an attacker may guess is
stated for everything together: of the visit with whichever noise tells most, for whoever pays for
all of it, and, without a δ, however its price was chosen. As of every release with several visits,
a sum with a δ holds if prices were fixed before any answer was read; otherwise only a limit that
was declared beforehand does, such as an account's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from cloakgp.fitting.plan import Plan
from cloakgp.fitting.release_plan import guess_in_words, middle_in_words, scale_in_words
from cloakgp.fitting.schedule import whole_guarantee
from cloakgp.fitting.strategies import Budget, Query, query_shares
from cloakgp.fitting.visits import Settings, expect_extension, expect_refinement
from cloakgp.privacy import Guarantee
from cloakgp.privacy.accounting import compose, compose_parallel
from cloakgp.privacy.cohorts import DISJOINT, OVERLAPPING, People
from cloakgp.privacy.guesses import right_guess
from cloakgp.privacy.noise_choice import however_priced, noises_for
from cloakgp.release import DenseStrategy, Release
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount, pair_in_words
from cloakgp.utils.names import AUTO, NoiseChoice

NOT_FORECAST = (
    "cannot be forecast: it is known beforehand only of numbers within bounds, with rows that are "
    "held; not of classes, counts or quantiles, whose accuracy depends on the private values, and "
    "not of rows that are read in passes"
)
PRICES = (
    "That adds up prices which were fixed before any answer was read. If this one is chosen by "
    "what the release told, only a limit that was declared beforehand holds, such as that of an "
    "account."
)


@dataclass(frozen=True)
class VisitPlan(Plan):
    """A later visit before it is made; nothing was read of the private column, and nothing spent.

    Attributes
    ----------
    new_rows : bool
        Whether other rows are asked than those of the first table.
    rows : int
        How many are asked.
    epsilon, delta : float
        Of this visit.
    noise : {"auto", "gaussian", "laplace"}
    grouped : bool
        Whether all rows of a person are protected together.
    people : {"overlapping", "disjoint"}
        Whether anybody may be in the tables before.
    spent : Guarantee
        Of the release that is known.
    together : tuple of Guarantee
        Of whoever pays for everything, with each noise that may be drawn.
    before, after : float or None
        Root mean square sds of predicted means at the query points, on the scale of transformed
        outputs; None where the one after cannot be known beforehand.
    transform : str or None
        Of outputs.
    """

    subject = "a later visit"

    new_rows: bool
    rows: int
    epsilon: float
    delta: float
    noise: NoiseChoice
    grouped: bool
    people: People
    spent: Guarantee
    together: tuple[Guarantee, ...]
    before: float | None = None
    after: float | None = None
    transform: str | None = None

    @property
    def guess(self) -> float:
        """The largest share of right guesses of an attacker who has everything."""
        held = (however_priced(each, visits=2) for each in self.together)
        return max(right_guess(each) for each in held)

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return the plan in words: labels and texts."""
        return (
            ("expected error", self._worth()),
            ("protected", self._protected()),
            ("a guess", guess_in_words(self.guess)),
            ("becomes public", self._public()),
            ("rows", self._rows()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, for JSON."""
        return {
            "visit": "extend" if self.new_rows else "refine",
            "rows": self.rows,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": None if self.noise == AUTO else self.noise,
            "people": self.people,
            "spent_epsilon": self.spent.epsilon,
            "spent_delta": self.spent.delta,
            "guess": self.guess,
            "error_before": self.before,
            "error_after": self.after,
        }

    def _worth(self) -> str:
        if self.before is None or self.after is None:
            return f"{NOT_FORECAST}."
        place = "at the new rows" if self.new_rows else "where the release was asked"
        return (
            f"{scale_in_words(self.transform)}the predicted {middle_in_words(self.transform)} of "
            "people with the same inputs is typically off by "
            f"{amount(self.before, 3)} {place} now, and by {amount(self.after, 3)} after this "
            "visit, if the release describes the private column. To learn its kernel anew may "
            "change that."
        )

    def _protected(self) -> str:
        unit = "all values of one person" if self.grouped else "every single value"
        visit = pair_in_words(self.epsilon, self.delta, pure=np.inf if self.delta else self.epsilon)
        known = pair_in_words(self.spent.epsilon, self.spent.delta, pure=self.spent.pure_epsilon)
        if self.people == DISJOINT:
            return (
                f"{unit} of the new rows with {visit}; those of the tables before keep {known}, as "
                "nobody is in both."
            )
        most = max(self.together, key=lambda each: each.epsilon)
        both = pair_in_words(most.epsilon, most.delta, pure=most.pure_epsilon)
        # Without δ the sum holds however prices were chosen.
        pure = all(np.isfinite(each.pure_epsilon) for each in self.together)
        prices = "" if pure else f" {PRICES}"
        whom = "who is in all tables" if self.new_rows else "of the table"
        return (
            f"{unit}. This visit spends {visit}, on top of {known}: at most {both}, for a person "
            f"{whom}.{prices}"
        )

    def _public(self) -> str:
        noisy = "the noisy answers of this visit, and its options"
        if not self.new_rows:
            return f"{noisy}. The rows are in the release already."
        return f"the public columns of the new rows; who is in their table; {noisy}."

    def _rows(self) -> str:
        whose = "new ones" if self.new_rows else "those that were asked before"
        each = "all rows of a person together" if self.grouped else "each on its own"
        return f"{self.rows:,}, {whose}, protected {each}."


def plan_visit(
    release: Release,
    X: Array | None,
    *,
    new_rows: bool,
    rows: int,
    grouped: bool,
    people: People = OVERLAPPING,
    X_query: Array | None = None,
    **settings: Unpack[Settings],
) -> VisitPlan:
    """Plan a later visit; the private column is not read.

    Parameters
    ----------
    release : Release
    X : array of shape (N, D) or None
        Public inputs of new rows that are held; otherwise None.
    new_rows : bool
        Whether other rows are asked than those of the first table.
    rows : int
        How many are asked.
    grouped : bool
        Whether all rows of a person are protected together.
    people : {"overlapping", "disjoint"}
        Of new rows.
    X_query : array of shape (P, D), optional
    **settings
        ``epsilon``, ``delta``, ``noise``, ``band`` and ``groups``, as for `cloakgp.refine` and
        `cloakgp.extend`.

    Raises
    ------
    TypeError, ValueError
        As of these.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> first = DPGPRegressor(bounds=(-1, 1), epsilon=0.5).fit(X, X[:, 0] / 10).release_
    >>> plan = plan_visit(first, X + 5, new_rows=True, rows=50, grouped=False, epsilon=0.5)
    >>> plan.after < plan.before
    True
    """
    epsilon, delta = settings["epsilon"], settings.get("delta", 0.0)
    noise = settings.get("noise", AUTO)
    visits = [
        whole_guarantee(Budget(epsilon, delta, noise=name))
        for name in noises_for(noise, epsilon=epsilon, delta=delta)
    ]
    spent = release.guarantee
    assert isinstance(spent, Guarantee)
    before, after = None, None
    if _can_be_forecast(release) and (X is not None or not new_rows):
        later = (
            expect_refinement(release, X_query, **settings)
            if X is None
            else expect_extension(release, X, X_query, people=people, **settings)
        )
        asked = later.measurements[-1].strategy
        query = Query(X=asked.X_query, weights=asked.query_weights)
        before, after = (_typical_sd(each, query) for each in (release, later))
    return VisitPlan(
        new_rows=new_rows,
        rows=rows,
        epsilon=epsilon,
        delta=delta,
        noise=noise,
        grouped=grouped,
        people=people,
        spent=spent,
        together=tuple(
            (compose_parallel if people == DISJOINT else compose)(spent, each) for each in visits
        ),
        before=before,
        after=after,
        transform=None if release.transform is None else release.transform.name,
    )


def _can_be_forecast(release: Release) -> bool:
    """Return whether designs and predicted variances are known before any answer."""
    return release.likelihood.linear and all(
        isinstance(one.strategy, DenseStrategy) for one in release.measurements
    )


def _typical_sd(release: Release, query: Query) -> float:
    sd = release.predict_latent(query.X).sd
    return float(np.sqrt(query_shares(query) @ np.square(sd)))
