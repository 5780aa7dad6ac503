"""Base of releases about one output: what reports, pictures and pages ask of any of them.

`Release` is about outputs whose inputs are public, `StatisticsRelease` about whole rows. Whoever
shows a release asks through this base, and does not look at its kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.privacy.questions.classes import ClassLabel
from cloakgp.release.distributions import PredictedDistributions
from cloakgp.release.io.release_file import SavedRelease
from cloakgp.utils.arrays import Array
from cloakgp.utils.pictures import Pictured

if TYPE_CHECKING:
    import pandas as pd

    from cloakgp.columns.schema import Schema
    from cloakgp.models.transforms import OutputTransform
    from cloakgp.privacy import Guarantee
    from cloakgp.privacy.composition import MixedGuarantee
    from cloakgp.release.accuracy import Accuracy
    from cloakgp.release.calibration import Calibration
    from cloakgp.release.provenance import Provenance


class OneOutputRelease(SavedRelease, PredictedDistributions, Pictured, ABC):
    """Predictions of one output anywhere; a public object.

    Subclasses have the fields ``input_names``, ``output_name``, ``schema`` and ``provenance``, and
    predict by ``predict``, ``predict_proba``, ``predict_limits`` and ``predict_frame``.

    Attributes
    ----------
    private_inputs : bool
        Whether inputs are protected as outputs are: then those of no row are known.
    """

    private_inputs: ClassVar[bool]

    if TYPE_CHECKING:

        @property
        def input_names(self) -> tuple[str, ...]: ...  # noqa: D102
        @property
        def output_name(self) -> str: ...  # noqa: D102
        @property
        def schema(self) -> Schema | None: ...  # noqa: D102
        @property
        def provenance(self) -> Provenance | None: ...  # noqa: D102
        @property
        def guarantee(self) -> Guarantee | MixedGuarantee: ...  # noqa: D102
        @overload
        @abstractmethod
        def predict(
            self, X: Any, *, return_std: Literal[True], new_output: bool = ...
        ) -> tuple[Array, Array]: ...
        @overload
        @abstractmethod
        def predict(
            self, X: Any, *, return_cov: Literal[True], new_output: bool = ...
        ) -> tuple[Array, Array]: ...
        @overload
        @abstractmethod
        def predict(self, X: Any, *, new_output: bool = ...) -> Any: ...
        def predict_proba(self, X: Any) -> Array: ...  # noqa: D102
        def predict_limits(self, X: Any, *, new_output: bool = ...) -> tuple[Array, Array]: ...  # noqa: D102
        def predict_frame(  # noqa: D102
            self,
            X: Any,
            *,
            new_output: bool = ...,
            interval: ArrayLike | None = ...,
            quantiles: ArrayLike | None = ...,
            above: ArrayLike | None = ...,
        ) -> pd.DataFrame: ...

    @property
    @abstractmethod
    def insecure(self) -> bool:
        """True if any noise came from a fixed seed: the release is then not private."""

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """D, the number of inputs."""

    @property
    @abstractmethod
    def output_bounds(self) -> tuple[float, float]:
        """The declared range of the output, in output units; of several tables, their span."""

    @property
    @abstractmethod
    def class_labels(self) -> tuple[ClassLabel, ...]:
        """The declared classes in their order; empty if outputs are no classes."""

    @property
    @abstractmethod
    def input_ranges(self) -> Array:
        """The least and the greatest of every input, shape (2, D); of private ones, as declared."""

    @property
    @abstractmethod
    def typical_inputs(self) -> Array:
        """The middle of every input, by what is known of the rows, shape (D,)."""

    @property
    @abstractmethod
    def where_typical(self) -> str:
        """What `typical_inputs` are the medians of, in words, if no input has levels."""

    @abstractmethod
    def accuracy(self) -> Accuracy | None:
        """Return the accuracy of predictions of numbers, by their own estimate; None of others."""

    @property
    @abstractmethod
    def known_rows(self) -> int | None:
        """How many rows there are, of all tables; None where that is private."""

    @property
    @abstractmethod
    def even_inputs(self) -> Array:
        """Possible inputs that lie evenly over all ranges, shape (n, D)."""

    @abstractmethod
    def predict_asked(self, X: Array) -> tuple[Array, Array]:
        """Return mean and sd of the curve on the scale that was asked, each of shape (P,).

        Parameters
        ----------
        X : array of shape (P, D)
        """

    @property
    def known_inputs(self) -> Array:
        """Inputs that the release holds, shape (n, D); none of private ones."""
        return np.empty((0, self.n_inputs))

    @property
    def predicts_within(self) -> bool:
        """Whether inputs hold predictions by a release, or by public rows, within it."""
        return False

    @property
    def keeps_rows(self) -> bool:
        """Whether the inputs of all rows are in the release."""
        return False

    @property
    def has_box_inputs(self) -> bool:
        """Whether inputs are boxes that outputs are averages over, of which there is no picture."""
        return False

    @property
    def transform(self) -> OutputTransform | None:
        """What outputs were transformed by before they were asked, if they were."""
        return None

    @property
    def of_quantiles(self) -> bool:
        """Whether it is about quantiles of outputs, and not about their mean."""
        return False

    @property
    def calibrated_by(self) -> Calibration | None:
        """The noisy counts that tell where outputs lie in their predicted distributions, if any."""
        return None

    @property
    def is_calibrated(self) -> bool:
        """Whether intervals, quantiles and probabilities go by noisy counts of outputs."""
        return self.calibrated_by is not None

    @property
    def prior_rates(self) -> Array | None:
        """The probability of each class before any answer, shape (C,), if it is known."""
        return None

    def probability_limits(
        self, X: Any, *, privacy_noise: bool = True
    ) -> tuple[Array, Array] | None:
        """Return 95 % limits of the probability of every class, each (P, C); None if not known.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
        privacy_noise : bool
            False leaves out what the privacy noise makes unknown.
        """
        del X, privacy_noise
        return None
