"""One release of a large table through the command line, and predictions from it."""

from __future__ import annotations

import time

import numpy as np
import protocol

from cloakgp.cli import app
from cloakgp.privacy.noise import NOISES
from cloakgp.release import Release, StreamedStrategy


def answer(arrays, options):
    """Return what the two commands took."""
    del arrays
    release, out = options["release"], options["out"]
    began = time.perf_counter()
    _, cost = protocol.measured(
        lambda: app(["release", *options["arguments"], "-o", release], standalone_mode=False),
        repeats=1,
    )
    predicting = time.perf_counter()
    app(["predict", release, "--at", options["at"], "-o", out], standalone_mode=False)
    found = {
        **cost.report(),
        "predict_seconds": time.perf_counter() - predicting,
        "both_seconds": time.perf_counter() - began,
    }
    return {}, {**found, **_asked(Release.load(release))}


def _asked(made):
    """Return what was asked of rows that nobody keeps, in all stages; nothing of other releases."""
    asked = [one for one in made.measurements if isinstance(one.strategy, StreamedStrategy)]
    if not asked:
        return {}
    # Questions about all rows alike, counts and how noisy outputs are, were not designed.
    designs = [one.strategy.certificate for one in asked if one.strategy.certificate.gap < np.inf]
    lengths = [one.strategy.longest_column(NOISES[one.answers.noise]) for one in asked]
    return {
        "noise": asked[0].answers.noise,
        "answers": sum(one.strategy.n_answers for one in asked),
        "gap": max(design.gap for design in designs),
        "longest": max(lengths),
    }


if __name__ == "__main__":
    protocol.main(answer)
