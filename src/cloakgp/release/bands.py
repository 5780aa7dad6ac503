"""Bands of outputs around predictions from published answers, of kept rows and of others.

The band of a row that is not kept is a function of its inputs: `RowBands` predicts its output by
what the answers say of the inducing variables. With f = m + Vᵀu, and u ~ N(û, G Gᵀ) given answers,
the output of a row of features v and noise variance λ has the mean m + vᵀû and the variance
‖Gᵀv‖² + λ. What the answers say of the row's own noise is left out: it is one of thousands of rows.
That decides where bands lie, which may be anywhere; inference counts it
(`cloakgp.release.posterior.clipped_sums`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from cloakgp.design.streaming.conditioning import turned_by
from cloakgp.design.streaming.remembering import RememberedRows
from cloakgp.models import SparsePrior
from cloakgp.models.clipping import linearise_clipped
from cloakgp.models.likelihoods import Linearisation, Window
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.questions.bands import Bands, UnitQuestion
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.calibration import CalibrationQuestion, CellCounts
from cloakgp.privacy.questions.scatter import ScatterQuestion, check_strata
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.utils.arrays import Array

# The narrowest band, as a share of the bounds' width.
NARROWEST = 1e-3


@dataclass(frozen=True, eq=False)
class RowLimits:
    """Where bands are cut, row by row: rows are entries of several outputs.

    Attributes
    ----------
    lo, hi : arrays of shape (N,)
        In output units.
    """

    lo: Array
    hi: Array

    @property
    def width(self) -> Array:
        """Their distance, shape (N,)."""
        return self.hi - self.lo

    def clip(self, predicted: Array) -> Array:
        """Return predictions brought inside."""
        return np.clip(predicted, self.lo, self.hi)


def choose_bands(
    mean: Array, variance: Array, *, width: float, bounds: OutputBounds | RowLimits
) -> Bands:
    """Return the band of every output: c predictive sds on either side, cut at the bounds.

    Parameters
    ----------
    mean, variance : arrays of shape (N,)
        Predicted from published answers.
    width : float
        c.
    bounds : OutputBounds or RowLimits
        Declared, or where bands may go.

    Examples
    --------
    >>> bands = choose_bands(np.array([1.0, 9.5]), np.ones(2), width=1.0,
    ...                      bounds=OutputBounds(0.0, 10.0))
    >>> bands.lower, bands.upper
    (array([0. , 8.5]), array([ 2., 10.]))
    """
    reach = np.maximum(width * np.sqrt(variance), NARROWEST * bounds.width)
    middle = bounds.clip(mean)
    return Bands(
        lower=np.maximum(middle - reach, bounds.lo), upper=np.minimum(middle + reach, bounds.hi)
    )


def account_in_bands(mean: Array, variance: Array, *, bands: Bands) -> Linearisation:
    """Return the best linear account of where outputs lie in their bands, by the outputs.

    Parameters
    ----------
    mean, variance : arrays of shape (N,)
        Predicted from published answers.
    bands : Bands

    Returns
    -------
    Linearisation
        In units of the bands.
    """
    account = linearise_clipped(mean, variance, lower=bands.lower, upper=bands.upper)
    return Linearisation(
        expected=(account.expected - bands.middle) / bands.width,
        slope=account.slope / bands.width,
        residual=account.residual / bands.width**2,
    )


def window_of(question: Question) -> Window | None:
    """Return where a question clips numbers, and in which units it asks them; None of classes.

    Parameters
    ----------
    question : Question

    Examples
    --------
    >>> window_of(OutputBounds(0.0, 4.0)).place(np.array([-1.0, 3.0, 9.0]))
    array([[0., 3., 4.]])
    """
    if isinstance(question, OutputBounds):
        # Of answers about these, the middle is added up again: `OutputBounds.about_outputs`.
        return Window(lower=question.lo, upper=question.hi)
    if isinstance(question, Bands):
        return Window(question.lower, question.upper, question.middle, question.width)
    return None


@dataclass(frozen=True, eq=False)
class RowPrediction:
    """The prediction of the output of a row from published answers, by its inputs.

    Attributes
    ----------
    prior : SparsePrior
    mean : array of shape (M,)
        û, of the inducing variables.
    root : array of shape (M, M)
        G, with G Gᵀ their covariance.
    """

    prior: SparsePrior
    mean: Array
    root: Array

    def validate(self) -> None:
        """Refuse arrays that do not fit each other.

        Raises
        ------
        ValueError
            If they do not, or are not finite.
        """
        inducing = len(self.prior.inducing)
        fit = self.mean.shape == (inducing,) and self.root.shape == (inducing, inducing)
        if not (fit and np.isfinite(self.mean).all() and np.isfinite(self.root).all()):
            raise ValueError("its bands are damaged")

    def known(self, X: Array) -> tuple[Array, Array]:
        """Return features and noise variances of rows, shapes (M, n) and (n,).

        Parameters
        ----------
        X : array of shape (n, D), or with more columns, which are passed over
        """
        return self.prior.features_and_noise(X[:, : self.prior.inducing.shape[1]])

    def predicted(self, features: Array, noise: Array) -> tuple[Array, Array]:
        """Return means and variances of the outputs of rows, shapes (n,).

        Parameters
        ----------
        features : array of shape (M, n)
        noise : array of shape (n,)
        """
        return self.given_answers(features, noise)[1:]

    def given_answers(self, features: Array, noise: Array) -> tuple[Array, Array, Array]:
        """Return Gᵀv of rows, and means and variances of their outputs.

        Parameters
        ----------
        features : array of shape (M, n)
        noise : array of shape (n,)
        """
        known = turned_by(self.root, features)
        spread = np.einsum("mn,mn->n", known, known)
        return known, self.prior.mean + self.mean @ features, spread + noise


class RowQuestion(Question):
    """A question about each row that follows from its inputs, by predictions from earlier answers.

    Rules go by what a sparse model knows of it.
    """

    prediction: RowPrediction

    @cached_property
    def remembered(self) -> RememberedRows:
        """What was found of rows in earlier passes of a fit, for a further pass."""
        return RememberedRows()

    @abstractmethod
    def features_and_noise(self, X: Array) -> tuple[Array, Array]:
        """Return features and noise variances of rows, shapes (M, n) and (n,), as rules see them.

        Parameters
        ----------
        X : array of shape (n, D), or with more columns, which are passed over
        """


@dataclass(frozen=True, eq=False)
class RowBands(UnitQuestion, RowQuestion):
    """The bands of rows by their inputs, and the distribution of outputs in them.

    Attributes
    ----------
    prediction : RowPrediction
    reach : float
        c, in predictive sds on either side.
    bounds : (float, float)
        Declared.
    """

    name: ClassVar[str] = "row bands"

    prediction: RowPrediction
    reach: float
    bounds: tuple[float, float]

    def validate(self) -> None:
        """Refuse bands that are none.

        Raises
        ------
        ValueError
            If they are damaged.
        """
        OutputBounds.checked(self.bounds)
        if not 0 < self.reach < np.inf:
            raise ValueError("its bands are damaged")

    @property
    def root(self) -> Array:
        """G, with G Gᵀ the covariance of the inducing variables given the answers."""
        return self.prediction.root

    def of_rows(self, X: Array, *, remember: bool = False) -> Bands:
        """Return the bands of rows.

        Parameters
        ----------
        X : array of shape (n, D), or with more columns
        remember : bool
            Keep them for further passes of a fit, until it forgets them.
        """
        found = self.remembered.of(X)
        if found is not None:
            return Bands(*found)
        bands = self._around(*self.prediction.predicted(*self.prediction.known(X)))
        if remember:
            self.remembered.keep(X, bands.lower, bands.upper)
        return bands

    def _around(self, mean: Array, variance: Array) -> Bands:
        return choose_bands(mean, variance, width=self.reach, bounds=OutputBounds(*self.bounds))

    def features_and_noise(self, X: Array) -> tuple[Array, Array]:
        """Return features and noise variances of the places of outputs in their bands.

        By the best linear account of clipped outputs, place ≈ h + A (y − m) + e: features are
        A Gᵀv and noise variances A² λ + var e.
        """
        features, noise = self.prediction.known(X)
        known, mean, variance = self.prediction.given_answers(features, noise)
        bands = self._around(mean, variance)
        account = account_in_bands(mean, variance, bands=bands)
        known *= account.slope
        return known, np.square(account.slope) * noise + account.residual


@dataclass(frozen=True, eq=False)
class RowSpread(UnitQuestion, RowQuestion):
    """The distances of outputs outside their predicted intervals, by inputs of rows.

    Attributes
    ----------
    prediction : RowPrediction
    bounds : (float, float)
        Declared.
    """

    name: ClassVar[str] = "row spread"
    locates: ClassVar[bool] = False

    prediction: RowPrediction
    bounds: tuple[float, float]

    def validate(self) -> None:
        """Refuse bounds that are none."""
        OutputBounds.checked(self.bounds)

    def of_rows(self, X: Array) -> SpreadQuestion:
        """Return the question about rows with inputs of shape (n, D), or with more columns."""
        return SpreadQuestion(**self._predicted(X))

    def _predicted(self, X: Array) -> dict[str, Array]:
        """Return the predicted means of rows, within the bounds, and their sds."""
        mean, variance = self.prediction.predicted(*self.prediction.known(X))
        return {"mean": OutputBounds(*self.bounds).clip(mean), "sd": np.sqrt(variance)}

    def features_and_noise(self, X: Array) -> tuple[Array, Array]:
        """Return features and noise variances of rows: the question does not go by them."""
        return self.prediction.known(X)

    def check_weights(self, weights: Array) -> None:
        """Refuse more than one number about the rows."""
        if len(weights) != 1:
            raise ValueError("its arrays do not fit each other")


@dataclass(frozen=True, eq=False)
class RowScatter(RowSpread):
    """How far from their predicted means the outputs of rows lie, to be added up by strata.

    Attributes
    ----------
    prediction : RowPrediction
    bounds : (float, float)
        Declared.
    centres, units : arrays
        As for `cloakgp.privacy.questions.scatter.ScatterQuestion`.
    """

    name: ClassVar[str] = "row scatter"

    prediction: RowPrediction
    bounds: tuple[float, float]
    centres: Array
    units: Array

    def validate(self) -> None:
        """Refuse bounds and strata that are none."""
        super().validate()
        check_strata(self.centres, self.units)

    def of_rows(self, X: Array) -> ScatterQuestion:
        """Return the question about rows with inputs of shape (n, D), or with more columns."""
        return ScatterQuestion(**self._predicted(X), centres=self.centres, units=self.units)

    def check_weights(self, weights: Array) -> None:
        """Refuse another count of numbers than that of strata."""
        if len(weights) != len(self.centres):
            raise ValueError("its arrays do not fit each other")


@dataclass(frozen=True, eq=False)
class RowCalibration(CellCounts, RowQuestion):
    """In which cells of their predicted distributions the outputs of rows lie, by their inputs.

    Attributes
    ----------
    prediction : RowPrediction
    cells, strata, middles, sizes : arrays
        As for `cloakgp.privacy.questions.calibration.CellCounts`.
    """

    name: ClassVar[str] = "row calibration"

    prediction: RowPrediction
    cells: Array
    strata: Array
    middles: Array
    sizes: Array

    def of_rows(self, X: Array) -> CalibrationQuestion:
        """Return the question about rows with inputs of shape (n, D), or with more columns."""
        mean, variance = self.prediction.predicted(*self.prediction.known(X))
        return CalibrationQuestion(
            mean=mean,
            sd=np.sqrt(variance),
            cells=self.cells,
            strata=self.strata,
            middles=self.middles,
            sizes=self.sizes,
        )

    def encode(self, entries: Array) -> Array:
        """Refuse outputs without the inputs of their rows: `of_rows` has the question."""
        del entries
        raise TypeError("a question about rows needs their inputs: see of_rows")

    def features_and_noise(self, X: Array) -> tuple[Array, Array]:
        """Return features and noise variances of rows: the question does not go by them."""
        return self.prediction.known(X)


ROW_QUESTIONS: dict[str, type[RowQuestion]] = {
    each.name: each for each in (RowBands, RowSpread, RowScatter, RowCalibration)
}
