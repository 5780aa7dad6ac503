"""Posteriors given answers about clipped outputs: dense filtering, and the exact law by draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conditioning import dense, posterior_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from stages import band, stage

from cloakgp import DPGPRegressor, Release
from cloakgp.fitting.bands import DEFAULT_STAGES
from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.models.clipping import OFFSET_SD, linearise_clipped
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.questions.bands import UNIT_INTERVAL, Bands
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.release import Hyperprior, Measurement
from cloakgp.release.measurement import is_in_bands
from cloakgp.release.posterior import clipped as clipped_module
from cloakgp.release.posterior.clipped import FREEDOM, SWEEPS, clipped_posterior, log_evidence
from cloakgp.release.posterior.dense import _answer_covariance

KERNEL = ConstantKernel(2.0) * RBF(1.1) + WhiteKernel(0.05)
POINTS = np.linspace(-2, 2, 7)[:, None]


def priors():
    yield ExactPrior(kernel=KERNEL, noise_variance=0.2, mean=0.7)
    for approximation in APPROXIMATIONS:
        yield SparsePrior(
            kernel=KERNEL,
            noise_variance=0.2,
            mean=0.7,
            inducing=np.linspace(-2, 2, 6)[:, None],
            approximation=approximation,
        )


@pytest.fixture(params=list(priors()), ids=["exact", *APPROXIMATIONS])
def prior(request):
    return request.param


@pytest.fixture
def without_offset(monkeypatch):
    """Outputs are normal, as the oracles have them: no unknown skewness."""
    monkeypatch.setattr(clipped_module, "OFFSET_SD", 0.0)


def filtered(prior, measurements, points, *, sweeps=0):
    """Mean and covariance of f_*, by dense filtering of (f_*, all outputs, one β per table).

    Kalman updates with the full covariance, one stage after the other; again with outputs in bands
    linearised at the outputs' marginals after the sweep before.
    """
    found = _swept(prior, measurements, points, at=None)
    for _ in range(sweeps):
        found = _swept(prior, measurements, points, at=found[2:])
    return found[:2]


def _swept(prior, measurements, points, *, at):
    tables = {one.strategy.table: one.strategy.X for one in measurements}
    X = np.vstack(list(tables.values()))
    count, rows = len(points), np.cumsum([0, *map(len, tables.values())]) + len(points)
    size = count + len(X) + len(tables)
    spans = {t: slice(rows[i], rows[i + 1]) for i, t in enumerate(tables)}
    betas = {table: count + len(X) + i for i, table in enumerate(tables)}
    mean, covariance = np.full(size, prior.mean), np.zeros((size, size))
    mean[count + len(X) :] = 0.0
    K_y = prior.row_covariance(X, X.copy())
    K_y += np.diag(np.concatenate([prior.row_noise(one) for one in tables.values()]))
    crossed = prior.cross_covariance(points, X)
    covariance[:count, :count] = prior.query_covariance(points)
    covariance[:count, count : count + len(X)] = crossed
    covariance[count : count + len(X), :count] = crossed.T
    covariance[count : count + len(X), count : count + len(X)] = K_y
    for index in betas.values():
        covariance[index, index] = OFFSET_SD**2
    for one in measurements:
        matrix, table = one.strategy.matrix, one.strategy.table
        span = spans[table]
        questions = np.zeros((len(matrix), size))
        noise = one.noise_sd**2 * np.eye(len(matrix))
        if isinstance(one.question, OutputBounds):
            questions[:, span] = matrix
            expected = matrix @ (mean[span] - one.question.middle)
        else:
            width, centre, variance = one.question.width, mean[span], np.diag(covariance)[span]
            if at is not None:
                centre, variance = (each[span.start - count : span.stop - count] for each in at)
            account = linearise_clipped(
                centre, variance, lower=one.question.lower, upper=one.question.upper
            )
            questions[:, span] = matrix * account.slope / width
            outside = (1 - account.slope) / (2 * stats.norm.sf(1.0))
            questions[:, betas[table]] = matrix @ (outside * np.sqrt(variance) / width)
            noise += matrix @ np.diag(account.residual / width**2) @ matrix.T
            known = account.expected + account.slope * (mean[span] - centre)
            expected = matrix @ ((known - one.question.middle) / width)
            expected = expected + questions[:, betas[table]] * mean[betas[table]]
        S = questions @ covariance @ questions.T + noise
        gain = covariance @ questions.T @ np.linalg.inv(S)
        mean = mean + gain @ (one.answers.values[:, 0] - expected)
        covariance = covariance - gain @ questions @ covariance
    outputs = slice(count, count + len(X))
    return mean[:count], covariance[:count, :count], mean[outputs], np.diag(covariance)[outputs]


def drawn_stages(rng, X, *, table=0, count=3):
    """Draw a first stage without bands, and others with bands around anything."""
    y, rows = rng.normal(size=len(X)), len(X)
    made = [stage(X, rng.normal(size=(3, rows)), y, noise_sd=0.7, seed=1, table=table)]
    for number in range(1, count):
        lower = rng.normal(size=rows) - 0.7
        bands = Bands(lower=lower, upper=lower + rng.uniform(0.3, 3.0, size=rows))
        made.append(
            stage(
                X,
                rng.normal(size=(number + 1, rows)),
                y,
                question=bands,
                noise_sd=0.4,
                seed=10 * table + number,
                table=table,
            )
        )
    return made


def test_stages_against_dense_filtering(prior, rng):
    made = drawn_stages(rng, rng.uniform(-2, 2, size=(9, 1)), count=4)
    mean, covariance = filtered(prior, made, POINTS)
    ours = clipped_posterior(prior, made)
    np.testing.assert_allclose(ours.mean(POINTS), mean, atol=1e-9)
    np.testing.assert_allclose(ours.covariance(POINTS), covariance, atol=1e-9)


def test_several_tables_against_dense_filtering(prior, rng):
    """Tables share the function, and neither noise nor offset; their stages may alternate."""
    X, Z = rng.uniform(-2, 2, size=(6, 1)), rng.uniform(-2, 2, size=(4, 1))
    Z[0] = X[0]
    first, second = drawn_stages(rng, X), drawn_stages(rng, Z, table=1)
    mixed = [first[0], second[0], first[1], second[1], first[2], second[2]]
    mean, covariance = filtered(prior, [*first, *second], POINTS)
    ours = clipped_posterior(prior, mixed)
    np.testing.assert_allclose(ours.mean(POINTS), mean, atol=1e-9)
    np.testing.assert_allclose(ours.covariance(POINTS), covariance, atol=1e-9)
    assert [table.number for table in ours.tables] == [0, 1]
    # A release holds it so, too.
    release = Release(prior=prior, measurements=tuple(mixed))
    np.testing.assert_allclose(release.predict(POINTS), mean, atol=1e-9)


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 4))
def test_stage_by_stage_is_all_at_once(seed, count):
    rng = np.random.default_rng(seed)
    prior = ExactPrior(kernel=KERNEL, noise_variance=0.3, mean=-0.2)
    made = drawn_stages(rng, rng.uniform(-2, 2, size=(7, 1)), count=count)
    made += drawn_stages(rng, rng.uniform(-2, 2, size=(5, 1)), table=1, count=2)
    ours = clipped_posterior(prior, made)
    together = _answer_covariance(prior, ours.tables)
    np.testing.assert_allclose(ours.factor @ ours.factor.T, together, atol=1e-9)
    assert (np.diag(ours.factor) > 0).all()
    np.testing.assert_array_equal(np.triu(ours.factor, 1), 0)


def test_outputs_given_all_stages_are_what_the_next_bands_are_about(rng):
    """`Posterior.outputs`, which bands are chosen by, against dense filtering of the outputs."""
    prior = ExactPrior(kernel=KERNEL, noise_variance=0.3, mean=-0.2)
    X = rng.uniform(-2, 2, size=(6, 1))
    made = drawn_stages(rng, X)
    mean, variance = clipped_posterior(prior, made).outputs(X, table=0)
    marginals = clipped_module._Filter.after(prior, made).marginals(0)
    np.testing.assert_allclose((mean, variance), marginals, atol=1e-10)
    # A new place shares no noise with the answers: its outputs are less well known.
    latent = clipped_posterior(prior, made).variance(X)
    assert (variance < latent + prior.row_noise(X)).all()


def test_bands_far_wider_than_everything_are_linear_questions(prior, rng):
    X, y = rng.uniform(-2, 2, size=(8, 1)), rng.normal(size=8)
    R, S = rng.normal(size=(3, 8)), rng.normal(size=(2, 8))
    first = stage(X, R, y, seed=1)
    wide = band(1.0, 1000.0, rows=8)
    second = stage(X, S, y, question=wide, noise_sd=1e-3, seed=2)
    # The same answers as ones about outputs as they are.
    answers = replace(
        second.answers,
        values=1000.0 * second.answers.values,
        noise_sd=1.0,
    )
    question = OutputBounds(-499.0, 501.0)
    linear = Measurement(strategy=dense(X, S), question=question, answers=answers)
    expected = posterior_of(prior, [first, linear])
    ours = clipped_posterior(prior, [first, second])
    np.testing.assert_allclose(ours.mean(POINTS), expected.mean(POINTS), atol=1e-6)
    np.testing.assert_allclose(ours.covariance(POINTS), expected.covariance(POINTS), atol=1e-6)


def test_without_bands_it_is_the_linear_posterior(prior, rng):
    X, y = rng.uniform(-2, 2, size=(8, 1)), rng.normal(size=8)
    made = [stage(X, rng.normal(size=(2, 8)), y, seed=seed) for seed in (1, 2)]
    expected, ours = posterior_of(prior, made), clipped_posterior(prior, made)
    np.testing.assert_allclose(ours.joint(POINTS)[0], expected.joint(POINTS)[0], atol=1e-10)
    np.testing.assert_allclose(ours.joint(POINTS)[1], expected.joint(POINTS)[1], atol=1e-10)
    assert not is_in_bands(made)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_sparse_and_exact_priors_agree_where_inducing_inputs_are_the_rows(approximation, rng):
    X = np.linspace(-2, 2, 6)[:, None]
    settings = {"kernel": ConstantKernel(2.0) * RBF(0.9), "noise_variance": 0.3, "mean": 0.5}
    made = drawn_stages(rng, X)
    exact = clipped_posterior(ExactPrior(**settings), made)
    sparse = clipped_posterior(
        SparsePrior(**settings, inducing=X, approximation=approximation), made
    )
    np.testing.assert_allclose(sparse.mean(X), exact.mean(X), atol=1e-5)
    np.testing.assert_allclose(sparse.covariance(X), exact.covariance(X), atol=1e-5)


# --- the exact law ---

ROWS = np.array([[-1.0], [0.2], [1.1]])
DRAWS = 400_000


def exactly(prior, measurements, X):
    """Mean and sd of f at the rows given the answers, by importance sampling from the prior."""
    rng = np.random.default_rng(5)
    K = prior.row_covariance(X, X.copy())
    root = np.linalg.cholesky(K + 1e-12 * np.eye(len(X)))
    f = prior.mean + rng.normal(size=(DRAWS, len(X))) @ root.T
    y = f + rng.normal(size=f.shape) * np.sqrt(prior.row_noise(X))
    log_weights = np.zeros(DRAWS)
    for one in measurements:
        if isinstance(one.question, OutputBounds):
            asked = y - one.question.middle
        else:
            clipped = np.clip(y, one.question.lower, one.question.upper)
            asked = (clipped - one.question.middle) / one.question.width
        surprise = (one.answers.values[:, 0] - asked @ one.strategy.matrix.T) / one.answers.noise_sd
        log_weights -= 0.5 * np.square(surprise).sum(axis=1)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    # Enough draws count for the tolerances of the tests: standard errors of 0.01 sds or less.
    assert 1 / np.square(weights).sum() > 10_000
    mean = weights @ f
    return mean, np.sqrt(weights @ np.square(f - mean))


# Half widths of the band in predictive sds; what is asked of means and sds, in posterior sds.
CLIPPED = {"little": (2.5, 0.04), "much": (1.0, 0.1), "nearly to a sign": (0.2, 0.2)}


@pytest.mark.usefixtures("without_offset")
@pytest.mark.parametrize(("half", "tolerance"), CLIPPED.values(), ids=CLIPPED)
@pytest.mark.parametrize("seed", range(4))
def test_it_is_nearly_the_exact_posterior(half, tolerance, seed):
    rng = np.random.default_rng(seed)
    prior = ExactPrior(kernel=ConstantKernel(1.0) * RBF(1.0), noise_variance=0.3, mean=0.4)
    y = rng.normal(0.4, 1.1, size=3)
    first = stage(ROWS, rng.normal(size=(2, 3)), y, noise_sd=2.0, seed=seed)
    mean, variance = clipped_posterior(prior, [first]).outputs(ROWS, table=0)
    reach = half * np.sqrt(variance)
    questions = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    bands = Bands(lower=mean - reach, upper=mean + reach)
    # Answers have about the noise of ε = 2, or so: one sd is the width of a band.
    made = [first, stage(ROWS, questions, y, question=bands, noise_sd=0.7, seed=seed + 9)]
    ours = clipped_posterior(prior, made)
    expected, sd = exactly(prior, made, ROWS)
    off = np.abs(ours.mean(ROWS) - expected) / sd
    assert off.max() < tolerance
    np.testing.assert_allclose(np.sqrt(ours.variance(ROWS)), sd, rtol=tolerance)


@pytest.mark.usefixtures("without_offset")
def test_what_is_ignored_by_a_linear_account_shows():
    """Mutation: taking clipped outputs for outputs is far from the exact posterior."""
    prior = ExactPrior(kernel=ConstantKernel(1.0) * RBF(1.0), noise_variance=0.3, mean=0.0)
    bands = band(0.0, 1.0, rows=3)
    made = stage(ROWS, np.eye(3), np.full(3, 3.0), question=bands, noise_sd=0.3, seed=1)
    expected, sd = exactly(prior, [made], ROWS)
    as_outputs = Measurement(
        strategy=dense(ROWS, np.eye(3)), question=UNIT_INTERVAL, answers=made.answers
    )
    linear = posterior_of(prior, [as_outputs])
    ours = clipped_posterior(prior, [made])
    assert np.abs(ours.mean(ROWS) - expected).max() < 0.3 * sd.max()
    assert np.abs(linear.mean(ROWS) - expected).max() > 0.5 * sd.max()


@pytest.mark.parametrize("sweeps", [1, 3])
def test_sweeps_against_dense_filtering(sweeps, prior, rng):
    tables = [drawn_stages(rng, rng.uniform(-2, 2, size=(6, 1)), table=table) for table in (0, 1)]
    mixed = [one for pair in zip(*tables, strict=True) for one in pair]
    found = clipped_posterior(prior, mixed, sweeps=sweeps)
    # Table by table, as answers are taken.
    mean, covariance = filtered(prior, [*tables[0], *tables[1]], POINTS, sweeps=sweeps)
    np.testing.assert_allclose(found.mean(POINTS), mean, atol=1e-8)
    np.testing.assert_allclose(found.covariance(POINTS), covariance, atol=1e-8)


def level_exactly(made, *, noise_variance, prior_variance):
    """Mean and sd of the level of all outputs, by integration; their clipped mean is normal."""
    levels = np.linspace(-8.0, 8.0, 4001)
    density = -0.5 * np.square(levels) / prior_variance
    for one in made:
        ones = np.ones(len(levels))
        edges = {"lower": one.question.lower[0] * ones, "upper": one.question.upper[0] * ones}
        account = linearise_clipped(levels, noise_variance * ones, **edges)
        scatter = np.square(account.slope) * noise_variance + account.residual
        width, rows = one.question.width[0], one.strategy.matrix.shape[1]
        expected = (account.expected - one.question.middle[0]) / width
        variance = scatter / width**2 / rows + one.answers.noise_sd**2
        density -= 0.5 * (one.answers.values[0] - expected) ** 2 / variance
        density -= 0.5 * np.log(variance)
    weights = np.exp(density - density.max())
    weights /= weights.sum()
    mean = weights @ levels
    return mean, np.sqrt(weights @ np.square(levels - mean))


@pytest.mark.usefixtures("without_offset")
@pytest.mark.parametrize("level", [0.0, 1.0, 2.0, -2.5])
def test_sweeps_see_what_lay_far_outside_of_a_band(level):
    rows, noise_variance, prior_variance = 60, 1.0, 1.0
    X = np.zeros((rows, 1))
    kernel = ConstantKernel(prior_variance)
    prior = ExactPrior(kernel=kernel, noise_variance=noise_variance, mean=0.0)
    y = level + np.sqrt(noise_variance) * np.random.default_rng(1).normal(size=rows)
    bands = Bands(lower=np.full(rows, -1.0), upper=np.full(rows, 1.0))
    questions = np.full((1, rows), 1 / rows)
    made = [stage(X, questions, y, question=bands, noise_sd=0.02, seed=2)]
    expected, sd = level_exactly(made, noise_variance=noise_variance, prior_variance=prior_variance)
    once, often = (clipped_posterior(prior, made, sweeps=sweeps) for sweeps in (0, SWEEPS))
    assert abs(often.mean(X[:1])[0] - expected) < 0.3 * sd
    assert np.sqrt(often.variance(X[:1])[0]) == pytest.approx(sd, rel=0.2)
    if abs(level) >= 2:
        assert abs(once.mean(X[:1])[0] - expected) > 0.7 * sd
        assert np.sqrt(once.variance(X[:1])[0]) < 0.5 * sd


def test_an_unknown_offset_leaves_more_open(rng):
    """β adds variance where outputs are clipped, and is learned from more than one stage."""
    prior = ExactPrior(kernel=KERNEL, noise_variance=0.3, mean=0.0)
    X = rng.uniform(-2, 2, size=(6, 1))
    made = drawn_stages(rng, X)
    known = clipped_posterior(prior, made).variance(POINTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clipped_module, "OFFSET_SD", 0.0)
        assert (clipped_posterior(prior, made).variance(POINTS) <= known + 1e-12).all()
        assert (clipped_posterior(prior, made).variance(POINTS) < known - 1e-6).any()


# --- evidence ---


def test_the_evidence_of_linear_answers_is_their_normal_density(prior, rng):
    X, y = rng.uniform(-2, 2, size=(8, 1)), rng.normal(size=8)
    R = rng.normal(size=(3, 8))
    made = stage(X, R, y, noise_sd=0.6)
    others = (replace(prior, mean=0.1), replace(prior, noise_variance=0.9), prior)
    found, exact = [], []
    for one in others:
        K_y = one.row_covariance(X, X.copy()) + np.diag(one.row_noise(X))
        centre = R @ np.full(8, one.mean - made.question.middle)
        law = stats.multivariate_normal(centre, R @ K_y @ R.T + 0.36 * np.eye(3))
        exact.append(law.logpdf(made.answers.values[:, 0]))
        found.append(log_evidence(one, [made]))
    # Up to a constant, which no prior changes.
    np.testing.assert_allclose(np.diff(found), np.diff(exact), atol=1e-9)


def one_row(variance, encoding, *, value, noise_sd):
    """A prior of one output, and an answer about it."""
    prior = ExactPrior(kernel=ConstantKernel(0.4), noise_variance=variance - 0.4, mean=0.2)
    made = stage(np.zeros((1, 1)), [[1.0]], np.zeros(1), question=encoding, noise_sd=noise_sd)
    return prior, replace(made, answers=replace(made.answers, values=np.array([[value]])))


def integrated(variance, encoding, *, value, noise_sd):
    """Log density of the answer, by integration over the output."""
    sd = variance**0.5
    # Of an answer about spread outputs count as Student's, of the same variance.
    student = stats.t(FREEDOM, 0.2, sd * np.sqrt((FREEDOM - 2) / FREEDOM))
    law = student if isinstance(encoding, SpreadQuestion) else stats.norm(0.2, sd)

    def joint(output):
        placed = encoding.encode(np.array([output]))[0, 0]
        return float(law.pdf(output) * stats.norm.pdf(value, placed, noise_sd))

    corners = [*getattr(encoding, "lower", [0.2 - 1.5]), *getattr(encoding, "upper", [0.2 + 1.5])]
    return np.log(
        integrate.quad(
            joint, 0.2 - 9 * sd, 0.2 + 9 * sd, points=[*corners, 0.2 - 3.0, 0.2 + 3.0], limit=400
        )[0]
    )


@pytest.mark.usefixtures("without_offset")
@pytest.mark.parametrize(
    "value",
    [
        -0.9,
        pytest.param(0.0, marks=pytest.mark.slow),
        pytest.param(0.4, marks=pytest.mark.slow),
        1.5,
    ],
)
@pytest.mark.parametrize(
    "encoding",
    [
        Bands(lower=np.array([-0.6]), upper=np.array([1.2])),
        SpreadQuestion(mean=np.array([0.2]), sd=np.array([1.0])),
    ],
    ids=["bands", "spread"],
)
def test_the_evidence_is_that_of_numerical_integration(encoding, value):
    """One output, answers with noise of a band's width: normal laws are near the true ones."""
    variances = [0.5, 0.8, 1.3, 2.5, 5.0]
    asked = {"value": value, "noise_sd": 1.0}
    exact = [integrated(each, encoding, **asked) for each in variances]
    found = []
    for each in variances:
        prior, made = one_row(each, encoding, **asked)
        found.append(log_evidence(prior, [made]))
    np.testing.assert_allclose(np.diff(found), np.diff(exact), atol=1e-2)
    # The noise matters: a constant would not do.
    assert np.ptp(exact) > 0.02


