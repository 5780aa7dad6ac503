"""The `bayes` design and untouched defaults on the !Kung women, and the 2018 paper's section 4."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from typer.testing import CliRunner

from cloakgp import DPGPRegressor
from cloakgp.fitting.bands import DEFAULT_STAGES, ONE_STAGE
from cloakgp.fitting.defaults import choose_prior
from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from experiments import __main__ as command_line
from experiments import kung, kung2018
from experiments.cloaking import PAPERS_NOISE, TRACE_NOISE, Budget, mean_without_privacy
from experiments.cross_validation import Errors, Protocol, Row, posterior_errors, root_mean_square
from experiments.kung import kung_rows
from experiments.published import posterior_report

SEED = 20210402
BUDGET = Budget(bounds=OutputBounds(-1.0, 1.0), epsilon=1.0, delta=0.01)


@pytest.fixture
def toy(rng):
    X = np.sort(rng.uniform(0.0, 10.0, size=(60, 1)), axis=0)
    return X, np.sin(X).ravel()


def toy_prior(_):
    return ExactPrior(kernel=RBF(1.5), noise_variance=0.3, mean=0.1)


def defaults(X):
    return choose_prior(X, bounds=BUDGET.bounds)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"learn": "map", "stages": ONE_STAGE},
        {"learn": "average", "stages": ONE_STAGE},
        {"learn": "map", "stages": DEFAULT_STAGES},
        {"learn": None, "stages": DEFAULT_STAGES},
    ],
    ids=["map", "average", "map in stages", "None in stages"],
)
def test_rows_are_the_estimator_s(toy, settings):
    """What a row computes in shared pieces is what `DPGPRegressor` does in one."""
    X, y = toy
    protocol = Protocol(folds=2, draws=2, insecure_seed=SEED)
    row = Row("estimator", defaults, default_prior=True, **settings)
    found = posterior_errors(X, y, rows=(row,), budget=BUDGET, protocol=protocol)["estimator"]
    for fold, (train, held_out) in enumerate(protocol.splits(len(X))):
        for draw in range(2):
            model = DPGPRegressor(
                bounds=(-1.0, 1.0),
                epsilon=1.0,
                delta=0.01,
                interval=False,
                noise="gaussian",
                insecure_seed=protocol.seed(fold, draw),
                learn=settings["learn"],
                stages=[(stage.share, stage.width) for stage in settings["stages"]],
            ).fit(X[train], y[train])
            expected = root_mean_square(model.predict(X[held_out]) - y[held_out])
            assert found.by_fold[fold, draw] == pytest.approx(expected, rel=1e-6)


def test_rows_that_ask_the_same_questions_share_their_answers(toy):
    X, y = toy
    rows = (Row("one", defaults), Row("other", defaults), Row("told", defaults, at_held_out=True))
    found = posterior_errors(X, y, rows=rows, budget=BUDGET, protocol=Protocol(folds=2, draws=2))
    assert np.array_equal(found["one"].by_fold, found["other"].by_fold)
    assert not np.array_equal(found["one"].by_fold, found["told"].by_fold)


def test_with_a_vast_budget_errors_are_those_without_privacy(toy):
    X, y = toy
    protocol = Protocol(folds=3, draws=1, insecure_seed=SEED)
    rich = Budget(bounds=BUDGET.bounds, epsilon=1e6, delta=0.01)
    row = Row("bayes", toy_prior, at_held_out=True)
    found = posterior_errors(X, y, rows=(row,), budget=rich, protocol=protocol)["bayes"]
    for fold, (train, held_out) in enumerate(protocol.splits(len(X))):
        mean = mean_without_privacy(
            X[train],
            y[train],
            X_query=X[held_out],
            prior=toy_prior(X),
            bounds=BUDGET.bounds,
        )
        expected = root_mean_square(mean - y[held_out])
        assert found.by_fold[fold, 0] == pytest.approx(expected, rel=2e-2)


def test_pooled_errors_weigh_squares():
    assert Errors(np.array([[1.0], [7.0]])).pooled == pytest.approx(5.0)


def test_without_privacy_a_row_is_the_declared_posterior_mean_and_has_one_draw(toy):
    X, y = toy
    protocol = Protocol(folds=3, draws=4)
    row = Row("owner", toy_prior, private=False)
    found = posterior_errors(X, y, rows=(row,), budget=BUDGET, protocol=protocol)["owner"]
    assert found.by_fold.shape == (3, 1)
    for fold, (train, held_out) in enumerate(protocol.splits(len(X))):
        mean = mean_without_privacy(
            X[train], y[train], X_query=X[held_out], prior=toy_prior(X), bounds=BUDGET.bounds
        )
        assert found.by_fold[fold, 0] == pytest.approx(root_mean_square(mean - y[held_out]))


def test_the_report_stands_beside_the_papers_figures():
    errors = {"row": Errors(np.array([13 * [8.0, 9.0]]))}
    table = posterior_report({"1d standard": errors, "2d standard": errors}, title="toy")
    assert list(table.columns[1].cells) == ["9.9", "8.50 (se 0.10)", "7.1"]
    assert list(table.columns[2].cells) == ["10.2", "8.50 (se 0.10)", "5.2"]


@pytest.mark.data
@pytest.mark.parametrize(
    ("setting", "tuned", "in_stages", "at_once"),
    [
        pytest.param(kung.TABLE_1[0], 7.77, 8.0, 9.9, id="1d"),
        pytest.param(kung.TABLE_1[2], 7.01, 5.7, 7.1, id="2d", marks=pytest.mark.slow),
    ],
)
def test_declared_priors_without_learning(women, setting, tuned, in_stages, at_once):
    """As computed with many draws; the papers' best are 9.9 and 10.2."""
    found = posterior_errors(
        setting.rows(women),
        kung.heights(women),
        rows=[row for row in kung_rows(setting)[1:] if row.learn is None],
        budget=kung.BUDGET,
        protocol=Protocol(draws=2, insecure_seed=SEED),
    )
    assert found["bayes, RBF, sds 25.5 and 6.7 cm"].mean == pytest.approx(tuned, abs=0.4)
    assert found["defaults, learn=None"].mean == pytest.approx(in_stages, abs=0.4)
    assert found["one stage, learn=None"].mean == pytest.approx(at_once, abs=0.4)
    assert found["the same, learn=None"].mean == pytest.approx(at_once, abs=0.5)


