"""One file per release: a zip archive of a JSON manifest and plain arrays, with checksums.

The checksums find damage and careless edits. They are no signature: whoever can write the file can
write its checksums. Loading also recomputes the guarantee from the questions and the noise.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.arrays import Array
from cloakgp.design import Certificate
from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.privacy import Answers, Guarantee, OutputBounds, compose
from cloakgp.privacy.guarantee import check_budget
from cloakgp.privacy.measure import SMALLEST_ENTRY
from cloakgp.privacy.mixed import compose_with_selection
from cloakgp.release.choice import Choice
from cloakgp.release.kernel_tree import kernel_from_tree, kernel_to_tree
from cloakgp.release.learning import Hyperprior, WeightedPrior
from cloakgp.release.measurement import Measurement

FORMAT = "cloakgp release"
CRITERIA = ("bayes", "trace", "logdet")
FORMAT_VERSION = 1
MANIFEST, MANIFEST_DIGEST = "manifest.json", "manifest.sha256"
# What a recomputed μ may exceed the stated one by: float64 in another order of summation.
MU_TOLERANCE = 1e-9
WEIGHT_TOLERANCE = 1e-9


class ReleaseFileError(ValueError):
    """A file that is no release, or no longer one."""


@dataclass(frozen=True)
class Contents:
    """What a release file holds."""

    prior: ExactPrior | SparsePrior
    measurements: tuple[Measurement, ...]
    learned: tuple[WeightedPrior, ...]
    hyperprior: Hyperprior | None
    average: bool
    choice: Choice | None
    input_names: tuple[str, ...]
    output_name: str


def write(path: str | Path, contents: Contents, *, overwrite: bool) -> None:
    """Write a release file in one step: readers see the old file or the new one, never half."""
    target = Path(path)
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists: choose another name, or allow overwriting")
    arrays: dict[str, Array] = {}

    def stored(array: Array) -> str:
        name = f"array_{len(arrays)}.npy"
        arrays[name] = array
        return name

    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "input_names": list(contents.input_names),
        "output_name": contents.output_name,
        "prior": prior_to_tree(contents.prior, stored),
        "learned": [
            {"weight": one.weight, "prior": prior_to_tree(one.prior, stored)}
            for one in contents.learned
        ],
        "hyperprior": None if contents.hyperprior is None else asdict(contents.hyperprior),
        "average": contents.average,
        "choice": None if contents.choice is None else asdict(contents.choice),
        "measurements": [_measurement_to_tree(one, stored) for one in contents.measurements],
    }
    payloads = {name: _array_bytes(array) for name, array in arrays.items()}
    manifest["sha256"] = {name: _digest(payload) for name, payload in payloads.items()}
    text = json.dumps(manifest, indent=1).encode()
    payloads |= {MANIFEST: text, MANIFEST_DIGEST: _digest(text).encode()}
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as temporary:
        try:
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as bundle:
                for name, payload in payloads.items():
                    # A fixed date: equal releases are equal files.
                    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                    bundle.writestr(entry, payload, compress_type=zipfile.ZIP_DEFLATED)
            temporary.close()
            Path(temporary.name).chmod(0o644)
            Path(temporary.name).replace(target)
        except BaseException:
            Path(temporary.name).unlink(missing_ok=True)
            raise


def read(path: str | Path, *, kernels: tuple[type[Kernel], ...] = ()) -> Contents:
    """Read and check a release file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is not a release, is damaged, edited or newer, or does not keep its guarantee.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"there is no file {source}")
    try:
        with zipfile.ZipFile(source) as bundle:
            payloads = {name: bundle.read(name) for name in bundle.namelist()}
    except (PermissionError, IsADirectoryError):
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise ReleaseFileError(
            f"{source} is not a release file, or was cut off: get it again from its publisher"
        ) from error
    try:
        return _contents(payloads, kernels=kernels)
    except ReleaseFileError as error:
        raise ReleaseFileError(f"{source}: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ReleaseFileError(f"{source} is damaged: {error}") from error


def _contents(payloads: dict[str, bytes], *, kernels: tuple[type[Kernel], ...]) -> Contents:
    if MANIFEST not in payloads or MANIFEST_DIGEST not in payloads:
        raise ReleaseFileError("this is not a cloakgp release file")
    manifest = json.loads(payloads[MANIFEST])
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ReleaseFileError("this is not a cloakgp release file")
    if manifest["version"] != FORMAT_VERSION:
        raise ReleaseFileError(
            f"the file has format version {manifest['version']} and this package reads version "
            f"{FORMAT_VERSION}: install a newer cloakgp"
        )
    edited = "the file was changed after it was written: get it again from its publisher"
    if _digest(payloads[MANIFEST]).encode() != payloads[MANIFEST_DIGEST]:
        raise ReleaseFileError(edited)
    for name, digest in manifest["sha256"].items():
        if name not in payloads or _digest(payloads[name]) != digest:
            raise ReleaseFileError(edited)

    def loaded(name: str) -> Array:
        if name not in manifest["sha256"]:
            raise ReleaseFileError(edited)
        array = np.lib.format.read_array(io.BytesIO(payloads[name]), allow_pickle=False)
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise ReleaseFileError("an array is not of finite numbers")
        return array

    prior = _prior_from_tree(manifest["prior"], loaded, kernels=kernels)
    learned = tuple(
        WeightedPrior(
            prior=_prior_from_tree(tree["prior"], loaded, kernels=kernels),
            weight=float(tree["weight"]),
        )
        for tree in manifest["learned"]
    )
    hyperprior = manifest["hyperprior"]
    measurements = tuple(_measurement_from_tree(tree, loaded) for tree in manifest["measurements"])
    if not measurements:
        raise ReleaseFileError("the file holds no measurement")
    inputs = measurements[0].X.shape[1]
    tables: dict[int, Array] = {}
    for one in measurements:
        _check_measurement(one, inputs=inputs)
        if not np.array_equal(tables.setdefault(one.table, one.X), one.X):
            raise ReleaseFileError("one of its tables has different rows in different places")
    for candidate in (prior, *(one.prior for one in learned)):
        if isinstance(candidate, SparsePrior) and candidate.inducing.shape[1:] != (inputs,):
            raise ReleaseFileError("inducing inputs and rows have different dimensions")
    weights = [one.weight for one in learned]
    if learned and not (min(weights) >= 0 and abs(sum(weights) - 1) <= WEIGHT_TOLERANCE):
        raise ReleaseFileError("the weights of its priors are damaged")
    return Contents(
        prior=prior,
        measurements=measurements,
        learned=learned,
        hyperprior=None
        if hyperprior is None
        else Hyperprior(
            noise_variance=bool(hyperprior["noise_variance"]), mean=bool(hyperprior["mean"])
        ),
        average=bool(manifest["average"]),
        choice=_choice_from_tree(manifest["choice"], measurements=measurements),
        input_names=tuple(str(name) for name in manifest["input_names"]),
        output_name=str(manifest["output_name"]),
    )


def prior_to_tree(
    prior: ExactPrior | SparsePrior, stored: Callable[[Array], Any] = np.ndarray.tolist
) -> dict[str, Any]:
    """Return a JSON-ready description of a prior.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    stored : callable
        What stands for an array; by default its numbers.
    """
    tree: dict[str, Any] = {
        "approximation": "exact",
        "kernel": kernel_to_tree(prior.kernel),
        "noise_variance": float(prior.noise_variance),
        "mean": float(prior.mean),
    }
    if isinstance(prior, SparsePrior):
        tree |= {"approximation": prior.approximation, "inducing": stored(prior.inducing)}
    return tree


def _prior_from_tree(
    tree: dict[str, Any], loaded: Callable[[str], Array], *, kernels: tuple[type[Kernel], ...]
) -> ExactPrior | SparsePrior:
    kernel = kernel_from_tree(tree["kernel"], classes=kernels)
    noise_variance, mean = float(tree["noise_variance"]), float(tree["mean"])
    if not (np.isfinite([noise_variance, mean]).all() and noise_variance >= 0):
        raise ReleaseFileError("the prior's mean or noise variance is damaged")
    if tree["approximation"] == "exact":
        return ExactPrior(kernel=kernel, noise_variance=noise_variance, mean=mean)
    if tree["approximation"] not in APPROXIMATIONS:
        raise ReleaseFileError(f"unknown approximation {tree['approximation']!r}")
    return SparsePrior(
        kernel=kernel,
        noise_variance=noise_variance,
        mean=mean,
        inducing=loaded(tree["inducing"]),
        approximation=tree["approximation"],
    )


def _choice_from_tree(
    tree: dict[str, Any] | None, *, measurements: tuple[Measurement, ...]
) -> Choice | None:
    if tree is None:
        return None
    choice = Choice(
        epsilon=float(tree["epsilon"]),
        mechanism=tree["mechanism"],
        worst=_guarantee_from_tree(tree["worst"]),
        covers=int(tree["covers"]),
    )
    covered = compose(*(one.answers.guarantee for one in measurements[: choice.covers]))
    if not (0 < choice.covers <= len(measurements) and covered.mu <= choice.worst.mu):
        raise ReleaseFileError("what its choice cost is damaged")
    # Raises for an ε or a mechanism that does not make sense.
    compose_with_selection(choice.worst, choice.epsilon, mechanism=choice.mechanism)
    return choice


def _guarantee_from_tree(tree: dict[str, Any]) -> Guarantee:
    return Guarantee(
        epsilon=float(tree["epsilon"]),
        delta=float(tree["delta"]),
        mu=float(tree["mu"]),
        answers=int(tree["answers"]),
        coarseness=float(tree["coarseness"]),
    )


def _measurement_to_tree(one: Measurement, stored: Callable[[Array], Any]) -> dict[str, Any]:
    return {
        "X": stored(one.X),
        "strategy": stored(one.strategy),
        "answers": stored(one.answers.values),
        "X_query": stored(one.X_query),
        "reconstruction": None if one.reconstruction is None else stored(one.reconstruction),
        "query_weights": None if one.query_weights is None else stored(one.query_weights),
        "table": one.table,
        "noise_sd": one.answers.noise_sd,
        "centre": one.answers.centre,
        "bounds": list(one.answers.bounds),
        "insecure": one.answers.insecure,
        "guarantee": asdict(one.answers.guarantee),
        "certificate": {"criterion": one.certificate.criterion, "gap": one.certificate.gap},
    }


def _measurement_from_tree(tree: dict[str, Any], loaded: Callable[[str], Array]) -> Measurement:
    lo, hi = (float(end) for end in tree["bounds"])
    return Measurement(
        X=loaded(tree["X"]),
        strategy=loaded(tree["strategy"]),
        answers=Answers(
            values=loaded(tree["answers"]),
            noise_sd=float(tree["noise_sd"]),
            centre=float(tree["centre"]),
            bounds=(lo, hi),
            guarantee=_guarantee_from_tree(tree["guarantee"]),
            insecure=bool(tree["insecure"]),
        ),
        X_query=loaded(tree["X_query"]),
        reconstruction=None if tree["reconstruction"] is None else loaded(tree["reconstruction"]),
        certificate=Certificate(
            criterion=tree["certificate"]["criterion"], gap=float(tree["certificate"]["gap"])
        ),
        table=int(tree["table"]),
        query_weights=None if tree["query_weights"] is None else loaded(tree["query_weights"]),
    )


def _check_measurement(one: Measurement, *, inputs: int) -> None:
    """Refuse a measurement whose shapes disagree or whose noise is less than its guarantee says."""
    answers, rows = one.strategy.shape
    shapes_agree = (
        one.X.shape == (rows, inputs)
        and one.X_query.ndim == 2
        and one.X_query.shape[1] == inputs
        and one.answers.values.shape == (answers,)
        and (
            one.query_weights is None
            or (one.query_weights.shape == (len(one.X_query),) and one.query_weights.min() > 0)
        )
        and (one.reconstruction is None or one.reconstruction.shape == (len(one.X_query), answers))
    )
    if not shapes_agree:
        raise ReleaseFileError("its arrays do not fit each other")
    # Written so that NaN fails every one of them.
    if one.certificate.criterion not in CRITERIA or not one.certificate.gap >= 0:
        raise ReleaseFileError("its certificate is damaged")
    limits = OutputBounds.checked(one.answers.bounds)
    guarantee, noise_sd = one.answers.guarantee, one.answers.noise_sd
    check_budget(guarantee.epsilon, guarantee.delta)
    asked = bool(one.strategy.any())
    if not 0 <= noise_sd < np.inf or (asked and not (noise_sd > 0 and guarantee.mu > 0)):
        raise ReleaseFileError("its answers carry no noise")
    largest = float(np.abs(one.strategy).max()) if asked else 1.0
    if not SMALLEST_ENTRY < largest < 1 / SMALLEST_ENTRY:
        raise ReleaseFileError("its questions are out of scale")
    if not one.attained_mu <= guarantee.mu * (1 + MU_TOLERANCE):
        raise ReleaseFileError("its noise is less than its guarantee needs")
    if guarantee.mu and not (guarantee.answers == answers and guarantee.coarseness >= 0):
        raise ReleaseFileError("its guarantee is damaged")
    if guarantee.mu and not guarantee.delta_at(guarantee.epsilon) <= guarantee.delta:
        raise ReleaseFileError("its guarantee does not hold")
    if one.answers.centre != limits.middle:
        raise ReleaseFileError("its bounds are damaged")


def _array_bytes(array: Array) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(
        buffer, np.ascontiguousarray(array, dtype=np.float64), allow_pickle=False
    )
    return buffer.getvalue()


def _digest(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()
