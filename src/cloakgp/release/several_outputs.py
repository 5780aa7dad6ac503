"""Release of several outputs of each person, in their own units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.columns.schema import Schema
from cloakgp.models.kernels.coregion import CoregionKernel, as_entries
from cloakgp.privacy import Guarantee
from cloakgp.privacy.cohorts import OVERLAPPING, People
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.calibration import CellCounts
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.privacy.several_outputs import STANDARD_BOUNDS, OutputColumns
from cloakgp.release.accuracy import LIKELY, Accuracy
from cloakgp.release.calibration import Calibration
from cloakgp.release.coefficient_tree import coefficient_tree
from cloakgp.release.custodians import Custodians
from cloakgp.release.distribution_columns import DistributionColumns
from cloakgp.release.error_range import ErrorRange, distinct_points, error_range, known_noise
from cloakgp.release.io.bundle import Store
from cloakgp.release.io.release_file import SavedRelease
from cloakgp.release.measurement import Measurement
from cloakgp.release.new_outputs import (
    LIMITS,
    NewNumbers,
    central,
    check_probabilities,
    check_threshold,
)
from cloakgp.release.points import Points, points_of
from cloakgp.release.provenance import Provenance
from cloakgp.release.release import Release
from cloakgp.release.strategy import DenseStrategy, Strategy
from cloakgp.release.streamed_strategy import StreamedStrategy
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import NORMAL_95, amount
from cloakgp.utils.markup import html_table

if TYPE_CHECKING:
    import pandas as pd

# Of ends of intervals, which are kept in widths of what was found.
ROUNDING = 1e-9
# What the entries' last input is called, which says of which output an entry is.
WHICH_OUTPUT = "number of the output"
NOT_ALL = "its entries are not all outputs of each row"
NOT_TOGETHER = "it does not protect all outputs of a person together"
DAMAGED_CALIBRATION = "its calibration is damaged"
# Questions that are about one output at a time.
COUNTS = (CountQuestion, OutsideQuestion, CellCounts)


@dataclass(frozen=True, eq=False)
class MultiOutputRelease(SavedRelease):
    """Predictions of several outputs anywhere, from noisy answers; a public object.

    Attributes
    ----------
    entries : Release
        About every output of every row as an entry of its own, in widths from the middle of its
        interval (``units``); the last input says which output. All entries of one person are one
        group. If its inputs have names, that one's is ``WHICH_OUTPUT``.
    columns : OutputColumns
        The outputs' declared bounds.
    output_names : tuple of str
        Names of the private columns; empty if they have none.
    schema : Schema or None
        What the raw public columns are, if inputs are encoded from them.
    provenance : Provenance or None
        When and with what it was made.
    intervals : OutputColumns or None
        What was found to hold most of each output, where that is not the declared bounds of all.
    calibrations : tuple of int
        Which of the entries' measurements counted each output where it was predicted to lie, in
        the order of the outputs; empty where none did, or where anything was learned since.

    See Also
    --------
    cloakgp.estimators.multioutput.DPGPMultiOutputRegressor : Makes such releases.
    """

    kind = "regression of several outputs"

    entries: Release
    columns: OutputColumns
    output_names: tuple[str, ...] = ()
    schema: Schema | None = None
    provenance: Provenance | None = None
    intervals: OutputColumns | None = None
    calibrations: tuple[int, ...] = ()

    @property
    def units(self) -> OutputColumns:
        """The bounds whose middles and widths are origins and units of entries."""
        return self.columns if self.intervals is None else self.intervals

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the outputs, or y1, y2, ... if they have none."""
        count = len(self.columns.bounds)
        return self.output_names or tuple(f"y{number + 1}" for number in range(count))

    @property
    def called(self) -> tuple[str, ...]:
        """What sentences call the outputs: by their names, or output 1, output 2, ..."""
        count = len(self.columns.bounds)
        return self.output_names or tuple(f"output {number + 1}" for number in range(count))

    @property
    def n_rows(self) -> int:
        """The number of asked rows."""
        return self.entries.n_rows // len(self.columns.bounds)

    @property
    def custodians(self) -> Custodians | None:
        """Of whose rows it is, if several custodians had some each."""
        return self.entries.custodians

    @property
    def guarantee(self) -> Guarantee | MixedGuarantee:
        """The joint guarantee for all outputs of a person together."""
        return self.entries.guarantee

    @property
    def insecure(self) -> bool:
        """True if any noise came from a fixed seed: the release is then not private."""
        return self.entries.insecure

    @property
    def noise_is_unknown(self) -> bool:
        """Whether nobody gave the spread between people with equal inputs, and no answer tells it.

        Intervals then allow for that (`cloakgp.release.unknown_noise`).
        """
        return not self.is_calibrated and self.entries.noise_is_unknown

    @property
    def is_calibrated(self) -> bool:
        """Whether intervals, quantiles and probabilities go by noisy counts of each output."""
        return bool(self.calibrations)

    @cached_property
    def calibrated_by(self) -> tuple[Calibration, ...]:
        """The calibration of each output by its counts; empty if there is none."""
        return tuple(
            Calibration.of(self.entries.measurements[number], units=units)
            for number, units in zip(self.calibrations, self.units.bounds, strict=False)
        )

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return self.entries.n_inputs - 1

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the public inputs, in order; empty if they have none."""
        return self.entries.input_names[:-1]

    @overload
    def predict(
        self, X: ArrayLike, *, return_std: Literal[False] = ..., new_output: bool = ...
    ) -> Array: ...

    @overload
    def predict(
        self, X: ArrayLike, *, return_std: Literal[True], new_output: bool = ...
    ) -> tuple[Array, Array]: ...

    def predict(
        self, X: ArrayLike, *, return_std: bool = False, new_output: bool = False
    ) -> Array | tuple[Array, Array]:
        """Predict every output at any inputs, at no further cost in privacy.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `Release.predict`: columns of a table are found by name.
        return_std : bool
            Also return the posterior sds.
        new_output : bool
            Uncertainty of new outputs rather than of the latent functions.

        Returns
        -------
        mean : array of shape (P, T)
            In the units of each output.
        std : array of shape (P, T)
            If asked for.
        """
        points = points_of(self, X)
        mean, std = map(points.spread, self._marginals(points.X, new_output=new_output))
        return (mean, std) if return_std else mean

    def _marginals(self, X: Array, *, new_output: bool) -> tuple[Array, Array]:
        """Return means and sds of all outputs in their units, shapes (n, T)."""
        shape = len(X), len(self.columns.bounds)
        entries = as_entries(X, count=shape[1])
        mean, std = self.entries.predict(entries, return_std=True, new_output=new_output)
        units = self.units
        return (
            units.middles + units.widths * mean.reshape(shape),
            units.widths * std.reshape(shape),
        )

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[Array, Array]:
        """Return intervals that hold new outputs at X with a given probability, each for itself.

        As likely to miss them below as above, and within the declared bounds. Calibrated
        (`is_calibrated`), each goes by the noisy counts of its output, as those of
        `Release.predict_interval`; of all outputs together nothing is said. Not calibrated, they
        hold what they say if the model does: they are those of the Gaussian predictive distribution
        of each output.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.
        coverage : float
            Between 0 and 1, of each output.

        Returns
        -------
        lower, upper : arrays of shape (P, T)
            In the units of each output.

        Raises
        ------
        ValueError
            If the coverage is no probability between 0 and 1.
        """
        check_probabilities(coverage, name="coverage")
        ends = self.predict_quantile(X, central(coverage))
        return ends[..., 0], ends[..., 1]

    def predict_quantile(self, X: Any, quantiles: ArrayLike) -> Array:
        """Return quantiles of new outputs at X; see `predict_interval` for what they rest on.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.
        quantiles : float, or array-like of shape (Q,)
            Each between 0 and 1.

        Returns
        -------
        array of shape (P, T), or (P, T, Q)
            In the units of each output.

        Raises
        ------
        ValueError
            If a quantile is not between 0 and 1.
        """
        levels = check_probabilities(quantiles, name="quantiles")
        points = points_of(self, X)
        found = points.spread(
            np.stack([new.quantiles(levels) for new in self._new_at(points)], axis=1)
        )
        return found if np.ndim(quantiles) else found[..., 0]

    def probability_above(self, X: Any, threshold: ArrayLike) -> Array:
        """Return how probable it is that each new output at X is above a threshold.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.
        threshold : array-like of shape (T,), or float
            In the units of each output; one number is meant of all.

        Returns
        -------
        array of shape (P, T)

        Raises
        ------
        ValueError
            If a threshold is no number, or there are not as many as outputs.
        """
        thresholds, count = np.asarray(threshold, dtype=np.float64), len(self.columns.bounds)
        if thresholds.shape not in ((), (count,)):
            raise ValueError(f"threshold must be a number, or one for each of {count} outputs")
        each = np.broadcast_to(thresholds, count).tolist()
        points = points_of(self, X)
        asked = zip(self._new_at(points), map(check_threshold, each), strict=True)
        return points.spread(np.stack([new.above(limit) for new, limit in asked], axis=1))

    def typical_errors(self, X: Any) -> Array:
        """Return how far each new output at X typically lies from its prediction.

        See `Release.typical_errors`: calibrated, it goes by the noisy counts of each output.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.

        Returns
        -------
        array of shape (P, T)
            In the units of each output. NaN where a row lacks an input.
        """
        points = points_of(self, X)
        errors = [new.typical_errors() for new in self._new_at(points)]
        return points.spread(np.stack(errors, axis=1))

    def accuracies(self) -> tuple[Accuracy, ...]:
        """Return the accuracy of predictions of each output, by their own estimate.

        At the public inputs that the release holds; none if it holds none.
        """
        count = len(self.columns.bounds)
        X = self.entries.known_inputs[::count, :-1]
        if not len(X):
            return ()
        mean, sd = self.predict(X, return_std=True)
        found = zip(
            self.called,
            mean.T,
            sd.T,
            self._new_at(points_of(self, X)),
            self.columns.bounds,
            self._error_ranges(X),
            strict=True,
        )
        return tuple(
            Accuracy.expected(
                name, curve, spread, new_error=new.typical_error(), ends=(within.lo, within.hi)
            ).with_range(between)
            for name, curve, spread, new, within, between in found
        )

    def _error_ranges(self, X: Array) -> list[ErrorRange | None]:
        """Return between what the error of new outputs lies, of each where answers tell it."""
        chosen = distinct_points(X)
        count, measurements = len(self.columns.bounds), self.entries.measurements
        log_noise = known_noise(measurements, count=count) if self.entries.learns_noise else None
        entries = as_entries(chosen, count=count)
        found = []
        for place, new in enumerate(self._new_at(points_of(self, chosen))):
            _, covariance = self.entries.predict(entries[place::count], return_cov=True)
            found.append(
                error_range(
                    new,
                    covariance=self.units.widths[place] ** 2 * covariance,
                    log_noise=log_noise,
                    probability=LIKELY,
                )
            )
        return found

    def _new_at(self, points: Points) -> list[NewNumbers]:
        """Return new outputs, one by one, at those points that lack nothing."""
        means, sds = self._marginals(points.X, new_output=True)
        count = len(self.columns.bounds)
        known = self.calibrated_by or (None,) * count
        entries = as_entries(points.X, count=count)
        # In the units of entries, as they are asked.
        asked_sds = sds / self.units.widths
        return [
            NewNumbers(
                mean=means[:, place],
                sd=sds[:, place],
                declared=(each.lo, each.hi),
                bounds=(each.lo, each.hi),
                calibration=known[place],
                unknown=self.entries.unknown_noise(entries[place::count], asked_sds[:, place])
                if self.noise_is_unknown
                else None,
            )
            for place, each in enumerate(self.columns.bounds)
        ]

    def predict_frame(
        self,
        X: Any,
        *,
        new_output: bool = False,
        interval: ArrayLike | None = None,
        quantiles: ArrayLike | None = None,
        above: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> pd.DataFrame:
        """Predict every output at any inputs, as a table with the index of X.

        Of each output its name, with the mean, and behind that its sd and limits that hold the
        curve with 95 %, or new outputs, as `predict_interval` has them (height, height_sd,
        height_lower, height_upper), within the declared bounds.
        Behind all of these, what is asked about the distributions of new outputs, named as
        `Release.predict_frame` names it, behind the output's name: height_lo_90, height_above_180.

        Parameters
        ----------
        X, new_output
            As for `predict`.
        interval, quantiles : float or array-like, optional
            Of each output, between 0 and 1.
        above : float or array-like, or mapping from outputs to such, optional
            Thresholds in output units: of all outputs alike, or of some by name.
        """
        with extra("tables"):
            import pandas as pd
        asked = DistributionColumns.asked(interval=interval, quantiles=quantiles, above=above)
        asked.check_outputs(self.names)
        points = points_of(self, X)
        new_outputs = self._new_at(points) if asked or new_output else []
        if new_output:
            told = [(new.mean, new.sd, *new.interval(LIMITS).T) for new in new_outputs]
        else:
            mean, sd = self._marginals(points.X, new_output=False)
            told = [
                (middle, spread, middle - NORMAL_95 * spread, middle + NORMAL_95 * spread)
                for middle, spread in zip(mean.T, sd.T, strict=True)
            ]
        columns = {}
        for name, limits, one in zip(self.names, self.columns.bounds, told, strict=True):
            middle, spread, lower, upper = one
            columns[name] = limits.clip(middle)
            columns[f"{name}_sd"] = spread
            columns[f"{name}_lower"] = limits.clip(lower)
            columns[f"{name}_upper"] = limits.clip(upper)
        if asked:
            for name, new in zip(self.names, new_outputs, strict=True):
                columns |= asked.of(new, output=name)
        index = getattr(X, "index", None)
        return pd.DataFrame(
            {name: points.spread(each) for name, each in columns.items()},
            index=index if isinstance(index, pd.Index) else None,
        )

    def combine(
        self,
        *others: MultiOutputRelease,
        same_rows: bool | None = None,
        people: People = OVERLAPPING,
    ) -> MultiOutputRelease:
        """Return one release that combines this and others; see `Release.combine`.

        Parameters
        ----------
        *others : MultiOutputRelease
            With the same prior and columns.
        same_rows, people
            As there.

        Raises
        ------
        TypeError
            If another is no such release.
        ValueError
            If the outputs' bounds, or the intervals that were found, differ, or the releases
            cannot be combined.
        """
        for other in others:
            if not isinstance(other, MultiOutputRelease):
                raise TypeError(
                    "a release of several outputs is combined with releases of its kind, not "
                    f"{type(other).__name__}"
                )
        if any(other.columns != self.columns for other in others):
            raise ValueError("releases about outputs with different bounds cannot be combined")
        if any(other.units != self.units for other in others):
            raise ValueError(
                "releases that found different intervals cannot be combined: use interval=False "
                "for both"
            )
        if any(
            (other.output_names, other.schema) != (self.output_names, self.schema)
            for other in others
        ):
            raise ValueError("releases about different columns cannot be combined")
        entries = (other.entries for other in others)
        together = self.entries.combine(*entries, same_rows=same_rows, people=people)
        provenance = None
        if self.provenance is not None:
            provenance = self.provenance.successor(together.measurements)
        return replace(self, entries=together, provenance=provenance, calibrations=())

    def validate(self) -> None:
        """Refuse entries that are not all outputs of each row, or not protected together.

        Raises
        ------
        ValueError
            If there are such.
        """
        kernel, count = self.entries.prior.kernel, len(self.columns.bounds)
        if not isinstance(kernel, CoregionKernel):
            raise ValueError("its kernel is not one of several outputs")
        if len(np.asarray(kernel.coregion)) != count:
            raise ValueError("its kernel is about another number of outputs")
        if self.output_names and len(self.output_names) != count:
            raise ValueError("it names another number of outputs")
        if self.schema is not None and self.schema.names != self.input_names:
            raise ValueError("its schema is about other inputs")
        if len(self.units.bounds) != count:
            raise ValueError("it found intervals of another number of outputs")
        for measurement in self.entries.measurements:
            _check_entries(measurement, count=count)
        self._check_intervals()
        self._check_calibrations()

    def counts_of(self, measurement: Measurement) -> tuple[int, Question] | None:
        """Return which output was counted, from 0, and what of it; intervals in its units.

        Parameters
        ----------
        measurement : Measurement
            One of the entries'.

        Returns
        -------
        (int, CountQuestion, OutsideQuestion or CellCounts) or None
            None if it counted nothing.
        """
        question = measurement.question
        if not isinstance(question, COUNTS):
            return None
        output = _counted_output(measurement.strategy, count=len(self.columns.bounds))
        if isinstance(question, CellCounts):
            return output, question
        return output, question.in_output_units(self.units.bounds[output])

    def _check_calibrations(self) -> None:
        """Refuse calibrations that are not by counts of each output in turn."""
        if not self.calibrations:
            return
        measurements = self.entries.measurements
        if not all(0 <= number < len(measurements) for number in self.calibrations):
            raise ValueError(DAMAGED_CALIBRATION)
        counted = [self.counts_of(measurements[number]) for number in self.calibrations]
        outputs = [one[0] for one in counted if one is not None and isinstance(one[1], CellCounts)]
        if outputs != list(range(len(self.columns.bounds))):
            raise ValueError(DAMAGED_CALIBRATION)
        _ = self.calibrated_by

    def _check_intervals(self) -> None:
        """Refuse intervals beyond the declared bounds, or that no counts can have found."""
        counted = [self.counts_of(measurement) for measurement in self.entries.measurements]
        seen = {
            one[0]: one[1].ends
            for one in counted
            if one is not None and isinstance(one[1], CountQuestion)
        }
        for output, (declared, taken) in enumerate(
            zip(self.columns.bounds, self.units.bounds, strict=True)
        ):
            if not declared.lo <= taken.lo < taken.hi <= declared.hi:
                raise ValueError("its intervals are beyond the declared bounds")
            if output not in seen:
                if taken != declared:
                    raise ValueError("nothing was counted that could have found its intervals")
                continue
            room = ROUNDING * max(declared.width, abs(declared.lo), abs(declared.hi))
            if np.abs(np.subtract(seen[output], (declared.lo, declared.hi))).max() > room:
                raise ValueError("its counts are about other bounds")

    def coefficients(self, *, stored: Store, beside: bool = False) -> dict[str, Any]:
        """Return what programs in other languages predict by: of the entries, and their units.

        Parameters
        ----------
        stored, beside
            As for `SavedRelease.coefficients`.
        """
        units = zip(self.names, self.units.middles, self.units.widths, strict=True)
        return coefficient_tree(self.entries, stored=stored, beside=beside) | {
            "inputs": self.n_inputs,
            "several": [
                {"name": name, "middle": float(middle), "width": float(width)}
                for name, middle, width in units
            ],
        }

    def __repr__(self) -> str:
        return f"<MultiOutputRelease of {len(self.columns.bounds)} outputs: {self.entries!r}>"

    def _repr_html_(self) -> str:
        limits = zip(self.names, self.columns.bounds, strict=True)
        private = (
            f"{name} ({amount(ends.lo, 12)} to {amount(ends.hi, 12)})" for name, ends in limits
        )
        return html_table(
            "Release about several outputs",
            [
                ("guarantee", str(self.guarantee)),
                ("private", ", ".join(private)),
                ("rows", f"{self.n_rows:,}"),
            ],
            insecure=self.insecure,
        )


def _counted_output(strategy: Strategy, *, count: int) -> int:
    """Return which output of several a strategy of counts is about, and refuse any other."""
    output: int | None
    if isinstance(strategy, StreamedStrategy):
        output = strategy.output
    else:
        assert isinstance(strategy, DenseStrategy)
        counted = (strategy.matrix > 0).any(axis=0)
        output = int(counted.argmax())
        if not np.array_equal(counted, np.arange(strategy.n_rows) % count == output):
            output = None
    if output is None or output >= count:
        raise ValueError("its counts are not those of one output")
    return output


def _check_entries(measurement: Measurement, *, count: int) -> None:
    """Refuse entries that are not all outputs of each row in turn, or not protected together."""
    strategy, question = measurement.strategy, measurement.question
    if isinstance(question, OutputBounds) and question != STANDARD_BOUNDS:
        raise ValueError("its answers are not in widths of the outputs' bounds")
    if isinstance(strategy, StreamedStrategy):
        _check_streamed(strategy, counts=isinstance(question, COUNTS), count=count)
    else:
        assert isinstance(strategy, DenseStrategy)
        _check_kept(strategy, count=count)


def _check_streamed(strategy: StreamedStrategy, *, counts: bool, count: int) -> None:
    """Refuse statements about entries that are not kept, unless they fit all outputs.

    That each row has all of them in turn is as little to be told without the rows as their columns
    are: `StreamedStrategy.verify` is for whoever has them.
    """
    if strategy.together != count:
        raise ValueError(NOT_TOGETHER)
    if not np.array_equal(strategy.input_ranges[:, -1], (0.0, count - 1.0)):
        raise ValueError(NOT_ALL)
    # Of one output alone only counts are asked.
    if (strategy.output is None) == counts:
        raise ValueError("its counts are not those of one output")


def _check_kept(strategy: DenseStrategy, *, count: int) -> None:
    """Refuse entries that are not all outputs of each row in turn, or not of one group."""
    X, groups = strategy.X, strategy.groups
    people, rest = divmod(len(X), count)
    if rest or not np.array_equal(X, as_entries(X[::count, :-1], count=count)):
        raise ValueError(NOT_ALL)
    if count == 1:
        return
    if groups is None or np.ptp(groups.reshape(people, count), axis=1).any():
        raise ValueError(NOT_TOGETHER)