@pytest.mark.data
def test_the_2018_paper_s_error_without_privacy_and_the_order_with(women):
    protocol = Protocol(draws=4, insecure_seed=SEED)
    found = kung2018.errors_by_folds(women, protocol=protocol, folds=(14,))
    for one in found.values():
        assert one.cloaked.no_privacy.mean == pytest.approx(6.8, abs=0.1)
        assert one.cloaked.raw[PAPERS_NOISE.name].mean == pytest.approx(14.6, abs=1.8)
        # The declared noise is twice the residuals' and shrinks posterior means too much: those
        # of either design agree, and neither beats the raw predictions of `trace` here.
        posterior = one.cloaked.posterior[TRACE_NOISE.name]
        assert one.bayes.mean == pytest.approx(posterior.mean, abs=0.6)
        assert one.bayes.mean == pytest.approx(9.4, abs=0.6)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.usefixtures("women")
def test_the_command_prints_its_table():
    done = CliRunner().invoke(command_line.app, ["kung2018", "--fast"])
    assert done.exit_code == 0, done.output
    assert "10 folds" in done.output
    assert "bayes" in done.output
    assert "17.4" in done.output


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("setting", "in_stages", "at_once"),
    [(kung.TABLE_1[0], 7.5, 9.9), (kung.TABLE_1[2], 5.6, 7.0)],
    ids=["1d", "2d"],
)
def test_defaults_are_better_than_the_papers_best(women, setting, in_stages, at_once):
    """Nothing chosen by hand; the papers' methods are told the held-out inputs.

    Their best are 9.9 and 10.2 cm. In stages, as users have it, it is 7.2 and 5.3.
    """
    chosen = {"defaults": in_stages, "one stage, told the held-out inputs": at_once}
    found = posterior_errors(
        setting.rows(women),
        kung.heights(women),
        rows=[row for row in kung_rows(setting) if row.name in chosen],
        budget=kung.BUDGET,
        protocol=Protocol(draws=10, insecure_seed=SEED),
    )
    for name, most in chosen.items():
        assert found[name].standard_error < 0.15
        assert found[name].mean <= most
