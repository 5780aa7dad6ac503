"""Predictions of a release: from raw columns or numbers, as arrays or as a table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.problems import FROM_ZERO
from cloakgp.columns.schema import Schema
from cloakgp.models.likelihoods import CountLikelihood, Likelihood, QuantileLikelihood
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy.questions.classes import Classes, ClassLabel
from cloakgp.release.measurement import Measurement, declared_bounds
from cloakgp.release.posterior.mixture import LatentPrediction, Mixture
from cloakgp.utils.arrays import Array, as_inputs, column_names
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import NORMAL_95
from cloakgp.utils.names import ESTIMATES, Estimate

if TYPE_CHECKING:
    import pandas as pd

# Significant digits of what is shown of a spread.
DIGITS = 3
# Beyond each of two 95 % limits.
NORMAL_TAIL = 0.025


class UnseenLevelWarning(UserWarning):
    """A category was not there when the release was made: what is predicted is less certain."""


@dataclass(frozen=True, eq=False)
class Points:
    """Where to predict.

    Attributes
    ----------
    X : array of shape (n, D)
        Of those rows that lack nothing.
    known : array of bool, shape (P,)
        Which these are.
    """

    X: Array
    known: NDArray[np.bool_]

    def spread(self, values: Array) -> Array:
        """Return values of all rows, NaN for those that lack something."""
        if self.known.all():
            return values
        square = values.ndim == 2 and values.shape[0] == values.shape[1] == len(self.X)
        shape = (len(self.known),) * 2 if square else (len(self.known), *values.shape[1:])
        full = np.full(shape, np.nan)
        full[np.ix_(self.known, self.known) if square else self.known] = values
        return full


class Predictions:
    """Everything that a release predicts; what it is predicted from, the release has."""

    if TYPE_CHECKING:

        @property
        def likelihood(self) -> Likelihood: ...  # noqa: D102
        @property
        def measurements(self) -> Sequence[Measurement]: ...  # noqa: D102
        @property
        def classes(self) -> tuple[ClassLabel, ...]: ...  # noqa: D102
        @property
        def input_names(self) -> Sequence[str]: ...  # noqa: D102
        @property
        def n_inputs(self) -> int: ...  # noqa: D102
        @property
        def schema(self) -> Schema | None: ...  # noqa: D102
        @property
        def transform(self) -> OutputTransform | None: ...  # noqa: D102
        @property
        def _mixture(self) -> Mixture: ...

    @overload
    def predict(
        self, X: Any, *, return_std: Literal[True], new_output: bool = ..., estimate: Estimate = ...
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self, X: Any, *, return_cov: Literal[True], new_output: bool = ..., estimate: Estimate = ...
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(self, X: Any, *, new_output: bool = ..., estimate: Estimate = ...) -> Any: ...

    def predict(
        self,
        X: Any,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        new_output: bool = False,
        estimate: Estimate = "median",
    ) -> Any:
        """Predict at any inputs, at no further cost in privacy.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            Columns of a table are found by the inputs' names, if these have any; others are
            ignored. Where the release has a schema: raw columns, as in the table that it was made
            from.
        return_std : bool
            Also return the posterior sd, shape (P,), in output units. Numbers only, as the rest.
        return_cov : bool
            Also return the posterior covariance, shape (P, P), in squared output units.
        new_output : bool
            Uncertainty of a new output at X, rather than of the latent function: adds the
            observation noise.
        estimate : {"median", "mean"}
            Which curve is meant where outputs were transformed: the median of outputs at X, or
            their mean, which is larger for long tails, and is what sums over people need. Of
            counts: the median or the mean of what is known of their rate, the count that is
            expected for one unit of exposure. Of other outputs, both are the same.

        Returns
        -------
        mean : array of shape (P,)
            In output units. Of classes, a list of the most probable ones; of equally probable ones,
            the first. Of quantiles, shape (P, K): those of a new output, in order.
        std or cov : array
            If asked for. Both include what is due to the privacy noise. NaN, and no class, where a
            row lacks an input without which the schema says that there is no prediction. Of outputs
            that were transformed, they are those of the curve, or of a new output, in output units
            and about its mean: what is predicted is skewed, and its limits, which are not so many
            sds away, are those of `predict_limits`.

        Raises
        ------
        ValueError
            If X lacks an input or has another number of columns than the release, sd and covariance
            are both asked for, or classes for a spread.
        """
        _check_estimate(estimate)
        points = points_of(self, X)
        asked = {"return_std": return_std, "return_cov": return_cov, "new_output": new_output}
        if isinstance(self.likelihood, QuantileLikelihood):
            found = self.likelihood.predict(self._mixture, points.X, **asked)
            return self._spread_quantiles(points, found)
        if self.transform is None:
            predicted = self.likelihood.predict(self._mixture, points.X, **asked)
        else:
            predicted = self._transformed(points.X, estimate=estimate, **asked)
        if isinstance(self.measurements[0].question, Classes):
            named = iter([self.classes[position] for position in predicted])
            return [next(named) if known else None for known in points.known]
        if isinstance(predicted, tuple):
            return tuple(points.spread(each) for each in predicted)
        return points.spread(predicted)

    def predict_proba(self, X: Any, *, privacy_noise: bool = True) -> Array:
        """Return the probability of every class at any inputs, at no further cost in privacy.

        Averaged over everything that is not known: the latent function given the labels, the
        privacy noise on what is published of them, and the hyperparameters if they are averaged
        over.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.
        privacy_noise : bool
            False leaves out what the privacy noise makes unknown, as the papers do: probabilities
            are then nearer to 0 and 1 than the answers warrant.

        Returns
        -------
        array of shape (P, C)
            In the order of `classes`; each row adds up to 1.

        Raises
        ------
        TypeError
            If outputs are no classes.
        """
        points = points_of(self, X)
        return points.spread(
            self.likelihood.probabilities(self._mixture, points.X, privacy_noise=privacy_noise)
        )

    def predict_latent(self, X: Any) -> LatentPrediction:
        """Return what is known of the latent functions at any inputs.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.

        Returns
        -------
        LatentPrediction
            Mean, sd, and the part of the sd that is due to privacy noise: of numbers in output
            units, or of transformed outputs. With two classes, of the one function that is high
            where the second class is probable; else of one per class.
        """
        points = points_of(self, X)
        found = self._mixture.latent(points.X)
        if points.known.all():
            return found
        return LatentPrediction(
            **{each.name: points.spread(getattr(found, each.name)) for each in fields(found)}
        )

    def predict_limits(
        self, X: Any, *, new_output: bool = False, estimate: Estimate = "median"
    ) -> tuple[Array, Array]:
        """Return limits that hold the curve, or a new output, with 95 %, within the bounds.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.
        new_output, estimate
            As for `predict`.

        Returns
        -------
        lower, upper : arrays of shape (P,)
            In output units. Of quantiles, shape (P, K): limits of the curve of each.

        Raises
        ------
        TypeError
            If outputs are classes.
        ValueError
            If quantiles are asked for limits of a new output: these are what they predict.
        """
        if isinstance(self.measurements[0].question, Classes):
            raise TypeError("outputs are classes: these have probabilities, and no limits")
        points = points_of(self, X)
        if isinstance(self.likelihood, QuantileLikelihood):
            if new_output:
                raise ValueError("quantiles of new outputs are what is predicted: see predict")
            lower, upper = self.likelihood.curve_limits(self._mixture, points.X, reach=NORMAL_95)
            return self._spread_quantiles(points, lower), self._spread_quantiles(points, upper)
        _, _, lower, upper = self._numbers(points.X, new_output=new_output, estimate=estimate)
        return points.spread(lower), points.spread(upper)

    def _spread_quantiles(self, points: Points, found: Array) -> Array:
        """Return quantiles of all rows in output units, within the declared bounds, (P, Q)."""
        within = found if self.transform is None else self.transform.inverse(found)
        columns = [points.spread(each) for each in np.clip(within, *self.output_bounds).T]
        return np.stack(columns, axis=1)

    def _numbers(
        self, X: Array, *, new_output: bool, estimate: Estimate
    ) -> tuple[Array, Array, Array, Array]:
        """Return the curve that is meant, its sd, and limits, in output units, shapes (n,)."""
        mean, sd = self._marginals(X, new_output=new_output)
        if isinstance(self.likelihood, CountLikelihood):
            return self._rates(X, mean, sd, new_output=new_output, estimate=estimate)
        low, high = (
            np.clip(mean + sign * NORMAL_95 * sd, *self._declared()) for sign in (-1.0, 1.0)
        )
        if self.transform is None:
            return mean, sd, low, high
        transform, within = self.transform, self.output_bounds
        total = self._total(X, sd, new_output=new_output, estimate=estimate)
        # The sd of outputs about the curve, where their mean is meant.
        noise = np.sqrt(np.maximum(np.square(total) - np.square(sd), 0.0))
        return (
            transform.inverse(mean) if estimate == "median" else transform.mean(mean, total),
            np.sqrt(transform.covariance(mean, total, np.square(sd))),
            np.clip(transform.mean(low, noise), *within),
            np.clip(transform.mean(high, noise), *within),
        )

    def _rates(
        self, X: Array, mean: Array, sd: Array, *, new_output: bool, estimate: Estimate
    ) -> tuple[Array, Array, Array, Array]:
        """Return rates of counts, their sd, and limits, of them or of counts of exposure 1."""
        likelihood = self.likelihood
        assert isinstance(likelihood, CountLikelihood)
        ends = [NORMAL_TAIL, 1.0 - NORMAL_TAIL]
        if new_output:
            counts = likelihood.predictive(self._mixture, X, np.ones(len(X)))
            low, high = (counts.quantile(q) for q in ends)
        else:
            low, high = (likelihood.rate_quantile(self._mixture, X, q) for q in ends)
        if estimate == "median":
            mean = likelihood.rate_quantile(self._mixture, X, 0.5)
        return mean, sd, low, high

    def _total(self, X: Array, sd: Array, *, new_output: bool, estimate: Estimate) -> Array:
        """Return the sd that the mean of transformed outputs goes by; for their median, sd."""
        if estimate == "median" or new_output:
            return sd
        return self._marginals(X, new_output=True)[1]

    def _marginals(self, X: Array, *, new_output: bool) -> tuple[Array, Array]:
        """Return mean and sd of numbers, before they are transformed back."""
        mean, sd = self.likelihood.predict(
            self._mixture, X, return_std=True, return_cov=False, new_output=new_output
        )
        return np.asarray(mean), np.asarray(sd)

    def _transformed(
        self, X: Array, *, return_std: bool, return_cov: bool, new_output: bool, estimate: Estimate
    ) -> Array | tuple[Array, Array]:
        """Return what `predict` does where outputs were transformed."""
        transform = self.transform
        assert transform is not None
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both")
        level, spread, _, _ = self._numbers(X, new_output=new_output, estimate=estimate)
        if not return_cov:
            return (level, spread) if return_std else level
        if not self.likelihood.linear:
            raise ValueError("rates of counts have no covariance here: ask for return_std")
        mean, sd = self._marginals(X, new_output=new_output)
        total = self._total(X, sd, new_output=new_output, estimate=estimate)
        _, shared = self.likelihood.predict(
            self._mixture, X, return_std=False, return_cov=True, new_output=new_output
        )
        return level, transform.covariance(mean, total, np.asarray(shared))

    @property
    def _unbounded(self) -> bool:
        """Whether predictions may lie beyond the bounds of outputs: rates are no counts."""
        return self.likelihood.windowed

    @property
    def output_bounds(self) -> tuple[float, float]:
        """Between which numbers were declared to lie, in output units.

        Raises
        ------
        TypeError
            If outputs are classes.
        """
        if isinstance(self.measurements[0].question, Classes):
            raise TypeError("outputs are classes, and have no bounds")
        within = self._declared()
        if self.transform is None:
            return within
        if within == self.transform.ends:
            return self.transform.bounds
        lo, hi = self.transform.inverse(np.array(within))
        return float(lo), float(hi)

    def _declared(self) -> tuple[float, float]:
        """Return what spans the declared bounds of all tables, of what was asked about.

        Where an interval was looked for, outputs may well lie beyond what was found.
        """
        lows, highs = zip(*declared_bounds(self.measurements), strict=True)
        return min(lows), max(highs)

    def predict_frame(
        self, X: Any, *, new_output: bool = False, estimate: Estimate = "median"
    ) -> pd.DataFrame:
        """Predict at any inputs, as a table with the index of X.

        Of numbers: mean, sd, and limits that hold the curve with 95 % (lower, upper), within the
        declared bounds, as is the mean. Of outputs that were transformed, the first column is
        what was asked for, median or mean, and limits are quantiles. Of classes: the most probable
        one (predicted) and the probability of each. Of quantiles: each of them (q0.5, say), and
        limits that hold its curve with 95 % (q0.5_lower, q0.5_upper).

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.
        new_output : bool
            Sd and limits of a new output at X, rather than of the curve. Numbers only.
        estimate : {"median", "mean"}
            As for `predict`.

        Returns
        -------
        pandas.DataFrame
            Of P rows.

        Raises
        ------
        ValueError
            As `predict`, or for the spread of classes.
        """
        with extra("tables"):
            import pandas as pd
        index = getattr(X, "index", None)
        if isinstance(self.measurements[0].question, Classes):
            if new_output:
                raise ValueError("new_output is for numbers: classes have probabilities")
            shares = self.predict_proba(X)
            names = class_texts(self.classes)
            unknown = np.isnan(shares).any(axis=1)
            best = np.array(names, dtype=object)[np.nan_to_num(shares).argmax(axis=1)]
            best[unknown] = None
            columns = {f"p_{name}": share for name, share in zip(names, shares.T, strict=True)}
            frame = pd.DataFrame({"predicted": best, **columns})
        elif isinstance(self.likelihood, QuantileLikelihood):
            if new_output:
                raise ValueError("quantiles are those of new outputs: leave out new_output")
            levels = self.likelihood.quantiles
            lower, upper = self.predict_limits(X)
            of_each = zip(levels, self.predict(X).T, lower.T, upper.T, strict=True)
            columns = {
                f"q{level:g}{end}": values
                for level, *each in of_each
                for end, values in zip(("", "_lower", "_upper"), each, strict=True)
            }
            frame = pd.DataFrame(columns)
        else:
            _check_estimate(estimate)
            points = points_of(self, X)
            mean, sd, lower, upper = map(
                points.spread, self._numbers(points.X, new_output=new_output, estimate=estimate)
            )
            name = "mean" if self.transform is None else estimate
            columns = {
                name: mean if self._unbounded else np.clip(mean, *self.output_bounds),
                "sd": sd,
                "lower": lower,
                "upper": upper,
            }
            frame = pd.DataFrame(columns)
        if isinstance(index, pd.Index):
            frame.index = index
        return frame


def _check_estimate(estimate: str) -> None:
    if estimate not in ESTIMATES:
        raise ValueError(f"estimate must be 'median' or 'mean', got {estimate!r}")


def complete_points(release: Predictions, X: Any, *, name: str = "X") -> Array:
    """Return inputs as the release takes them, where no row may lack one.

    Parameters
    ----------
    release : Predictions
    X
        As for `points_of`.
    name : str
        What errors call X.

    Raises
    ------
    ValueError
        As `points_of`, and if a row lacks an input.
    """
    points = points_of(release, X, name=name)
    if not points.known.all():
        raise ValueError(f"{name} has rows that lack an input: leave these out")
    return points.X


class Encoding(Protocol):
    """What says how inputs are given."""

    @property
    def schema(self) -> Schema | None:
        """What the raw public columns are."""

    @property
    def input_names(self) -> Sequence[str]:
        """Names of the inputs."""

    @property
    def n_inputs(self) -> int:
        """D, the number of inputs."""


def points_of(release: Encoding, X: Any, *, name: str = "X") -> Points:
    """Return inputs as the release takes them; raw columns are encoded by its schema.

    Parameters
    ----------
    release : Release or MultiOutputRelease
    X : array-like or table of shape (P, D), or raw columns
    name : str
        What errors call X.

    Raises
    ------
    ValueError
        If X lacks an input, or has another number of columns. All cells at fault are named.
    """
    schema = release.schema
    present = list(X) if isinstance(X, Mapping) else column_names(X)
    named = any(isinstance(name, str) for name in present)
    if (
        schema is None
        or not named
        or set(release.input_names) <= set(present) - set(schema.sources)
    ):
        points = as_inputs(X, input_names=release.input_names, n_inputs=release.n_inputs, name=name)
        return Points(X=points, known=np.ones(len(points), dtype=bool))
    encoded = schema.encode(X, row=FROM_ZERO, one_by_one=True)
    for unseen in encoded.unseen:
        warnings.warn(str(unseen), UnseenLevelWarning, stacklevel=4)
    known = np.asarray(np.isfinite(encoded.X).all(axis=1), dtype=bool)
    if not known.any():
        raise ValueError("every row lacks an input without which there is no prediction")
    return Points(X=encoded.X[known], known=known)


def class_texts(classes: Sequence[ClassLabel]) -> tuple[str, ...]:
    """Return classes as text; those that read alike as Python writes them.

    Examples
    --------
    >>> class_texts((0, 1)), class_texts((1, "1"))
    (('0', '1'), ('1', "'1'"))
    """
    plain = tuple(map(str, classes))
    return plain if len(set(plain)) == len(plain) else tuple(map(repr, classes))


def sensible_digits(sd: Array) -> int:
    """Return how many decimals say what a spread leaves known: three digits of the smallest.

    Parameters
    ----------
    sd : array of shape (P,)

    Examples
    --------
    >>> sensible_digits(np.array([12.3456, 150.0])), sensible_digits(np.array([1e6]))
    (1, 0)
    """
    spread = sd[np.isfinite(sd) & (sd > 0)]
    if not len(spread):
        return DIGITS
    return max(0, DIGITS - 1 - int(np.floor(np.log10(spread.min()))))
