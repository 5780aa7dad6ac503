r"""Bayesian linear regression from noisy sufficient statistics, for inputs that are private too.

f(x) = m + φ(x)ᵀ w + what the features leave out, w ~ N(0, P). Published are G̃ = G + E for
G = ΦᵀΦ, and b̃ = Φᵀ(y − m) + e, with noise E and e of known variances. Given the rows,
Φᵀ(y − m) = G w + N(0, σ²G). So both noises matter, and that of G through w:

1. A prior for G from public things: N rows whose inputs are drawn from a density about which
   nothing is known but the box (a Dirichlet process around the uniform, concentration 1). It has
   the mean N E[φφᵀ] and N²/2 times the covariance of φφᵀ under the uniform density. Under
   add-remove N is estimated by the noisy trace, and doubted by as much as it is: N² E[φφᵀ]E[φφᵀ]ᵀ
   is added. In the basis of symmetric matrices B_k that makes that diagonal, component k has, given
   G̃ and by normal conjugacy, a mean shrunk towards the prior's and the variance v_k. The mean,
   cleared of negative eigenvalues, is Ĝ.
2. b̃ = Ĝ w + (G − Ĝ) w + noise, whose covariance over G is
   C = σ²Ĝ + s_b² I + Σ_k v_k B_k E[wwᵀ] B_k.
   w ~ N(μ, Σ), Σ⁻¹ = P⁻¹ + ĜC⁻¹Ĝ, μ = ΣĜC⁻¹b̃; with E[wwᵀ] = Σ + μμᵀ, iterated from P to rest.

Without noise that is exact: Σ⁻¹ = P⁻¹ + G/σ². With it, it is an approximation (w is not normal
given G̃ and b̃, b̃ also tells of G, clipping is not modelled); how often its intervals hold is
measured in ``experiments/private_inputs.py``. Bernstein and Sheldon (2019, *Differentially private
Bayesian linear regression*) sample from a like model.

Where counts of every column were published first, and residuals in rounds, the posterior is that of
`cloakgp.release.residual_rounds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from cloakgp.columns.private import axes_of, box_of
from cloakgp.columns.schema import Schema
from cloakgp.models.cosines import CosineBasis
from cloakgp.models.features import BinBasis, EigenBasis
from cloakgp.models.simplex import coordinates, least_probability, nearest_probabilities
from cloakgp.privacy import Guarantee
from cloakgp.privacy.accounting import compose
from cloakgp.privacy.column_counts import ColumnCounts
from cloakgp.privacy.questions.classes import Classes, ClassLabel
from cloakgp.privacy.residuals import Residuals
from cloakgp.privacy.statistics import Neighbours, Statistics
from cloakgp.release.accuracy import Accuracy, mean_root
from cloakgp.release.distribution_columns import DistributionColumns
from cloakgp.release.feature_coefficients import feature_coefficients
from cloakgp.release.io.bundle import Store
from cloakgp.release.new_outputs import NewNumbers
from cloakgp.release.one_output import OneOutputRelease
from cloakgp.release.points import Points, points_of
from cloakgp.release.predictions import class_columns
from cloakgp.release.provenance import Provenance
from cloakgp.release.residual_rounds import posterior_of_rounds
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra as installed
from cloakgp.utils.formatting import NORMAL_95, amount, short_form
from cloakgp.utils.markup import html_table

if TYPE_CHECKING:
    import pandas as pd

ITERATIONS, TOLERANCE = 100, 1e-8
# Directions of φφᵀ that vary less than this share of the first over the box carry nothing.
SMALLEST_VARIATION = 1e-12
# Of the prior covariance of the weights, so that it can be inverted.
JITTER = 1e-9
# The name of an output whose column has none.
UNNAMED = "y"
# Of the box: points along a sequence that fills it evenly.
BOX_POINTS = 256
# By how many sds of their noise counts must tell of more variance than predictions, to be believed.
SURE = 2.0


@dataclass(frozen=True, eq=False)
class StatisticsRelease(OneOutputRelease):
    """Predictions anywhere in the box, from noisy statistics; a public object.

    Attributes
    ----------
    basis : EigenBasis, BinBasis or CosineBasis
    statistics : Statistics
    noise_variance : float
        Of each output about f, in squared output units.
    counts : ColumnCounts or None
        From which the cosines of a `CosineBasis` and the band of the first moments were chosen.
    residuals : tuple of Residuals
        Of the rounds after the first.
    classes : Classes or None
        If outputs are labels.
    points : array of shape (C, C − 1) or None
        What stands for each class: corners of a simplex. f is the mean of those of labels, so that
        probabilities are its coordinates among them (`cloakgp.models.simplex`).
    input_names : tuple of str
        Names of the inputs, which are public; empty if they have none.
    output_name : str
        Name of the private output.
    provenance : Provenance or None
        When and with what it was made.
    schema : Schema or None
        What private columns are, and how they become inputs; None where these are numbers.

    Examples
    --------
    >>> from cloakgp.models.features import InputBox
    >>> from cloakgp.privacy.statistics import measure_statistics
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> basis = EigenBasis(kernel=RBF(3.0), box=InputBox((0.0,), (10.0,)), wanted=6)
    >>> X = np.linspace(0, 10, 200)[:, None]
    >>> published = measure_statistics(X, np.sin(X[:, 0]), basis=basis, bounds=(-2, 2),
    ...                                epsilon=1.0, delta=1e-3)
    >>> release = StatisticsRelease(basis=basis, statistics=published, noise_variance=0.01)
    >>> mean, sd = release.predict([[2.0], [5.0]], return_std=True)
    >>> mean.shape, sd.shape
    ((2,), (2,))
    """

    kind = "statistics"
    private_inputs = True

    basis: EigenBasis | BinBasis | CosineBasis
    statistics: Statistics
    noise_variance: float
    counts: ColumnCounts | None = None
    residuals: tuple[Residuals, ...] = ()
    classes: Classes | None = None
    points: Array | None = None
    input_names: tuple[str, ...] = ()
    output_name: str = UNNAMED
    provenance: Provenance | None = None
    schema: Schema | None = None

    @cached_property
    def guarantee(self) -> Guarantee:
        """Its guarantee: for one row, input and output, and the stated neighbours."""
        return compose(*(part.guarantee for part in self.parts))

    @property
    def parts(self) -> tuple[ColumnCounts | Statistics | Residuals, ...]:
        """All that was published, in order."""
        first = () if self.counts is None else (self.counts,)
        return (*first, self.statistics, *self.residuals)

    @property
    def insecure(self) -> bool:
        """True if the noise came from a fixed seed: the release is then not private."""
        return any(part.insecure for part in self.parts)

    @property
    def neighbours(self) -> Neighbours:
        """Whom the guarantee is about: "replace" or "add-remove"."""
        return self.statistics.neighbours

    @property
    def bounds(self) -> tuple[float, float]:
        """The declared range of the output."""
        return self.statistics.bounds if self.counts is None else self.counts.bounds

    @property
    def output_bounds(self) -> tuple[float, float]:
        """The declared range of the output."""
        return self.bounds

    @property
    def called(self) -> str:
        """What sentences call the output: by its name, if its column had one."""
        return "the output" if self.output_name == UNNAMED else self.output_name

    @property
    def class_labels(self) -> tuple[ClassLabel, ...]:
        """The declared classes in their order; empty if outputs are no classes."""
        return () if self.classes is None else self.classes.labels

    @property
    def input_ranges(self) -> Array:
        """The declared ranges of the inputs, shape (2, D)."""
        return np.array([self.basis.box.lo, self.basis.box.hi], dtype=np.float64)

    @property
    def typical_inputs(self) -> Array:
        """The median of each input by published counts, or its range's middle, shape (D,).

        Of levels the commonest by counts.
        """
        if isinstance(self.basis, CosineBasis):
            return self.basis.typical
        return np.asarray(self.input_ranges.mean(axis=0))

    @property
    def where_typical(self) -> str:
        """What `typical_inputs` are the middles of, in words."""
        if self.counts is None:
            return "middle of the declared ranges"
        return "median of the rows, by noisy counts"

    @property
    def known_rows(self) -> int | None:
        """How many rows there are, where that is public."""
        return self.statistics.rows

    @property
    def even_inputs(self) -> Array:
        """Points that lie evenly along all axes, or over the box, shape (256, D)."""
        basis = self.basis
        axes = len(basis.shares) if isinstance(basis, CosineBasis) else self.n_inputs
        # Additive recurrence by powers of the generalised golden ratio (Roberts 2018).
        ratio = 2.0
        for _ in range(60):
            ratio = (1 + ratio) ** (1 / (axes + 1))
        steps = np.arange(1, BOX_POINTS + 1)[:, None] * ratio ** -np.arange(1.0, axes + 1)
        if isinstance(basis, CosineBasis):
            return basis.points_at(steps % 1.0)
        lo, hi = self.input_ranges
        points: Array = lo + (hi - lo) * (steps % 1.0)
        return points

    def predict_asked(self, X: Array) -> tuple[Array, Array]:
        """Return mean and sd of the curve, each of shape (P,)."""
        return self.predict(X, return_std=True)

    def accuracy(self) -> Accuracy | None:
        """Return the accuracy of predictions all over the box, by their own estimate.

        Bands of later rounds leave out how far beyond them outputs lie. Where counts of the outputs
        tell of more variance than the curve and its noise have, by `SURE` sds of their own noise,
        it is in the error of a new output. So is, in all errors, how far their mean is from that of
        predictions, as far as counts are sure of it. None of classes.
        """
        if self.classes is not None:
            return None
        points = self.even_inputs
        mean, sd = self.predict(points, return_std=True)
        _, new_sd = self.predict(points, return_std=True, new_output=True)
        new_error = mean_root(new_sd)
        if self.counts is not None:
            explained = float(np.var(mean))
            told, unsure = self.counts.output_variance()
            if told - SURE * unsure > explained + new_error**2:
                new_error = float(np.sqrt(told - explained))
            off = self._surely_off(float(mean.mean()))
            sd, new_error = np.hypot(sd, off), float(np.hypot(new_error, off))
        return Accuracy.expected(self.called, mean, sd, new_error=new_error, ends=self.bounds)

    def _surely_off(self, predicted: float) -> float:
        """Return how far a mean prediction is at least from the mean of outputs, by their counts.

        Wherever outputs lie in their bins, but for `SURE` sds of noise.
        """
        if self.counts is None:
            return 0.0
        edges = self.counts.output_edges
        (low, unsure), (high, _) = (
            self.counts.mean_of_outputs(ends) for ends in (edges[:-1], edges[1:])
        )
        return max(low - SURE * unsure - predicted, predicted - high - SURE * unsure, 0.0)

    @cached_property
    def weights(self) -> tuple[Array, Array]:
        """Posterior mean (M,) and covariance (M, M) of w given all that was published.

        Of labels (M, C − 1) and (C − 1, M, M): of each dimension of their points.
        """
        if isinstance(self.basis, CosineBasis) and self.counts is not None:
            return posterior_of_rounds(
                self.basis,
                self.statistics,
                self.residuals,
                rows=self.counts.expected_rows,
                noise_variance=self.noise_variance
                + float(self.basis.residual_variance(self.basis.box.reference[:1])[0]),
            )
        return posterior_weights(
            self.statistics,
            prior=self.basis.weight_covariance,
            reference=self.basis.features(self.basis.box.reference),
            noise_variance=self.noise_variance
            + float(self.basis.residual_variance(self.basis.box.reference).mean()),
        )

    @property
    def n_inputs(self) -> int:
        """D, the number of inputs; predictions clip them to the box."""
        return self.basis.box.n_inputs

    @overload
    def predict(
        self, X: ArrayLike, *, return_std: Literal[True], new_output: bool = ...
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self, X: ArrayLike, *, return_cov: Literal[True], new_output: bool = ...
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(self, X: ArrayLike, *, new_output: bool = ...) -> Any: ...

    def predict(
        self,
        X: ArrayLike,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        new_output: bool = False,
    ) -> Any:
        """Predict at any inputs, at no further cost in privacy.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            Columns of a table are found by the inputs' names, if these have any; others are
            ignored. Where the release has a schema: raw columns, as in the table that it was made
            from.
        return_std : bool
            Also return the posterior sd, shape (P,), in output units.
        return_cov : bool
            Also return the posterior covariance, shape (P, P), in squared output units.
        new_output : bool
            Uncertainty of a new output at X, rather than of the latent function: adds the
            observation noise.

        Returns
        -------
        mean : array of shape (P,)
            In output units. Of classes, a list of the most probable ones.
        std or cov : array
            If asked for. Both include what is due to the privacy noise. NaN, and no class, where a
            row lacks an input without which the schema says that there is no prediction.

        Raises
        ------
        ValueError
            If X lacks an input or has another number of columns than the release, or sd and
            covariance are both asked for, or classes for a spread.
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both")
        if self.classes is not None:
            if return_std or return_cov:
                raise ValueError("outputs are classes: predict_proba says how sure they are")
            shares = self.predict_proba(X)
            return [
                None if np.isnan(each).any() else self.classes.labels[int(each.argmax())]
                for each in shares
            ]
        points = points_of(self, X)
        features = self.basis.features(points.X)
        weights, covariance = self.weights
        mean: Array = points.spread(self.statistics.centre + features @ weights)
        extra = self.noise_variance if new_output else 0.0
        if return_cov:
            spread = features @ covariance @ features.T + self.basis.residual_covariance(points.X)
            spread = (spread + spread.T) / 2 + extra * np.eye(len(points.X))
            return mean, points.spread(spread, square=True)
        if return_std:
            variance = np.einsum("ni,ij,nj->n", features, covariance, features)
            variance += self.basis.residual_variance(points.X) + extra
            return mean, points.spread(np.sqrt(variance))
        return mean

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class at any inputs, shape (P, C).

        Of the posterior mean, the nearest that are not below 0.01 (of more than ten classes, a
        tenth of an even share): what noise makes of a linear model is no reason to be surer.

        Raises
        ------
        ValueError
            If outputs are no classes.
        """
        if self.points is None:
            raise ValueError("outputs are numbers: there are no probabilities of classes")
        points = points_of(self, X)
        shares = coordinates(self.basis.features(points.X) @ self.weights[0], self.points)
        nearest = nearest_probabilities(shares, least=least_probability(len(self.points)))
        return points.spread(nearest)

    def predict_limits(self, X: ArrayLike, *, new_output: bool = False) -> tuple[Array, Array]:
        """Return limits that hold the curve, or a new output, with 95 %, within the bounds.

        Parameters
        ----------
        X, new_output
            As for `predict`. Those of a new output are those of `predict_interval`.

        Returns
        -------
        lower, upper : arrays of shape (P,)
            In output units.

        Raises
        ------
        TypeError
            If outputs are classes.
        """
        if self.classes is not None:
            raise TypeError("outputs are classes: these have probabilities, and no limits")
        if new_output:
            lower, upper = self.predict_interval(X, 0.95)
            return lower, upper
        mean, sd = self.predict(X, return_std=True)
        lower, upper = mean - NORMAL_95 * sd, mean + NORMAL_95 * sd
        return np.clip(lower, *self.bounds), np.clip(upper, *self.bounds)

    def _new_outputs(self, X: Any, exposure: ArrayLike | None = None) -> tuple[Points, NewNumbers]:
        """Return points, and new outputs there."""
        if self.classes is not None:
            raise ValueError("outputs are classes: ask for their probabilities, by predict_proba")
        if exposure is not None:
            raise ValueError("exposure is of counts, and this release is about other outputs")
        points, ends = points_of(self, X), self.bounds
        mean, sd = self.predict(points.X, return_std=True, new_output=True)
        return points, NewNumbers(mean=mean, sd=sd, declared=ends, bounds=ends)

    def predict_frame(
        self,
        X: Any,
        *,
        new_output: bool = False,
        interval: ArrayLike | None = None,
        quantiles: ArrayLike | None = None,
        above: ArrayLike | None = None,
    ) -> pd.DataFrame:
        """Predict at any inputs, as a table with the index of X; see `Release.predict_frame`.

        Parameters
        ----------
        X, new_output
            As for `predict`.
        interval, quantiles, above
            As for `Release.predict_frame`.
        """
        with installed("tables"):
            import pandas as pd
        asked = DistributionColumns.asked(interval=interval, quantiles=quantiles, above=above)
        asked.check_outputs(())
        index = getattr(X, "index", None)
        index = index if isinstance(index, pd.Index) else None
        if self.classes is not None:
            if asked:
                raise ValueError("outputs are classes: they have no intervals")
            found = class_columns(self.predict_proba(X), self.classes.labels)
            return pd.DataFrame(found, index=index)
        mean, sd = self.predict(X, return_std=True, new_output=new_output)
        ends = self.bounds
        columns = {
            "mean": np.clip(mean, *ends),
            "sd": sd,
            "lower": np.clip(mean - NORMAL_95 * sd, *ends),
            "upper": np.clip(mean + NORMAL_95 * sd, *ends),
        }
        if asked:
            points, new = self._new_outputs(X)
            found = asked.of(new)
            columns |= {name: points.spread(column) for name, column in found.items()}
        return pd.DataFrame(columns, index=index)

    def coefficients(self, *, stored: Store, beside: bool = False) -> dict[str, Any]:
        """Return what programs in other languages predict by.

        Parameters
        ----------
        stored, beside
            As for `SavedRelease.coefficients`.
        """
        del beside
        return feature_coefficients(
            self.basis,
            weights=self.weights,
            centre=self.statistics.centre,
            noise_variance=self.noise_variance,
            bounds=self.bounds,
            classes=self.class_labels,
            points=self.points,
            insecure=self.insecure,
            stored=stored,
        )

    def __repr__(self) -> str:
        features = f"{len(self.statistics.moments)} features of {self.n_inputs} inputs"
        return short_form(
            f"StatisticsRelease of {features}, {self.guarantee}", insecure=self.insecure
        )

    def _repr_html_(self) -> str:
        if self.classes is None:
            lo, hi = self.bounds
            output = f"output, within {amount(lo, 12)} to {amount(hi, 12)}"
        else:
            output = f"class, one of {', '.join(map(str, self.classes.labels))}"
        return html_table(
            "Release of noisy sums over whole rows",
            [
                ("guarantee", str(self.guarantee)),
                ("private", f"inputs and {output}"),
                ("published", f"sums over {len(self.statistics.moments):,} features"),
            ],
            insecure=self.insecure,
        )

    def validate(self) -> None:
        """Refuse statistics that are not about the features of the basis.

        Raises
        ------
        ValueError
            If they are not, or the noise variance is none.
        """
        if len(self.statistics.moments) != self.basis.count:
            raise ValueError("its arrays do not fit its basis")
        if self.statistics.exclusive != self.basis.exclusive:
            raise ValueError("its basis is damaged")
        self._check_rounds()
        self._check_schema()
        if not 0 <= self.noise_variance < np.inf:
            raise ValueError("its noise variance is damaged")

    def _check_rounds(self) -> None:
        """Refuse rounds that are not about the same rows, features and centre."""
        if isinstance(self.basis, CosineBasis) != (self.counts is not None) or (
            self.residuals and self.counts is None
        ):
            raise ValueError("its counts do not fit its basis")
        self._check_classes()
        if isinstance(self.basis, CosineBasis) and (
            self.counts is None
            or len(self.counts.counts) != len(self.basis.shares) + 1
            or self.counts.rows != self.statistics.rows
        ):
            raise ValueError("its counts do not fit its statistics")
        for part in self.parts:
            if part.neighbours != self.neighbours:
                raise ValueError("its parts are about different neighbours")
        for part in self.residuals:
            fits = part.moments.shape == self.statistics.moments.shape
            if not (fits and part.centre == self.statistics.centre):
                raise ValueError("its residuals do not fit its statistics")

    def _check_schema(self) -> None:
        """Refuse a schema whose numbers are not those of the basis."""
        if self.schema is None:
            return
        axes = self.basis.axes if isinstance(self.basis, CosineBasis) else ()
        if axes != axes_of(self.schema) or self.basis.box != box_of(self.schema):
            raise ValueError("its schema does not fit its basis")

    def _check_classes(self) -> None:
        """Refuse classes, and what stands for them, that are not those of counts and moments."""
        if (self.classes is None) != (self.points is None):
            raise ValueError("its classes do not fit what stands for them")
        if self.classes is None or self.points is None:
            if self.statistics.moments.ndim != 1:
                raise ValueError("its arrays are of classes, and it has none")
            return
        count = len(self.classes.labels)
        if self.counts is None or len(self.counts.counts[-1]) != count:
            raise ValueError("its classes do not fit its counts")
        if self.points.shape != (count, count - 1) or self.statistics.moments.shape != (
            self.basis.count,
            count - 1,
        ):
            raise ValueError("its classes do not fit its statistics")
        # Corners of a simplex are in no common plane.
        finite = bool(np.isfinite(self.points).all())
        spanned = np.column_stack([self.points, np.ones(count)]) if finite else np.zeros((1, 1))
        if np.linalg.matrix_rank(spanned) != count:
            raise ValueError("its classes do not fit what stands for them")


def posterior_weights(
    statistics: Statistics, *, prior: Array, reference: Array, noise_variance: float
) -> tuple[Array, Array]:
    """Return mean and covariance of the weights given noisy statistics.

    The model and the approximation stand at the head of this module.

    Parameters
    ----------
    statistics : Statistics
    prior : array of shape (M, M)
        P, in squared output units.
    reference : array of shape (n, M)
        Features at points that lie evenly in the box.
    noise_variance : float
        σ², in squared output units, of outputs about what the features can say.

    Returns
    -------
    mean : array of shape (M,)
    covariance : array of shape (M, M)
    """
    gram, directions, variances = _posterior_gram(statistics, reference)
    size = len(prior)
    precision = linalg.inv(prior + JITTER * np.trace(prior) / size * np.eye(size))
    known = noise_variance * gram + statistics.moment_sd**2 * np.eye(size)
    second = prior
    scaled = variances[:, None, None] * directions
    for _ in range(ITERATIONS):
        doubt = np.tensordot(scaled @ second, directions, axes=([0, 2], [0, 2]))
        factor = linalg.cho_factor(known + (doubt + doubt.T) / 2)
        information = gram @ linalg.cho_solve(factor, gram)
        covariance = linalg.inv(precision + (information + information.T) / 2)
        mean: Array = covariance @ (gram @ linalg.cho_solve(factor, statistics.moments))
        before, second = second, covariance + np.outer(mean, mean)
        if np.abs(second - before).max() <= TOLERANCE * np.abs(second).max():
            break
    return mean, (covariance + covariance.T) / 2


def _posterior_gram(statistics: Statistics, reference: Array) -> tuple[Array, Array, Array]:
    """Return Ĝ, the directions B_k in which it is uncertain, and their variances v_k."""
    size = reference.shape[1]
    if statistics.exclusive:
        symmetric = np.array([np.diag(row) for row in np.eye(size)])
    else:
        first, second = np.triu_indices(size)
        symmetric = np.zeros((len(first), size, size))
        share = np.where(first == second, 1.0, np.sqrt(0.5))
        symmetric[np.arange(len(first)), first, second] = share
        symmetric[np.arange(len(first)), second, first] = share
    flat = symmetric.reshape(len(symmetric), -1)
    products = (reference[:, :, None] * reference[:, None, :]).reshape(len(reference), -1) @ flat.T
    uniform = products.mean(axis=0)
    per_row = float(np.square(reference).sum(axis=1).mean())
    spread = np.atleast_2d(np.cov(products.T, bias=True)) / 2
    rows = float(statistics.rows or max(1.0, float(np.trace(statistics.gram)) / per_row))
    if statistics.rows is None:
        spread = spread + np.outer(uniform, uniform)
    variation, rotation = linalg.eigh(spread)
    kept = variation > SMALLEST_VARIATION * variation[-1]
    variation, rotation = variation[kept], rotation[:, kept]
    noise = statistics.gram_sd**2
    prior = rows**2 * variation
    shrinkage = prior / (prior + noise)
    noisy = flat @ statistics.gram.ravel()
    moved = rotation @ (shrinkage * (rotation.T @ (noisy - rows * uniform)))
    expected = ((rows * uniform + moved) @ flat).reshape(size, size)
    values, vectors = linalg.eigh(expected)
    gram: Array = (vectors * np.maximum(values, 0.0)) @ vectors.T
    directions = np.tensordot(rotation.T, symmetric, axes=1)
    return gram, directions, shrinkage * noise
