"""Plan of a release of whole rows: its questions, cost and expected error, before a row is read.

Everything is from declared things: ranges, budget, neighbours, features, and how many rows there
are, or are thought to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cloakgp.fitting.plan import Plan
from cloakgp.fitting.release_plan import plan_budgets
from cloakgp.fitting.rows_forecast import (
    SHARE_OF_LABELS,
    RowsForecast,
    forecast_rows,
    noise_sds,
    round_budgets,
)
from cloakgp.fitting.whole_rows import (
    OUTPUT_BINS,
    SHARES,
    SIGNAL,
    WEIGHTING,
    bins_and_weights,
)
from cloakgp.models.axes import Axis, lines
from cloakgp.privacy import Guarantee
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.column_counts import counts_sensitivity
from cloakgp.privacy.guesses import right_guess
from cloakgp.privacy.statistics import Neighbours
from cloakgp.utils.formatting import amount, pair_in_words, percent

# By what factor the expected effect of noise was off at most: of numbers on tables that nothing was
# chosen on, of classes on those on which `SHARE_OF_LABELS` was.
FACTOR = 2
BUDGETS = ("ε", "a guess is right", "expected error", "without noise")


@dataclass(frozen=True)
class RowsQuestion:
    """One of the questions that are put to whole rows.

    Attributes
    ----------
    name : str
    share : float
        Of the budget, as a share of μ².
    numbers : int
        That are published.
    noise : str
        Its sd, with what it is in.
    """

    name: str
    share: float
    numbers: int
    noise: str


@dataclass(frozen=True)
class RowsPlan(Plan):
    """A release of whole rows before it is made; no row was read, and nothing spent.

    Attributes
    ----------
    rows : int
        How many there are, or are thought to be.
    neighbours : {"replace", "add-remove"}
    inputs : int
        How many columns are inputs.
    features : int
        The most.
    classes : int or None
        How many, if outputs are labels.
    epsilon, delta : float
    questions : tuple of RowsQuestion
        In the order in which they are put.
    forecasts : tuple of RowsForecast
        Of several budgets, in order.

    Examples
    --------
    >>> plan = plan_rows(rows=1000, inputs=2, features=40, epsilon=1.0, delta=1e-6,
    ...                  neighbours="replace")
    >>> [question.numbers for question in plan.questions]
    [32, 860, 41, 41, 41]
    """

    subject = "a release of whole rows"

    rows: int
    neighbours: Neighbours
    inputs: int
    features: int
    classes: int | None
    epsilon: float
    delta: float
    questions: tuple[RowsQuestion, ...]
    forecasts: tuple[RowsForecast, ...]

    @property
    def forecast(self) -> RowsForecast:
        """The forecast of the budget itself."""
        return next(each for each in self.forecasts if each.epsilon == self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What the release will state, up to rounding: of one whole row."""
        mu = 1.0 / exact_noise_multiplier(self.epsilon, self.delta)
        return Guarantee(epsilon=self.epsilon, delta=self.delta, mu=mu)

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return the plan in words: labels and texts."""
        present = self.neighbours == "add-remove"
        return (
            ("expected error", self._worth()),
            (
                "protected",
                "whole rows, inputs and output of every single one"
                + ", and whether it is there at all" * present
                + f", with {pair_in_words(self.epsilon, self.delta)}.",
            ),
            (
                "a guess",
                "an attacker who knows all rows but one, and finds "
                + (
                    "it as likely that this one is in the table as that it is not"
                    if present
                    else "two cases of that one equally likely"
                )
                + f", will guess right at most {percent(right_guess(self.guarantee))} of the "
                "time. A coin guesses right 50 % of the time.",
            ),
            (
                "becomes public",
                "ranges and all options, "
                + "how many rows there are, " * (not present)
                + "and the noisy answers; no input of anybody.",
            ),
            ("rows", f"{self.rows:,}, as given; none was read."),
            ("model", f"at most {self.features:,} features of {self.inputs:,} inputs."),
            *(
                (
                    f"question {number}",
                    f"{each.name}: {100 * each.share:.0f} % of the budget (of μ²), "
                    f"{each.numbers:,} numbers, with noise of {each.noise}.",
                )
                for number, each in enumerate(self.questions, start=1)
            ),
        )

    def _worth(self) -> str:
        found = self.forecast
        if self.classes is None:
            told = (
                "predictions of the average of people with the same inputs are typically off by "
                f"{amount(found.error, 2)} sds of the output; without noise by "
                f"{amount(found.without_noise, 2)}; the same for everybody by "
                f"{amount(found.prior_error, 2)}"
            )
            share = SIGNAL
        else:
            told = (
                f"predicted probabilities are typically off by {amount(found.error, 2)}; without "
                f"noise by {amount(found.without_noise, 2)}; the same for everybody by "
                f"{amount(found.prior_error, 2)}"
            )
            share = SHARE_OF_LABELS
        return (
            f"{told}. That assumes smooth effects that explain {100 * share:.0f} % of the variation"
            f"{', and equally frequent classes' * (self.classes is not None)}. How far noise alone "
            f"moves predictions was within a factor of {FACTOR} of what is expected, on tables "
            "that were tried."
        )

    def budgets(self) -> tuple[tuple[str, ...], ...]:
        """Return a table over ε, its heads first."""
        lines = []
        for each in self.forecasts:
            mu = 1.0 / exact_noise_multiplier(each.epsilon, self.delta)
            guess = right_guess(Guarantee(epsilon=each.epsilon, delta=self.delta, mu=mu))
            lines.append(
                (
                    f"{each.epsilon:.4g}",
                    f"≤ {percent(guess)}",
                    amount(each.error, 2),
                    amount(each.without_noise, 2),
                )
            )
        return (BUDGETS, *lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, for JSON."""
        told = asdict(self)
        for each, forecast in zip(told["forecasts"], self.forecasts, strict=True):
            each["of_noise"] = forecast.of_noise
        return {**told, "guess": right_guess(self.guarantee)}


