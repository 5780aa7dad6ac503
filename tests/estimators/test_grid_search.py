"""Grid search: scikit-learn's conventions, one guarantee for all, and no scores."""

import inspect
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from counting_keeper import Counting
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from spying_backend import holds, spying

import cloakgp.estimators.grid_search as grid_search
from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPQuantileRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    Release,
)
from cloakgp.columns import Number, Schema
from cloakgp.estimators.grid_search import DPGridSearchCV
from cloakgp.fitting import held as fitting
from cloakgp.privacy.accounting import Guarantee
from cloakgp.privacy.composition import compose_with_selection, worst_release
from cloakgp.privacy.spending import counted_by

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

BUDGET = {"bounds": (-1.5, 1.5), "epsilon": 1.0, "delta": 1e-3}
GRID = {"kernel": [RBF(0.7), RBF(50.0), RBF(1e-3)], "noise_variance": [0.05]}


def waves(rows=80):
    X = np.linspace(0, 10, rows)[:, None]
    return X, np.sin(X).ravel()


def search(grid=None, *, seed=None, **settings):
    estimator = DPGPRegressor(**BUDGET, insecure_seed=seed, gap=1e-2)
    return DPGridSearchCV(
        estimator,
        GRID if grid is None else grid,
        **{"selection_epsilon": 0.5, "cv": 3} | settings,
    )


@pytest.fixture(scope="module")
def fitted():
    return search(seed=5).fit(*waves())


def test_the_better_candidate_is_found_when_there_is_enough_to_spend():
    for mechanism in ("permute-and-flip", "exponential"):
        for loss in ("squared", "absolute"):
            found = search(selection_epsilon=100.0, mechanism=mechanism, loss=loss).fit(*waves())
            assert found.best_index_ == 0
            assert found.best_params_ == {"kernel": RBF(0.7), "noise_variance": 0.05}
            assert found.best_estimator_.noise_variance == 0.05


def test_it_predicts_with_the_release(fitted):
    points = [[2.0], [5.0]]
    mean, sd = fitted.predict(points, return_std=True)
    expected = fitted.release_.predict(points, return_std=True)
    assert np.array_equal(mean, expected[0])
    assert np.array_equal(sd, expected[1])
    assert fitted.release_ is fitted.best_estimator_.release_
    assert fitted.n_features_in_ == 1
    assert np.isfinite(fitted.score(*waves()))


def test_one_guarantee_for_choice_and_release(fitted):
    # Three stages, and as many counts as there may be.
    worst = fitted.release_.choice.worst
    assert worst == worst_release(1.0, 1e-3, rows=80, answers=worst.answers)
    assert 3 * 80 <= worst.answers <= 3 * 80 + 6 * 18 + 1
    assert fitted.guarantee_ == compose_with_selection(worst, 0.5)
    assert 1.0 < fitted.guarantee_.epsilon < 1.5
    assert fitted.guarantee_.delta == 1e-3
    assert fitted.release_.guarantee == fitted.best_estimator_.guarantee_ == fitted.guarantee_
    spent = [measurement.guarantee.mu for measurement in fitted.release_.measurements]
    assert len(spent) > 1
    assert np.hypot.reduce(spent) <= worst.mu


def test_the_guarantee_does_not_depend_on_the_choice(monkeypatch):
    chosen = []
    for index in range(3):
        monkeypatch.setattr(
            grid_search,
            "select",
            lambda *_, index=index, **__: type("Chosen", (), {"index": index}),
        )
        chosen.append(search().fit(*waves()))
    assert [one.best_index_ for one in chosen] == [0, 1, 2]
    assert len({one.guarantee_ for one in chosen}) == 1


@pytest.mark.parametrize("learner", [{"stages": None}, {"learn": None}, {"inducing": 3}])
def test_every_way_of_releasing_stays_within_the_worst(learner):
    estimator = DPGPRegressor(**BUDGET, **learner, gap=1e-2)
    found = DPGridSearchCV(estimator, {"noise_variance": [0.05, 0.5]}, selection_epsilon=0.5, cv=3)
    assert found.fit(*waves(40)).guarantee_.epsilon < 1.5


def test_a_release_that_costs_more_than_announced_is_not_published(monkeypatch):
    cheap = Guarantee(epsilon=1.0, delta=1e-3, mu=0.01, answers=1000, coarseness=1e-9)
    monkeypatch.setattr(grid_search, "worst_of_schedule", lambda *_, **__: cheap)
    found = search()
    with pytest.raises(RuntimeError, match="not published"):
        found.fit(*waves())
    assert not any(name.endswith("_") for name in vars(found) if name != "n_features_in_")


FIVE = [(0.2, None), (0.2, 1.5), (0.2, 1.0), (0.2, None), (0.2, 0.5)]


