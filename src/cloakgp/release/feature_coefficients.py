r"""Coefficients of predictions that are linear in features, for programs in other languages.

A release of whole rows predicts f(x) = m + φ(x)ᵀw, with the variance φ(x)ᵀΣφ(x) and what the
features leave out at x. So its part among the coefficients of `cloakgp.release.coefficient_tree`
has features in the place of a kernel with centres: b(x) = φ(x), nothing is subtracted from what is
left out, and A is a square root of Σ. Of classes, each has a channel whose mean is its weight among
all; the probabilities are the nearest that are not below the least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from scipy import linalg

from cloakgp.models.cosines import CosineBasis
from cloakgp.models.features import Basis, BinBasis, EigenBasis
from cloakgp.models.simplex import coordinates, least_probability
from cloakgp.privacy.questions.classes import ClassLabel
from cloakgp.release.coefficient_tree import values_of_kernel
from cloakgp.release.io.kernel_tree import kernel_to_tree
from cloakgp.utils.arrays import Array

Stored = Callable[[Array], Any]


def feature_coefficients(
    basis: Basis,
    *,
    weights: tuple[Array, Array],
    centre: float,
    noise_variance: float,
    bounds: tuple[float, float],
    classes: Sequence[ClassLabel],
    points: Array | None,
    insecure: bool,
    stored: Stored,
) -> dict[str, Any]:
    """Return what predicts, as values of JSON, in the form of `coefficient_tree`.

    Parameters
    ----------
    basis : Basis
    weights : tuple of array
        Posterior mean (M,) and covariance (M, M) of w; of classes, whose mean alone predicts, the
        former is (M, C − 1).
    centre : float
        m, in output units.
    noise_variance : float
        Of a new output.
    bounds : (float, float)
        Of outputs that are numbers.
    classes : sequence
        In order; none if outputs are numbers.
    points : array of shape (C, C − 1) or None
        What stands for each class.
    insecure : bool
        Whether noise came from a fixed seed.
    stored : callable
        What stands for an array.
    """
    channels = (
        [_of_number(*weights, centre=centre, stored=stored)]
        if points is None
        else _of_classes(weights[0], points, stored=stored)
    )
    box = {"lo": list(basis.box.lo), "hi": list(basis.box.hi)}
    return {
        "outputs": "classes" if classes else "numbers",
        "inputs": basis.box.n_inputs,
        "insecure": insecure,
        "bounds": None if classes else list(bounds),
        "transform": None,
        "classes": list(classes) or None,
        "link": None,
        "least": least_probability(len(classes)) if classes else None,
        "quantiles": None,
        "counts": None,
        "calibration": None,
        "margins": False,
        "parts": [
            {
                "weight": 1.0,
                "features": {**features_tree(basis, stored), **box},
                "noise": noise_variance,
                "channels": channels,
            }
        ],
    }


def _of_number(mean: Array, covariance: Array, *, centre: float, stored: Stored) -> dict[str, Any]:
    values, vectors = linalg.eigh(covariance)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    nothing = np.zeros((0, len(mean)))
    return _channel(centre, stored(mean), subtracted=stored(nothing), added=stored(root))


def _of_classes(mean: Array, points: Array, *, stored: Stored) -> list[dict[str, Any]]:
    # Coordinates among points are linear in f, but for those of the origin.
    origin = coordinates(np.zeros((1, mean.shape[1])), points)[0]
    shares = coordinates(mean, points) - origin
    nothing = stored(np.zeros((0, len(mean))))
    return [
        _channel(
            float(own), stored(np.ascontiguousarray(column)), subtracted=nothing, added=nothing
        )
        for own, column in zip(origin, shares.T, strict=True)
    ]


def _channel(mean: float, weights: Any, *, subtracted: Any, added: Any) -> dict[str, Any]:
    return {"mean": mean, "weights": weights, "subtracted": subtracted, "added": added}


@singledispatch
def features_tree(basis: Basis, stored: Stored) -> dict[str, Any]:
    """Return what features are computed from, but for the ranges that inputs are clipped to.

    Parameters
    ----------
    basis : Basis
    stored : callable
        What stands for an array.
    """
    del stored
    raise TypeError(f"there are no coefficients of a {type(basis).__name__}")


@features_tree.register
def _of_cosines(basis: CosineBasis, stored: Stored) -> dict[str, Any]:
    return {
        "type": "cosines",
        "axes": [
            {"type": axis.kind, "columns": list(axis.columns), "table": stored(table)}
            for axis, table in zip(basis.spread_along, basis.tables, strict=True)
        ],
        "terms": stored(basis.terms.astype(np.float64)),
        "scales": stored(basis.scales),
        "left_out": float(basis.residual_variance(np.zeros((1, basis.box.n_inputs)))[0]),
    }


@features_tree.register
def _of_eigenfunctions(basis: EigenBasis, stored: Stored) -> dict[str, Any]:
    return {
        "type": "eigenfunctions",
        "kernel": values_of_kernel(kernel_to_tree(basis.kernel)),
        "points": stored(basis.box.reference),
        "map": stored(basis.map),
        "variances": stored(np.diag(basis.weight_covariance).copy()),
    }


@features_tree.register
def _of_bins(basis: BinBasis, stored: Stored) -> dict[str, Any]:
    del stored
    return {
        "type": "bins",
        "kernel": values_of_kernel(kernel_to_tree(basis.kernel)),
        "bins": list(basis.bins),
    }
