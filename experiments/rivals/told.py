"""Label randomisers: outputs told one by one at random, and a regression on what was told.

Each is ε-differentially private in one output, and the regression is post-processing. Two know a
noisy histogram of the outputs and are made for it: randomised response on bins, with the least
squared error (Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan and Zhang 2023, *Regression
with label differential privacy*), and the unbiased randomiser of least variance (Badanidiyuru,
Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan and Zhang 2023, *Optimal unbiased randomizers
for regression with label differential privacy*). Random numbers of randomisers are numpy's: for
comparison only, not for a release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, sparse
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from cloakgp.privacy import OutputBounds
from cloakgp.utils.arrays import Array
from experiments.priors import Split
from experiments.rivals.base import Predictions, Rival
from experiments.rivals.direct import noisy_rows, randomised_response
from experiments.ways import Setting

# Even levels that outputs are rounded to, and the share of ε that their histogram has.
LEVELS, PRIOR_SHARE = 16, 0.2
# Values that may be told by the unbiased randomiser.
REPORTS = 40
# Beyond, odds are as good as certainty, and too large for a linear programme.
LARGEST_EPSILON = 20.0
BOOSTED = ((20, 0.1), (60, 0.1))
LEAST_IN_LEAF = (20, 80)
RIDGES = (1.0, 100.0)


@dataclass(frozen=True, eq=False)
class Randomiser:
    """What is told instead of each of a few levels, and how probably.

    Attributes
    ----------
    told : array of shape (R,)
    probabilities : array of shape (levels, R)
        Rows add up to 1, and no two entries of a column have a ratio beyond e^ε.
    """

    told: Array
    probabilities: Array

    def draw(self, levels: Array, rng: np.random.Generator) -> Array:
        """Return what is told of rows at these levels, shape (N,)."""
        below = np.cumsum(self.probabilities, axis=1)[levels]
        drawn = (rng.uniform(size=(len(levels), 1)) > below[:, :-1]).sum(axis=1)
        found: Array = self.told[drawn]
        return found


def bins_of_least_error(levels: Array, prior: Array, *, epsilon: float) -> Randomiser:
    """Return randomised response on the bins, and for them the values, of least squared error.

    With d bins a level is told as its own bin's value with probability e^ε/(e^ε + d − 1), or else
    as one of the others' (Ghazi et al. 2023, theorem 3: bins are intervals; algorithm 2, by dynamic
    programming over their ends). A bin's value is the mean that weighs its own levels and, less,
    all others.

    Parameters
    ----------
    levels : array of shape (L,)
        Ascending.
    prior : array of shape (L,)
        Adds up to 1.
    epsilon : float

    Examples
    --------
    >>> found = bins_of_least_error(np.array([0.0, 1.0, 5.0]), np.full(3, 1 / 3), epsilon=40.0)
    >>> found.told.round(6).tolist()
    [0.0, 1.0, 5.0]
    >>> bins_of_least_error(np.array([0.0, 4.0]), np.array([0.5, 0.5]), epsilon=0.0).told
    array([2.])
    """
    count = len(levels)
    # Sums of p, p y and p y² below each end, so that those of any interval are differences.
    sums = np.zeros((3, count + 1))
    sums[:, 1:] = np.cumsum(prior * np.stack([np.ones(count), levels, levels**2]), axis=1)
    within = sums[:, None, :] - sums[:, :, None]
    best: tuple[float, list[int], Array] | None = None
    for bins in range(1, count + 1):
        other = 1.0 / (np.exp(epsilon) + bins - 1)
        own = np.expm1(epsilon) * other
        weight, first, second = own * within + other * sums[:, -1, None, None]
        values = np.divide(first, weight, out=np.zeros_like(first), where=weight > 0)
        losses = np.where(weight > 0, second - values * first, 0.0)
        losses[np.tril_indices(count + 1)] = np.inf
        reached, back = np.full(count + 1, np.inf), []
        reached[0] = 0.0
        for _ in range(bins):
            through = reached[:, None] + losses
            back.append(through.argmin(axis=0))
            reached = through.min(axis=0)
        if best is not None and reached[-1] >= best[0]:
            continue
        ends = [count]
        for previous in reversed(back):
            ends.append(int(previous[ends[-1]]))
        ends.reverse()
        best = float(reached[-1]), ends, values[ends[:-1], ends[1:]]
    assert best is not None
    _, ends, told = best
    bin_of = np.searchsorted(ends, np.arange(count), side="right") - 1
    other = 1.0 / (np.exp(epsilon) + len(told) - 1)
    probabilities = np.full((count, len(told)), other)
    probabilities[np.arange(count), bin_of] = np.exp(epsilon) * other
    return Randomiser(told, probabilities)


def unbiased_of_least_variance(
    levels: Array, prior: Array, told: Array, *, epsilon: float
) -> Randomiser:
    """Return the randomiser that tells every level right on average, with the least variance.

    A linear programme (Badanidiyuru et al. 2023, section 3): minimise Σ p(y) P(t | y) (t − y)² over
    P(t | y) ≥ 0 whose rows add up to 1 and have mean y, with m(t) ≤ P(t | y) ≤ e^ε m(t) for a
    least probability m of each t.

    Parameters
    ----------
    levels : array of shape (L,)
    prior : array of shape (L,)
    told : array of shape (R,)
        Must reach far enough beyond the levels for ε.
    epsilon : float

    Raises
    ------
    ValueError
        If no randomiser on these values is unbiased.
    """
    count, reports = len(levels), len(told)
    odds = np.exp(min(epsilon, LARGEST_EPSILON))
    cells, unit = count * reports, max(1.0, float(np.abs(told).max()))
    costs = (prior[:, None] * np.square((told - levels[:, None]) / unit)).ravel()
    each = sparse.kron(sparse.eye_array(count), np.ones((1, reports)))
    means = sparse.kron(sparse.eye_array(count), told[None, :] / unit)
    nothing = sparse.csr_array((count, reports))
    least = sparse.kron(np.ones((count, 1)), sparse.eye_array(reports))
    cells_of = sparse.eye_array(cells)
    found = optimize.linprog(
        np.concatenate([costs, np.zeros(reports)]),
        A_eq=sparse.vstack([sparse.hstack([each, nothing]), sparse.hstack([means, nothing])]),
        b_eq=np.concatenate([np.ones(count), levels / unit]),
        A_ub=sparse.vstack(
            [
                sparse.hstack([cells_of, -odds * least]),
                sparse.hstack([-cells_of, least]),
            ]
        ),
        b_ub=np.zeros(2 * cells),
        method="highs",
    )
    if found.x is None:
        raise ValueError("no randomiser on these values is unbiased: let them reach further")
    probabilities = np.maximum(found.x[:cells].reshape(count, reports), 0.0)
    return Randomiser(told, probabilities / probabilities.sum(axis=1, keepdims=True))


def noisy_prior(
    outputs: Array, levels: Array, *, setting: Setting, rng: np.random.Generator
) -> Array:
    """Return the shares of outputs nearest to each level, from noisy counts; adds up to 1.

    Neighbours: one output changes, and with it two counts by 1. Mechanism: Laplace noise of scale
    2/ε on each count (Dwork, McSherry, Nissim and Smith 2006, proposition 1).
    """
    counts = np.bincount(np.abs(outputs[:, None] - levels).argmin(axis=1), minlength=len(levels))
    noisy = np.maximum(counts + rng.laplace(scale=2.0 / setting.epsilon, size=len(levels)), 0.0)
    # Nobody's level is impossible.
    noisy = noisy + 1e-3 * max(float(noisy.sum()), 1.0) / len(levels)
    shares: Array = noisy / noisy.sum()
    return shares


def told_ways(split: Split, setting: Setting) -> Iterator[tuple[str, Array]]:
    """Yield what is told of every row, by randomiser, each with all of ε."""
    rng = np.random.default_rng(setting.insecure_seed)
    yield "Laplace noise", noisy_rows(split, setting, noise="laplace").values
    yield (
        "one bit",
        randomised_response(
            split.outputs,
            bounds=split.bounds,
            levels=2,
            epsilon=setting.epsilon,
            seed=int(rng.integers(2**32)),
        ).values,
    )
    levels = np.linspace(split.bounds.lo, split.bounds.hi, LEVELS)
    part = replace(setting, epsilon=PRIOR_SHARE * setting.epsilon)
    rest = (1.0 - PRIOR_SHARE) * setting.epsilon
    prior = noisy_prior(split.outputs, levels, setting=part, rng=rng)
    # Unbiasedly to one of the two levels beside it.
    place = (split.bounds.clip(split.outputs) - split.bounds.lo) / (levels[1] - levels[0])
    below = np.minimum(np.floor(place).astype(np.int64), LEVELS - 2)
    level = below + (rng.uniform(size=len(place)) < place - below)
    yield (
        "bins of least error",
        bins_of_least_error(levels, prior, epsilon=rest).draw(level, rng),
    )
    yield (
        "unbiased, least variance",
        unbiased_of_least_variance(
            levels, prior, reach_of(split.bounds, epsilon=rest), epsilon=rest
        ).draw(level, rng),
    )


def reach_of(bounds: OutputBounds, *, epsilon: float) -> Array:
    """Return even values that reach as far beyond the bounds as an unbiased bit must.

    Examples
    --------
    >>> reach_of(OutputBounds(0.0, 2.0), epsilon=50.0)[[0, -1]]
    array([-0.5,  2.5])
    """
    # A bit that is right on average lies at ± (e^ε + 1)/(e^ε − 1) half widths of the middle.
    furthest = bounds.width / 2 * max(1.25 / np.tanh(epsilon / 2), 1.5)
    reached: Array = np.linspace(bounds.middle - furthest, bounds.middle + furthest, REPORTS)
    return reached


def regressions() -> Iterator[tuple[str, HistGradientBoostingRegressor | Pipeline]]:
    """Yield what is fitted to what was told, by name."""
    for rounds, rate in BOOSTED:
        for leaf in LEAST_IN_LEAF:
            yield (
                f"boosting, {rounds} rounds, leaves of {leaf}",
                HistGradientBoostingRegressor(
                    max_iter=rounds,
                    learning_rate=rate,
                    min_samples_leaf=leaf,
                    early_stopping=False,
                    random_state=0,
                ),
            )
    for ridge in RIDGES:
        yield f"linear, ridge {ridge:g}", make_pipeline(StandardScaler(), Ridge(alpha=ridge))


def told_outputs(split: Split, setting: Setting) -> Predictions:
    """Regress on outputs that were told one by one at random.

    Neighbours: one output changes. Mechanisms: `told_ways`; a noisy histogram and the randomiser
    made for it compose to ε (Dwork, McSherry, Nissim and Smith 2006). Tuned: the randomiser;
    boosting with rounds and rows in a leaf, or a linear model with its ridge.
    """
    found = {}
    for way, told in told_ways(split, setting):
        for name, model in regressions():
            predicted = np.asarray(model.fit(split.X, told).predict(split.X_test))
            found[f"{way}, {name}"] = split.bounds.clip(predicted)
    return found


TOLD_OUTPUTS = Rival("outputs told at random, boosting", "ε, mostly local", told_outputs)
