"""Predictions of a release: from raw columns or numbers, as arrays or as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakgp.models.likelihoods import CountLikelihood, Likelihood, QuantileLikelihood
from cloakgp.models.likelihoods.quantiles import quantile_likelihood
from cloakgp.privacy.questions.classes import Classes, ClassLabel
from cloakgp.release.distribution_columns import DistributionColumns, quantile_column
from cloakgp.release.measurement import Measurement, declared_bounds
from cloakgp.release.new_outputs import (
    LIMITS,
    NewCounts,
    NewNumbers,
    NewOutputs,
    NewQuantiles,
    central,
    restore,
)
from cloakgp.release.one_output import OneOutputRelease
from cloakgp.release.points import Points, points_of
from cloakgp.release.posterior.mixture import LatentPrediction, Mixture
from cloakgp.release.unknown_noise import UnknownNoise
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import NORMAL_95
from cloakgp.utils.names import ESTIMATES, Estimate

if TYPE_CHECKING:
    import pandas as pd

    from cloakgp.release.margins import Margins

# Significant digits of what is shown of a spread.
DIGITS = 3


class Predictions(OneOutputRelease):
    """All predictions of a release; the release has their basis."""

    if TYPE_CHECKING:

        @property
        def margins(self) -> Margins | None: ...  # noqa: D102
        @property
        def likelihood(self) -> Likelihood: ...  # noqa: D102
        @property
        def measurements(self) -> Sequence[Measurement]: ...  # noqa: D102
        @property
        def classes(self) -> tuple[ClassLabel, ...]: ...  # noqa: D102
        @property
        def noise_is_unknown(self) -> bool: ...  # noqa: D102
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
            observation noise, as the model has it.
        estimate : {"median", "mean"}
            Which curve is meant where outputs were transformed: the median of outputs at X, or
            their mean, which is larger for long tails, and is what sums over people need. Of
            counts: the median or the mean of what is known of their rate, the count that is
            expected for one unit of exposure. Of other outputs, both are the same.

        Returns
        -------
        mean : array of shape (P,)
            In output units. Of numbers that were not transformed it is the posterior mean, which
            may lie beyond the bounds: `predict_frame` brings it within. Of classes, a list of the
            most probable ones; of equally probable ones, the first. Of quantiles,
            shape (P, K): those of a new output, in order.
        std or cov : array
            If asked for. Both include what is due to the privacy noise. NaN, and no class, where a
            row lacks an input without which the schema says that there is no prediction. Of outputs
            that were transformed, they are those of the curve, or of a new output, in output units
            and about its mean, and no sd is more than half the width of the bounds: what is
            predicted is skewed, and its limits, which are not so many sds away, are those of
            `predict_limits`.

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
            return points.spread(self._restore(found))
        if self.transform is None:
            predicted = self.likelihood.predict(self._mixture, points.X, **asked)
        else:
            predicted = self._transformed(points.X, estimate=estimate, **asked)
        if isinstance(self.measurements[0].question, Classes):
            named = iter([self.classes[position] for position in predicted])
            return [next(named) if known else None for known in points.known]
        if isinstance(predicted, tuple):
            mean, spread = predicted
            return points.spread(mean), points.spread(spread, square=return_cov)
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
        """Return the posterior of the latent functions at any inputs.

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

        Those of a new output are those of `predict_interval` for a coverage of 95 %.

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
            return points.spread(self._restore(lower)), points.spread(self._restore(upper))
        lower, upper = self._limits(
            points.X,
            *self._marginals(points.X, new_output=new_output),
            new_output=new_output,
            estimate=estimate,
        )
        return points.spread(lower), points.spread(upper)

    def typical_errors(self, X: Any) -> Array:
        """Return how far a new output at X typically lies from its prediction, shape (P,).

        The root of the expected mean square of its distance from `predict`. Calibrated
        (`is_calibrated`), it goes by the noisy counts, and else by the Gaussian predictive
        distribution. It is what is expected, where calibrated intervals are somewhat cautious.
        Neither tells how far off those few values are that lie far from all others: with a long
        tail of these the root mean square of errors may be several times as large, and of values
        most of which are equal any number of times (`Release.accuracy` has a figure for that).

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.

        Returns
        -------
        array of shape (P,)
            In output units. NaN where a row lacks an input.

        Raises
        ------
        TypeError
            If outputs are no numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from cloakgp import DPGPRegressor
        >>> X = np.linspace(0, 10, 200)[:, None]
        >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, gap=0.1, insecure_seed=0)
        >>> release = model.fit(X, np.sin(X).ravel()).release_
        >>> _, sd = release.predict([[3.0]], return_std=True)
        >>> bool(release.typical_errors([[3.0]])[0] > sd[0])
        True
        """
        points, new = self._new_outputs(X)
        if not isinstance(new, NewNumbers):
            raise TypeError("typical errors are of numbers: of others, see predict")
        return points.spread(new.typical_errors())

    def _restore(self, quantiles: Array) -> Array:
        """Return quantiles in output units, within the declared bounds, shape (n, K)."""
        return restore(quantiles, transform=self.transform, bounds=self.output_bounds)

    def _curve(
        self, X: Array, mean: Array, sd: Array, *, new_output: bool, estimate: Estimate
    ) -> tuple[Array, Array]:
        """Return the curve that is meant, and an sd, in output units, of `_marginals`."""
        if isinstance(self.likelihood, CountLikelihood):
            if estimate == "median":
                mean = self.likelihood.rate_quantile(self._mixture, X, 0.5)
            return mean, sd
        transform = self.transform
        if transform is None:
            return mean, sd
        total = self._total(X, sd, new_output=new_output, estimate=estimate)
        return (
            transform.inverse(mean) if estimate == "median" else transform.mean(mean, total),
            np.minimum(np.sqrt(transform.covariance(mean, total, np.square(sd))), self._largest_sd),
        )

    @property
    def _largest_sd(self) -> float:
        """Half the width of the bounds: no number within them has a larger sd (Popoviciu 1935).

        The tail of a lognormal law beyond them is none of what outputs can be.
        """
        lo, hi = self.output_bounds
        return (hi - lo) / 2

    def _limits(
        self, X: Array, mean: Array, sd: Array, *, new_output: bool, estimate: Estimate
    ) -> tuple[Array, Array]:
        """Return 95 % limits of the curve, or of new outputs, in output units, of `_marginals`.

        Of new outputs they are those of the distribution that `predict_interval` tells.
        """
        ends, likelihood = central(LIMITS), self.likelihood
        if isinstance(likelihood, CountLikelihood):
            if new_output:
                low, high = self._new_counts(X, np.ones(len(X))).quantiles(ends).T
            else:
                low, high = (likelihood.rate_quantile(self._mixture, X, q) for q in ends.tolist())
            return low, high
        if new_output:
            low, high = self._new_numbers(X, mean, sd).interval(LIMITS).T
            return low, high
        low, high = (
            np.clip(mean + sign * NORMAL_95 * sd, *self._declared()) for sign in (-1.0, 1.0)
        )
        transform = self.transform
        if transform is None:
            return low, high
        total = self._total(X, sd, new_output=False, estimate=estimate)
        # The sd of outputs about the curve, where their mean is meant.
        noise = np.sqrt(np.maximum(np.square(total) - np.square(sd), 0.0))
        within = self.output_bounds
        return (
            np.clip(transform.mean(low, noise), *within),
            np.clip(transform.mean(high, noise), *within),
        )

    def _total(self, X: Array, sd: Array, *, new_output: bool, estimate: Estimate) -> Array:
        """Return the sd for the mean of transformed outputs; for their median, sd."""
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
        """Return the predictions of transformed outputs."""
        transform = self.transform
        assert transform is not None
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both")
        mean, sd = self._marginals(X, new_output=new_output)
        level, spread = self._curve(X, mean, sd, new_output=new_output, estimate=estimate)
        if not return_cov:
            return (level, spread) if return_std else level
        if not self.likelihood.linear:
            raise ValueError("rates of counts have no covariance here: ask for return_std")
        total = self._total(X, sd, new_output=new_output, estimate=estimate)
        _, shared = self.likelihood.predict(
            self._mixture, X, return_std=False, return_cov=True, new_output=new_output
        )
        found = transform.covariance(mean, total, np.asarray(shared))
        return level, _with_largest_sd(found, self._largest_sd)

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
        """Return the span of the declared bounds of all tables, in asked units.

        Where an interval was looked for, outputs may well lie beyond what was found.
        """
        lows, highs = zip(*declared_bounds(self.measurements), strict=True)
        return min(lows), max(highs)

    def _new_outputs(self, X: Any, exposure: ArrayLike | None = None) -> tuple[Points, NewOutputs]:
        """Return points, and new outputs there."""
        if isinstance(self.measurements[0].question, Classes):
            raise TypeError("outputs are classes: these have probabilities, and no quantiles")
        points = points_of(self, X)
        return points, self._new_at(points, exposure)

    def _new_at(self, points: Points, exposure: ArrayLike | None) -> NewOutputs:
        """Return new outputs at those points that lack nothing."""
        likelihood = self.likelihood
        if isinstance(likelihood, CountLikelihood):
            return self._new_counts(points.X, _exposures(exposure, points))
        if exposure is not None:
            raise ValueError("exposure is of counts, and this release is about other outputs")
        if isinstance(likelihood, QuantileLikelihood):
            return NewQuantiles(
                likelihood.predictive(self._mixture, points.X),
                bounds=self.output_bounds,
                transform=self.transform,
            )
        return self._new_numbers(points.X, *self._marginals(points.X, new_output=True))

    def _new_counts(self, X: Array, exposure: Array) -> NewCounts:
        """Return new counts of given exposures."""
        assert isinstance(self.likelihood, CountLikelihood)
        return NewCounts(self.likelihood.predictive(self._mixture, X, exposure))

    def unknown_noise(self, X: Array, sd: Array) -> UnknownNoise | None:
        """Return distributions of new numbers where no answer tells their noise; None elsewhere.

        Parameters
        ----------
        X : array of shape (n, D)
        sd : array of shape (n,)
            Of the predictive distributions of new numbers there, as they were asked.
        """
        if not self.noise_is_unknown:
            return None
        priors = self._mixture.priors
        noise = sum(one.weight * one.prior.observation_noise(X) for one in priors)
        return UnknownNoise(np.clip(noise / np.square(sd), 0.0, 1.0))

    def _new_numbers(self, X: Array, mean: Array, sd: Array) -> NewNumbers:
        """Return new numbers at X, of predictive distributions with given means and sds."""
        return NewNumbers(
            mean=mean,
            sd=sd,
            declared=self._declared(),
            bounds=self.output_bounds,
            transform=self.transform,
            calibration=self.calibrated_by,
            unknown=self.unknown_noise(X, sd),
            margins=self.margins,
        )

    def predict_frame(
        self,
        X: Any,
        *,
        new_output: bool = False,
        estimate: Estimate = "median",
        interval: ArrayLike | None = None,
        quantiles: ArrayLike | None = None,
        above: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> pd.DataFrame:
        """Predict at any inputs, as a table with the index of X.

        Of numbers: mean, sd, and limits that hold the curve with 95 % (lower, upper), within the
        declared bounds, as is the mean. Of outputs that were transformed, the first column is
        what was asked for, median or mean, and limits are quantiles. Of classes: the most probable
        one (predicted) and the probability of each. Of quantiles: each of them (q_50, say), and
        limits that hold its curve with 95 % (q_50_lower, q_50_upper).

        Behind them stands what is asked about the distribution of a new output, as
        `predict_interval`, `predict_quantile` and `probability_above` say it: the interval of 90 %
        is lo_90 and hi_90, the quantile of 10 % is q_10, the probability above 180 is above_180.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.
        new_output : bool
            Sd and limits of a new output at X, rather than of the curve. Numbers only. Limits are
            then lo_95 and hi_95; the sd is that of the model, which is not calibrated.
        estimate : {"median", "mean"}
            As for `predict`.
        interval : float or array-like, optional
            Coverages of intervals, between 0 and 1. Numbers only, as the rest.
        quantiles : float or array-like, optional
            Between 0 and 1.
        above : float or array-like, optional
            Thresholds, in output units.
        exposure : array-like of shape (P,) or float, optional
            Of new counts, in these columns; 1 if not given.

        Returns
        -------
        pandas.DataFrame
            Of P rows.

        Raises
        ------
        ValueError
            As `predict`, or for the spread of classes.

        Examples
        --------
        >>> from cloakgp import DPGPRegressor
        >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
        >>> frame = model.release_.predict_frame([[0.5]], interval=0.8, above=0.6)
        >>> list(frame)
        ['mean', 'sd', 'lower', 'upper', 'lo_80', 'hi_80', 'above_0.6']
        """
        with extra("tables"):
            import pandas as pd
        index = getattr(X, "index", None)
        asked = DistributionColumns.asked(interval=interval, quantiles=quantiles, above=above)
        classified = isinstance(self.measurements[0].question, Classes)
        asked.check_numbers(classes=classified)
        asked.check_outputs(())
        if classified:
            if new_output:
                raise ValueError("new_output is for numbers: classes have probabilities")
            frame = pd.DataFrame(self._class_columns(X))
        else:
            _check_estimate(estimate)
            points = points_of(self, X)
            if isinstance(self.likelihood, QuantileLikelihood):
                if new_output:
                    raise ValueError("quantiles are those of new outputs: leave out new_output")
                columns = self._quantile_columns(points.X)
            else:
                columns = self._number_columns(points.X, new_output=new_output, estimate=estimate)
            if asked or exposure is not None:
                columns |= asked.of(self._new_at(points, exposure))
            frame = pd.DataFrame({name: points.spread(each) for name, each in columns.items()})
        if isinstance(index, pd.Index):
            frame.index = index
        return frame

    def _number_columns(
        self, X: Array, *, new_output: bool, estimate: Estimate
    ) -> dict[str, Array]:
        """Return the columns of numbers at n points."""
        marginals = self._marginals(X, new_output=new_output)
        asked: dict[str, Any] = {"new_output": new_output, "estimate": estimate}
        mean, sd = self._curve(X, *marginals, **asked)
        lower, upper = self._limits(X, *marginals, **asked)
        name = "mean" if self.transform is None else estimate
        return {
            name: mean if self._unbounded else np.clip(mean, *self.output_bounds),
            "sd": sd,
            "lower": lower,
            "upper": upper,
        }

    def _quantile_columns(self, X: Array) -> dict[str, Array]:
        """Return the columns of quantiles at n points, each with limits of its curve."""
        likelihood = quantile_likelihood(self.likelihood)
        of_ends = {"": likelihood.predictive(self._mixture, X).values}
        lower, upper = likelihood.curve_limits(self._mixture, X, reach=NORMAL_95)
        of_ends |= {"_lower": lower, "_upper": upper}
        restored = {end: self._restore(values).T for end, values in of_ends.items()}
        return {
            f"{quantile_column(level)}{end}": values[number]
            for number, level in enumerate(likelihood.quantiles)
            for end, values in restored.items()
        }

    def _class_columns(self, X: Any) -> dict[str, NDArray[Any]]:
        """Return the columns of classes."""
        return class_columns(self.predict_proba(X), self.classes)


def _with_largest_sd(covariance: Array, largest: float) -> Array:
    """Return a covariance with sds of at most so much, and the correlations that it had."""
    sds = np.sqrt(np.diag(covariance))
    known = np.isfinite(covariance)
    shrunk = np.minimum(1.0, largest / np.where((sds > 0) & np.isfinite(sds), sds, np.inf))
    shrunk = np.where(sds > 0, shrunk, 1.0)
    made: Array = np.where(known, covariance, 0.0) * np.outer(shrunk, shrunk)
    made[np.diag_indices_from(made)] = np.square(np.minimum(sds, largest))
    return made


def _exposures(given: ArrayLike | None, points: Points) -> Array:
    """Return the exposures of new counts at points, shape (n,); 1 if not given."""
    exposure = np.asarray(1.0 if given is None else given, dtype=np.float64)
    if exposure.shape not in ((), points.known.shape):
        raise ValueError("exposure must be a number, or one for each row of X")
    # Written so that NaN fails.
    if not (np.isfinite(exposure).all() and (exposure > 0).all()):
        raise ValueError("exposure must be positive and finite")
    return np.broadcast_to(exposure, points.known.shape)[points.known]


def _check_estimate(estimate: str) -> None:
    if estimate not in ESTIMATES:
        raise ValueError(f"estimate must be 'median' or 'mean', got {estimate!r}")


def class_texts(classes: Sequence[ClassLabel]) -> tuple[str, ...]:
    """Return classes as text; those that read alike as Python writes them.

    Examples
    --------
    >>> class_texts((0, 1)), class_texts((1, "1"))
    (('0', '1'), ('1', "'1'"))
    """
    plain = tuple(map(str, classes))
    return plain if len(set(plain)) == len(plain) else tuple(map(repr, classes))


def class_columns(shares: Array, classes: Sequence[ClassLabel]) -> dict[str, NDArray[Any]]:
    """Return the most probable class, and the probability of each, as columns of a table.

    Parameters
    ----------
    shares : array of shape (P, C)
        Probabilities; of NaN where there are none.
    classes : sequence

    Examples
    --------
    >>> columns = class_columns(np.array([[0.2, 0.8]]), ("ill", "well"))
    >>> {name: column.tolist() for name, column in columns.items()}
    {'predicted': ['well'], 'p_ill': [0.2], 'p_well': [0.8]}
    """
    names = class_texts(classes)
    best = np.array(names, dtype=object)[np.nan_to_num(shares).argmax(axis=1)]
    best[np.isnan(shares).any(axis=1)] = None
    columns = {f"p_{name}": share for name, share in zip(names, shares.T, strict=True)}
    return {"predicted": best, **columns}


def sensible_digits(sd: Array) -> int:
    """Return the number of meaningful decimals for some spreads: three digits of the smallest.

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
