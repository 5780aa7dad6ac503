"""Releases of many rows as files; see `cloakgp.release.io.bundle` for the container.

Loading checks the guarantee against the noise and the longest column that the file states. Whether
no row's column is longer, `ManyRowsRelease.verify` tells from the public inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.criteria import CRITERIA
from cloakgp.design import Certificate
from cloakgp.design.streaming.rules import BallRule, LinearRule, Rule
from cloakgp.design.streaming.sums import AskedSums
from cloakgp.models import SparsePrior
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.release.hyperparameters.regression import WeightedPrior
from cloakgp.release.io.archive import check_inducing, prior_from_tree, prior_to_tree
from cloakgp.release.io.bundle import Load, ReleaseFileError, Store, bundle_bytes, read_bundle
from cloakgp.release.io.question_tree import (
    check_budgeted_noise,
    check_weights,
    guarantee_from_tree,
)
from cloakgp.utils.arrays import Array

if TYPE_CHECKING:
    from cloakgp.release.many_rows import ManyRowsRelease

KIND = "regression of many rows"


def to_bytes(release: ManyRowsRelease) -> bytes:
    """Return the file of a release."""

    def tree(stored: Store) -> dict[str, Any]:
        return _tree(release, stored)

    return bundle_bytes(kind=KIND, tree=tree)


def read(
    path: str | Path,
    *,
    make: Callable[..., ManyRowsRelease],
    kernels: tuple[type[Kernel], ...] = (),
    max_bytes: int | None = None,
) -> ManyRowsRelease:
    """Read and check a release.

    Parameters
    ----------
    path : str or Path
    make : callable
        Makes a release from its attributes.
    kernels : tuple of kernel classes
    max_bytes : int, optional
        The most that the file may unpack to; see `read_bundle`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is not a release, is damaged, edited or newer, or does not keep its guarantee.
    """

    def parse(manifest: dict[str, Any], loaded: Load) -> ManyRowsRelease:
        release = make(**_attributes(manifest, loaded, kernels=kernels))
        _check(release)
        return release

    return read_bundle(path, kind=KIND, parse=parse, max_bytes=max_bytes)


def _tree(release: ManyRowsRelease, stored: Store) -> dict[str, Any]:
    answers = release.answers
    return {
        "input_names": list(release.input_names),
        "output_name": release.output_name,
        "prior": prior_to_tree(release.prior, stored),
        "learned": [
            {"weight": one.weight, "prior": prior_to_tree(one.prior, stored)}
            for one in release.learned
        ],
        "sums": [
            {"features": stored(one.features), "noise": stored(one.noise)} for one in release.sums
        ],
        "totals": stored(release.sums[0].totals),
        "count": release.count,
        "chunk_rows": release.sums[0].chunk_rows,
        "longest": release.longest,
        "rule": _rule_to_tree(release.rule, stored),
        "ranges": stored(release.ranges),
        "X_query": stored(release.X_query),
        "query_weights": stored(release.query_weights),
        "reconstruction": None
        if release.reconstruction is None
        else stored(release.reconstruction),
        "certificate": asdict(release.certificate),
        "answers": stored(answers.values),
        "noise_sd": answers.noise_sd,
        "centre": answers.centre,
        "bounds": list(answers.bounds),
        "insecure": answers.insecure,
        "guarantee": asdict(answers.guarantee),
    }


def _attributes(
    manifest: dict[str, Any], loaded: Load, *, kernels: tuple[type[Kernel], ...]
) -> dict[str, Any]:
    totals = loaded(manifest["totals"])
    lo, hi = (float(end) for end in manifest["bounds"])
    return {
        "prior": prior_from_tree(manifest["prior"], loaded, kernels=kernels),
        "rule": _rule_from_tree(manifest["rule"], loaded),
        "sums": tuple(
            AskedSums(
                features=loaded(tree["features"]),
                noise=loaded(tree["noise"]),
                totals=totals,
                count=_whole(manifest["count"]),
                chunk_rows=_whole(manifest["chunk_rows"]),
                longest=float(manifest["longest"]),
            )
            for tree in manifest["sums"]
        ),
        "learned": tuple(
            WeightedPrior(
                prior=prior_from_tree(tree["prior"], loaded, kernels=kernels),
                weight=float(tree["weight"]),
            )
            for tree in manifest["learned"]
        ),
        "answers": Answers(
            values=loaded(manifest["answers"]),
            noise_sd=float(manifest["noise_sd"]),
            centre=float(manifest["centre"]),
            bounds=(lo, hi),
            guarantee=guarantee_from_tree(manifest["guarantee"]),
            insecure=_flag(manifest["insecure"]),
        ),
        "certificate": Certificate(
            criterion=manifest["certificate"]["criterion"],
            gap=float(manifest["certificate"]["gap"]),
        ),
        "X_query": loaded(manifest["X_query"]),
        "query_weights": loaded(manifest["query_weights"]),
        "reconstruction": None
        if manifest["reconstruction"] is None
        else loaded(manifest["reconstruction"]),
        "ranges": loaded(manifest["ranges"]),
        "input_names": tuple(str(name) for name in manifest["input_names"]),
        "output_name": str(manifest["output_name"]),
    }


def _whole(entry: object) -> int:
    """Return a count as it is: what only reads like one was not written by this package."""
    if not isinstance(entry, int) or isinstance(entry, bool) or entry < 1:
        raise ReleaseFileError("its rows are damaged")
    return entry


def _flag(entry: object) -> bool:
    if not isinstance(entry, bool):
        raise ReleaseFileError("it does not say whether its noise was seeded")
    return entry


def _rule_to_tree(rule: Rule, stored: Store) -> dict[str, Any]:
    if isinstance(rule, BallRule):
        return {
            "kind": "ball",
            "matrix": stored(rule.matrix),
            "curvatures": stored(rule.curvatures),
        }
    if isinstance(rule, LinearRule):
        return {"kind": "linear", "matrix": stored(rule.matrix)}
    raise ValueError("only the rules of this package can be saved")


def _rule_from_tree(tree: dict[str, Any], loaded: Load) -> Rule:
    matrix = loaded(tree["matrix"])
    if tree["kind"] == "linear":
        return LinearRule(matrix=matrix)
    if tree["kind"] != "ball":
        raise ReleaseFileError("unknown rule")
    curvatures = loaded(tree["curvatures"])
    if curvatures.shape != matrix.shape[:1] or (curvatures < 0).any():
        raise ReleaseFileError("its rule is damaged")
    return BallRule(matrix=matrix, curvatures=curvatures)


def _check(release: ManyRowsRelease) -> None:
    """Refuse arrays that do not fit each other, and noise that does not keep the guarantee."""
    answers, inputs = release.rule.answers, release.n_inputs
    if not (release.sums and len(release.sums) == max(1, len(release.learned))):
        raise ReleaseFileError("its priors do not fit its sums")
    check_weights([one.weight for one in release.learned])
    for prior in (release.prior, *(one.prior for one in release.learned)):
        if not isinstance(prior, SparsePrior):
            raise ReleaseFileError("its prior is not a sparse one")
        check_inducing(prior, inputs=inputs)
        if prior.inducing.shape != release.prior.inducing.shape:
            raise ReleaseFileError("its priors do not fit each other")
    inducing = len(release.prior.inducing)
    _check_shapes(release, answers=answers, inputs=inputs, inducing=inducing)
    if release.certificate.criterion not in CRITERIA or not release.certificate.gap >= 0:
        raise ReleaseFileError("its certificate is damaged")
    # Written so that NaN fails.
    if not (release.sums[0].chunk_rows <= release.count and 0 <= release.longest < np.inf):
        raise ReleaseFileError("its rows are damaged")
    if not (release.query_weights > 0).all():
        raise ReleaseFileError("its query weights are damaged")
    lo, hi = release.answers.bounds
    if release.answers.centre != OutputBounds.checked((lo, hi)).middle:
        raise ReleaseFileError("its bounds are damaged")
    asked = answers > 0 and release.longest > 0
    noise_sd = release.answers.noise_sd
    if not asked and (release.answers.values.any() or _sums_say_something(release)):
        raise ReleaseFileError("it has answers to questions of length 0")
    check_budgeted_noise(
        asked=asked,
        guarantee=release.answers.guarantee,
        noise_sd=noise_sd,
        attained_mu=(hi - lo) * release.longest / noise_sd if noise_sd > 0 else 0.0,
        answers=release.answers.values.size,
    )
    # Raises where sums are no covariances.
    _ = release.posterior


def _sums_say_something(release: ManyRowsRelease) -> bool:
    return any(
        array.any() for one in release.sums for array in (one.features, one.noise, one.totals)
    )


def _check_shapes(release: ManyRowsRelease, *, answers: int, inputs: int, inducing: int) -> None:
    queries = len(release.X_query)
    expected: list[tuple[Array, tuple[int, ...]]] = [
        (release.answers.values, (answers,)),
        (release.ranges, (2, inputs)),
        (release.X_query, (queries, inputs)),
        (release.query_weights, (queries,)),
        (release.sums[0].totals, (answers,)),
        *((one.features, (answers, inducing)) for one in release.sums),
        *((one.noise, (answers, answers)) for one in release.sums),
    ]
    if isinstance(release.rule, BallRule | LinearRule):
        expected.append((release.rule.matrix, (answers, inducing)))
    if release.reconstruction is not None:
        expected.append((release.reconstruction, (queries, answers)))
    if any(array.shape != shape for array, shape in expected):
        raise ReleaseFileError("its arrays do not fit each other")
