"""dp4gp's standard use: `DPGP_cloaking.draw_prediction_samples` on a GPy model.

As in its authors' notebooks, outputs are rectified to the bounds, and then lose their mean and are
divided by their sd, both un-noised: a leak, which spares it the noise that these would cost. All
draws of a fold share one design, which is what its argument N does, so that its time counts once.

Time and memory of its search are known from a single step's products. The first of the settings
that fits the limits is taken; if none does, the result says so.
"""

from __future__ import annotations

import time

import GPy
import numpy as np
import protocol
from dp4gp.dp4gp import DPGP_cloaking

PROBED_COLUMNS = 10
SHARE_OF_LIMIT = 0.85


def seconds_per_step(rows, predictions):
    """Return what one step of its search takes, from the products of a few columns."""
    columns = np.random.default_rng(0).normal(size=(PROBED_COLUMNS, predictions, 1))
    inverse = np.eye(predictions)
    began = time.perf_counter()
    for column in columns:
        outer = np.dot(column, column.T)
        np.trace(np.dot(inverse, outer))
        inverse = inverse + 1e-9 * outer
    return (time.perf_counter() - began) / PROBED_COLUMNS * rows


def answer(arrays, options):
    """Return predictions and times."""
    X, y, fold = arrays["X"], np.clip(arrays["y"], *options["bounds"]), arrays["fold"]
    draws, count = options["draws"], int(fold.max()) + 1
    largest = max(int((fold == number).sum()) for number in range(count))
    outer_gb = len(X) * largest**2 * 8 / 1024**3
    if outer_gb > options["memory_gb"]:
        said = f"its list of outer products alone would take {outer_gb:.0f} GB"
        return {}, {"status": "skipped", "reason": said}
    per_step = seconds_per_step(len(X), largest)
    for attempts, steps in options["attempts_and_steps"]:
        projected = attempts * steps * per_step * count
        if projected <= SHARE_OF_LIMIT * options["limit"]:
            break
    else:
        said = f"{attempts} x {steps} steps in {count} folds would take about {projected:.0f} s"
        return {}, {"status": "skipped", "reason": said}

    predictions = np.full((draws, len(X)), np.nan)
    seconds, cpu_seconds = np.zeros((count, draws)), np.zeros((count, draws))
    start = protocol.resident_mb("VmRSS")
    protocol.forget_peak()
    for number in range(count):
        here = fold == number
        began, began_cpu = time.perf_counter(), time.process_time()
        centre, unit = y[~here].mean(), y[~here].std()
        model = GPy.models.GPRegression(
            X[~here],
            (y[~here][:, None] - centre) / unit,
            GPy.kern.RBF(
                X.shape[1], variance=options["variance"], lengthscale=options["lengthscale"]
            ),
            noise_var=options["noise_variance"],
        )
        width = (options["bounds"][1] - options["bounds"][0]) / unit
        cloaking = DPGP_cloaking(
            model, sens=width, epsilon=options["epsilon"], delta=options["delta"]
        )
        samples, _, _ = cloaking.draw_prediction_samples(
            X[here], N=draws, Nattempts=attempts, Nits=steps
        )
        seconds[number] = time.perf_counter() - began
        cpu_seconds[number] = time.process_time() - began_cpu
        predictions[:, here] = centre + unit * samples.T
    times = {"seconds": seconds, "cpu_seconds": cpu_seconds}
    found = {"predictions": predictions[:, fold >= 0], **times}
    memory = {"start_mb": start, "peak_mb": protocol.resident_mb("VmHWM")}
    return found, {"settings": f"{attempts} x {steps} steps", **memory}


if __name__ == "__main__":
    np.random.seed(0)  # noqa: NPY002 - the package draws from the global generator
    protocol.main(answer)
