"""Predicted distributions of new outputs: intervals, quantiles and probabilities.

Of a release that counted outputs where they were predicted to lie (`cloakgp.release.calibration`)
these go by the counts; of any other about numbers by the Gaussian predictive distribution, which
believes its model. Either way they stay within the declared bounds. Of counts, they are those of
whole numbers (`cloakgp.models.likelihoods.counts.CountMixture`), for any exposure. Of a release of
quantiles they go through these, and beyond them as normal distributions do
(`cloakgp.models.likelihoods.quantiles.PredictedQuantiles`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakgp.models.likelihoods import CountLikelihood, QuantileLikelihood
from cloakgp.models.likelihoods.counts import CountMixture
from cloakgp.models.likelihoods.quantiles import PredictedQuantiles, quantile_likelihood
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release.predictions import Points, Predictions, points_of
from cloakgp.utils.arrays import Array

if TYPE_CHECKING:
    from cloakgp.release.calibration import Calibration


class PredictedDistributions(Predictions):
    """What a release predicts of the distribution of a new output."""

    if TYPE_CHECKING:

        @property
        def calibrated_by(self) -> Calibration | None: ...  # noqa: D102

    @property
    def is_calibrated(self) -> bool:
        """Whether intervals, quantiles and probabilities go by noisy counts of outputs."""
        return self.calibrated_by is not None

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, exposure: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """Return intervals that hold a new output at X with a given probability.

        As likely to miss it below as above. Calibrated (`is_calibrated`), such intervals hold this
        share of the outputs of the table that was asked, up to the noise of the counts, together
        and not for each X; the same is expected of new outputs from where these come from, as far
        as the curve was not fitted to the table's noise. Not calibrated, they hold what they say if
        the model does. Of counts the ends are whole numbers, and the probability is at least that.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.
        coverage : float
            Between 0 and 1.
        exposure : array-like of shape (P,) or float, optional
            Of new counts; 1 if not given.

        Returns
        -------
        lower, upper : arrays of shape (P,)
            In output units; of numbers, within the declared bounds. NaN where a row lacks an input.

        Raises
        ------
        ValueError
            If the coverage is no probability between 0 and 1.
        TypeError
            If outputs are classes.

        Examples
        --------
        >>> from cloakgp import DPGPRegressor
        >>> X, y = np.arange(40.0)[:, None], np.arange(40) % 4
        >>> model = DPGPRegressor(bounds=(0, 9), epsilon=1.0, likelihood="counts", gap=0.1)
        >>> lower, upper = model.fit(X, y).release_.predict_interval([[2.0]], exposure=10.0)
        >>> bool(lower[0] < upper[0]), upper[0] == np.round(upper[0])
        (True, np.True_)
        """
        check_probabilities(coverage, name="coverage")
        levels = [0.5 - coverage / 2, 0.5 + coverage / 2]
        ends = self.predict_quantile(X, levels, exposure=exposure)
        return ends[:, 0], ends[:, 1]

    def predict_quantile(
        self, X: Any, quantiles: ArrayLike, *, exposure: ArrayLike | None = None
    ) -> Array:
        """Return quantiles of a new output at X; see `predict_interval` for what they rest on.

        Of counts, the least whole number with that much of the probability at or below it.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.
        quantiles : float, or array-like of shape (Q,)
            Each between 0 and 1.
        exposure : array-like of shape (P,) or float, optional
            Of new counts; 1 if not given.

        Returns
        -------
        array of shape (P,), or (P, Q)
            In output units; of numbers, within the declared bounds.

        Raises
        ------
        ValueError
            If a quantile is not between 0 and 1.
        TypeError
            If outputs are classes.
        """
        levels = check_probabilities(quantiles, name="quantiles")
        if isinstance(self.likelihood, CountLikelihood):
            points, counts = self._new_counts(X, exposure)
            found = np.stack([counts.quantile(level) for level in levels.tolist()], axis=1)
        elif isinstance(self.likelihood, QuantileLikelihood):
            points, known = self._known_quantiles(X, exposure)
            found = self._spread_quantiles(points, known.quantile(levels))
            return found if np.ndim(quantiles) else found[:, 0]
        else:
            points, mean, sd = self._new_outputs(X, exposure)
            counted = self.calibrated_by
            steps = special.ndtri(levels) if counted is None else counted.quantiles(mean, levels)
            asked = np.clip(mean[:, None] + sd[:, None] * steps, *self._declared())
            found = asked if self.transform is None else self.transform.inverse(asked)
            found = np.clip(found, *self.output_bounds)
        found = points.spread(found)
        return found if np.ndim(quantiles) else found[:, 0]

    def probability_above(
        self, X: Any, threshold: float, *, exposure: ArrayLike | None = None
    ) -> Array:
        """Return how probable it is that a new output at X is above a threshold.

        That a count is 0 is one less the probability that it is above 0.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `predict`.
        threshold : float
            In output units.
        exposure : array-like of shape (P,) or float, optional
            Of new counts; 1 if not given.

        Returns
        -------
        array of shape (P,)

        Raises
        ------
        ValueError
            If the threshold is no number.
        TypeError
            If outputs are classes.
        """
        if not np.isfinite(threshold):
            raise ValueError(f"threshold must be a number, got {threshold}")
        if isinstance(self.likelihood, CountLikelihood):
            points, counts = self._new_counts(X, exposure)
            return points.spread(counts.above(threshold))
        lowest, highest = self.output_bounds
        asked = np.array(float(np.clip(threshold, lowest, highest)))
        if self.transform is not None:
            asked = self.transform.forward(asked)
        if isinstance(self.likelihood, QuantileLikelihood):
            points, known = self._known_quantiles(X, exposure)
            return points.spread(known.above(float(asked)))
        points, mean, sd = self._new_outputs(X, exposure)
        if not lowest <= threshold < highest:
            return points.spread(np.full(len(mean), 1.0 if threshold < lowest else 0.0))
        counted, steps = self.calibrated_by, (asked - mean) / sd
        if counted is None:
            return points.spread(special.ndtr(-steps))
        return points.spread(1.0 - counted.probabilities(mean, steps[:, None])[:, 0])

    def _known_quantiles(
        self, X: Any, exposure: ArrayLike | None
    ) -> tuple[Points, PredictedQuantiles]:
        """Return points, and what is predicted of new outputs there, in the units asked."""
        _refuse_exposure(exposure)
        points = points_of(self, X)
        likelihood = quantile_likelihood(self.likelihood)
        return points, likelihood.predictive(self._mixture, points.X)

    def _new_outputs(self, X: Any, exposure: ArrayLike | None) -> tuple[Points, Array, Array]:
        """Return points, and mean and sd of new outputs there, in the units that were asked."""
        if isinstance(self.measurements[0].question, Classes):
            raise TypeError("outputs are classes: these have probabilities, and no quantiles")
        _refuse_exposure(exposure)
        points = points_of(self, X)
        mean, sd = self._marginals(points.X, new_output=True)
        return points, mean, sd

    def _new_counts(self, X: Any, exposure: ArrayLike | None) -> tuple[Points, CountMixture]:
        """Return points, and the distributions of new counts there."""
        likelihood = self.likelihood
        assert isinstance(likelihood, CountLikelihood)
        points = points_of(self, X)
        given = np.asarray(1.0 if exposure is None else exposure, dtype=np.float64)
        if given.shape not in ((), points.known.shape):
            raise ValueError("exposure must be a number, or one for each row of X")
        # Written so that NaN fails.
        if not (np.isfinite(given).all() and (given > 0).all()):
            raise ValueError("exposure must be positive and finite")
        exposures = np.broadcast_to(given, points.known.shape)[points.known]
        return points, likelihood.predictive(self._mixture, points.X, exposures)


def _refuse_exposure(exposure: ArrayLike | None) -> None:
    if exposure is not None:
        raise ValueError("exposure is of counts, and this release is about other outputs")


def check_probabilities(values: ArrayLike, *, name: str) -> Array:
    """Return probabilities, shape (Q,), or refuse what lies outside of (0, 1).

    Parameters
    ----------
    values : float, or array-like of shape (Q,)
    name : str
        What errors call them.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_probabilities(0.5, name="coverage")
    array([0.5])
    """
    levels = np.atleast_1d(np.asarray(values, dtype=np.float64))
    # Written so that NaN fails.
    if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"{name} must lie between 0 and 1")
    return levels