@given(
    rows=st.sampled_from([3, 5, 7, 11, 21, 41]),
    epsilon=st.floats(-1.0, 5.0).map(lambda power: 10.0**power),
    delta=st.floats(-9.0, -1.0).map(lambda power: 10.0**power),
    width=st.floats(0.0, 6.0).map(lambda power: 10.0**power),
    spent=st.floats(-2.0, 5.0).map(lambda power: 10.0**power),
    stages=st.sampled_from(["auto", None, FIVE]),
    interval=st.sampled_from(["auto", False]),
    mechanism=st.sampled_from(["permute-and-flip", "exponential"]),
    grid=st.sampled_from([{"mean": [0.0, 0.1]}, {"noise_variance": [0.05, 0.5]}]),
    noise=st.sampled_from(["auto", "gaussian", "laplace"]),
)
@hypothesis_settings(max_examples=12)
def test_nothing_is_drawn_that_would_not_be_published(
    rows, epsilon, delta, width, spent, stages, interval, mechanism, grid, noise
):
    """With three stages, counts or large budgets, all was drawn and then refused."""
    estimator = DPGPRegressor(
        RBF(0.5),
        bounds=(-width, width),
        epsilon=epsilon,
        delta=delta,
        stages=stages,
        interval=interval,
        noise=noise,
        gap=0.1,
    )
    found = DPGridSearchCV(estimator, grid, selection_epsilon=spent, cv=2, mechanism=mechanism)
    keeper = Counting()
    with counted_by(keeper):
        if noise == "laplace":
            with pytest.raises(ValueError, match="Gaussian noise"):
                found.fit(*waves(rows))
            assert not keeper.costs
            assert not keeper.charges[0].held
            return
        found.fit(*waves(rows))
    assert found.guarantee_.delta == delta
    assert len(keeper.costs) >= 1
    assert keeper.charges[0].held[0] == ((spent, 0.0), (epsilon, delta))


def test_no_scores_are_exposed(fitted):
    for name in ("cv_results_", "best_score_", "scorer_", "scores_", "selection_"):
        assert not hasattr(fitted, name)
    # Of all that fitting leaves behind, this is everything.
    left = {name for name in vars(fitted) if name.endswith("_")}
    assert left == {
        "best_index_",
        "best_params_",
        "best_estimator_",
        "n_features_in_",
    }
    assert "score" not in repr(vars(fitted))


def test_tables_with_the_same_choice_and_answers_leave_the_same_object(monkeypatch):
    """Nothing of y is kept: with equal answers, two different tables pickle to the same bytes."""
    X, y = waves(40)
    door, asked = inspect.unwrap(grid_search.select).__globals__, fitting.ask
    monkeypatch.setitem(door, "report_insecure_noisy_max", lambda *_, **__: 1)
    monkeypatch.setattr(
        fitting, "ask", lambda strategy, outputs, **rest: asked(strategy, 0 * outputs, **rest)
    )
    one, other = (search(seed=4).fit(X, outputs) for outputs in (y, -0.5 * y))
    assert one.best_index_ == other.best_index_ == 1
    for found in (one, other):
        # When they were made is said to the second, and may differ.
        found.best_estimator_.release_ = replace(found.release_, provenance=None)
    assert pickle.dumps(one) == pickle.dumps(other)


def test_a_seeded_search_repeats_and_its_release_says_so(fitted):
    again = search(seed=5).fit(*waves())
    assert again.best_index_ == fitted.best_index_
    assert np.array_equal(again.predict([[1.0]]), fitted.predict([[1.0]]))
    assert again.release_.insecure
    assert not search().fit(*waves()).release_.insecure


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_workers_find_the_same(fitted, backend):
    with parallel_config(backend=backend):
        found = search(seed=5, n_jobs=2).fit(*waves())
    assert found.best_index_ == fitted.best_index_
    assert np.array_equal(found.predict([[1.0]]), fitted.predict([[1.0]]))


def test_workers_are_sent_inputs_and_no_outputs():
    X, _ = waves(40)
    y = np.random.default_rng(3).uniform(-1.4, 1.4, size=40)
    with spying() as sent:
        search().fit(X, y)
    assert len(sent) == 3 * len(GRID["kernel"])
    for task in sent:
        assert holds(task, X[1:])
        assert not holds(task, np.concatenate([y, y / 3.0, -y]))


def test_scikit_learn_clones_and_sets_it(fitted):
    copy = clone(fitted)
    assert not hasattr(copy, "best_index_")
    assert copy.get_params()["estimator__epsilon"] == 1.0
    copy.set_params(estimator__epsilon=2.0, selection_epsilon=0.1)
    assert copy.estimator.epsilon == 2.0
    assert fitted.estimator.epsilon == 1.0
    assert is_regressor(copy)
    with pytest.raises(NotFittedError):
        copy.predict([[1.0]])
    with pytest.raises(NotFittedError):
        _ = copy.release_


