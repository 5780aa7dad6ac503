"""Releases about quantiles in words: predictions, their uncertainty, and the prior."""

from __future__ import annotations

import numpy as np

from cloakgp.models.likelihoods.quantiles import QuantileLikelihood, quantile_likelihood
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.release import Measurement, Release
from cloakgp.release.io.codec import to_tree
from cloakgp.release.measurement import declared_bounds
from cloakgp.report.columns import asked_output
from cloakgp.report.facts import Fact
from cloakgp.report.measurements import approximation, describe_origin
from cloakgp.report.outputs import BASIS, NumberWords, in_output_units
from cloakgp.utils.formatting import NORMAL_95, amount


class QuantileWords(NumberWords):
    """Words for releases about quantiles."""

    def predictions(self, release: Release) -> tuple[Fact, ...]:
        """Describe predicted quantiles and their typical errors."""
        points = np.vstack([one.strategy.X_query for one in release.measurements])
        levels, name = quantile_likelihood(release.likelihood).quantiles, release.output_name
        lower, upper = release.predict_limits(points)
        predicted = release.predict(points)
        errors = np.median(upper - lower, axis=0) / (2 * NORMAL_95)
        middles = np.median(predicted, axis=0)
        each = "; ".join(
            f"{amount(level, 12)}: {amount(middle, 3)}, typically off by {amount(error, 2)}"
            for level, middle, error in zip(levels, middles, errors, strict=True)
        )
        facts = [
            Fact(
                "quantiles",
                f"of {name}, for people with the same inputs; of each the middle one of those "
                f"at the query points. {each}. They are in order everywhere.",
            )
        ]
        if len(levels) > 1:
            width = float(np.median(predicted[:, -1] - predicted[:, 0]))
            share = 100 * (levels[-1] - levels[0])
            facts.insert(
                0,
                Fact(
                    "for one person",
                    f"{amount(share, 3)} % of values are to lie between the first quantile and "
                    "the last, "
                    f"which are typically {amount(width, 3)} apart.",
                ),
            )
        return (*facts, BASIS)

    def describe_design(self, measurement: Measurement, release: Release) -> str:
        """Describe the choice of the questions."""
        if isinstance(measurement.question, CountQuestion):
            return (
                "chosen from the counts before it, to find an interval that holds most values, to "
                "which the prior is scaled."
            )
        return super().describe_design(measurement, release)

    def prior(self, release: Release) -> tuple[Fact, ...]:
        """Return the prior in words, and the origin of its values."""
        fitted, declared = release.fitted, release.prior
        known = quantile_likelihood(fitted.likelihood)
        unit = f"units of {asked_output(release)}"
        return (
            Fact("kernel", f"{fitted.prior.kernel} (covariance of a quantile, in squared {unit})"),
            Fact(
                "in common",
                f"{known.in_common:g} of that is common to all quantiles, the rest of each.",
            ),
            Fact("scatter", f"{_scales(known)}, an sd near each quantile, in {unit}."),
            Fact("mean", f"{amount(fitted.prior.mean, 4)}, of the median"),
            approximation(fitted.prior),
            *describe_origin(
                priors=len(release.learned),
                unchanged=to_tree((fitted.prior, fitted.likelihood))
                == to_tree((declared, release.likelihood)),
                what="these values",
                declared=f"{declared.kernel}, scatter "
                f"{_scales(quantile_likelihood(release.likelihood))}, mean "
                f"{amount(declared.mean, 4)}",
                looked_at="any answer but the counts"
                if any(not one.question.locates for one in release.measurements)
                else "any answer",
            ),
        )

    def declared(self, release: Release) -> str:
        """Describe the declaration of the private column."""
        [(lo, hi), *_] = in_output_units(release, declared_bounds(release.measurements))
        taken = (
            f" Questions are about {asked_output(release)}, of values clipped to that range."
            if release.transform is not None
            else ""
        )
        return f"private; declared to matter from {amount(lo, 6)} to {amount(hi, 6)}.{taken}"


def _scales(likelihood: QuantileLikelihood) -> str:
    shown = dict.fromkeys(f"{amount(scale, 3)}" for scale in likelihood.scales)
    return ", ".join(shown)
