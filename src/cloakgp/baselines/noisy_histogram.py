"""The published histogram: bin counts, noisy bin sums, and what they cost."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.arrays import Array, as_matrix
from cloakgp.baselines.bins import Bins, Indices
from cloakgp.privacy import Guarantee, OutputBounds
from cloakgp.privacy.guarantee import check_budget
from cloakgp.privacy.pure import PureGuarantee

Noise = Literal["gaussian", "laplace"]
NOISES: tuple[Noise, ...] = ("gaussian", "laplace")

FORMAT, FORMAT_VERSION = "cloakgp histogram", 1
# What a recomputed noise may fall short of the stated one by: float64 in another order.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class NoisyHistogram:
    """Noisy sums of the outputs in bins of public inputs; a public object.

    Attributes
    ----------
    bins : Bins
    cells : array of shape (m,)
        The numbers of the bins that hold rows, ascending.
    counts : array of shape (m,)
        How many rows each holds; public, as the inputs are.
    sums : array of shape (m,)
        Noisy sums of the outputs less ``centre``, in output units.
    noise_sd : float
        Of each sum, in output units.
    noise : {"gaussian", "laplace"}
    bounds : (float, float)
    guarantee : Guarantee or PureGuarantee
        For Gaussian and for Laplace noise.
    insecure : bool
        True if the noise came from a fixed seed: such a release is not private.
    input_names : tuple of str

    Examples
    --------
    >>> from cloakgp.baselines import DPHistogramRegressor
    >>> X = np.linspace(0, 10, 400)[:, None]
    >>> y = np.sin(X).ravel()
    >>> model = DPHistogramRegressor(bounds=(-1, 1), epsilon=1.0, noise="laplace").fit(X, y)
    >>> model.release_
    <NoisyHistogram of 10 bins, 1-differential privacy.>
    >>> model.release_.predict([[3.0], [4.0]]).shape
    (2,)
    """

    bins: Bins
    cells: Indices
    counts: Array
    sums: Array
    noise_sd: float
    noise: Noise
    bounds: tuple[float, float]
    guarantee: Guarantee | PureGuarantee
    insecure: bool = False
    input_names: tuple[str, ...] = ()

    @property
    def centre(self) -> float:
        """The middle of the bounds."""
        return OutputBounds(*self.bounds).middle

    @property
    def means(self) -> Array:
        """Noisy means of the outputs in the bins that hold rows, shape (m,); not clipped."""
        means: Array = self.centre + self.sums / self.counts
        return means

    @overload
    def predict(self, X: ArrayLike, *, clip: bool = ...) -> Array: ...

    @overload
    def predict(
        self, X: ArrayLike, *, return_std: Literal[True], clip: bool = ...
    ) -> tuple[Array, Array]: ...

    def predict(
        self, X: ArrayLike, *, return_std: bool = False, clip: bool = True
    ) -> Array | tuple[Array, Array]:
        """Return the noisy mean of the bin in which, or nearest to which, each point lies.

        Parameters
        ----------
        X : array-like of shape (P, D)
        return_std : bool
            Also return the sd of the privacy noise on these means before clipping. It says nothing
            of how outputs vary within a bin: a histogram has no model of that.
        clip : bool
            Bring means inside the bounds, where the true ones are.

        Returns
        -------
        mean : array of shape (P,)
            In a bin without rows, the middle of the bounds.
        std : array of shape (P,)
            In a bin without rows, that of a mean that is anywhere within the bounds, d/√12.
        """
        points = as_matrix(X, name="X", columns=len(self.bins.edges))
        cells = self.bins.cells(points)
        at = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        known = self.cells[at] == cells
        means = np.where(known, self.means[at], self.centre)
        if clip:
            means = np.clip(means, *self.bounds)
        if not return_std:
            return means
        width = self.bounds[1] - self.bounds[0]
        return means, np.where(known, self.noise_sd / self.counts[at], width / math.sqrt(12))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the histogram to a JSON file.

        Raises
        ------
        FileExistsError
            If it exists and overwrite is False.
        """
        tree = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "edges": [edges.tolist() for edges in self.bins.edges],
            "cells": self.cells.tolist(),
            "counts": self.counts.tolist(),
            "sums": self.sums.tolist(),
            "noise_sd": self.noise_sd,
            "noise": self.noise,
            "bounds": list(self.bounds),
            "guarantee": asdict(self.guarantee),
            "insecure": self.insecure,
            "input_names": list(self.input_names),
        }
        with Path(path).open("w" if overwrite else "x", encoding="utf-8") as file:
            json.dump(tree, file, indent=1)

    @classmethod
    def load(cls, path: str | Path) -> NoisyHistogram:
        """Read a histogram from a file, checking that its noise keeps its guarantee.

        Raises
        ------
        ValueError
            If the file is no histogram, is damaged, or states a guarantee that it does not keep.
        """
        try:
            loaded = _from_tree(json.loads(Path(path).read_text(encoding="utf-8")))
            _check(loaded)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise ValueError(f"{path} is not a histogram of cloakgp, or damaged: {error}") from None
        return loaded

    def __repr__(self) -> str:
        warning = " INSECURE: seeded noise, not private." if self.insecure else ""
        return f"<NoisyHistogram of {len(self.cells)} bins, {self.guarantee}.{warning}>"


