"""Regression on public features from noisy sums Φᵀy: once, or of clipped residuals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from scipy import linalg
from sklearn.preprocessing import PolynomialFeatures

from cloakgp.fitting.defaults import choose_prior
from cloakgp.models.latent import latent_covariance
from cloakgp.privacy import OutputBounds
from cloakgp.utils.arrays import Array
from experiments.priors import Split
from experiments.rivals.base import (
    Predictions,
    Rival,
    ask,
    mapped_inputs,
    noises_of,
    part_of,
)
from experiments.ways import Setting

DEGREES = (0, 1, 2, 3, 4)
# Beyond so many features noise is all that there is.
MOST_FEATURES = 40
# Times the rows, beside features whose squares add up to that.
RIDGES = (0.0, 0.03, 0.1, 0.3, 1.0)
# Directions that rows hardly have.
SMALLEST_SHARE = 1e-6
EIGENFEATURES = (5, 10, 20)
ROUNDS = (1, 2, 4)
DECAYS = (0.4, 0.6)
BOOSTED_RIDGES = (0.03, 0.2, 1.0)
# Of the bounds' width: what residuals are clipped to at least.
NARROWEST = 0.05


@dataclass(frozen=True, eq=False)
class Features:
    """Public features of the rows that are fitted, and of those that are predicted."""

    fitted: Array
    test: Array

    @property
    def count(self) -> int:
        """How many they are."""
        return int(self.fitted.shape[1])

    def orthonormal(self) -> Features:
        """Return features that are uncorrelated over the rows, with mean squares of 1."""
        rows = len(self.fitted)
        _, sizes, directions = linalg.svd(self.fitted, full_matrices=False)
        kept = sizes > SMALLEST_SHARE * sizes[0]
        scale = directions[kept].T * (np.sqrt(rows) / sizes[kept])
        return Features(self.fitted @ scale, self.test @ scale)

    def levelled(self) -> Features:
        """Return features of which no fitted row is longer than nine in ten of them are.

        Long rows are scaled down, which gives them less weight in least squares.
        """
        lengths = np.linalg.norm(self.fitted, axis=1)
        most = max(float(np.quantile(lengths, 0.9)), np.finfo(np.float64).tiny)
        return Features(
            self.fitted * np.minimum(1.0, most / np.maximum(lengths, most))[:, None], self.test
        )


def polynomials(split: Split, *, degree: int, ranked: bool) -> Features:
    """Return all monomials up to a degree of inputs mapped to [−1, 1]."""
    made = PolynomialFeatures(degree=degree)
    fitted, test = mapped_inputs(split, ranked=ranked)
    return Features(made.fit_transform(fitted), made.transform(test))


def monomials(inputs: int, *, degree: int) -> int:
    """Return how many monomials up to a degree there are, without making them.

    Examples
    --------
    >>> monomials(2, degree=2)
    6
    """
    return math.comb(inputs + degree, degree)


def eigenfeatures(split: Split, *, count: int) -> Features:
    """Return the directions in which the default prior varies most over the rows, by their sds."""
    prior = choose_prior(split.X, bounds=OutputBounds(-0.5, 0.5))
    covariance = latent_covariance(prior.kernel, split.X, split.X)
    values, vectors = linalg.eigh(covariance)
    largest, directions = values[::-1][:count], vectors[:, ::-1][:, :count]
    scale = directions / np.sqrt(largest)
    crossed = latent_covariance(prior.kernel, split.X_test, split.X)
    return Features(covariance @ scale, crossed @ scale)


def noisy_polynomials(split: Split, setting: Setting) -> Predictions:
    """Regress on polynomials from a noisy Xᵀy, with XᵀX as it is, since inputs are public.

    Neighbours: one output changes. Mechanism: `experiments.rivals.base.ask` on R = Xᵀ, so that
    noise is in proportion to the longest row. Tuned: degree; inputs by range or by rank; features
    as they are or uncorrelated over the rows, and these with long rows scaled down; Laplace noise
    at ε or Gaussian at (ε, δ); ridge.
    """
    found = {}
    for degree, ranked in product(DEGREES, (False, True)):
        if monomials(split.X.shape[1], degree=degree) > MOST_FEATURES:
            continue
        plain = polynomials(split, degree=degree, ranked=ranked)
        uncorrelated = plain.orthonormal()
        kinds = {
            "as they are": plain,
            "uncorrelated": uncorrelated,
            "levelled": uncorrelated.levelled(),
        }
        for (kind, features), noise in product(kinds.items(), noises_of(setting)):
            name = f"degree {degree}, by {'rank' if ranked else 'range'}, {kind}, {noise}"
            R = features.fitted.T
            asked = ask(R, split.outputs, bounds=split.bounds, setting=setting, noise=noise)
            gram = R @ (plain if kind == "as they are" else uncorrelated).fitted
            for ridge in RIDGES:
                penalty = (ridge * len(split.X) + 1e-9) * np.eye(features.count)
                coefficients = linalg.solve(gram + penalty, asked.values)
                predicted = asked.centre + features.test @ coefficients
                found[f"{name}, ridge {ridge:g}"] = split.bounds.clip(predicted)
    return found


def halves(bounds: OutputBounds, *, rounds: int, decay: float) -> list[float]:
    """Return to what residuals about the middle are clipped in every round, ever closer.

    Examples
    --------
    >>> halves(OutputBounds(0.0, 4.0), rounds=3, decay=0.5)
    [2.0, 1.0, 0.5]
    """
    narrowest = NARROWEST * bounds.width
    return [max(bounds.width / 2 * decay**number, narrowest) for number in range(rounds)]


def boosted_sums(split: Split, setting: Setting) -> Predictions:
    """Regress clipped residuals again and again on public features (after BoostedAdaSSP).

    Tang, Aydöre, Kearns, Rho, Roth, Wang, Wang and Wu 2023, *Improved differentially private
    regression via gradient boosting*, with inputs that are public: XᵀX is as it is, and all of the
    budget goes to Xᵀ of residuals clipped ever closer to 0.

    Neighbours: one output changes. Mechanism: in every round `experiments.rivals.base.ask` on R =
    Φᵀ and residuals within ± half; the fit so far is public, so one output moves a residual by the
    clip's width at most. Composition: `experiments.rivals.base.part_of_budget`. Tuned: features
    (polynomials, or those in which the default prior varies most), rounds, how fast clips close,
    ridge, and Laplace noise at ε or Gaussian at (ε, δ).
    """
    found = {}
    for name, features in _boosted_features(split):
        gram = features.fitted.T @ features.fitted
        size = float(np.trace(gram)) / features.count
        for rounds, decay, ridge, noise in product(
            ROUNDS, DECAYS, BOOSTED_RIDGES, noises_of(setting)
        ):
            if rounds == 1 and decay != DECAYS[0]:
                continue
            solve = partial(linalg.solve, gram + ridge * size * np.eye(features.count))
            coefficients = np.zeros(features.count)
            closing = halves(split.bounds, rounds=rounds, decay=decay)
            for number, half in enumerate(closing):
                left = split.outputs - split.bounds.middle - features.fitted @ coefficients
                asked = ask(
                    features.fitted.T,
                    left,
                    bounds=OutputBounds(-half, half),
                    setting=part_of(setting, parts=rounds, number=number, noise=noise),
                    noise=noise,
                )
                coefficients = coefficients + solve(asked.values)
            predicted = split.bounds.middle + features.test @ coefficients
            label = f"{name}, {rounds} rounds, clips times {decay:g}, ridge {ridge:g}, {noise}"
            found[label] = split.bounds.clip(predicted)
    return found


def _boosted_features(split: Split) -> Iterator[tuple[str, Features]]:
    for degree in (1, 2, 3):
        if monomials(split.X.shape[1], degree=degree) <= MOST_FEATURES:
            made = polynomials(split, degree=degree, ranked=True)
            yield f"polynomials of degree {degree}", made.orthonormal()
    for count in EIGENFEATURES:
        yield f"{count} eigenfeatures", eigenfeatures(split, count=count)


POLYNOMIALS = Rival("noisy Xᵀy, polynomials", "ε or (ε, δ)", noisy_polynomials)
BOOSTED_SUMS = Rival("boosted clipped residuals, features", "ε or (ε, δ)", boosted_sums)