def test_an_answer_about_the_spread_counts_by_the_marginals_of_its_rows(rng):
    """Oracle: draws of outputs around the predictions, added up."""
    X = rng.uniform(-2, 2, size=(40, 1))
    prior = ExactPrior(kernel=ConstantKernel(0.1) * RBF(5.0), noise_variance=1.4, mean=0.0)
    asked = SpreadQuestion(mean=rng.normal(size=40) / 3, sd=rng.uniform(0.5, 1.5, size=40))
    made = stage(X, np.ones((1, 40)), np.zeros(40), question=asked, noise_sd=2.0)
    y = np.sqrt(1.5 * (FREEDOM - 2) / FREEDOM) * rng.standard_t(FREEDOM, size=(100_000, 40))
    share = np.clip(np.log2(8 * np.abs(y - asked.mean) / asked.sd) / 4, 0, 1) - 0.5
    expected = share.sum(axis=1).mean()
    scatter = np.square(share.std(axis=0)).sum() + 4.0
    for value in (expected - 5, expected, expected + 3):
        moved = replace(made, answers=replace(made.answers, values=np.array([[value]])))
        law = stats.norm(expected, np.sqrt(scatter))
        exact = law.logpdf(value) + 0.5 * np.log(2 * np.pi)
        assert log_evidence(prior, [moved]) == pytest.approx(exact, abs=0.02)