def test_the_estimator_given_is_left_alone(fitted):
    assert fitted.estimator.kernel is None
    assert not hasattr(fitted.estimator, "release_")


def test_nested_parameters_and_lists_of_grids():
    estimator = DPGPRegressor(ConstantKernel(0.5) * RBF(1.0), **BUDGET, gap=1e-2)
    grids = [{"kernel__k2__length_scale": [0.7, 40.0]}, {"mean": [0.5]}]
    found = DPGridSearchCV(estimator, grids, selection_epsilon=100.0, cv=3).fit(*waves())
    assert found.best_params_ == list(ParameterGrid(grids))[found.best_index_]
    assert found.best_index_ == 0


def test_column_names_are_kept():
    pandas = pytest.importorskip("pandas")
    X, y = waves(40)
    table = pandas.DataFrame(X, columns=["age"])
    found = search(seed=1).fit(table, y)
    assert found.feature_names_in_.tolist() == ["age"]
    assert found.release_.input_names == ("age",)
    assert found.predict(table).shape == (40,)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"grid": {"epsilon": [1.0, 2.0]}}, "epsilon: budget"),
        ({"grid": {"bounds": [(0, 1)]}}, "bounds"),
        ({"grid": {"insecure_seed": [1]}}, "insecure_seed"),
        ({"grid": {"criterion": ["trace"]}}, "criterion"),
        ({"grid": []}, "at least one"),
        ({"grid": {"noise_variance": [-1.0]}}, "noise_variance"),
        ({"cv": 1}, "cv must lie between 2 and the number of rows, 80, got 1"),
        ({"cv": 81}, "cv must lie between"),
        ({"cv": KFold(3)}, "cv must be a whole number"),
        ({"cv": True}, "cv must be a whole number"),
        ({"grid": {"kernel__length_scale": [0.7, 5.0]}}, "sets parameters of a kernel"),
        (
            {"grid": {"kernel": [RBF(), None], "kernel__length_scale": [5.0]}},
            "sets parameters of a kernel",
        ),
        ({"selection_epsilon": 0.0}, "epsilon"),
        ({"mechanism": "coin"}, "mechanism"),
        ({"loss": "cubic"}, "loss"),
    ],
)
def test_bad_settings(settings, complaint):
    keeper = Counting()
    with counted_by(keeper), pytest.raises(ValueError, match=complaint):
        search(**settings).fit(*waves())
    assert keeper.costs == []


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"learn": "x"}, "learn must be"),
        ({"gap": -1.0}, "gap must be"),
        ({"overdispersion": 3.0}, "overdispersion is of counts"),
        ({"likelihood": "x"}, "likelihood must be"),
        ({"noise": "x"}, "noise must be"),
        ({"schema": 3}, "encode the table first"),
        ({"schema": Schema((Number("x"),))}, "encode the table first"),
    ],
    ids=str,
)
def test_what_the_chosen_one_would_refuse_is_refused_before_the_choice(settings, complaint):
    """The choice was paid for, and the release then refused."""
    found = search().set_params(**{f"estimator__{name}": of for name, of in settings.items()})
    keeper = Counting()
    with counted_by(keeper), pytest.raises(ValueError, match=complaint):
        found.fit(*waves())
    assert keeper.costs == []


def test_dates_are_no_numbers_to_compare_candidates_on():
    """Candidates were compared on nanoseconds, and the chosen one fitted to encoded dates."""
    pandas = pytest.importorskip("pandas")
    _, y = waves()
    days = pandas.DataFrame({"day": pandas.date_range("2020-01-01", periods=80)})
    keeper = Counting()
    with counted_by(keeper), pytest.raises(ValueError, match="encode the table first"):
        search({"noise_variance": [0.05, 0.5]}).fit(days, y)
    assert keeper.costs == []


def test_a_grid_may_bring_the_kernel_whose_parameters_it_sets():
    grid = {"kernel": [RBF()], "kernel__length_scale": [0.7, 50.0]}
    found = search(grid, selection_epsilon=100.0).fit(*waves())
    assert found.best_estimator_.kernel == RBF(0.7)


@pytest.mark.parametrize(
    ("estimator", "named"),
    [
        (make_pipeline(DPGPRegressor(**BUDGET)), "Pipeline: at the end of a pipeline"),
        (DPGPQuantileRegressor(**BUDGET), "DPGPQuantileRegressor"),
        (DPGPMultiOutputRegressor(**BUDGET | {"bounds": [(0, 1)]}), "DPGPMultiOutputRegressor"),
        (DPGPRegressorPrivateInputs(input_bounds=(0, 1), **BUDGET), "DPGPRegressorPrivateInputs"),
        (Ridge(), "Ridge"),
        (DPGPRegressor, "the class DPGPRegressor"),
        (None, "NoneType"),
    ],
    ids=str,
)
def test_other_estimators_are_refused_by_name(estimator, named):
    keeper = Counting()
    with counted_by(keeper), pytest.raises(TypeError, match=f"not for {named}"):
        DPGridSearchCV(estimator, {"mean": [0.0]}, selection_epsilon=0.5).fit(*waves())
    assert keeper.costs == []


