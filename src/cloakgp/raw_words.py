"""Raw predictions with noise in words: what `cloak` and `Release.published` return."""

from __future__ import annotations

import numpy as np

from cloakgp.guarantee_words import guarantee_facts, not_in_the_promise
from cloakgp.numerals import ceiling
from cloakgp.privacy import CloakedPredictions
from cloakgp.release import Published
from cloakgp.sections import Fact, Section

OUTPUT = "the output"


def describe_cloaked(release: CloakedPredictions) -> tuple[Section, ...]:
    """Return everything that a custodian should know about cloaked predictions, in sections.

    Parameters
    ----------
    release : CloakedPredictions
    """
    return (
        Section(
            "Protection",
            (
                Fact("protected", f"{OUTPUT} of every single row, within the declared bounds."),
                Fact("not protected", "the map from outputs to predictions, and the bounds."),
                *not_in_the_promise(OUTPUT),
            ),
        ),
        Section(
            "Guarantee",
            guarantee_facts(release.guarantee, output="output", parts=[release.guarantee]),
        ),
        Section(
            "Noise",
            (
                _noise(release),
                Fact(
                    "design",
                    "the noise was shaped to be the least. It is certified to be within "
                    f"{ceiling(100 * release.gap, digits=2)} % of the least possible.",
                ),
            ),
        ),
    )


def describe_published(release: Published) -> tuple[Section, ...]:
    """Return what there is to know about raw predictions, in sections.

    Parameters
    ----------
    release : Published
    """
    return (Section("Noise", (_noise(release),)),)


def _noise(release: CloakedPredictions | Published) -> Fact:
    source = "a FIXED SEED" if release.insecure else "the operating system's randomness"
    sd = float(np.sqrt(np.diag(release.noise_cov).mean())) if len(release.values) else 0.0
    return Fact(
        "answers",
        f"raw predictions at {len(release.values)} points, with normal noise of {sd:.4g} (root "
        f"mean square, in output units), drawn from {source}.",
    )