# --- nothing, and things that do not fit ---


def nothing(X, **others):
    """A stage that asked nothing, as one does whose query points no row tells of."""
    made = stage(X, np.ones((1, len(X))), np.zeros(len(X)), **others)
    strategy = replace(made.strategy, matrix=np.zeros((0, len(X))))
    return replace(
        made,
        strategy=strategy,
        answers=replace(made.answers, values=np.zeros((0, 1)), noise_sd=0.0),
    )


def test_stages_that_asked_nothing_leave_the_prior(prior, rng):
    X = rng.uniform(-2, 2, size=(5, 1))
    made = [nothing(X), nothing(X, question=band(0.0, 1.0, rows=5))]
    ours = clipped_posterior(prior, made)
    np.testing.assert_array_equal(ours.mean(POINTS), prior.mean)
    np.testing.assert_allclose(ours.variance(POINTS), prior.query_variance(POINTS))


def test_an_answer_about_the_spread_alone_leaves_the_prior(prior, rng):
    X = rng.uniform(-2, 2, size=(5, 1))
    asked = SpreadQuestion(mean=np.zeros(5), sd=np.ones(5))
    spread = stage(X, np.ones((1, 5)), np.full(5, 9.0), question=asked, noise_sd=0.1)
    ours = clipped_posterior(prior, [nothing(X), spread])
    np.testing.assert_array_equal(ours.mean(POINTS), prior.mean)
    np.testing.assert_allclose(ours.variance(POINTS), prior.query_variance(POINTS))
    learned = Release(
        prior=prior, measurements=(nothing(X), spread), hyperprior=Hyperprior()
    ).with_measurements((nothing(X), spread))
    # All lay far outside: outputs are noisier than was thought.
    assert learned.fitted_prior.noise_variance > prior.noise_variance


