"""Coefficients as plain values, by which a program in any language predicts from a release.

A release holds noisy answers; what they say about a new point takes the whole of
`cloakgp.release.posterior`. Its result is small: the coefficients of
`cloakgp.release.coefficients`, and what makes outputs of latent functions. Every file of a release
carries them, and so does every page that predicts. All of it is a function of what is published,
and this package reads it from no file: it predicts from the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from cloakgp.models.latent import has_white_noise, white_noise_variance
from cloakgp.models.likelihoods import CountLikelihood, Likelihood, QuantileLikelihood
from cloakgp.models.likelihoods.classes import ClassLikelihood, class_likelihood
from cloakgp.models.likelihoods.counts import HERMITE_NODES, HERMITE_SHARES
from cloakgp.models.likelihoods.numbers import Numbers
from cloakgp.models.scatter import LARGEST_LOG, Scatter
from cloakgp.release.coefficients import Coefficients, coefficients
from cloakgp.release.io.kernel_tree import kernel_to_tree
from cloakgp.release.predictions import Predictions
from cloakgp.release.unknown_noise import MULTIPLES, WEIGHTS
from cloakgp.utils.arrays import Array

# By how much noise may vary between centres and still count as the same everywhere.
SAME_NOISE = 1e-9


def coefficient_tree(
    release: Predictions, *, stored: Callable[[Array], Any], beside: bool = False
) -> dict[str, Any]:
    """Return what predicts, as values of JSON.

    Parameters
    ----------
    release : Release
    stored : callable
        What stands for an array.
    beside : bool
        Whether that is kept beside the release itself, where equal arrays are kept once.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, learn=None)
    >>> model = model.fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> tree = coefficient_tree(model.release_, stored=np.ndarray.tolist)
    >>> tree["outputs"], tree["bounds"], [part["weight"] for part in tree["parts"]]
    ('numbers', [0.0, 1.0], [1.0])
    """
    likelihood, outputs = release.likelihood, _outputs(release.likelihood)
    classified = outputs == "classes"
    return {
        "outputs": outputs,
        "inputs": release.n_inputs,
        "insecure": any(one.answers.insecure for one in release.measurements),
        "bounds": None if classified else list(release.output_bounds),
        "transform": None if release.transform is None else release.transform.name,
        "classes": list(release.classes) if classified else None,
        "link": _link(release) if classified else None,
        "quantiles": _quantiles(likelihood),
        "counts": _counts(likelihood),
        "calibration": _calibration(release, stored),
        "unknown_noise": _unknown_noise(release),
        "margins": release.margins is not None,
        "parts": [
            _part(part, release.n_inputs, stored) for part in coefficients(release, beside=beside)
        ],
    }


def has_coefficients(likelihood: Likelihood) -> bool:
    """Return whether programs in other languages know how outputs depend on latent functions."""
    known = Numbers | ClassLikelihood | QuantileLikelihood | CountLikelihood
    return isinstance(likelihood, known)


def _outputs(likelihood: Likelihood) -> str:
    """Return what is predicted: numbers, counts, quantiles or classes."""
    if isinstance(likelihood, QuantileLikelihood):
        return "quantiles"
    return "counts" if isinstance(likelihood, CountLikelihood) else likelihood.outputs


def _part(part: Coefficients, n_inputs: int, stored: Callable[[Array], Any]) -> dict[str, Any]:
    return {
        "weight": part.weight,
        "kernel": values_of_kernel(kernel_to_tree(part.kernel)),
        "centres": stored(part.centres),
        "factor": None if part.factor is None else stored(part.factor),
        "all_explained": part.all_explained,
        "noise": _noise(part, n_inputs),
        "scatter": None if part.scatter is None else _scatter(part.scatter),
        "trend": None if part.trend is None else asdict(part.trend),
        **_learned(part.likelihood),
        **_questions(part, stored),
        "channels": [
            {
                "mean": channel.mean,
                "weights": stored(channel.weights),
                "subtracted": stored(channel.subtracted),
                "added": stored(channel.added),
            }
            for channel in part.channels
        ],
    }


def _questions(part: Coefficients, stored: Callable[[Array], Any]) -> dict[str, Any]:
    """Return what each channel's coefficients go by, where that is not the covariance itself."""
    if part.questions is None:
        return {}
    return {
        "questions": [
            [
                {
                    "start": block.start,
                    "matrix": stored(block.matrix),
                    "scale": stored(block.scale),
                }
                for block in blocks
            ]
            for blocks in part.questions
        ]
    }


def values_of_kernel(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a kernel without the bounds of its hyperparameters; Matérn's limit by its own name."""
    name, parameters = tree["kernel"], tree["parameters"]
    kept = {
        key: values_of_kernel(value) if isinstance(value, dict) and "kernel" in value else value
        for key, value in parameters.items()
        if not key.endswith("_bounds")
    }
    if name == "Matern" and kept["nu"] == np.inf:
        del kept["nu"]
        name = "RBF"
    return {"kernel": name, "parameters": kept}


def _noise(part: Coefficients, n_inputs: int) -> float | None:
    """Return the noise variance of a new output, or None if white noise varies with the inputs."""
    if not has_white_noise(part.kernel):
        return part.noise_variance
    points = part.centres if len(part.centres) else np.zeros((1, n_inputs))
    found = white_noise_variance(part.kernel, points)
    white = float(found.mean())
    if np.ptp(found) > SAME_NOISE * max(white, 1e-300):
        return None
    return part.noise_variance + white


def _scatter(scatter: Scatter) -> dict[str, Any]:
    return {
        "centres": scatter.centres.tolist(),
        "scales": (scatter.units * scatter.length).tolist(),
        "weights": scatter.weights.tolist(),
        "largest": LARGEST_LOG,
    }


def _learned(likelihood: Likelihood) -> dict[str, Any]:
    """Return what outputs take of a likelihood, beside its latent functions."""
    if isinstance(likelihood, QuantileLikelihood):
        return {"scales": list(likelihood.scales)}
    if isinstance(likelihood, CountLikelihood):
        return {"overdispersion": likelihood.overdispersion}
    return {}


def _link(release: Predictions) -> dict[str, list[float]]:
    link = class_likelihood(release.likelihood).link
    return {"scales": link.scales.tolist(), "weights": link.weights.tolist()}


def _quantiles(likelihood: Likelihood) -> dict[str, Any] | None:
    """Return which quantiles are predicted, and which of them is nearest to the median."""
    if not isinstance(likelihood, QuantileLikelihood):
        return None
    return {
        "levels": list(likelihood.quantiles),
        "steps": likelihood.steps.tolist(),
        "middle": likelihood.middle,
    }


def _counts(likelihood: Likelihood) -> dict[str, list[float]] | None:
    """Return the nodes and shares over which counts are mixed."""
    if not isinstance(likelihood, CountLikelihood):
        return None
    return {"nodes": HERMITE_NODES.tolist(), "shares": HERMITE_SHARES.tolist()}


def _unknown_noise(release: Predictions) -> dict[str, list[float]] | None:
    """Return the multiples of the noise variance that new numbers are a mixture of, and shares."""
    if not release.noise_is_unknown:
        return None
    return {"multiples": MULTIPLES.tolist(), "shares": WEIGHTS.tolist()}


def _calibration(release: Predictions, stored: Callable[[Array], Any]) -> dict[str, Any] | None:
    """Return the distribution functions that noisy counts told, between which predictions mix."""
    known = release.calibrated_by
    if known is None:
        return None
    return {
        "grid": stored(known.grid),
        "middles": known.question.middles.tolist(),
        "curves": stored(known.curves),
    }