def test_what_kind_an_unsuitable_estimator_is_can_be_asked():
    assert is_regressor(DPGridSearchCV(Ridge(), {"alpha": [1.0]}, selection_epsilon=0.5))


def test_bad_outputs_are_not_quoted():
    X, _ = waves()
    for bad, complaint in (([0.1234567] * 79 + [np.nan], "NaN"), ([0.1234567] * 79, "must agree")):
        with pytest.raises(ValueError, match=complaint) as caught:
            search().fit(X, bad)
        assert "0.123" not in str(caught.value)


def test_scikit_learns_own_checks():
    # Learning is checked with the regressor.
    checked = DPGridSearchCV(
        DPGPRegressor(
            bounds=(-200, 200),
            epsilon=1.0,
            delta=1e-3,
            insecure_seed=1,
            gap=0.1,
            learn=None,
            stages=None,
        ),
        {"noise_variance": [100.0, 400.0]},
        selection_epsilon=1.0,
        cv=2,
    )
    with warnings.catch_warnings():
        # It skips what needs an environment variable, and says so.
        warnings.simplefilter("ignore", SkipTestWarning)
        check_estimator(checked)


def test_a_release_that_was_chosen_has_gaussian_noise():
    """Its total is stated for every candidate, of which each might choose another by forecast."""
    estimator = DPGPRegressor(bounds=(-1.5, 1.5), epsilon=0.05, delta=1e-9, learn=None)
    assert estimator.forecast(waves()[0])[0].noise == "laplace"
    found = DPGridSearchCV(estimator, GRID, selection_epsilon=0.5, cv=3).fit(*waves())
    assert all(one.guarantee.mu > 0 for one in found.release_.measurements)
    assert not any(one.guarantee.laplace for one in found.release_.measurements)
    with pytest.raises(ValueError, match="Gaussian noise"):
        DPGridSearchCV(
            clone(estimator).set_params(noise="laplace"), GRID, selection_epsilon=0.5
        ).fit(*waves())


CLASS_BUDGET = {"classes": ["low", "mid", "high"], "epsilon": 1.0, "delta": 1e-3, "learn": None}


def labels(count):
    X = np.linspace(0, 10, 120)[:, None]
    names = np.array(["low", "mid", "high"] if count == 3 else ["low", "high"])
    return X, names[(np.sin(X[:, 0]) * count / 2.02 + count / 2).astype(int)]


def class_search(count=3, **settings):
    budget = CLASS_BUDGET | {"classes": ["low", "mid", "high"] if count == 3 else ["low", "high"]}
    grid = {"kernel": [4.0 * RBF(1.0), 4.0 * RBF(1e-3), 4.0 * RBF(500.0)]}
    chosen = {"selection_epsilon": 200.0, "cv": 3} | settings
    return DPGridSearchCV(DPGPClassifier(**budget), grid, **chosen)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("count", [2, 3])
def test_the_better_candidate_for_classes_is_found(count, loss):
    X, y = labels(count)
    found = class_search(count, loss=loss).fit(X, y)
    assert is_classifier(found)
    assert found.best_index_ == 0
    assert set(found.predict(X)) <= set(y)
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1.0)
    assert list(found.classes_) == sorted(set(y))
    assert 0.0 <= found.score(X, y) <= 1.0


def test_classes_have_one_guarantee_for_choice_and_release_and_a_file(tmp_path):
    found = class_search(selection_epsilon=0.5).fit(*labels(3))
    assert found.guarantee_ == compose_with_selection(
        worst_release(1.0, 1e-3, rows=120, answers=360), 0.5
    )
    found.release_.save(tmp_path / "chosen.cloak")
    assert Release.load(tmp_path / "chosen.cloak").guarantee == found.guarantee_


def test_what_cannot_be_chosen_for_classes_says_so():
    X, y = labels(2)
    wrong = DPGridSearchCV(
        DPGPClassifier(**CLASS_BUDGET), {"noise_variance": [1.0]}, selection_epsilon=1.0
    )
    with pytest.raises(ValueError, match="may set kernel, inducing, approximation, link"):
        wrong.fit(X, y)
    raw = class_search().set_params(estimator__criterion="trace")
    with pytest.raises(ValueError, match="leave criterion out"):
        raw.fit(X, y)
    assert not hasattr(search(), "predict_proba")
