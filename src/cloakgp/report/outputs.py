"""Words that depend on the likelihood of outputs: the interface, and numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from cloakgp.privacy.questions.calibration import CellCounts
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.margins import MarginQuestion
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.release import Measurement, Release, StreamedStrategy
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.measurement import declared_bounds
from cloakgp.report.columns import asked_output
from cloakgp.report.facts import Fact
from cloakgp.report.measurements import (
    describe_answers,
    describe_design,
    describe_sharpness,
    prior_facts,
)
from cloakgp.utils.formatting import amount

BASIS = Fact(
    "basis",
    "these are the release's own estimates; no true value was compared with a prediction. Errors "
    "are larger if the assumptions of the prior do not hold.",
)


class OutputWords(ABC):
    """How a release about one kind of output is put into words.

    A likelihood without words of its own has those of numbers.
    """

    @abstractmethod
    def describe_protection(self, release: Release, *, unit: str, grouped: bool) -> str:
        """Name the protected values.

        Parameters
        ----------
        release : Release
        unit : str
            Whose values are protected together: "in every single row", say.
        grouped : bool
            Whether that is several values.
        """

    @abstractmethod
    def also_public(self) -> str:
        """Name the public facts beside the inputs and membership in the table."""

    @abstractmethod
    def describe_answers(self, measurement: Measurement, release: Release) -> str:
        """State the number of published answers, and their noise."""

    @abstractmethod
    def describe_design(self, measurement: Measurement, release: Release) -> str:
        """State the aim of the questions."""

    @abstractmethod
    def sharpness(self, release: Release) -> tuple[Fact, ...]:
        """State the sharpness of predictions; of numbers, as a fact about the noise."""

    @abstractmethod
    def predictions(self, release: Release) -> tuple[Fact, ...]:
        """Describe the origin of predictions, if that needs a section of its own."""

    @abstractmethod
    def prior(self, release: Release) -> tuple[Fact, ...]:
        """Return the prior in words, and where its values come from."""

    @abstractmethod
    def declared(self, release: Release) -> str:
        """State the declared range or classes of the private column."""


class NumberWords(OutputWords):
    """Releases about numbers."""

    def describe_protection(self, release: Release, *, unit: str, grouped: bool) -> str:
        """Name the protected values."""
        lo, hi = release.output_bounds
        others = "these were any others" if grouped else "that value were any other"
        return (
            f"{unit}. The published values would be almost as likely if {others} from "
            f"{amount(lo, 12)} to "
            f"{amount(hi, 12)}."
        )

    def also_public(self) -> str:
        """Name the public facts beside the inputs and membership in the table."""
        return "the bounds and the prior"

    def describe_answers(self, measurement: Measurement, release: Release) -> str:
        """State the number of published answers, and their noise."""
        return describe_answers(measurement, output=asked_output(release))

    def describe_design(self, measurement: Measurement, release: Release) -> str:
        """State the aim of the questions."""
        del release
        if isinstance(measurement.question, CountQuestion):
            return (
                "chosen from the counts before it, to find an interval that holds most values; "
                "all other questions are about values clipped to that."
            )
        if isinstance(measurement.question, OutsideQuestion):
            return (
                "chosen from the counts before it, to widen the interval where it would lose a "
                "group of rows with like inputs."
            )
        if isinstance(measurement.question, CellCounts):
            return (
                "one question about all rows alike, which calibrates intervals, quantiles and "
                "probabilities."
            )
        if isinstance(measurement.question, MarginQuestion):
            return "one question about all of these rows alike, which tells margins of intervals."
        if measurement.about_scatter:
            return (
                "one question about each part of the rows, which tells how noisy outputs are, and "
                "where more than elsewhere."
            )
        if measurement.about_spread:
            return "one question about all rows alike, which estimates the noise of outputs."
        strategy = measurement.strategy
        said = describe_design(strategy.certificate)
        if isinstance(strategy, StreamedStrategy) and strategy.earlier:
            return (
                f"{said} Both hold for new rows at the places of these, which had been asked "
                "before: that their earlier answers hold some of the rows' own noise was left out "
                "of the design, and is in the predictions."
            )
        if isinstance(strategy, GatheredStrategy):
            alike = " and exposures" if strategy.row_exposure is not None else ""
            said += (
                f" Rows are gathered in {len(strategy.X):,} cells of similar inputs{alike}, and "
                "those of a cell are asked alike."
            )
        return said

    def sharpness(self, release: Release) -> tuple[Fact, ...]:
        """State the sharpness of predictions."""
        points = np.vstack([measurement.strategy.X_query for measurement in release.measurements])
        return (describe_sharpness(release, points),)

    def predictions(self, release: Release) -> tuple[Fact, ...]:
        """Return nothing: predictions are those of a Gaussian process."""
        del release
        return ()

    def prior(self, release: Release) -> tuple[Fact, ...]:
        """Return the prior in words, and where its values come from."""
        return prior_facts(release)

    def declared(self, release: Release) -> str:
        """State the declared range of the private column."""
        stated = _ranges(in_output_units(release, declared_bounds(release.measurements)))
        asked = _ranges(in_output_units(release, _asked_bounds(release)))
        taken = (
            f" Everything was asked of {asked_output(release)}."
            if release.transform is not None
            else ""
        )
        found = f", {asked} of which holds most values, by noisy counts" if asked != stated else ""
        counted = any(isinstance(one.question, OutsideQuestion) for one in release.measurements)
        return (
            f"private; declared to lie in {stated}{found}; values outside were clipped"
            f"{', uncounted' * (not counted)}.{taken}"
        )


def in_output_units(
    release: Release, pairs: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return ranges of asked values in output units."""
    transform = release.transform
    if transform is None:
        return pairs
    inner = np.clip(transform.inverse(np.array(pairs)), *transform.bounds)
    return [
        transform.bounds if pair == transform.ends else (float(lo), float(hi))
        for pair, (lo, hi) in zip(pairs, inner, strict=True)
    ]


def _asked_bounds(release: Release) -> list[tuple[float, float]]:
    """Return the intervals to which outputs were clipped before first questions, each once."""
    return list(
        dict.fromkeys(
            measurement.question.limits
            for measurement in release.measurements
            if measurement.question.limits is not None
        )
    )


def _ranges(pairs: list[tuple[float, float]]) -> str:
    return " and ".join(f"{amount(lo, 6)} to {amount(hi, 6)}" for lo, hi in pairs)
