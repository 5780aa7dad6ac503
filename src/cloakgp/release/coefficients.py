r"""Posterior coefficients: the numbers for predictions, for programs in other languages.

Under each prior that a release averages over, every latent function has the mean and the variance

    E[f(x)] = m + t(x) + b(x)ᵀ a,    var[f(x)] = k(x, x) − ‖S b(x)‖² + ‖A b(x)‖²,

with b(x) = k(Z, x) over the rows Z of an exact process, or b(x) = G⁻¹ k(Z, x) over the inducing
inputs Z of a sparse one, with G the Cholesky factor of k(Z, Z). t is the trend of an exact process,
if it has one; of a sparse one, it is in a. The last term is there for the
papers' iteration alone. Everything is a function of what is published.

Of an exact process, S has a column for every row, and differs from prior to prior, while the
questions R that it was made of are in the release. Where that is shorter, b is replaced by

    q(x) = (R₁ (w₁ ∘ b₁(x)), R₂ (w₂ ∘ b₂(x)), …),

over the measurements, with b_i the entries of b for the rows of measurement i and w_i a number for
each of them: by how much an answer moves with the latent value there, over the noise of answers. S
and a then have a column for every answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloakgp.models import SparsePrior
from cloakgp.models.likelihoods import Likelihood
from cloakgp.models.scatter import Scatter
from cloakgp.models.trend import Trend
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.posterior.laplace import NewtonState
from cloakgp.release.posterior.mixture import NewtonFunctions, PosteriorFunctions
from cloakgp.release.strategy import DenseStrategy
from cloakgp.release.tables import DenseTable
from cloakgp.utils.arrays import Array

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

    from cloakgp.release.measurement import Measurement
    from cloakgp.release.predictions import Predictions

# Of products in float64, relative to the largest entry of a column.
ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class AskedRows:
    """What one measurement asks of a latent function.

    Attributes
    ----------
    start : int
        The place of its first row among the centres.
    matrix : array of shape (k, n)
        R, as the measurement has it.
    scale : array of shape (n,)
        w.
    """

    start: int
    matrix: Array
    scale: Array


@dataclass(frozen=True, eq=False)
class Channel:
    """One latent function.

    Attributes
    ----------
    mean : float
        m.
    weights : array of shape (n,), or (k,) with questions
        a.
    subtracted : array of shape (k, n), or (k, k) with questions
        S.
    added : array of shape (j, n)
        A; without rows unless the papers' iteration is used.
    """

    mean: float
    weights: Array
    subtracted: Array
    added: Array


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The latent functions under one prior.

    Attributes
    ----------
    weight : float
        Of this prior among all.
    kernel : sklearn.gaussian_process.kernels.Kernel
        Its white noise counts for new outputs alone.
    centres : array of shape (n, D)
        Z.
    factor : array of shape (n, n) or None
        G; None for an exact process.
    all_explained : bool
        Whether k(x, x) stands for ‖b(x)‖², as of SoR.
    noise_variance : float
        Of a new output, white noise of the kernel not counted.
    scatter : Scatter or None
        By how much noise, of both kinds, is larger here than there.
    trend : Trend or None
        t; None of a sparse process.
    channels : tuple of Channel
    likelihood : Likelihood
        How outputs depend on these functions, with what was learned of it.
    questions : tuple of tuple of AskedRows, or None
        For each channel, what q consists of; None where b stands itself.
    """

    weight: float
    kernel: Kernel
    centres: Array
    factor: Array | None
    all_explained: bool
    noise_variance: float
    scatter: Scatter | None
    trend: Trend | None
    channels: tuple[Channel, ...]
    likelihood: Likelihood
    questions: tuple[tuple[AskedRows, ...], ...] | None = None


def coefficients(release: Predictions, *, beside: bool = False) -> tuple[Coefficients, ...]:
    """Return the coefficients of predictions, one for each prior that a release averages over.

    Parameters
    ----------
    release : Release
    beside : bool
        Whether they are kept beside the release itself, whose rows and questions then need not be
        kept again.

    Examples
    --------
    >>> import numpy as np
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, learn=None)
    >>> model = model.fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> [part] = coefficients(model.release_)
    >>> crossed = part.kernel([[0.5]], part.centres)
    >>> [channel] = part.channels
    >>> mean = channel.mean + crossed @ channel.weights
    >>> bool(np.isclose(mean[0], model.release_.predict([[0.5]])[0]))
    True
    """
    mixture = release._mixture
    found = []
    for prior, functions in zip(mixture.priors, mixture.functions, strict=True):
        latent = prior.prior
        sparse = latent if isinstance(latent, SparsePrior) else None
        questions = None
        if isinstance(functions, PosteriorFunctions):
            asked = _by_questions(functions.posteriors, release.measurements) if beside else None
            if asked is None:
                centres, channels = _of_posteriors(functions.posteriors)
            else:
                centres, channels, questions = asked
        else:
            assert isinstance(functions, NewtonFunctions)
            centres, channels = functions.state.X, (_of_iteration(functions.state),)
        found.append(
            Coefficients(
                weight=prior.weight,
                kernel=latent.kernel,
                centres=centres if sparse is None else sparse.inducing,
                factor=None if sparse is None else sparse.inducing_factor,
                all_explained=sparse is not None and sparse.approximation == "sor",
                noise_variance=latent.noise_variance,
                scatter=latent.scatter,
                trend=latent.trend if sparse is None else None,
                channels=channels,
                likelihood=prior.likelihood,
                questions=questions,
            )
        )
    return tuple(found)


