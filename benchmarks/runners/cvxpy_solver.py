"""Both criteria as convex programs for cvxpy, in the range of the cloaking matrix.

With c_j the columns in coordinates of the range, u on the simplex and S = Σ u_j c_j c_jᵀ:

- ``logdet``: maximise log det S in the orthonormal basis, where every scale is alike; M = r S;
- ``trace``: maximise tr Z subject to [[S, Z], [Z, I]] ⪰ 0, so that Z = S^½; M = tr(S^½) S^½.

Negative weights within the solver's tolerance are set to zero. The time is that of `Problem.solve`,
which includes cvxpy's own translation.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import protocol


def answer(arrays, options):
    """Return the root of the noise in the orthonormal basis, and what it took."""
    right, scales = arrays["right"], arrays["scales"]
    rank, rows = right.shape
    relative = scales / scales[0]
    logdet = options["criterion"] == "logdet"
    columns = right * np.sqrt(rows / rank) if logdet else relative[:, None] * right * np.sqrt(rows)

    def solve():
        u = cp.Variable(rows, nonneg=True)
        squares = np.einsum("ij,kj->ikj", columns, columns).reshape(rank * rank, rows)
        S = cp.reshape(squares @ u, (rank, rank), order="C")
        if logdet:
            problem = cp.Problem(cp.Maximize(cp.log_det(S)), [cp.sum(u) == 1])
        else:
            Z = cp.Variable((rank, rank), symmetric=True)
            block = cp.bmat([[S, Z], [Z, np.eye(rank)]])
            problem = cp.Problem(cp.Maximize(cp.trace(Z)), [cp.sum(u) == 1, block >> 0])
        problem.solve(solver=options["solver"])
        return problem, u.value

    (problem, weights), cost = protocol.measured(solve, repeats=options["repeats"])
    if weights is None:
        return {}, {"status": "failed", "reason": f"its status is {problem.status}"}
    weights = np.maximum(weights, 0.0)
    weights /= weights.sum()
    if logdet:
        root = np.sqrt(rank * weights) * right
    else:
        left, sizes, _ = np.linalg.svd(
            relative[:, None] * right * np.sqrt(weights), full_matrices=False
        )
        # M is in units of the largest scale squared.
        root = np.sqrt(sizes.sum()) / relative[:, None] * left * np.sqrt(sizes)
    found = {"settings": f"status {problem.status}", "stated_scale": 1.0, **cost.report()}
    return {"root": root}, found


if __name__ == "__main__":
    protocol.main(answer)
