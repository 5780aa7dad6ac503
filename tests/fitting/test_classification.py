"""One private fit as a function: designs, budgets, steps, and that ours beats the papers'."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from fits import release_held
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import DPGPClassifier
from cloakgp.criteria import criteria_for
from cloakgp.fitting.defaults import choose_label_prior, choose_query
from cloakgp.fitting.iteration import release_iteration
from cloakgp.fitting.strategies import Budget, Query, choose_strategy
from cloakgp.models.likelihoods.classes import LATENT_NUGGET
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release import Hyperprior

KERNEL = ConstantKernel(4.0) * RBF(1.5)
X = np.linspace(0, 6, 20)[:, None]
Z = np.linspace(0.2, 5.8, 7)[:, None]


def released(y, *, count=2, link_name="logit", rows=X, query=None, **changes):
    classes = Classes(tuple(range(count)))
    prior, likelihood = choose_label_prior(
        rows, classes=classes, kernel=KERNEL, link_name=link_name
    )
    settings = {"prior": prior, "likelihood": likelihood, "epsilon": 1.0, "delta": 0.01} | changes
    if settings.get("criterion") == "newton":
        del settings["criterion"]
        return release_iteration(rows, y, classes=classes, **settings)
    query = choose_query(rows) if query is None else query
    return release_held(rows, y, question=classes, query=query, **settings)


@given(
    seed=st.integers(0, 2**32 - 1),
    criterion=st.sampled_from([each.name for each in criteria_for("classes")]),
)
def test_the_design_does_not_look_at_labels(seed, criterion):
    rng = np.random.default_rng(seed)
    first, second = (released(rng.integers(0, 2, size=20), criterion=criterion) for _ in range(2))
    (one,), (other,) = first.measurements, second.measurements
    assert one.strategy.matrix.tobytes() == other.strategy.matrix.tobytes()
    assert one.answers.noise_sd == other.answers.noise_sd
    assert first.guarantee == second.guarantee


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("criterion", ["bayes", "trace", "logdet"])
def test_a_fit_spends_its_budget_and_no_more(criterion, count):
    release = released(np.arange(20) % count, count=count, criterion=criterion)
    assert release.guarantee.delta_at(1.0) <= 0.01
    assert release.guarantee.mu == pytest.approx(1 / exact_noise_multiplier(1.0, 0.01), rel=1e-6)
    assert release.inference == "posterior"
    assert not release.insecure


@pytest.mark.parametrize("criterion", ["trace", "logdet"])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_newton_steps_share_the_budget(steps, criterion):
    release = released(np.arange(20) % 2, criterion="newton", steps=steps, step_criterion=criterion)
    assert len(release.measurements) == steps
    assert release.inference == "newton"
    assert release.guarantee.delta_at(1.0) <= 0.01
    assert release.guarantee.epsilon <= 1.0
    assert release.guarantee.mu == pytest.approx(1 / exact_noise_multiplier(1.0, 0.01), rel=1e-4)
    assert {measurement.strategy.certificate.criterion for measurement in release.measurements} == {
        criterion
    }
    # Later designs see the steps before them.
    questions = [measurement.strategy.matrix for measurement in release.measurements]
    assert all(
        one.shape != other.shape or not np.array_equal(one, other)
        for one, other in pairwise(questions)
    )


def test_seeded_steps_have_noise_of_their_own():
    first, second = (
        released(np.arange(20) % 2, criterion="newton", steps=2, insecure_seed=5) for _ in range(2)
    )
    assert first.insecure
    np.testing.assert_array_equal(first.predict_proba(Z), second.predict_proba(Z))
    one, other = (part.answers.values for part in first.measurements)
    assert one.shape != other.shape or not np.allclose(one, other)


@pytest.mark.parametrize("criterion", ["trace", "logdet"])
def test_cloaking_asks_for_a_newton_steps_linear_part(criterion):
    classes = Classes((0, 1))
    prior, likelihood = choose_label_prior(X, classes=classes, kernel=KERNEL)
    questions = choose_strategy(
        X,
        prior=prior,
        likelihood=likelihood,
        query=Query(X=Z),
        question=classes,
        budget=Budget(epsilon=1.0, delta=0.01),
        criterion=criterion,
    )
    direct = KERNEL(Z, X) @ np.linalg.inv(KERNEL(X) + 4.0 * np.eye(20))
    np.testing.assert_allclose(questions.reconstruction @ questions.matrix, direct, atol=1e-4)
    assert questions.certificate.criterion == criterion


@pytest.mark.parametrize("count", [2, 3])
def test_the_sharpest_questions_are_sharper_than_cloaking(count):
    """What "bayes" is chosen for: the least variance under the linear prior over labels."""
    classes = Classes(tuple(range(count)))
    prior, likelihood = choose_label_prior(X, classes=classes, kernel=KERNEL)
    linear = likelihood.linear_prior(prior, X)
    noise_sd = classes.output_noise_sd(classes.distance * exact_noise_multiplier(1.0, 0.01))
    covariance = linear.output_covariance(X)
    K = covariance.latent + np.diag(covariance.noise)
    explained = {}
    for criterion in ("bayes", "trace", "logdet"):
        R = choose_strategy(
            X,
            prior=prior,
            likelihood=likelihood,
            query=Query(X=Z),
            question=classes,
            budget=Budget(epsilon=1.0, delta=0.01),
            criterion=criterion,
        ).matrix
        R = R / np.sqrt(np.square(R).sum(axis=0).max())
        crossed = R @ linear.cross_covariance(Z, X).T
        S = R @ K @ R.T + noise_sd**2 * np.eye(len(R))
        explained[criterion] = float(np.trace(crossed.T @ np.linalg.solve(S, crossed)))
    assert explained["bayes"] > explained["trace"]
    assert explained["bayes"] > explained["logdet"]


def test_the_default_prior_is_public_and_gives_the_rates():
    y = np.arange(20) % 2
    first, second = (released(labels) for labels in (y, 1 - y))
    assert first.prior.kernel == second.prior.kernel
    assert first.likelihood == second.likelihood
    assert first.likelihood.latent_means == (0.0,)
    assert first.prior.noise_variance == pytest.approx(4.0 * LATENT_NUGGET)


def test_progress_and_names_and_learning():
    seen = []
    release = released(
        np.arange(20) % 2,
        progress=seen.append,
        hyperprior=Hyperprior(),
        input_names=["age"],
        output_name="ill",
    )
    assert seen
    assert release.hyperprior == Hyperprior()
    assert len(release.learned) == 1
    assert (release.input_names, release.output_name) == (("age",), "ill")


def test_names_go_with_the_papers_iteration_and_nothing_is_learned():
    release = released(
        np.arange(20) % 2, criterion="newton", input_names=["age"], output_name="ill"
    )
    assert (release.input_names, release.output_name) == (("age",), "ill")
    assert release.learned == ()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"criterion": "functional"}, "criterion must be one of bayes, trace, logdet, newton"),
        ({"criterion": "newton", "steps": 0}, "steps must be a whole number"),
        ({"criterion": "newton", "steps": -1}, "steps must be a whole number"),
        ({"criterion": "newton", "steps": 1.5}, "steps must be a whole number"),
        ({"criterion": "newton", "steps": "2"}, "steps must be a whole number"),
        ({"criterion": "newton", "steps": None}, "steps must be a whole number"),
        ({"criterion": "newton", "count": 3}, "for two classes: use 'bayes'"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"gap": 0.0}, "gap must be positive"),
        ({"criterion": "newton", "step_criterion": "volume"}, "criterion"),
    ],
)
def test_bad_settings(changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        released(np.zeros(20, dtype=int), **changes)


@pytest.mark.parametrize("steps", [True, 1.0])
def test_what_equals_one_is_no_number_of_steps(steps):
    with pytest.raises(ValueError, match="steps must be a whole number"):
        released(np.zeros(20, dtype=int), criterion="newton", steps=steps)


@pytest.mark.slow
def test_ours_beats_the_papers_mechanism():
    """Paired draws on a small table: log loss at new points, same seeds, same labels."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(0, 6, size=(150, 1))
    truth = lambda points: np.sin(1.1 * points[:, 0]) > 0  # noqa: E731
    points = np.linspace(0, 6, 40)[:, None]
    gains, rates = [], []
    for seed in range(12):
        y = (truth(rows) ^ (rng.uniform(size=150) < 0.05)).astype(int)
        losses, hits = [], []
        for criterion in ("bayes", "newton"):
            release = released(
                y, rows=rows, criterion=criterion, gap=0.01, insecure_seed=100 + seed
            )
            chance = release.predict_proba(points)[np.arange(40), truth(points).astype(int)]
            losses.append(-np.log(chance).mean())
            hits.append((chance > 0.5).mean())
        gains.append(losses[1] - losses[0])
        rates.append(hits[0] - hits[1])
    error = np.std(gains) / np.sqrt(len(gains) - 1)
    assert np.mean(gains) > 3 * error
    assert np.mean(rates) > 0


@pytest.mark.slow
def test_tens_of_thousands_of_rows_end_in_minutes():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30_000, 3))
    y = (rows[:, 0] + np.sin(2 * rows[:, 1]) > rng.logistic(size=len(rows))).astype(int)
    started = time.process_time()
    model = DPGPClassifier(classes=[0, 1], epsilon=1.0, delta=1e-6, inducing=100)
    release = model.fit(rows, y).release_
    predicted = release.predict_proba(rows[:2000]).argmax(axis=1)
    assert time.process_time() - started < 180
    assert (predicted == y[:2000]).mean() > 0.65