def test_learning_goes_by_the_declared_bounds_where_the_first_stage_asked_nothing(rng):
    """The prior sd of the mean is a share of their width, not of a band's."""
    X, y = rng.uniform(-2, 2, size=(30, 1)), np.full(30, 6.0)
    prior = ExactPrior(kernel=ConstantKernel(0.1) * RBF(3.0), noise_variance=0.5, mean=0.0)
    asked = stage(X, np.full((1, 30), 1.0), y, question=band(5.0, 8.0, rows=30), noise_sd=0.1)
    release = Release(prior=prior, measurements=(nothing(X), asked))
    learned = release.learn(Hyperprior(noise_variance=False))
    assert learned.fitted_prior.mean > 2.0


def test_rows_at_one_place_in_two_tables_need_no_noise():
    """As without bands: only what was asked need have a covariance."""
    prior = ExactPrior(kernel=ConstantKernel(2.0) * RBF(1.1), noise_variance=0.0, mean=0.0)
    X = np.array([[-1.0], [0.5]])
    tables = [
        stage(X, np.eye(2), np.ones(2), question=band(0.0, 60.0, rows=2), noise_sd=0.1, table=table)
        for table in (0, 1)
    ]
    once, twice = (clipped_posterior(prior, made).variance(X) for made in (tables[:1], tables))
    assert (twice < once).all()
    mean, covariance = filtered(prior, tables, POINTS)
    np.testing.assert_allclose(clipped_posterior(prior, tables).mean(POINTS), mean, atol=1e-7)
    np.testing.assert_allclose(
        clipped_posterior(prior, tables).covariance(POINTS), covariance, atol=1e-7
    )


