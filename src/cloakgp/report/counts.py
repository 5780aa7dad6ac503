"""Releases about counts in words: the predicted rate, and the scatter of counts about it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cloakgp.models.likelihoods import CountLikelihood
from cloakgp.release import Release
from cloakgp.release.io.codec import to_tree
from cloakgp.release.measurement import exposures_of
from cloakgp.report.facts import Fact
from cloakgp.report.measurements import approximation, describe_origin
from cloakgp.report.outputs import NumberWords
from cloakgp.utils.formatting import amount


class CountWords(NumberWords):
    """Releases about counts."""

    def also_public(self) -> str:
        """Name the public facts beside the inputs and membership in the table."""
        return "the bounds, the prior, and exposures, if rows have any"

    def sharpness(self, release: Release) -> tuple[Fact, ...]:
        """State the sharpness of predictions."""
        [fact] = super().sharpness(release)
        told = f"{fact.text} These are sds of the logarithm of the rate: 0.1 is a tenth of it."
        return (replace(fact, text=told),)

    def prior(self, release: Release) -> tuple[Fact, ...]:
        """Return the prior in words, and where its values come from."""
        fitted, declared = release.fitted, release.prior
        before, after = _scatter(release.likelihood), _scatter(fitted.likelihood)
        return (
            Fact(
                "predicts",
                f"the rate of {release.output_name}: how many are expected for one unit of "
                f"exposure{_exposures(release)}.",
            ),
            Fact(
                "counts",
                f"negative binomial: of mean m, a count has variance {after}.{_averaged(release)}"
                if after != POISSON
                else f"Poisson: of mean m, a count has variance {POISSON}.",
            ),
            Fact("kernel", f"{fitted.prior.kernel} (covariance of the logarithm of the rate)"),
            Fact("mean", f"{amount(np.exp(fitted.prior.mean), 4)}, a rate"),
            approximation(fitted.prior),
            *describe_origin(
                priors=len(release.learned),
                unchanged=to_tree((fitted.prior, fitted.likelihood))
                == to_tree((declared, release.likelihood)),
                what="these values",
                declared=f"{declared.kernel}, rate {amount(np.exp(declared.mean), 4)}, variance "
                f"{before}",
            ),
        )


POISSON = "m"


def _scatter(likelihood: object) -> str:
    assert isinstance(likelihood, CountLikelihood)
    if likelihood.overdispersion == 0:
        return POISSON
    return f"m + {amount(likelihood.overdispersion, 3)} m²"


def overdispersions(release: Release) -> dict[float, float]:
    """Return the overdispersions that predictions average over, in order, and their shares.

    Parameters
    ----------
    release : Release
        About counts.
    """
    shares: dict[float, float] = {}
    for one in release.learned or (release.fitted,):
        assert isinstance(one.likelihood, CountLikelihood)
        own = one.likelihood.overdispersion
        shares[own] = shares.get(own, 0.0) + one.weight
    return dict(sorted(shares.items()))


def _averaged(release: Release) -> str:
    """State what predictions average over, where the factor of m² is not known."""
    shares = overdispersions(release)
    if len(shares) == 1:
        return ""
    values = ", ".join(
        f"{amount(own, 3)} ({amount(100 * share, 2)} %)" for own, share in shares.items()
    )
    return (
        " That factor of m² is not known: predictions, their errors and intervals average over "
        f"{values}, which stand for what the noisy answers leave open of it."
    )


def _exposures(release: Release) -> str:
    """Return between which numbers exposures are."""
    exposures = exposures_of(release.measurements)
    if not exposures:
        return ", which every row had"
    every = np.concatenate(exposures)
    return f", of which rows had {amount(every.min(), 4)} to {amount(every.max(), 4)}"
