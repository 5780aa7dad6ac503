r"""Groups: the protected unit, one row or all rows of one person, and its effect on answers.

Neighbours
    All outputs of one group change, each anywhere within [lo, hi]; everything else is equal. Which
    row belongs to which group is public; when two ids are one person's is said in
    `cloakgp.privacy.person_ids`.
Sensitivity
    Let the rows of group g have columns R_g, shape (k, n). R y moves by R_g δ with |δ_j| ≤ d. The
    norm is convex, so its supremum is attained at a vertex: d·q(R_g) with the gauge

        q(R_g) = max { ‖R_g s‖ : s ∈ {−1, 1}ⁿ },    q² = max sᵀ G s,  G = R_gᵀ R_g.

    Of one row it is the column's length. Up to 20 rows it is computed over all signs. Of more, it
    is at most Σ_j v_j for any v with diag(v) ⪰ G, squared, because sᵀ G s ≤ sᵀ diag(v) s; v comes
    from the semidefinite relaxation (Goemans and Williamson 1995), whose optimum is at most π/2
    times q² (Nesterov 1998). It is also at most Σ_j ‖r_j‖. The least of these counts.

Everything here is rounded up, and sees public arrays only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.person_ids import person_ids
from cloakgp.privacy.rounding import UNIT_ROUNDOFF, gamma
from cloakgp.utils.arrays import Array

Groups = NDArray[np.intp]

# Groups up to here are measured over all signs.
EXACT_ROWS = 20
# Sweeps of the relaxation, and the relative slacks with which its v is tried.
SWEEPS = 60
SLACKS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4)


def checked_groups(groups: Iterable[Hashable] | None, *, rows: int) -> Groups | None:
    """Return which group each row belongs to, as integers from 0 in order of appearance.

    Parameters
    ----------
    groups : iterable of N texts or whole numbers, or None
        Public: whose row it is, compared as `cloakgp.privacy.person_ids` says. None: every row is
        a unit of its own.
    rows : int
        N.

    Returns
    -------
    array of shape (N,) or None
        None also if no two rows are in the same group.

    Raises
    ------
    ValueError
        If there are not as many as rows, or an entry is missing or no id.

    Examples
    --------
    >>> checked_groups(["eve", "bob", "eve "], rows=3)
    array([0, 1, 0])
    """
    if groups is None:
        return None
    numbers: dict[str, int] = {}
    ids = person_ids(groups, rows=rows)
    numbered = np.fromiter((numbers.setdefault(one, len(numbers)) for one in ids), dtype=np.intp)
    return None if len(numbers) == rows else numbered


def members(groups: Groups) -> list[Groups]:
    """Return the rows of each group, in the order of the groups' numbers.

    Examples
    --------
    >>> [rows.tolist() for rows in members(np.array([0, 1, 0]))]
    [[0, 2], [1]]
    """
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def greatest_gauge(strategy: Array, *, groups: Groups | None) -> float:
    """Return max_g q(R_g), rounded up.

    Exact but for rounding if no group has more than 20 rows, otherwise an upper bound.

    Argument. Every group's gauge is bounded from above by `gauge`. A group whose Σ_j ‖r_j‖, rounded
    up, is at most the greatest bound so far cannot exceed it, and is passed over.

    Parameters
    ----------
    strategy : array of shape (k, N)
    groups : array of shape (N,) or None
        From `checked_groups`.

    Examples
    --------
    >>> greatest_gauge(np.eye(2), groups=np.array([0, 0])) - 2**0.5 < 1e-12
    True
    """
    lengths = column_lengths(strategy)
    if groups is None:
        return float(lengths.max())
    together = members(groups)
    most = np.bincount(groups, weights=lengths) * (1 + 2 * gamma(len(groups)))
    greatest = 0.0
    for group in np.argsort(-most, kind="stable"):
        if most[group] <= greatest:
            break
        greatest = max(greatest, gauge(strategy[:, together[group]]))
    return greatest


def gauge(columns: Array) -> float:
    r"""Bound q of one group's columns from above.

    Argument. Write ℓ_j ≥ ‖r_j‖, t = Σ ℓ_j and γ_n = n u/(1 − n u). The computed Gram matrix differs
    from G by at most γ_k ℓ_i ℓ_j in each entry (Higham 2002, §3.1), which moves sᵀ G s by at most
    γ_k t². Up to 20 rows, sᵀ G s is computed in at most 2n + 4 nested additions (signs multiply
    exactly), an error of at most γ_{2n+4} (1 + γ_k) t². Both together are at most γ_{2(k+2n+8)} t².
    More rows: see `_relaxed`. The triangle inequality gives t itself.

    Parameters
    ----------
    columns : array of shape (k, n)
    """
    answers, rows = columns.shape
    total = float(column_lengths(columns).sum()) * (1 + 2 * gamma(rows))
    if rows == 1 or total == 0.0:
        return total
    gram = columns.T @ columns
    square = _largest_form(gram) if rows <= EXACT_ROWS else _relaxed((gram + gram.T) / 2)
    square += gamma(2 * (answers + 2 * rows + 8)) * total**2
    return min(total, float(np.sqrt(square)) * (1 + 4 * UNIT_ROUNDOFF))


def _largest_form(gram: Array) -> float:
    """Return max sᵀ G s over signs, in floating point.

    With s = (a, b) it is aᵀ G₁₁ a + bᵀ G₂₂ b + 2 aᵀ G₁₂ b, for all a and b at once; −s is as s, so
    the first sign is +1.
    """
    half = len(gram) // 2
    left, right = signs(half)[: 2 ** (half - 1)], signs(len(gram) - half)
    forms = 2.0 * (left @ gram[:half, half:]) @ right.T
    forms += np.einsum("si,ij,sj->s", left, gram[:half, :half], left, optimize=True)[:, None]
    forms += np.einsum("si,ij,sj->s", right, gram[half:, half:], right, optimize=True)
    return float(forms.max())


@cache
def signs(count: int) -> Array:
    """Return all 2ⁿ vectors of signs, those that begin with +1 first, shape (2ⁿ, n).

    Examples
    --------
    >>> signs(1).tolist()
    [[1.0], [-1.0]]
    """
    bits = (np.arange(2**count)[:, None] >> np.arange(count)[::-1]) & 1
    return np.asarray(1.0 - 2.0 * bits, dtype=np.float64)


def _relaxed(gram: Array) -> float:
    r"""Return Σ v for a v with diag(v) ⪰ G, verified.

    Argument. v is only a proposal; that diag(v) ⪰ G up to what is added is proved by a Cholesky
    factorisation of A = diag(v) − G in floating point. If it runs to completion, A + ΔA ⪰ 0 with
    |ΔA_ij| ≤ γ_{n+1}/(1 − γ_{n+1}) √(a_ii a_jj) (Higham 2002, theorem 10.3; Rump 2006), and such a
    ΔA ⪯ diag(w) with w_i = γ' √a_ii Σ_j √a_jj, because its scaled rows are dominated by their
    diagonal. The diagonal of A is off by u a_ii. So Σ v + γ' (Σ √a_jj)² + u Σ a_jj is a bound for
    the matrix given; γ' = 2 γ_{n+4} covers all of this and the sums. Without a factorisation the
    bound is infinite, and the triangle inequality remains.
    """
    count = len(gram)
    allowed = 2 * gamma(count + 4)
    best = np.inf
    for proposal in (_proposal(gram), np.full(count, float(np.linalg.eigvalsh(gram)[-1]))):
        if not (np.isfinite(proposal).all() and proposal.min() > 0):
            continue
        for slack in SLACKS:
            dominating = proposal * (1 + slack)
            rest = np.diag(dominating) - gram
            if np.diag(rest).min() <= 0:
                continue
            try:
                np.linalg.cholesky(rest)
            except np.linalg.LinAlgError:
                continue
            roots = float(np.sqrt(np.diag(rest)).sum())
            bound = float(dominating.sum()) * (1 + allowed) + allowed * roots**2 * (1 + allowed)
            best = min(best, bound)
            break
    return best


def _proposal(gram: Array) -> Array:
    """Return v with diag(v) ⪰ G nearly, and a small sum.

    The relaxation, max tr G X over correlation matrices X = Vᵀ V, is climbed one column of V at a
    time (Wang, Chang and Kolter 2017); at the optimum v_j = ‖V G_j‖. What is left is made up for by
    scaling. A row that nothing asks gets a little.
    """
    count = len(gram)
    rank = min(count, int(np.ceil(np.sqrt(2 * count))) + 1)
    index = np.arange(1, 1 + rank * count, dtype=np.float64).reshape(rank, count)
    directions = np.cos(index * np.sqrt(2.0) * np.pi)
    directions /= np.sqrt(np.square(directions).sum(axis=0))
    for _ in range(SWEEPS):
        for row in range(count):
            moved = directions @ gram[row]
            length = float(np.sqrt(moved @ moved))
            if length > 0:
                directions[:, row] = moved / length
    bounds = np.sqrt(np.square(directions @ gram).sum(axis=0))
    bounds = np.maximum(bounds, 1e-9 * bounds.max())
    roots = np.sqrt(bounds)
    largest = float(np.linalg.eigvalsh(gram / roots[:, None] / roots)[-1])
    return np.asarray(bounds * max(largest, 1.0), dtype=np.float64)


def column_lengths(columns: Array) -> Array:
    """Return the norms of columns, shape (n,), rounded up.

    Examples
    --------
    >>> column_lengths(np.eye(2)).round(9)
    array([1., 1.])
    """
    lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    return np.asarray(lengths * (1 + 2 * gamma(len(columns) + 4)), dtype=np.float64)


def lengths_of_entries_together(columns: Array, *, together: int) -> Array:
    r"""Return (Σ_tu |r_t·r_u|)^½ over the T entries of every row, shape (n / T,), rounded up.

    Where the encoded entries of a row move by w_t, of C numbers and at most d long, answers move by
    Σ_t r_t w_tᵀ, whose squared Frobenius norm is Σ_tu (r_t·r_u)(w_t·w_u), at most d² Σ_tu |r_t·r_u|
    by Cauchy and Schwarz: for any C. Questions about different outputs are orthogonal, and cost √T
    then; the triangle inequality, Σ_t ‖r_t‖, is never less.

    Rounding: a computed r_t·r_u is off by at most γ_k ‖r_t‖ ‖r_u‖ (Higham 2002, §3.1), their sum by
    T² additions more, and Σ_tu ‖r_t‖ ‖r_u‖ ≤ T Σ_t ‖r_t‖² is at most T times what is added up.

    Parameters
    ----------
    columns : array of shape (k, n)
    together : int
        T.

    Examples
    --------
    >>> columns = np.array([[3.0, 0.0, 1.0, -1.0], [0.0, 4.0, 0.0, 0.0]])
    >>> lengths_of_entries_together(columns, together=2).round(9)
    array([5., 2.])
    """
    answers, entries = columns.shape
    rows = columns.T.reshape(entries // together, together, answers)
    products = np.abs(rows @ rows.transpose(0, 2, 1)).sum(axis=(1, 2))
    slack = 2 * together * gamma(answers + together**2 + 4)
    return np.asarray(np.sqrt(products) * (1 + slack), dtype=np.float64)
