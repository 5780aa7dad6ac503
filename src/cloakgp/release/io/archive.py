"""Releases of regression as files; see `cloakgp.release.io.bundle` for the container.

Loading recomputes the guarantee from the questions and the noise.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.privacy import Answers, OutputBounds, compose
from cloakgp.privacy.accounting import check_budget
from cloakgp.privacy.composition import compose_with_selection
from cloakgp.privacy.pure_dp import PureGuarantee
from cloakgp.release.choice import Choice
from cloakgp.release.hyperparameters.regression import Hyperprior, WeightedPrior
from cloakgp.release.io.bundle import (
    Load,
    ReleaseFileError,
    Store,
    bundle_bytes,
    read_bundle,
)
from cloakgp.release.io.kernel_tree import kernel_from_tree, kernel_to_tree
from cloakgp.release.io.question_tree import (
    check_noise,
    check_questions,
    check_tables,
    check_weights,
    guarantee_from_tree,
    questions_from_tree,
    questions_to_tree,
)
from cloakgp.release.measurement import Measurement

KIND = "regression"
# How much more than its δ the guarantee of the worst candidate may need.
WORST_TOLERANCE = 1e-6


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


def to_bytes(contents: Contents) -> bytes:
    """Return the file of a release of regression."""

    def tree(stored: Store) -> dict[str, Any]:
        return contents_to_tree(contents, stored)

    return bundle_bytes(kind=KIND, tree=tree)


def contents_to_tree(contents: Contents, stored: Store) -> dict[str, Any]:
    """Return the manifest's entries about a release."""
    return {
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


def read(
    path: str | Path, *, kernels: tuple[type[Kernel], ...] = (), max_bytes: int | None = None
) -> Contents:
    """Read and check a release of regression.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is not a release, is damaged, edited or newer, or does not keep its guarantee.
    """
    return read_bundle(
        path,
        kind=KIND,
        parse=lambda manifest, loaded: contents_from_tree(manifest, loaded, kernels=kernels),
        max_bytes=max_bytes,
    )


def contents_from_tree(
    manifest: dict[str, Any], loaded: Load, *, kernels: tuple[type[Kernel], ...]
) -> Contents:
    """Rebuild and check a release from `contents_to_tree`.

    Raises
    ------
    ReleaseFileError, ValueError
        If it is damaged, or its guarantee does not hold.
    """
    prior = prior_from_tree(manifest["prior"], loaded, kernels=kernels)
    learned = tuple(
        WeightedPrior(
            prior=prior_from_tree(tree["prior"], loaded, kernels=kernels),
            weight=float(tree["weight"]),
        )
        for tree in manifest["learned"]
    )
    hyperprior = manifest["hyperprior"]
    measurements = tuple(_measurement_from_tree(tree, loaded) for tree in manifest["measurements"])
    if not measurements:
        raise ReleaseFileError("the file holds no measurement")
    inputs = measurements[0].X.shape[1]
    for one in measurements:
        _check_measurement(one, inputs=inputs)
    check_tables(measurements)
    for candidate in (prior, *(one.prior for one in learned)):
        check_inducing(candidate, inputs=inputs)
    check_weights([one.weight for one in learned])
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
    prior: ExactPrior | SparsePrior, stored: Store = np.ndarray.tolist
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


def check_inducing(prior: ExactPrior | SparsePrior, *, inputs: int) -> None:
    """Refuse inducing inputs of another dimension than the rows.

    Raises
    ------
    ReleaseFileError
        If they are.
    """
    if isinstance(prior, SparsePrior) and prior.inducing.shape[1:] != (inputs,):
        raise ReleaseFileError("inducing inputs and rows have different dimensions")


def prior_from_tree(
    tree: dict[str, Any], loaded: Load, *, kernels: tuple[type[Kernel], ...] = ()
) -> ExactPrior | SparsePrior:
    """Rebuild a prior from `prior_to_tree`, checking its numbers."""
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
        worst=guarantee_from_tree(tree["worst"]),
        covers=int(tree["covers"]),
    )
    covered = compose(*(one.answers.guarantee for one in measurements[: choice.covers]))
    worst = choice.worst
    check_budget(worst.epsilon, worst.delta)
    if not (
        0 < choice.covers <= len(measurements)
        and covered.delta == worst.delta
        and covered.mu <= worst.mu
        and covered.answers <= worst.answers
        and 0 <= covered.coarseness <= worst.coarseness
        # Its μ lies just beyond what its own (ε, δ) allows.
        and worst.delta_at(worst.epsilon) <= worst.delta * (1 + WORST_TOLERANCE)
    ):
        raise ReleaseFileError("what its choice cost is damaged")
    # Raises for an ε or a mechanism that does not make sense.
    compose_with_selection(choice.worst, choice.epsilon, mechanism=choice.mechanism)
    return choice


def _measurement_to_tree(one: Measurement, stored: Store) -> dict[str, Any]:
    return {
        **questions_to_tree(one, stored),
        "answers": stored(one.answers.values),
        "noise_sd": one.answers.noise_sd,
        "centre": one.answers.centre,
        "bounds": list(one.answers.bounds),
        "insecure": one.answers.insecure,
        "noise": one.answers.noise,
        "guarantee": asdict(one.answers.guarantee),
    }


def _measurement_from_tree(tree: dict[str, Any], loaded: Load) -> Measurement:
    lo, hi = (float(end) for end in tree["bounds"])
    answers = Answers(
        values=loaded(tree["answers"]),
        noise_sd=float(tree["noise_sd"]),
        centre=float(tree["centre"]),
        bounds=(lo, hi),
        guarantee=guarantee_from_tree(tree["guarantee"]),
        insecure=bool(tree["insecure"]),
        # Files from before Laplace noise have no such entry.
        noise=tree.get("noise", "gaussian"),
    )
    return questions_from_tree(tree, loaded).answered(answers)


def _attained_mu(one: Measurement) -> float:
    """Return the μ that the questions and the noise amount to."""
    if one.answers.noise == "gaussian" or one.answers.noise_sd == 0:
        return one.attained_mu
    if one.answers.noise != "laplace" or one.groups is not None:
        raise ReleaseFileError("its noise is damaged")
    # Scale b = sd/√2, and one output moves the answers by at most the longest column in ℓ1 norm.
    width = one.answers.bounds[1] - one.answers.bounds[0]
    longest = float(np.abs(one.strategy).sum(axis=0).max())
    return PureGuarantee(epsilon=np.sqrt(2.0) * width * longest / one.answers.noise_sd).mu


def _check_measurement(one: Measurement, *, inputs: int) -> None:
    """Refuse a measurement whose shapes disagree or whose noise is less than its guarantee says."""
    check_questions(one, inputs=inputs)
    if one.answers.values.shape != one.strategy.shape[:1]:
        raise ReleaseFileError("its arrays do not fit each other")
    check_noise(
        one.strategy,
        guarantee=one.answers.guarantee,
        noise_sd=one.answers.noise_sd,
        attained_mu=_attained_mu(one),
        answers=one.answers.values.size,
    )
    if one.answers.centre != OutputBounds.checked(one.answers.bounds).middle:
        raise ReleaseFileError("its bounds are damaged")
