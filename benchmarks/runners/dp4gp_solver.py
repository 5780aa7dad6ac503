"""dp4gp's own search for the noise of given cloaking vectors: `DPGP_cloaking.findLambdas_repeat`.

Its settings are attempts from random starts and steps of each; a step's time is measured first. If
they would take longer than the limit allows, one attempt of as many steps as fit is made instead,
and the result says so. With fewer than ``FEWEST`` steps it is skipped.
"""

from __future__ import annotations

import time

import numpy as np
import protocol
from dp4gp.dp4gp import DPGP_cloaking

FEWEST = 20
PROBED_STEPS = 2
PINV_RTOL = 1e-15
SHARE_OF_LIMIT = 0.85


def answer(arrays, options):
    """Return the weights, the covariance's stated scale, and what was run."""
    np.random.seed(options["seed"])  # noqa: NPY002 - the package draws from the global generator
    C = arrays["C"]
    columns = [C[:, [j]] for j in range(C.shape[1])]
    cloaking = DPGP_cloaking(None, sens=1.0, epsilon=1.0, delta=0.01)
    attempts, steps = options["attempts"], options["steps"]

    began = time.perf_counter()
    cloaking.findLambdas_grad(columns, PROBED_STEPS)
    per_step = (time.perf_counter() - began) / PROBED_STEPS
    projected = attempts * steps * per_step
    allowed = SHARE_OF_LIMIT * options["limit"]
    shortened = projected > allowed
    if shortened:
        attempts, steps = 1, min(steps, int(allowed / per_step))
        if steps < FEWEST:
            said = f"one step takes {per_step:.2g} s, so that fewer than {FEWEST} fit"
            return {}, {"status": "skipped", "reason": said}

    weights, cost = protocol.measured(
        lambda: cloaking.findLambdas_repeat(columns, Nattempts=attempts, Nits=steps),
        repeats=options["repeats"],
    )
    if weights is None:
        return {}, {"status": "failed", "reason": "it says that it failed to find a solution"}
    M = cloaking.calcM(weights, columns)
    stated = float(np.squeeze(cloaking.calcDelta(weights, columns)))
    found = {
        "settings": f"{attempts} x {steps} steps" + (", shortened" if shortened else ""),
        # The package multiplies the noise's sd by this number; it is the square of what is due.
        "stated_scale": stated**2,
        # As its pseudo-inverse sees them: in others it adds noise that its sensitivity ignores.
        "seen_directions": int(np.linalg.matrix_rank(M, tol=PINV_RTOL * np.linalg.norm(M, 2))),
        "zero_weights": int(np.count_nonzero(weights == 0)),
        **cost.report(),
    }
    return {"weights": weights}, found


if __name__ == "__main__":
    protocol.main(answer)
