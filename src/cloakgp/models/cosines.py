r"""Cosine features of columns that were spread evenly by published counts.

f(x) = m + Σ_d g_d(x_d) + Σ_{d<e} g_{de}(x_d, x_e): effects of single axes and of pairs, each an
expansion in functions ψ_j of an axis, and in products of two of these: of a number in √2 cos(π j t)
of the share t of rows below it, of a season in cosines and sines, of a category in what tells its
levels apart (`cloakgp.models.axes`). Over rows with the published shares the ψ_j are orthonormal,
so that ΦᵀΦ is nearly known before any product of features is measured; and a skewed input is not
squeezed into a corner of its box.

Prior: weights are independent, with the variances of their functions (of numbers those of a Matérn
process), equal for all axes and for all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np

from cloakgp.models.axes import FREQUENCIES, Axis, Line, Lines, lines
from cloakgp.models.features import InputBox
from cloakgp.utils.arrays import Array

# Of the signal's variance, what pairs of axes have if there are any.
PAIRS_SHARE = 0.15
# Rows longer than this multiple of the root mean square over an even spread are shortened.
LONGEST = 1.25
# Of the shares, what is spread evenly over the range whatever was counted: no bin is empty.
EVEN_SHARE = 0.1
# A file that names more would take long to open.
MOST_FEATURES, MOST_PAIRED_AXES = 1024, 64
# Functions of each axis that are paired: the first, of levels those of the commonest.
MOST_PAIRED_FUNCTIONS = FREQUENCIES


@dataclass(frozen=True, eq=False)
class CosineBasis:
    """Effects of columns and of pairs of them, in functions that are orthonormal over rows.

    Attributes
    ----------
    box : InputBox
    shares : tuple of array of shape (bins,)
        Published shares of the rows in the bins of every axis; each adds up to 1.
    signal_variance : float
        Prior variance of f(x) about its mean over rows, in squared output units.
    mean_variance : float
        Prior variance of that mean.
    wanted : int
        The most features, the constant among them: those with the largest prior variance. At most
        1,024; pairs of axes are among them if axes are fewer, and 64 at most.
    axes : tuple of Axis
        What inputs say; if there are none, each input is a number on a line of its own.

    Examples
    --------
    >>> basis = CosineBasis(box=InputBox((0.0,), (10.0,)), shares=(np.array([0.9, 0.1]),),
    ...                     signal_variance=1.0, mean_variance=1.0, wanted=4)
    >>> bool(np.linalg.norm(basis.features(np.array([[3.0], [4.0]])), axis=1).max() <= 1 + 1e-12)
    True
    """

    box: InputBox
    shares: tuple[Array, ...]
    signal_variance: float
    mean_variance: float
    wanted: int
    axes: tuple[Axis, ...] = ()

    exclusive = False

    def validate(self) -> None:
        """Refuse shares that are none, and variances or numbers of features that cannot be.

        Raises
        ------
        ValueError
            If there are such.
        """
        check_axes(self.axes, box=self.box)
        straight = {
            shares.shape
            for axis, shares in zip(self.spread_along, self.shares, strict=False)
            if isinstance(axis, Line)
        }
        # Written so that NaN fails every one of them.
        if not (
            len(self.shares) == len(self.spread_along)
            and len(straight) <= 1
            and all(
                shares.ndim == 1
                and len(shares) >= 1
                and len(shares) == axis.bins(len(shares))
                and (shares > 0).all()
                and abs(shares.sum() - 1.0) < 1e-9
                for axis, shares in zip(self.spread_along, self.shares, strict=True)
            )
            and 0 < self.signal_variance < math.inf
            and 0 < self.mean_variance < math.inf
            and 1 <= self.wanted <= MOST_FEATURES
        ):
            raise ValueError("its basis is damaged")

    @property
    def spread_along(self) -> tuple[Axis, ...]:
        """The axes; without declared ones a line for each input."""
        return self.axes or lines(self.box.n_inputs)

    @cached_property
    def _variances(self) -> tuple[Array, ...]:
        """Prior variances of the functions of each axis."""
        return tuple(
            axis.variances(shares)
            for axis, shares in zip(self.spread_along, self.shares, strict=True)
        )

    @cached_property
    def _all_terms(self) -> tuple[Array, Array]:
        """Of every term both axes and functions, (T, 4), and its prior variance; largest first."""
        variances = self._variances
        count = len(variances)
        paired = count < self.wanted and count <= MOST_PAIRED_AXES
        pairs = list(combinations(range(count), 2)) if paired else []
        single = self.signal_variance * (1.0 - PAIRS_SHARE if pairs else 1.0) / count
        terms = [((0, 0, 0, 0), self.mean_variance)]
        for at, each in enumerate(variances):
            terms += [((at, at, j, 0), single * share) for j, share in enumerate(each, start=1)]
        double = self.signal_variance * PAIRS_SHARE / max(len(pairs), 1)
        for one, other in pairs:
            for (i, first), (j, second) in product(
                enumerate(variances[one][:MOST_PAIRED_FUNCTIONS], start=1),
                enumerate(variances[other][:MOST_PAIRED_FUNCTIONS], start=1),
            ):
                terms.append(((one, other, i, j), double * first * second))
        found = np.array([variance for _, variance in terms])
        # The constant stays, whatever its variance.
        order = np.concatenate([[0], 1 + np.argsort(-found[1:], kind="stable")])
        return np.array([factors for factors, _ in terms])[order], found[order]

    @property
    def typical(self) -> Array:
        """Typical inputs by the shares, shape (D,)."""
        found = np.empty(self.box.n_inputs)
        for axis, shares in zip(self.spread_along, self.shares, strict=True):
            found[list(axis.columns)] = axis.typical(shares, box=self.box)
        return found

    def points_at(self, shares: Array) -> Array:
        """Return points at shares of the way along every axis, shape (n, D).

        Parameters
        ----------
        shares : array of shape (n, axes)
            At least 0 and below 1.
        """
        found = np.empty((len(shares), self.box.n_inputs))
        for axis, column in zip(self.spread_along, shares.T, strict=True):
            found[:, list(axis.columns)] = axis.point_at(column, box=self.box)
        return found

    @property
    def terms(self) -> Array:
        """Of every feature both axes, and the places of their functions, 0 for 1, shape (M, 4)."""
        return self._all_terms[0][: self.wanted]

    @property
    def prior_variances(self) -> Array:
        """Prior variances of the weights of unscaled features, shape (M,)."""
        return self._all_terms[1][: self.wanted]

    @cached_property
    def tables(self) -> tuple[Array, ...]:
        """What the functions of each axis are computed from."""
        return tuple(
            axis.table(shares) for axis, shares in zip(self.spread_along, self.shares, strict=True)
        )

    @cached_property
    def _split(self) -> tuple[Lines | None, tuple[tuple[Axis, Array], ...]]:
        """All lines, whose functions come first, if there are any; other axes with their tables."""
        each = list(zip(self.spread_along, self.tables, strict=True))
        straight = [(axis, table) for axis, table in each if isinstance(axis, Line)]
        others = tuple(pair for pair in each if not isinstance(pair[0], Line))
        if not straight:
            return None, others
        axes, tables = zip(*straight, strict=True)
        return Lines.of(axes, box=self.box, tables=tables), others

    @cached_property
    def _factors(self) -> tuple[Array, Array]:
        """Of every feature the columns of both factors, among 1 and the functions of all axes."""
        bent = np.array([not isinstance(axis, Line) for axis in self.spread_along])
        order = np.argsort(bent, kind="stable")
        counts = np.array([len(each) for each in self._variances])[order]
        starts = np.empty(len(order), dtype=np.intp)
        starts[order] = np.cumsum(counts) - counts
        one, other, i, j = self.terms.T
        return np.where(i > 0, starts[one] + i, 0), np.where(j > 0, starts[other] + j, 0)

    @cached_property
    def scales(self) -> Array:
        """What each ψ is multiplied by, shape (M,), its prior variance to the power ¼.

        Equal privacy noise falls on all sums: by ψ itself wiggles would count as much as the trend.
        """
        quarter = self.prior_variances**0.25
        scales: Array = quarter / (LONGEST * np.linalg.norm(quarter))
        return scales

    @property
    def count(self) -> int:
        """M, the number of features."""
        return len(self.prior_variances)

    def features(self, X: Array) -> Array:
        """Return Φ at inputs clipped to the box, shape (N, M)."""
        inputs = self.box.clip(X)
        straight, others = self._split
        functions = [] if straight is None else [straight.functions(inputs)]
        functions += [axis.functions(inputs, box=self.box, table=table) for axis, table in others]
        waves = np.hstack([np.ones((len(X), 1)), *functions])
        first, second = self._factors
        features = waves[:, first] * waves[:, second] * self.scales
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        shortened: Array = features / np.maximum(lengths, 1.0)
        return shortened

    @cached_property
    def weight_covariance(self) -> Array:
        """P, diagonal, in squared output units."""
        return np.diag(self.prior_variances / np.square(self.scales))

    def residual_covariance(self, X: Array) -> Array:
        """Return the prior covariance of what the features leave out, as if independent."""
        return np.diag(self.residual_variance(X))

    def residual_variance(self, X: Array) -> Array:
        """Return the signal's variance that no feature has, shape (N,)."""
        return np.full(len(X), float(self._all_terms[1][self.wanted :].sum()))


def check_axes(axes: Sequence[Axis], *, box: InputBox) -> None:
    """Refuse axes that do not take every input of a box once.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_axes(lines(2), box=InputBox((0.0, 0.0), (1.0, 1.0)))
    """
    taken = sorted(column for axis in axes for column in axis.columns)
    if axes and taken != list(range(box.n_inputs)):
        raise ValueError("its axes do not fit its inputs")


def with_even_share(shares: Array) -> Array:
    """Return shares of which a part is even, so that every bin has some.

    Examples
    --------
    >>> with_even_share(np.array([1.0, 0.0])).round(2)
    array([0.95, 0.05])
    """
    mixed = (1.0 - EVEN_SHARE) * shares + EVEN_SHARE / len(shares)
    even: Array = mixed / mixed.sum()
    return even
