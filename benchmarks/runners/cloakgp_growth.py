"""One release of a large table through the command line, and predictions from it."""

from __future__ import annotations

import time

import protocol

from cloakgp.cli import app
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
    strategy = Release.load(release).measurements[0].strategy
    if isinstance(strategy, StreamedStrategy):
        found |= {
            "answers": strategy.n_answers,
            "gap": strategy.certificate.gap,
            "longest": strategy.longest_column(),
        }
    return {}, found


if __name__ == "__main__":
    protocol.main(answer)
