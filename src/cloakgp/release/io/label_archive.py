"""Releases of classification as files; see `cloakgp.release.io.bundle` for the container.

Loading recomputes the guarantee from the questions and the noise.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.models.likelihoods.classes import LabelPrior
from cloakgp.privacy.labels import Classes, LabelAnswers
from cloakgp.release.hyperparameters.classification import WeightedLabelPrior
from cloakgp.release.io import archive
from cloakgp.release.io.bundle import Load, ReleaseFileError, Store, bundle_bytes, read_bundle
from cloakgp.release.io.question_tree import (
    check_noise,
    check_questions,
    check_tables,
    check_weights,
    guarantee_from_tree,
    questions_from_tree,
    questions_to_tree,
)
from cloakgp.release.label_measurement import LabelMeasurement
from cloakgp.release.posterior.probabilities import RULES, Rule
from cloakgp.utils.names import LINKS

if TYPE_CHECKING:
    from cloakgp.release.label_release import LabelRelease

KIND = "classification"


@dataclass(frozen=True)
class Contents:
    """What a release file holds."""

    prior: LabelPrior
    measurements: tuple[LabelMeasurement, ...]
    rule: Rule
    learning: Literal["map", "average"] | None
    learn_means: bool
    learned: tuple[WeightedLabelPrior, ...]
    input_names: tuple[str, ...]
    output_name: str

    @classmethod
    def of(cls, release: LabelRelease) -> Contents:
        """Return what a release is made of."""
        return cls(**{name: getattr(release, name) for name in cls.__dataclass_fields__})


def to_bytes(contents: Contents) -> bytes:
    """Return the file of a release of classification."""

    def tree(stored: Store) -> dict[str, Any]:
        return {
            "input_names": list(contents.input_names),
            "output_name": contents.output_name,
            "prior": prior_to_tree(contents.prior, stored),
            "rule": contents.rule,
            "learning": contents.learning,
            "learn_means": contents.learn_means,
            "learned": [
                {"weight": one.weight, "prior": prior_to_tree(one.prior, stored)}
                for one in contents.learned
            ],
            "classes": list(contents.measurements[0].answers.classes.labels),
            "measurements": [_measurement_to_tree(one, stored) for one in contents.measurements],
        }

    return bundle_bytes(kind=KIND, tree=tree)


def read(
    path: str | Path, *, kernels: tuple[type[Kernel], ...] = (), max_bytes: int | None = None
) -> Contents:
    """Read and check a release of classification.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is not such a release, is damaged, edited or newer, or does not keep its guarantee.
    """
    return read_bundle(
        path,
        kind=KIND,
        parse=lambda manifest, loaded: _contents(manifest, loaded, kernels=kernels),
        max_bytes=max_bytes,
    )


def prior_to_tree(prior: LabelPrior, stored: Store = np.ndarray.tolist) -> dict[str, Any]:
    """Return a JSON-ready description of a prior over classes.

    Parameters
    ----------
    prior : LabelPrior
    stored : callable
        What stands for an array; by default its numbers.
    """
    return {
        "latent": archive.prior_to_tree(prior.latent, stored),
        "link": prior.link_name,
        "means": list(prior.means),
    }


def _prior_from_tree(
    tree: dict[str, Any], loaded: Load, *, kernels: tuple[type[Kernel], ...], channels: int
) -> LabelPrior:
    means = tuple(float(mean) for mean in tree["means"])
    if tree["link"] not in LINKS or len(means) != channels or not np.isfinite(means).all():
        raise ReleaseFileError("its prior is damaged")
    return LabelPrior(
        latent=archive.prior_from_tree(tree["latent"], loaded, kernels=kernels),
        link_name=tree["link"],
        means=means,
    )


def _contents(
    manifest: dict[str, Any], loaded: Load, *, kernels: tuple[type[Kernel], ...]
) -> Contents:
    classes = Classes.checked(manifest["classes"])
    measurements = tuple(
        _measurement_from_tree(tree, loaded, classes=classes) for tree in manifest["measurements"]
    )
    if not measurements:
        raise ReleaseFileError("the file holds no measurement")
    inputs = measurements[0].questions.X.shape[1]
    for one in measurements:
        _check_measurement(one, inputs=inputs)
    check_tables([one.questions for one in measurements])
    prior = _prior_from_tree(manifest["prior"], loaded, kernels=kernels, channels=classes.channels)
    learned = tuple(
        WeightedLabelPrior(
            prior=_prior_from_tree(
                tree["prior"], loaded, kernels=kernels, channels=classes.channels
            ),
            weight=float(tree["weight"]),
        )
        for tree in manifest["learned"]
    )
    check_weights([one.weight for one in learned])
    for candidate in (prior, *(one.prior for one in learned)):
        archive.check_inducing(candidate.latent, inputs=inputs)
    if manifest["rule"] not in RULES or manifest["learning"] not in ("map", "average", None):
        raise ReleaseFileError("how its answers are read is damaged")
    if manifest["rule"] == "laplace" and not (
        classes.channels == 1
        and len({one.questions.table for one in measurements}) == 1
        and all(
            one.questions.reconstruction is not None
            and np.array_equal(one.questions.X_query, one.questions.X)
            for one in measurements
        )
    ):
        raise ReleaseFileError("its answers do not determine the papers' iteration")
    return Contents(
        prior=prior,
        measurements=measurements,
        rule=manifest["rule"],
        learning=manifest["learning"],
        learn_means=bool(manifest["learn_means"]),
        learned=learned,
        input_names=tuple(str(name) for name in manifest["input_names"]),
        output_name=str(manifest["output_name"]),
    )


def _measurement_to_tree(one: LabelMeasurement, stored: Store) -> dict[str, Any]:
    return {
        **questions_to_tree(one.questions, stored),
        "answers": stored(one.answers.values),
        "noise_sd": one.answers.noise_sd,
        "insecure": one.answers.insecure,
        "guarantee": asdict(one.answers.guarantee),
    }


def _measurement_from_tree(
    tree: dict[str, Any], loaded: Load, *, classes: Classes
) -> LabelMeasurement:
    return LabelMeasurement(
        questions=questions_from_tree(tree, loaded),
        answers=LabelAnswers(
            values=loaded(tree["answers"]),
            noise_sd=float(tree["noise_sd"]),
            classes=classes,
            guarantee=guarantee_from_tree(tree["guarantee"]),
            insecure=bool(tree["insecure"]),
        ),
    )


def _check_measurement(one: LabelMeasurement, *, inputs: int) -> None:
    """Refuse a measurement whose shapes disagree or whose noise is less than its guarantee says."""
    check_questions(one.questions, inputs=inputs)
    strategy, answers = one.questions.strategy, one.answers
    if answers.values.shape != (len(strategy), answers.classes.channels):
        raise ReleaseFileError("its arrays do not fit each other")
    check_noise(
        strategy,
        guarantee=answers.guarantee,
        noise_sd=answers.noise_sd,
        attained_mu=one.attained_mu,
        answers=answers.values.size,
    )
