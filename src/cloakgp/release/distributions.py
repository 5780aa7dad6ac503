"""Predicted distributions of new outputs: intervals, quantiles and probabilities.

Of a release that counted outputs where they were predicted to lie (`cloakgp.release.calibration`)
these go by the counts; of any other about numbers by the Gaussian predictive distribution, which
believes its model, or, where no answer tells how noisy outputs are, by a mixture of such
(`cloakgp.release.unknown_noise`). Either way they stay within the declared bounds. Of counts, they
are those of whole numbers (`cloakgp.models.likelihoods.counts.CountMixture`), for any exposure. Of
a release of quantiles they go through these, and beyond them as normal distributions do
(`cloakgp.models.likelihoods.quantiles.PredictedQuantiles`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.release.new_outputs import (
    NewOutputs,
    check_probabilities,
    check_threshold,
)
from cloakgp.utils.arrays import Array

if TYPE_CHECKING:
    from cloakgp.release.points import Points


class PredictedDistributions:
    """What a release about one output predicts of the distribution of a new one."""

    if TYPE_CHECKING:

        def _new_outputs(
            self, X: Any, exposure: ArrayLike | None = None
        ) -> tuple[Points, NewOutputs]: ...

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, exposure: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """Return intervals that hold a new output at X with a given probability.

        As likely to miss it below as above. Calibrated (`Release.is_calibrated`), such intervals
        hold this share of the outputs of the table that was asked, or somewhat more, up to the
        noise of the counts, together and not for each X; the same is expected of new outputs from
        the same source, as far as the curve was not fitted to the table's noise. Not calibrated,
        they hold what they say if the model does; where no question asked how far outputs with
        equal inputs lie apart, and nobody said it (`Release.noise_is_unknown`), they allow for what
        that may be by the prior. Of counts the ends are whole numbers, and the
        probability is at least that.

        Where rows were kept out of the fit (`Release.margins`), intervals reach as far below the
        prediction as above, and hold a new output with at least this probability, on average over
        rows like those of the table, whatever the model (`cloakgp.release.margins`). Where these
        rows are too few for the coverage, an interval is all within the declared bounds.

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
        points, new = self._new_outputs(X, exposure)
        ends = points.spread(new.interval(float(coverage)))
        return ends[:, 0], ends[:, 1]

    def predict_quantile(
        self, X: Any, quantiles: ArrayLike, *, exposure: ArrayLike | None = None
    ) -> Array:
        """Return quantiles of a new output at X; see `predict_interval` for their basis.

        Margins are those of intervals alone: where there are any, quantiles and probabilities are
        those of the predictive distribution. Of counts, the least whole number with that
        much of the probability at or below it.

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
        points, new = self._new_outputs(X, exposure)
        found = points.spread(new.quantiles(levels))
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
        check_threshold(threshold)
        points, new = self._new_outputs(X, exposure)
        return points.spread(new.above(threshold))


class NoDistributions:
    """What a release answers that knows nothing of how outputs scatter: one sentence.

    Examples
    --------
    >>> NoDistributions().predict_interval([[0.0]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: NoDistributions knows noisy means and not how outputs scatter around them: ...
    """

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NoReturn:
        """Refuse.

        Parameters
        ----------
        X, coverage
            As for `cloakgp.Release.predict_interval`.

        Raises
        ------
        TypeError
        """
        del X, coverage
        self._refuse()

    def predict_quantile(self, X: Any, quantiles: ArrayLike) -> NoReturn:
        """Refuse.

        Parameters
        ----------
        X, quantiles
            As for `cloakgp.Release.predict_quantile`.

        Raises
        ------
        TypeError
        """
        del X, quantiles
        self._refuse()

    def probability_above(self, X: Any, threshold: float) -> NoReturn:
        """Refuse.

        Parameters
        ----------
        X, threshold
            As for `cloakgp.Release.probability_above`.

        Raises
        ------
        TypeError
        """
        del X, threshold
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} knows noisy means and not how outputs scatter around them: "
            "there are no intervals, quantiles and probabilities of new outputs"
        )
