"""The papers' cloaking: predictions at declared points, with noise shaped to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from cloakgp.models import ExactPrior, SparsePrior, kmeans_centres
from experiments.cloaking import LOGDET_NOISE, PAPERS_NOISE, Budget, Cloaked, Noise
from experiments.priors import PriorShape, Split
from experiments.rivals.base import Predictions, Rival
from experiments.ways import Setting

LENGTHSCALES = (0.25, 0.5, 1.0)
NOISES = (0.1, 0.25)
INDUCING = (None, 5, 10)
# Beyond, the papers' noise has no proof, and is refused.
LARGEST_PAPERS_EPSILON = 1.0


def papers_cloaking(split: Split, setting: Setting) -> Predictions:
    """Cloak the predictions of the rows that are held out, as the papers do, with their noise.

    Smith, Álvarez, Zwiessele and Lawrence 2018, and Smith, Álvarez and Lawrence 2021: a Gaussian
    process with an RBF kernel, exact or sparse, and noise of the least volume. Their calibration is
    proved for ε at most 1; beyond, it is the exact one.

    Neighbours: one output changes. Mechanism: `cloakgp.privacy.ask` on the log det design for
    the inputs that are held out, which are public; predictions anywhere else would not be so good.
    Tuned: lengthscale, noise variance, and how many inducing inputs.
    """
    noise = PAPERS_NOISE if setting.epsilon <= LARGEST_PAPERS_EPSILON else LOGDET_NOISE
    return _cloaked(split, setting, noise=noise)


def exact_cloaking(split: Split, setting: Setting) -> Predictions:
    """Cloak as `papers_cloaking` does, with exact calibration: the least noise for that shape."""
    return _cloaked(split, setting, noise=LOGDET_NOISE)


def _cloaked(split: Split, setting: Setting, *, noise: Noise) -> Predictions:
    budget = Budget(bounds=split.bounds, epsilon=setting.epsilon, delta=setting.delta)
    found = {}
    for label, designed in _designed(split).items():
        cloaked = replace(designed, noise=noise)
        release = cloaked.released(
            split.outputs, budget=budget, insecure_seed=setting.insecure_seed
        )
        found[label] = split.bounds.clip(release.published().values)
    return found


@lru_cache(maxsize=1)
def _designed(split: Split) -> dict[str, Cloaked]:
    """Design for all priors: from public inputs, whatever the budget and its calibration."""
    return {
        label: Cloaked.designed(split.X, split.X_test, prior=prior, noise=LOGDET_NOISE)
        for label, prior in _priors(split)
    }


def _priors(split: Split) -> Iterator[tuple[str, ExactPrior | SparsePrior]]:
    scale = np.ptp(split.X, axis=0)
    scale[scale == 0] = 1.0
    for lengthscale in LENGTHSCALES:
        for noise in NOISES:
            prior = split.prior(PriorShape("rbf", lengthscale, noise=noise))
            for count in INDUCING:
                label = f"lengthscale {lengthscale:g}, noise {noise:g}, {count or 'no'} inducing"
                if count is None:
                    yield label, prior
                    continue
                # Distances in raw units would see the input of the largest numbers alone.
                centres, _ = kmeans_centres(split.X / scale, count=count)
                yield (
                    label,
                    SparsePrior(
                        kernel=prior.kernel,
                        noise_variance=prior.noise_variance,
                        mean=prior.mean,
                        inducing=centres * scale,
                    ),
                )


PAPERS = Rival("papers' cloaking, their noise", "(ε, δ)", papers_cloaking)
EXACT = Rival("papers' cloaking, exact noise", "(ε, δ)", exact_cloaking)