# --- intervals ---


def test_intervals_cover_95_percent_of_functions_from_the_prior():
    """The default stages with the true prior; a small version of `experiments`' coverage."""
    rng = np.random.default_rng(20260102)
    kernel, inside = ConstantKernel(1.0) * RBF(1.5), []
    for seed in range(90):
        X, points = rng.uniform(0, 6, size=(50, 1)), rng.uniform(0, 6, size=(6, 1))
        both = np.vstack([X, points])
        f = np.linalg.cholesky(kernel(both) + 1e-9 * np.eye(56)) @ rng.normal(size=56)
        model = DPGPRegressor(
            kernel,
            0.16,
            bounds=(-4, 4),
            epsilon=2.0,
            delta=1e-3,
            noise="gaussian",
            learn=None,
            gap=1e-2,
            insecure_seed=10 * seed,
        )
        model.fit(X, f[:50] + 0.4 * rng.normal(size=50), np.linspace(0, 6, 20)[:, None])
        assert len(model.release_.measurements) == len(DEFAULT_STAGES)
        mean, sd = model.predict(points, return_std=True)
        inside.append(np.abs(f[50:] - mean) < -special.ndtri(0.025) * sd)
    # 540 intervals, six of a kind: a standard error of 0.02 at most.
    assert 0.91 <= np.mean(inside) <= 0.99
