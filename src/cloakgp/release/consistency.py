"""Consistency of releases: parts that fit each other, and releases that may be combined."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.columns.schema import Schema
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods import (
    ClassLikelihood,
    CountLikelihood,
    Likelihood,
    QuantileLikelihood,
)
from cloakgp.models.prior import LARGEST_VARIANCE
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.questions.quantiles import QuantileQuestion
from cloakgp.release.choice import Choice, same_choice
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.io.codec import to_tree
from cloakgp.release.measurement import (
    Measurement,
    check_tables,
    declared_bounds,
    tables_of,
)
from cloakgp.release.posterior.mixture import Inference, WeightedPrior
from cloakgp.release.strategy import MISFIT, DenseStrategy
from cloakgp.utils.arrays import Array

# What weights of priors, which add up to 1, may miss it by.
WEIGHT_TOLERANCE = 1e-9
# Of transformed bounds, in their width.
ROUNDING = 1e-9


class Parts(Protocol):
    """The parts of a release; see `cloakgp.Release`."""

    @property
    def prior(self) -> ExactPrior | SparsePrior:
        """Of the latent functions, as declared."""

    @property
    def likelihood(self) -> Likelihood:
        """How outputs depend on the latent functions."""

    @property
    def measurements(self) -> Sequence[Measurement]:
        """Strategies and the answers to them."""

    @property
    def learned(self) -> Sequence[WeightedPrior]:
        """The priors learned from the answers."""

    @property
    def inference(self) -> Inference:
        """How predictions are read off the answers."""

    @property
    def choice(self) -> Choice | None:
        """The cost of choosing the prior."""

    @property
    def input_names(self) -> Sequence[str]:
        """Names of the public columns."""

    @property
    def schema(self) -> Schema | None:
        """The schema of the raw public columns."""

    @property
    def transform(self) -> OutputTransform | None:
        """The function of outputs that everything else is about."""

    @property
    def predictor(self) -> object:
        """The release whose predictions are the last input; None if there is none."""

    @property
    def public_rows(self) -> object:
        """The public rows that predict it; None if there are none."""

    @property
    def custodians(self) -> object:
        """Of the rows, if there were several."""

    @property
    def output_name(self) -> str:
        """Name of the private column."""

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""


def declared_classes(measurements: Sequence[Measurement]) -> Classes | None:
    """Return the classes that measurements are about, None if they are about no classes."""
    question = measurements[0].question
    return question if isinstance(question, Classes) else None


def check_alike(release: Parts, other: Parts) -> None:
    """Refuse to combine releases that are about different things.

    Parameters
    ----------
    release, other : Parts

    Raises
    ------
    ValueError
        If priors, classes, columns, or the private choice of the prior differ.
    """
    if to_tree((other.prior, other.likelihood)) != to_tree((release.prior, release.likelihood)):
        raise ValueError(
            "releases with different priors cannot be combined: defaults go by X, so give every "
            "fit that is to be combined the same kernel, noise_variance and mean, and inducing "
            "inputs if there are any"
        )
    if declared_classes(other.measurements) != declared_classes(release.measurements):
        raise ValueError("releases about different classes cannot be combined")
    if other.choice is not None and not same_choice(
        (release.choice, release.measurements), (other.choice, other.measurements)
    ):
        raise ValueError(
            "the other release's prior was chosen from private data: combine the other way "
            "round, or choose once and refine"
        )
    if other.n_inputs != release.n_inputs:
        raise ValueError("releases with different numbers of inputs cannot be combined")
    if (other.input_names, other.output_name) != (release.input_names, release.output_name):
        raise ValueError("releases about different columns cannot be combined")
    if other.schema != release.schema:
        raise ValueError("releases with different schemas cannot be combined: refit one")
    if to_tree((other.predictor, other.public_rows)) != to_tree(
        (release.predictor, release.public_rows)
    ):
        raise ValueError("releases with different public predictions cannot be combined: refit one")
    if other.custodians != release.custodians:
        raise ValueError(
            "releases of different custodians cannot be combined: each assumes its own"
        )
    if other.transform != release.transform:
        raise ValueError("releases with different transforms cannot be combined: refit one")


def check_parts(release: Parts) -> None:
    """Refuse a release whose parts do not fit each other.

    Parameters
    ----------
    release : Parts

    Raises
    ------
    ValueError
        If they do not, or the guarantee of a choice does not hold.
    """
    measurements = release.measurements
    if not measurements:
        raise ValueError("the file holds no measurement")
    if any(measurement.strategy.n_inputs != release.n_inputs for measurement in measurements):
        raise ValueError(MISFIT)
    check_tables(measurements)
    schema = release.schema
    if schema is not None and schema.names != tuple(release.input_names):
        raise ValueError(MISFIT)
    classified = release.likelihood.outputs == "classes"
    classes = declared_classes(measurements)
    if classified != (classes is not None) or any(
        declared_classes([measurement]) != classes for measurement in measurements
    ):
        raise ValueError("its answers are about something else than its prior")
    if release.transform is not None:
        _check_transform(release.transform, measurements, classified=classified)
    if release.likelihood.windowed:
        _check_counts(release)
    if isinstance(release.likelihood, QuantileLikelihood):
        _check_quantiles(release)
    elif not release.likelihood.windowed and any(
        isinstance(one.strategy, GatheredStrategy) for one in measurements
    ):
        raise ValueError("its rows were not gathered as it says")
    _check_priors(release)
    if release.choice is not None:
        release.choice.check_covers([measurement.guarantee for measurement in measurements])
    if release.inference == "newton" and not _determines_iteration(release):
        raise ValueError("its answers do not determine the papers' iteration")


def _check_transform(
    transform: OutputTransform, measurements: Sequence[Measurement], *, classified: bool
) -> None:
    """Refuse a transform under which answers would not be about outputs within its bounds."""
    lowest, highest = transform.ends
    # Another machine may take a logarithm to another last digit.
    room = ROUNDING * (highest - lowest)
    if classified or any(
        not lowest - room <= lo < hi <= highest + room for lo, hi in declared_bounds(measurements)
    ):
        raise ValueError("its outputs are not transformed as it says")


def _check_counts(release: Parts) -> None:
    """Refuse counts whose roots were not asked, or not within the bounds of their likelihood."""
    likelihood, transform = release.likelihood, release.transform
    if (
        not isinstance(likelihood, CountLikelihood)
        or transform is None
        or transform.name != "root"
        or transform.bounds[1] != likelihood.largest
        or not all(
            isinstance(one.strategy, DenseStrategy | GatheredStrategy)
            for one in release.measurements
        )
    ):
        raise ValueError("its outputs are not counted as it says")


def _check_quantiles(release: Parts) -> None:
    """Refuse quantiles that other questions were asked about, or of rows in no cells."""
    asked = [one for one in release.measurements if one.question.locates]
    if not all(
        isinstance(one.question, QuantileQuestion)
        and one.question.quantiles == release.likelihood.channels
        and isinstance(one.strategy, DenseStrategy | GatheredStrategy)
        for one in asked
    ):
        raise ValueError("its quantiles were not asked as it says")


def _check_priors(release: Parts) -> None:
    """Refuse priors for other inputs or outputs, and weights that are not shares of one."""
    channels = release.measurements[0].residuals().shape[1]
    declared = WeightedPrior(prior=release.prior, likelihood=release.likelihood, weight=1.0)
    for each in (declared, *release.learned):
        if type(each.likelihood) is not type(release.likelihood):
            raise ValueError("its prior is damaged")
        if each.likelihood.channels != channels:
            raise ValueError("its prior is damaged")
        shape = (release.n_inputs,)
        if isinstance(each.prior, SparsePrior) and each.prior.inducing.shape[1:] != shape:
            raise ValueError("inducing inputs and rows have different dimensions")
        _check_kernel(each.prior.kernel, np.array(release.measurements[0].strategy.ranges))
    weights = [weighted.weight for weighted in release.learned]
    if weights and not (min(weights) >= 0 and abs(sum(weights) - 1) <= WEIGHT_TOLERANCE):
        raise ValueError("the weights of its priors are damaged")


def _check_kernel(kernel: Kernel, inputs: Array) -> None:
    """Refuse a kernel that is none of these inputs: lengthscales of other ones, or none at all.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Of a file, where each parameter may be anything that a file can hold.
    inputs : array of shape (n, D)
    """
    fits = False
    # It is also the kernel of a class that a file names, which may raise anything.
    with suppress(Exception), np.errstate(all="ignore"):
        covariances, variances = kernel(inputs, inputs.copy()), kernel.diag(inputs)
        fits = (
            np.shape(covariances) == (len(inputs), len(inputs))
            and np.shape(variances) == (len(inputs),)
            and bool(np.isfinite(covariances).all())
            and bool((np.asarray(variances) <= LARGEST_VARIANCE).all())
        )
    if not fits:
        raise ValueError("its kernel does not fit its inputs")


def _determines_iteration(release: Parts) -> bool:
    """Return whether the papers' Newton steps at the rows can be read off the answers."""
    return (
        isinstance(release.likelihood, ClassLikelihood)
        and release.likelihood.channels == 1
        and len(tables_of(release.measurements)) == 1
        and all(
            isinstance(measurement.strategy, DenseStrategy)
            and measurement.strategy.reconstruction is not None
            and np.array_equal(measurement.strategy.X_query, measurement.strategy.X)
            for measurement in release.measurements
        )
    )