def _from_tree(tree: Any) -> NoisyHistogram:
    if tree["format"] != FORMAT or tree["version"] != FORMAT_VERSION:
        raise ValueError("unknown format or version")
    guarantee = PureGuarantee if tree["noise"] == "laplace" else Guarantee
    lo, hi = (float(end) for end in tree["bounds"])
    edges = tuple(np.array(one, dtype=np.float64) for one in tree["edges"])
    return NoisyHistogram(
        bins=Bins(edges=edges).checked(),
        cells=np.array(tree["cells"], dtype=np.intp),
        counts=np.array(tree["counts"], dtype=np.float64),
        sums=np.array(tree["sums"], dtype=np.float64),
        noise_sd=float(tree["noise_sd"]),
        noise=tree["noise"],
        bounds=(lo, hi),
        guarantee=guarantee(**tree["guarantee"]),
        insecure=bool(tree["insecure"]),
        input_names=tuple(map(str, tree["input_names"])),
    )


def _check(histogram: NoisyHistogram) -> None:
    """Refuse arrays that do not fit each other, and noise that is less than the guarantee says."""
    limits = OutputBounds.checked(histogram.bounds)
    shape = histogram.cells.shape
    counts, sums = histogram.counts, histogram.sums
    arrays_fit = len(shape) == 1 and counts.shape == shape and sums.shape == shape and shape[0] > 0
    edges_ascend = all(
        edges.ndim == 1
        and len(edges) > 1
        and np.isfinite(edges).all()
        and ((np.diff(edges) > 0).all() or (len(edges) == 2 and edges[0] == edges[1]))
        for edges in histogram.bins.edges
    )
    if not (histogram.bins.edges and edges_ascend and arrays_fit):
        raise ValueError("its arrays do not fit each other")
    if not (
        np.isfinite(sums).all()
        and np.isfinite(counts).all()
        and counts.min() >= 1
        and (np.diff(histogram.cells) > 0).all()
        and histogram.cells[0] >= 0
        and histogram.cells[-1] < math.prod(histogram.bins.shape)
    ):
        raise ValueError("its arrays hold what no histogram has")
    guarantee, noise_sd = histogram.guarantee, histogram.noise_sd
    # Written so that NaN fails every one of them.
    if histogram.noise not in NOISES or not 0 < noise_sd < math.inf:
        raise ValueError("its noise is damaged")
    if isinstance(guarantee, PureGuarantee):
        kept = math.sqrt(2) * limits.width / noise_sd <= guarantee.epsilon * (1 + TOLERANCE)
    else:
        check_budget(guarantee.epsilon, guarantee.delta)
        kept = limits.width / noise_sd <= guarantee.mu * (1 + TOLERANCE)
        kept = kept and guarantee.answers == len(sums) and guarantee.coarseness >= 0
        kept = kept and guarantee.delta_at(guarantee.epsilon) <= guarantee.delta
    if not kept:
        raise ValueError("its noise is less than its guarantee needs")
