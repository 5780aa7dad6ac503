r"""Plan of a release: its accuracy, public parts and cost, from public inputs alone.

Whoever is asked to spend a budget reads this before. Of numbers, what predictions will be worth is
forecast (`cloakgp.fitting.forecast`); of classes, and of tables that are read in passes, it cannot
be, and the plan says so and gives all the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloakgp.columns.schema import Schema
from cloakgp.criteria import CRITERIA
from cloakgp.design.strategy import CLOSE_GAP
from cloakgp.fitting.forecast import Forecast
from cloakgp.fitting.plan import Plan
from cloakgp.fitting.planning import FitCost, FitPlan, fit_cost
from cloakgp.fitting.resolution import most_inducing
from cloakgp.privacy import Guarantee
from cloakgp.privacy.guesses import right_guess, right_guess_of_any
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.noise_choice import unused_delta
from cloakgp.utils.formatting import (
    amount,
    bytes_in_words,
    left_out,
    pair_in_words,
    percent,
    seconds_in_words,
)
from cloakgp.utils.names import AUTO, NoiseChoice, NoiseName, ScaleName
from cloakgp.utils.pictures import Pictured

# Of a table that is read in passes: seconds of a core a row and inducing input, and bytes that are
# held, at any rate and for each inducing input, as measured; within a factor of three.
PASS_SECONDS, PASS_BYTES, PASS_BYTES_EACH = 2e-6, 5e8, 1.2e6
# What every stage of a table in passes takes, however few its rows: a design, and learning.
PASS_STAGE_SECONDS = 6.0
# Bytes of a number in a file, and of what a file holds beside numbers.
NUMBER_BYTES, FRAME_BYTES = 8, 2e4
# What other budgets are forecast, as multiples of the one asked about.
AROUND = (0.25, 0.5, 1.0, 2.0, 4.0)
# Beyond so many seconds for all of them, the one asked about is forecast alone.
PATIENCE = 60.0
# The facts of which an approximate plan does not tell all.
REFINED = ("expected error", "a guess", "questions", "takes")
# The facts of a short plan.
SHORT = ("expected error", "protected", "remark", "a guess", "becomes public", "rows", "takes")

NOT_OF_CLASSES = (
    "cannot be forecast: the accuracy of predicted classes depends on the labels, which a plan "
    "does not read"
)
NOT_OF_QUANTILES = (
    "cannot be forecast: how near quantiles come depends on how values scatter, and a plan reads "
    "no values"
)
# Heads of the table over ε.
BUDGETS = ("ε", "a guess is right", "expected error", "of a new value", "questions")
NOT_AT_ONCE = "takes a moment to forecast, and comes with the full plan"
NOT_IN_PASSES = (
    "is not forecast for a table that is read in passes. Plan for some thousand of its rows, "
    "picked by their inputs alone: predictions from all rows are better than that"
)


@dataclass(frozen=True)
class TableFacts:
    """Facts about a table before a fit.

    Attributes
    ----------
    rows : int
    columns : tuple of str
        Names of the public columns; may be empty.
    n_inputs : int
        D, the numbers that stand for them.
    names : tuple of str
        Of these numbers; may be empty.
    people : int or None
        Whose rows they are; None where every row is protected on its own.
    most_rows : int
        Of one person.
    schema : Schema or None
        What the raw public columns are, if the numbers are encoded from them.
    without_output, without_inputs : int
        How many further rows are left out, as they have no private value, or lack a public one.
    """

    rows: int
    columns: tuple[str, ...]
    n_inputs: int
    names: tuple[str, ...] = ()
    people: int | None = None
    most_rows: int = 1
    schema: Schema | None = None
    without_output: int = 0
    without_inputs: int = 0

    @property
    def left_out(self) -> str:
        """The rows that are left out, in sentences; empty if none is."""
        return left_out(without_output=self.without_output, without_inputs=self.without_inputs)


@dataclass(frozen=True, eq=False)
class ReleasePlan(Plan, Pictured):
    """A release before it is made; nothing was read of the private column, and nothing spent.

    Attributes
    ----------
    table : TableFacts
    declared : str
        What is declared of the private column, in words.
    epsilon, delta : float
        The budget.
    noise : {"gaussian", "laplace"} or None
        None if it is chosen later.
    how : FitPlan
        Whether the process is exact or sparse, and whether rows are read in passes.
    stages : int
        Measurements, at most.
    questions : int
        Numbers that are published with noise, at most; of rows that are read in passes, about so
        many.
    memory : float
        In bytes, within a factor of two or so.
    seconds : float
        On one core, no better than an order of magnitude.
    file_bytes : float
        Of the release, within a factor of two or so.
    forecasts : tuple of Forecast
        Of several budgets, in order; empty if there are none.
    unknown : str
        Why there are none.
    guarantee : Guarantee or None
        What the release will state; None if that depends on a noise that is chosen later.
    transform : {"log", "logit", "root"} or None
        What is done to outputs first: errors are of what comes of it.
    scatter_declared : bool
        Whether it was declared how far people with the same inputs differ. If not, nobody knows
        beforehand how far predictions are from a new person's own value.
    asked_noise : {"auto", "gaussian", "laplace"}
        The noise that was asked for.
    remark : str
        On what is declared of the private column, in a sentence; empty if there is none.
    """

    subject = "a release"

    table: TableFacts
    declared: str
    epsilon: float
    delta: float
    noise: NoiseName | None
    how: FitPlan
    stages: int
    questions: int
    memory: float
    seconds: float
    file_bytes: float
    forecasts: tuple[Forecast, ...] = ()
    unknown: str = ""
    guarantee: Guarantee | None = None
    transform: ScaleName | None = None
    scatter_declared: bool = False
    asked_noise: NoiseChoice = AUTO
    remark: str = ""

    @property
    def forecast(self) -> Forecast | None:
        """The forecast of the budget itself, if there is one."""
        return next((each for each in self.forecasts if each.epsilon == self.epsilon), None)

    @property
    def within(self) -> float:
        """How far off the expected error may be, as a share of it; 0 if it is no approximation."""
        return 0.0 if self.forecast is None else self.forecast.within

    @property
    def guess(self) -> float:
        """The largest share of right guesses of an attacker between two values of a person."""
        if self.guarantee is None:
            return right_guess_of_any(self.epsilon, self.delta)
        return right_guess(self.guarantee)

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return the plan in words: labels and texts."""
        return (
            *self._worth(),
            ("protected", self._protected()),
            *((("remark", self.remark),) if self.remark else ()),
            ("a guess", guess_in_words(self.guess)),
            ("becomes public", self._public()),
            ("rows", self._rows()),
            ("model", self._model()),
            ("questions", self._questions()),
            ("takes", self._takes()),
        )

    def _questions(self) -> str:
        stages = "one stage" if self.stages == 1 else f"{self.stages} stages"
        stages = f"{self._bound()}{stages}"
        if self.within:
            return f"numbers, with noise, in {stages}; the full plan counts them."
        # How many sums a partition of rows in passes has, its design decides.
        many = f"{'some' if self.how.by_passes else 'at most'} {self.questions:,}"
        return f"{many} numbers, with noise, in {stages}.{self._nearness()}"

    def _bound(self) -> str:
        """Return what goes before an amount of all stages, if answers decide how many there are."""
        return "up to " if self.stages > 1 and self.how.by_passes else ""

    def _takes(self) -> str:
        size = (
            "how large the file will be comes with the full plan"
            if self.within
            else f"the file will have {self._bound()}about {bytes_in_words(self.file_bytes)}"
        )
        return (
            f"{seconds_in_words(self.seconds)} on one processor, to an order of magnitude, and "
            f"{bytes_in_words(self.memory)} of memory beside the program's own; {size}."
        )

    def _nearness(self) -> str:
        """State the certified distance of the questions to the best ones, if it is known now."""
        found = self.forecast
        if found is not None:
            certificate = found.release.measurements[0].strategy.certificate
            if not CRITERIA[certificate.criterion].certified:
                return ""
            share = percent(certificate.gap)
            if certificate.gap <= CLOSE_GAP:
                return f" They are certified to be within {share} of the best."
            return (
                f" They are not certified to be within {percent(CLOSE_GAP)} of the best: the best "
                f"bound known is {share}."
            )
        if self.how.by_passes and self.noise is not None and NOISES[self.noise].ball == "l1":
            return (
                " Their distance to the best is bounded before the first question; but under "
                f"{NOISES[self.noise].law} noise no known bound is sure to come within "
                f"{percent(CLOSE_GAP)}: the design takes that of Gaussian noise of the same size."
            )
        return ""

    def _worth(self) -> tuple[tuple[str, str], ...]:
        found = self.forecast
        if found is None:
            return (("expected error", f"{self.unknown}."),)
        return (
            (
                "expected error",
                f"{scale_in_words(self.transform)}{self._of_one_person(found)} The predicted "
                f"{middle_in_words(self.transform)} of people with the same inputs is typically "
                f"off by {error_in_words(found)} at the query points; without any question, by "
                f"{amount(found.prior_error, 3)}. "
                f"{self._approximate()}All this "
                f"assumes that the prior describes the private column{self._predicted(found)}.",
            ),
        )

    def _approximate(self) -> str:
        """State how far off an approximate error may be."""
        if not self.within:
            return ""
        return (
            "This is approximate (≈), from a few places that stand for all rows: within "
            f"{percent(self.within)} of the full plan's figure on all tables that were tried. "
        )

    def _predicted(self, found: Forecast) -> str:
        """State that a public prediction is taken to be a good one, if there is one."""
        trend = found.release.prior.trend
        if trend is None:
            return ""
        names = self.table.names
        column = names[trend.column] if names else f"x{trend.column + 1}"
        return (
            f", and that {column} predicts it: a plan without tells what is expected if it does not"
        )

    def _of_one_person(self, found: Forecast) -> str:
        """State the expected error for one person, and its basis."""
        if not self.scatter_declared:
            return (
                "the error for one person cannot be forecast: the spread between people with the "
                "same inputs was not declared."
            )
        scatter = found.output_error**2 - found.error**2
        constant_guess = math.sqrt(found.prior_error**2 + max(scatter, 0.0))
        return (
            f"for one person, predictions are typically off by "
            f"{error_in_words(found, one=True)}; a "
            f"constant guess, by {amount(constant_guess, 3)}. That rests on the declared noise "
            "variance."
        )

    def lead(self) -> str:
        """Return the expected error in a sentence."""
        found = self.forecast
        if found is None:
            told = f"{self.unknown}."
        elif self.scatter_declared:
            told = f"{scale_in_words(self.transform)}{self._of_one_person(found)}"
        else:
            told = (
                f"{scale_in_words(self.transform)}predictions of the "
                f"{middle_in_words(self.transform)} of people with the same inputs will typically "
                f"be off by {error_in_words(found)}, if the prior describes the private column."
            )
        return told[0].upper() + told[1:]

    def _protected(self) -> str:
        unit = "all values of one person" if self.table.people is not None else "every single value"
        if self.guarantee is None:
            pure = math.inf if self.delta else self.epsilon
            budget = pair_in_words(self.epsilon, self.delta, pure=pure)
        else:
            told = self.guarantee
            budget = pair_in_words(told.epsilon, told.delta, pure=told.pure_epsilon)
        told_of_delta = f" {self.unused_delta}" if self.unused_delta else ""
        return f"{unit} of the private column ({self.declared}), with {budget}.{told_of_delta}"

    @property
    def unused_delta(self) -> str:
        """That a δ is allowed and none of it will be used, in a sentence; empty if not so."""
        if self.guarantee is None:
            return ""
        return unused_delta(self.guarantee, allowed=self.delta, noise=self.asked_noise, ahead=True)

    def _public(self) -> str:
        names = ", ".join(self.table.columns)
        inputs = f"the public columns{f' ({names})' * bool(names)}"
        held = (
            "ranges, centres and sums of which are in the file"
            if self.how.by_passes
            else "which are in the file row by row"
        )
        whose = "; which rows are the same person" * (self.table.people is not None)
        valued = "; which rows have a private value" * bool(self.table.without_output)
        return (
            f"{inputs}, {held}; who is in the table{whose}{valued}; all options, and the noisy "
            "answers."
        )

    def _rows(self) -> str:
        gone = f" {self.table.left_out}" if self.table.left_out else ""
        if self.table.people is None:
            return f"{self.table.rows:,}, each protected on its own: one person, one row.{gone}"
        each = self.table.rows / self.table.people
        return (
            f"{self.table.rows:,} of {self.table.people:,} people: {amount(each, 3)} each on "
            "average, and "
            f"{self.table.most_rows:,} at most. The noise hides all rows together "
            f"of whichever person weighs most in the questions.{gone}"
        )

    def _model(self) -> str:
        count = _inducing(self.how)
        kind = "a Gaussian process that holds every row"
        if count is not None:
            kind = f"a sparse Gaussian process, with {count:,} inducing inputs"
            if self.how.resolves:
                most = most_inducing(self.table.rows, least=count)
                kind += (
                    " in the first stage; those of a second, if there is one, are placed for the "
                    f"kernel that is known by then, as many as are worth it up to {most:,}"
                )
        notice = f" Why: {self.how.notice}." if self.how.notice else ""
        return f"{kind}{', over rows read in passes' * self.how.by_passes}.{notice}"

    def budgets(self) -> tuple[tuple[str, ...], ...]:
        """Return a table over ε, its heads first; heads alone if one budget is forecast or none."""
        if len(self.forecasts) < 2:
            return (BUDGETS,)
        return (BUDGETS, *map(self.budget, self.forecasts))

    def budget(self, found: Forecast) -> tuple[str, ...]:
        """Return the line of one forecast in the table over ε."""
        return (
            f"{found.epsilon:.4g}",
            f"≤ {percent(self._guess_of(found))}",
            error_in_words(found),
            error_in_words(found, one=True) if self.scatter_declared else "not known",
            "not counted" if found.within else f"{found.questions:,}",
        )

    def _guess_of(self, found: Forecast) -> float:
        """Return the largest share of right guesses, under any noise where that is left open."""
        if found.certain_noise:
            return right_guess(found.guarantee)
        return right_guess_of_any(found.epsilon, self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, for JSON."""
        return {
            "rows": self.table.rows,
            "rows_without_output": self.table.without_output,
            "rows_without_inputs": self.table.without_inputs,
            "columns": self.table.columns,
            "n_inputs": self.table.n_inputs,
            "people": self.table.people,
            "most_rows": self.table.most_rows,
            "declared": self.declared,
            "transform": self.transform,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": self.noise,
            "guess": self.guess,
            "inducing": _inducing(self.how),
            "most_inducing": _most_inducing(self.table, self.how),
            "by_passes": self.how.by_passes,
            "notice": self.how.notice,
            "stages": self.stages,
            "questions": self.questions,
            "memory_bytes": self.memory,
            "seconds": self.seconds,
            "file_bytes": self.file_bytes,
            "no_forecast": self.unknown,
            "forecasts": [
                {
                    "epsilon": each.epsilon,
                    "delta": each.delta if each.certain_noise else self.delta,
                    "noise": each.noise if each.certain_noise else None,
                    "guess": self._guess_of(each),
                    "error": each.error,
                    "within": each.within,
                    "output_error": each.output_error if self.scatter_declared else None,
                    "prior_error": each.prior_error,
                    "stages": each.stages,
                    "questions": each.questions,
                }
                for each in self.forecasts
            ],
        }


def scale_in_words(transform: str | None) -> str:
    """Name the scale of errors, where it is not that of the private column itself.

    Examples
    --------
    >>> scale_in_words("logit"), scale_in_words(None)
    ('of the log odds: ', '')
    """
    if transform == "log":
        return "of the logarithm (0.1 is a factor of 1.1 either way): "
    if transform == "root":
        return "of the square root of a count (chance alone makes 0.5): "
    return "of the log odds: " if transform == "logit" else ""


def middle_in_words(transform: str | None) -> str:
    """Return what is predicted of people with the same inputs; of counts a rate, an average.

    Examples
    --------
    >>> middle_in_words("log"), middle_in_words("root"), middle_in_words(None)
    ('median', 'average', 'average')
    """
    return "average" if transform in (None, "root") else "median"


def error_in_words(found: Forecast, *, one: bool = False) -> str:
    """Return the expected error of a forecast, for one person or of their middle, as text.

    Parameters
    ----------
    found : Forecast
    one : bool
        Whether it is that for one person.
    """
    error = found.output_error if one else found.error
    return f"≈ {amount(error, 2)}" if found.within else f"{amount(error, 3)}"


def guess_in_words(share: float) -> str:
    """Return the meaning of the largest share of right guesses, in a sentence."""
    return (
        "an attacker who knows everything but one person's value, and finds two values equally "
        f"likely, will guess right at most {percent(share)} of the time. A coin guesses right 50 % "
        "of the time."
    )


def plan_budgets(
    epsilon: float, epsilons: Sequence[float] | None, *, seconds: float
) -> tuple[float, ...]:
    """Return the budgets to forecast, in order, including the requested one.

    Parameters
    ----------
    epsilon : float
        Asked about.
    epsilons : sequence of float, optional
        Others to compare with; by default, a few around it if the forecasts are quick.
    seconds : float
        That each takes.

    Examples
    --------
    >>> plan_budgets(1.0, None, seconds=1.0), plan_budgets(1.0, [3.0], seconds=1.0)
    ((0.25, 0.5, 1.0, 2.0, 4.0), (1.0, 3.0))
    """
    if epsilons is None:
        many = seconds * len(AROUND) <= PATIENCE
        epsilons = [share * epsilon for share in AROUND] if many else ()
    return tuple(sorted({epsilon, *map(float, epsilons)}))


def most_questions(table: TableFacts, how: FitPlan, *, queries: int) -> int:
    """Return the largest number of questions of one channel, before there is a design.

    Parameters
    ----------
    table, how
    queries : int
        P, the number of query points.

    Examples
    --------
    >>> most_questions(TableFacts(100, (), 2), FitPlan(30, False), queries=500)
    30
    """
    return min(queries, table.rows, _most_inducing(table, how) or table.rows)


def cost_of(table: TableFacts, how: FitPlan, *, queries: int, channels: int = 1) -> FitCost:
    """Estimate memory and time of a fit, in passes or at once.

    Parameters
    ----------
    table : TableFacts
    how : FitPlan
    queries : int
        P, the number of query points.
    channels : int
        Latent functions.

    Examples
    --------
    >>> table = TableFacts(rows=1_000_000, columns=(), n_inputs=4)
    >>> cost = cost_of(table, FitPlan(inducing=200, by_passes=True), queries=500)
    >>> 100 < cost.seconds < 1000
    True
    """
    count = _most_inducing(table, how)
    if how.by_passes:
        each = count or 1
        return FitCost(
            memory=PASS_BYTES + PASS_BYTES_EACH * each,
            seconds=PASS_SECONDS * table.rows * each * channels,
        )
    return fit_cost(table.rows, queries=queries, inducing=count)


def file_size(
    table: TableFacts,
    how: FitPlan,
    *,
    queries: int,
    questions: int,
    channels: int = 1,
    priors: int = 1,
) -> float:
    """Estimate the size of a release in bytes.

    A dense one holds inputs, query points and questions, which have an entry for every row; one of
    many rows holds a rule, and sums over questions and inducing inputs.

    Parameters
    ----------
    table, how
    queries, questions : int
    channels : int
    priors : int
        Under how many sums are kept: the declared one, and what is learned.

    Examples
    --------
    >>> file_size(TableFacts(100, (), 2), FitPlan(None, False), queries=100, questions=50) < 3e5
    True
    """
    inputs = table.n_inputs
    if how.by_passes:
        count = _most_inducing(table, how) or 1
        numbers = queries * inputs + count * (inputs + priors * questions * (1 + channels))
    else:
        numbers = (table.rows + queries) * (inputs + questions)
    return FRAME_BYTES + NUMBER_BYTES * numbers


def _most_inducing(table: TableFacts, how: FitPlan) -> int | None:
    """Return the most inducing inputs that a fit may have, None for an exact process."""
    count = _inducing(how)
    return most_inducing(table.rows, least=count) if count and how.resolves else count


def _inducing(how: FitPlan) -> int | None:
    """Return the number of inducing inputs, None for an exact process."""
    if how.inducing is None:
        return None
    shape = np.shape(how.inducing)
    return int(shape[0]) if shape else int(how.inducing)  # type: ignore[arg-type]