def plan_rows(
    *,
    rows: int,
    inputs: int,
    axes: Sequence[Axis] = (),
    features: int,
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    classes: int | None = None,
    epsilons: Sequence[float] | None = None,
) -> RowsPlan:
    """Plan what `cloakgp.fitting.whole_rows.release_whole_rows` would ask; nothing is read.

    Parameters
    ----------
    rows, inputs : int
    axes : sequence of Axis, optional
        What inputs say; if there are none, each is a number.
    features : int
    epsilon, delta : float
    neighbours : {"replace", "add-remove"}
    classes : int, optional
    epsilons : sequence of float, optional
        Other budgets to forecast; some around ε if not given.
    """
    along = tuple(axes) or lines(inputs)
    asked: dict[str, Any] = {
        "rows": rows,
        "features": features,
        "delta": delta,
        "neighbours": neighbours,
        "classes": classes,
    }
    return RowsPlan(
        **asked,
        inputs=inputs,
        epsilon=epsilon,
        questions=_questions(
            along,
            features=features,
            epsilon=epsilon,
            delta=delta,
            neighbours=neighbours,
            classes=classes,
        ),
        forecasts=tuple(
            forecast_rows(**asked, axes=along, epsilon=each)
            for each in plan_budgets(epsilon, epsilons, seconds=0.0)
        ),
    )


def _questions(
    axes: Sequence[Axis],
    *,
    features: int,
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    classes: int | None,
) -> tuple[RowsQuestion, ...]:
    bins, weights = bins_and_weights(axes, output_bins=OUTPUT_BINS if classes is None else classes)
    multiplier = exact_noise_multiplier(*round_budgets(epsilon, delta)[0])
    count_sd = multiplier * counts_sensitivity(weights, neighbours=neighbours)
    first, *later = noise_sds(epsilon, delta, neighbours=neighbours)
    channels = 1 if classes is None else classes - 1
    return (
        RowsQuestion(
            name="counts of rows in bins of every column",
            share=SHARES[0],
            numbers=sum(bins),
            noise=f"sd {amount(count_sd / weights[0], 3)} rows on each count of an input, and "
            f"{amount(count_sd / weights[-1], 3)} of the output",
        ),
        RowsQuestion(
            name="products of features, and sums with the output",
            share=SHARES[1],
            numbers=features * (features + 1) // 2 + features * channels,
            noise=f"sd {amount(first, 3)} on squares of features, which are at most 1 a row, and "
            f"{amount(first / WEIGHTING, 3)} half widths of the band on sums",
        ),
        *(
            RowsQuestion(
                name="sums of what is left of the output",
                share=share,
                numbers=features * channels + 1,
                noise=f"sd {amount(sd, 3)} half widths of the band",
            )
            for share, sd in zip(SHARES[2:], later, strict=True)
        ),
    )
