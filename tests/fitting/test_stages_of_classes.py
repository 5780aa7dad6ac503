"""Stages of classes of held rows: each is designed by what those before it leave open."""

import numpy as np
import pytest

from cloakgp import DPGPClassifier, compose
from cloakgp.fitting.strategies import Budget, split_budget
from cloakgp.release import StreamedStrategy

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

X = np.linspace(0.0, 6.0, 30)[:, None]
STAGES = [(0.4, None), (0.6, None)]


def fitted(y, *, count=2, query=None, **changes):
    chosen = {"epsilon": 4.0, "delta": 1e-3, "noise": "gaussian", "learn": None, "stages": STAGES}
    model = DPGPClassifier(classes=list(range(count)), **(chosen | {"insecure_seed": 3} | changes))
    return model.fit(X, y, query).release_


@pytest.mark.parametrize("groups", [None, np.arange(30) // 2])
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_parts_compose_to_the_whole(noise, count, groups):
    delta = 1e-3 if noise == "gaussian" else 0.0
    model = DPGPClassifier(
        classes=list(range(count)), epsilon=4.0, delta=delta, noise=noise, learn=None, stages=STAGES
    )
    release = model.fit(X, np.arange(30) % count, groups=groups).release_
    assert release.guarantee == compose(*(one.answers.guarantee for one in release.measurements))
    assert release.guarantee.delta_at(4.0) <= delta
    assert release.guarantee.epsilon <= 4.0
    parts = split_budget(Budget(4.0, delta, noise=noise), shares=(0.4, 0.6))
    assert len(release.measurements) == len(parts)
    for one, part in zip(release.measurements, parts, strict=True):
        # Oracle: the longest that any group's rows move answers, by the questions themselves.
        ordinal, distance = (2, one.question.distance)
        if noise == "laplace":
            ordinal, distance = (1, one.question.absolute_distance)
        lengths = np.linalg.norm(one.strategy.matrix, ord=ordinal, axis=0)
        together = lengths if groups is None else np.bincount(groups, weights=lengths)
        least = distance * part.unit_sd() * together.max()
        if groups is None:
            assert one.answers.noise_sd == pytest.approx(least, rel=1e-3)
        else:
            assert one.answers.noise_sd <= least * (1 + 1e-3)
    assert release.visits == 1


def test_later_questions_do_not_look_at_labels():
    rng = np.random.default_rng(0)
    first, second = (fitted(rng.integers(0, 2, size=30)) for _ in range(2))
    for one, other in zip(first.measurements, second.measurements, strict=True):
        np.testing.assert_array_equal(one.strategy.matrix, other.strategy.matrix)


@pytest.mark.parametrize("count", [2, 3])
def test_the_second_stage_is_designed_given_the_first(count):
    """Brute force: of the linear prior over labels, the two together explain more than twice one.

    The questions of a fit in one stage, asked a second time with the noise of the second stage, are
    what a design would be that knows nothing of the first.
    """
    points = np.array([[0.5], [3.0], [5.5]])
    y = np.arange(30) % count
    release = fitted(y, count=count, query=points, gap=1e-4, epsilon=8.0)
    prior = release.likelihood.linear_prior(release.prior, X)
    K = prior.row_covariance(X, X) + np.diag(prior.row_noise(X))
    crossed = prior.cross_covariance(points, X)

    def explained(matrices):
        R = np.vstack(matrices)
        noise = np.concatenate(
            [
                np.full(len(each), one.question.output_noise_sd(one.answers.noise_sd) ** 2)
                for each, one in zip(matrices, release.measurements, strict=True)
            ]
        )
        both = crossed @ R.T
        return float(np.trace(both @ np.linalg.solve(R @ K @ R.T + np.diag(noise), both.T)))

    first, second = (one.strategy.matrix for one in release.measurements)
    longest = [np.linalg.norm(each, axis=0).max() for each in (first, second)]
    afresh = first * longest[1] / longest[0]
    assert explained([first, second]) > explained([first, afresh])


@pytest.mark.usefixtures("noise_that_repeats")
def test_many_rows_go_in_passes_by_themselves():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 6, size=(6000, 2))
    y = rows[:, 0] > 3 + rng.normal(size=6000)
    model = DPGPClassifier(
        classes=[False, True], epsilon=1.0, delta=1e-5, inducing=20, learn=None, gap=0.1
    )
    people = (np.arange(6000) // 3).tolist()
    for groups in (None, people):
        release = model.fit(rows, y, groups=groups).release_
        [one] = release.measurements
        assert isinstance(one.strategy, StreamedStrategy)
        assert one.strategy.grouped == (groups is not None)
        assert release.n_rows == 6000
        assert (release.predict(rows) == y).mean() > 0.6