def _by_questions(
    posteriors: tuple[Posterior, ...], measurements: Sequence[Measurement]
) -> tuple[Array, tuple[Channel, ...], tuple[tuple[AskedRows, ...], ...]] | None:
    """Return centres, channels and their questions; None where that is longer, or cannot be."""
    tables = [table for table in posteriors[0].tables if isinstance(table, DenseTable)]
    if not tables or isinstance(posteriors[0].prior, SparsePrior):
        return None
    rows = np.vstack([table.X for table in tables])
    questions = tuple(_asked_rows(each, measurements) for each in posteriors)
    if any(each is None for each in questions):
        return None
    known = tuple(each for each in questions if each is not None)
    channels = tuple(
        Channel(
            mean=float(each.prior.mean),
            weights=np.asarray(each.weights, dtype=np.float64),
            subtracted=_inverse(each.factor),
            added=np.zeros((0, len(each.weights))),
        )
        for each in posteriors
    )
    # Rows of one table are those of the release, and so are all matrices.
    kept = rows.size if len(tables) > 1 else 0
    kept += sum(each.weights.size + each.subtracted.size for each in channels)
    kept += sum(len(block.scale) for blocks in known for block in blocks)
    centres = len(np.unique(rows, axis=0))
    answers = len(posteriors[0].factor)
    otherwise = centres * (rows.shape[1] + len(channels) * (1 + min(answers, centres)))
    return (rows, channels, known) if kept < otherwise else None


def _asked_rows(
    posterior: Posterior, measurements: Sequence[Measurement]
) -> tuple[AskedRows, ...] | None:
    """Return what measurements ask of a latent function, if each asks rows times numbers of its R.

    Blocks are in the order of the answers.
    """
    found, start = [], 0
    for table in posterior.tables:
        if not isinstance(table, DenseTable):
            return None
        left = table.questions
        for each in measurements:
            strategy = each.strategy
            # Those that do not tell where outputs are ask nothing of it.
            asks = strategy.table == table.number and each.question.locates and len(left)
            if not isinstance(strategy, DenseStrategy) or not asks:
                continue
            block = left[: strategy.n_answers]
            scale = _column_scales(strategy.matrix, block)
            if scale is not None:
                found.append(AskedRows(start=start, matrix=strategy.matrix, scale=scale))
                left = left[len(block) :]
        if len(left):
            return None
        start += len(table.X)
    return tuple(found)


def _column_scales(matrix: Array, block: Array) -> Array | None:
    """Return w with R diag(w) = the block, up to rounding; None if there is none."""
    if matrix.shape != block.shape:
        return None
    largest = np.abs(matrix).argmax(axis=0)[None]
    top, ask = (np.take_along_axis(each, largest, axis=0)[0] for each in (matrix, block))
    scale = np.divide(ask, top, out=np.zeros_like(top), where=top != 0)
    error = np.abs(matrix * scale - block)
    return scale if (error <= ROUNDING * np.abs(block).max(axis=0)).all() else None


def _inverse(factor: Array) -> Array:
    """Return L⁻¹."""
    whole = linalg.solve_triangular(factor, np.eye(len(factor)), lower=True)
    return np.asarray(whole, dtype=np.float64)


def _of_posteriors(posteriors: tuple[Posterior, ...]) -> tuple[Array, tuple[Channel, ...]]:
    first = posteriors[0]
    if isinstance(first.prior, SparsePrior):
        centres, places = first.prior.inducing, np.arange(0)
    else:
        rows = [table.X for table in first.tables if isinstance(table, DenseTable)]
        stacked = np.vstack(rows) if rows else np.zeros((0, 0))
        # Rows with the same inputs are one centre.
        centres, found = np.unique(stacked, axis=0, return_inverse=True)
        places = found.ravel()
    return centres, tuple(_channel(each, places, count=len(centres)) for each in posteriors)


def _channel(posterior: Posterior, places: NDArray[np.intp], *, count: int) -> Channel:
    prior, tables = posterior.prior, posterior.tables
    if isinstance(prior, SparsePrior):
        nothing = np.zeros((0, count))
        asked = np.vstack([nothing, *(table.inducing_cross(prior) for table in tables)])
        weights = posterior.inducing_mean()
    else:
        blocks = [table.questions for table in tables if isinstance(table, DenseTable)]
        spread = linalg.block_diag(*blocks) if blocks else np.zeros((0, 0))
        asked = np.zeros((len(spread), count))
        np.add.at(asked.T, places, spread.T)
        weights = asked.T @ posterior.weights
    root = linalg.solve_triangular(posterior.factor, asked, lower=True) if len(asked) else asked
    return Channel(
        mean=float(prior.mean),
        weights=np.asarray(weights, dtype=np.float64),
        subtracted=_shortened(np.asarray(root, dtype=np.float64)),
        added=np.zeros((0, count)),
    )


def _shortened(root: Array) -> Array:
    """Return a root with no more rows than columns, which has the same squared lengths."""
    if root.shape[0] <= root.shape[1]:
        return root
    return np.asarray(np.linalg.qr(root, mode="r"), dtype=np.float64)


def _of_iteration(state: NewtonState) -> Channel:
    """Return the papers' latent function after its noisy steps."""
    prior = state.prior
    interpolation, root = state.interpolation(), state.explained_root()
    if isinstance(prior, SparsePrior):
        root = root @ prior.features(state.X).T
    return Channel(
        mean=state.prior_mean,
        weights=interpolation @ (state.latent - state.prior_mean),
        subtracted=_shortened(root),
        added=state.noise_root.T @ interpolation.T,
    )
