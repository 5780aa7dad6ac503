"""jax-privacy's dense strategy optimiser, with the cloaking matrix as its workload.

`matrix_factorization.dense.optimize(n, A=workload)` with one epoch minimises
tr(A X⁻¹ Aᵀ)/n over positive-definite X (n × n) with unit diagonal, by L-BFGS, and returns a
triangular strategy S with X = SᵀS: the least mean squared noise under column-norm sensitivity,
cloakgp's `trace`, in N dimensions instead of the range's few. It stops when no gradient exceeds
1e-3, a number tuned to its default workload of prefix sums; the workload is therefore scaled to
have the same mean square. Near the end of the limit it is stopped, and the result says so.
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import protocol
from jax_privacy.matrix_factorization import dense, sensitivity

SHARE_OF_LIMIT = 0.8


def answer(arrays, options):
    """Return the strategy, and what it took."""
    C = arrays["C"]
    rows = C.shape[1]
    scaled = C * np.sqrt(rows * (rows + 1) / 2 / np.square(C).sum())
    steps, allowed = options["steps"], SHARE_OF_LIMIT * options["limit"]
    taken, shortened, began = 0, False, time.perf_counter()

    def stop(step):
        nonlocal taken, shortened
        taken, shortened = step.step + 1, time.perf_counter() - began > allowed
        return shortened or dense.pg_tol_termination_fn(step)

    strategy, cost = protocol.measured(
        lambda: jax.block_until_ready(
            dense.optimize(rows, A=jnp.asarray(scaled), max_optimizer_steps=steps, callback=stop)
        ),
        repeats=options["repeats"],
    )
    if not bool(jnp.isfinite(strategy).all()):
        return {}, {"status": "failed", "reason": f"not a number after {taken} steps"}
    found = {
        "settings": f"{taken} of at most {steps} steps" + (", shortened" if shortened else ""),
        "stated_scale": float(sensitivity.single_participation_sensitivity(strategy)) ** 2,
        **cost.report(),
    }
    return {"strategy": np.asarray(strategy)}, found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    protocol.main(answer)
