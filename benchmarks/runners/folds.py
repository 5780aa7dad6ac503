"""Cross-validation that is the same for every package."""

from __future__ import annotations

import time

import numpy as np
import protocol


def cross_validate(arrays, options, fit):
    """Fit on every fold's other rows, as often as there are draws, and predict the fold.

    Parameters
    ----------
    arrays : mapping
        ``X``; ``y``; ``fold``, the number of the fold in which a row is held out, or -1 if in none.
    options : mapping
        ``draws``.
    fit : callable
        (X, y, X_query, draw) → function from query points to predictions. It alone is timed.

    Returns
    -------
    arrays : mapping
        ``predictions`` (draws, held-out rows in the table's order); ``seconds`` and
        ``cpu_seconds`` (folds, draws).
    report : mapping
    """
    X, y, fold = arrays["X"], arrays["y"], arrays["fold"]
    held_out = np.flatnonzero(fold >= 0)
    draws, folds = options["draws"], int(fold.max()) + 1
    predictions = np.full((draws, len(fold)), np.nan)
    seconds, cpu_seconds = np.zeros((folds, draws)), np.zeros((folds, draws))
    start = protocol.resident_mb("VmRSS")
    protocol.forget_peak()
    for number in range(folds):
        here = fold == number
        for draw in range(draws):
            began, began_cpu = time.perf_counter(), time.process_time()
            predict = fit(X[~here], y[~here], X[here], draw)
            seconds[number, draw] = time.perf_counter() - began
            cpu_seconds[number, draw] = time.process_time() - began_cpu
            predictions[draw, here] = predict(X[here])
    memory = {"start_mb": start, "peak_mb": protocol.resident_mb("VmHWM")}
    times = {"seconds": seconds, "cpu_seconds": cpu_seconds}
    return {"predictions": predictions[:, held_out], **times}, memory
