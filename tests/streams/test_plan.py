"""Plans of streams beside what streams then spend, and simulated errors beside expected ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import linalg
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from stream_tables import model, month, months, stream

from cloakgp import DPGPRegressor
from cloakgp.privacy import compose
from cloakgp.privacy.accounting import Guarantee, gaussian_delta
from cloakgp.privacy.filters import costs_of_release
from cloakgp.streams import plan as plans
from cloakgp.streams.plan import forecast_errors, total_of

KERNEL = ConstantKernel(4.0) * RBF(2.0)


@pytest.mark.parametrize("periods", [1, 3, 12])
def test_totals_are_compositions(periods):
    assert total_of(periods, epsilon=0.5, delta=0.0) == pytest.approx(0.5 * periods)
    found = total_of(periods, epsilon=0.5, delta=1e-5, noise="gaussian")
    single = DPGPRegressor(bounds=(0, 1), epsilon=0.5, delta=1e-5, noise="gaussian", stages=None)
    part = single.fit(np.arange(6.0)[:, None], np.arange(6.0) / 5).guarantee_
    mu = part.mu * np.sqrt(periods)
    assert gaussian_delta(mu, found) == pytest.approx(1e-5, rel=1e-3)
    stated = compose(*[part] * periods)
    assert isinstance(stated, Guarantee)
    assert stated.epsilon_at(1e-5) == pytest.approx(found, rel=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "periods"),
    [(1.0, 0.01, 6), (0.1, 0.01, 12), (5.0, 0.05, 12), (1, 1e-5, 70)],
)
def test_totals_hold_whichever_noise_each_period_draws(epsilon, delta, periods):
    gaussian, laplace = costs_of_release(epsilon, delta)
    found = total_of(periods, epsilon=epsilon, delta=delta)
    every = [
        (gaussian.times(periods - many) + laplace.times(many)).epsilon_at(delta)
        for many in range(periods + 1)
    ]
    assert found >= max(every)
    assert found == pytest.approx(max(every), rel=0.0 if periods < 64 else 0.03)
    if epsilon == 1 and periods == 6:
        # One of Gaussian noise and five of Laplace noise: more than six of either.
        assert found > max(every[0], every[-1])


@pytest.mark.parametrize("people", ["disjoint", "overlapping"])
def test_what_is_planned_is_spent(people, tmp_path):
    made = stream(months(3), tmp_path, people=people)
    plan = made.plan()
    assert list(tmp_path.iterdir()) == []
    made.advance()
    assert plan.total == pytest.approx(made.spent)
    assert plan.total == pytest.approx(made.release.guarantee.pure_epsilon)
    words = dict(plan.facts())
    (spends,) = (text for label, text in words.items() if "spends" in label)
    assert spends.startswith("ε = 1, with no δ" if people == "disjoint" else "ε = 3, with no δ")
    assert ("one period" in spends) == (people == "disjoint")
    assert words["periods"] == "3 periods, ε = 1, with no δ each"
    gains = "independent noise, which is no worse" in words["correlated noise"]
    assert gains == (people == "overlapping")
    assert all(text in str(plan) for text in words.values())


def test_a_plan_reads_no_output_and_draws_nothing(tmp_path):
    without = [each.drop(columns="pay") for each in months(2)]
    plan = stream(without, tmp_path).plan()
    assert plan.errors is not None
    assert plan.errors.last < plan.errors.first < plan.errors.prior
    assert stream([], tmp_path).plan().errors is None
    assert "cannot be forecast" in str(stream([], tmp_path).plan())
    outside = stream([month(-3)], tmp_path).plan()
    assert outside.errors is None


def test_expected_errors_are_those_of_draws_from_the_prior(tmp_path):
    """Oracle: functions drawn from the prior with drift, asked in three periods, many times."""
    rng = np.random.default_rng(5)
    rows, horizon, length = 12, 3, 40.0
    tables = [month(number, rows=rows) for number in range(horizon + 1)]
    estimator = DPGPRegressor(
        KERNEL,
        0.25,
        bounds=(-12.0, 12.0),
        epsilon=3.0,
        noise="laplace",
        stages=None,
        interval=False,
        learn=None,
    )
    plan = stream(tables, tmp_path / "plan", estimator=estimator, forgetting=length).plan()
    X = pd.concat(tables)[["age", "day"]].to_numpy()
    ages, days = X[:, :1], X[:, 1]
    fading = np.exp(-np.abs(days[:, None] - days[None, :]) / length)
    K = KERNEL(ages) * (0.5 + 0.5 * fading)
    root = linalg.cholesky(K + 1e-9 * np.eye(len(K)), lower=True)
    squares = []
    for draw in range(20):
        curve = root @ rng.normal(size=len(K))
        source = [
            table.assign(pay=curve[rows * n : rows * (n + 1)] + 0.5 * rng.normal(size=rows))
            for n, table in enumerate(tables)
        ]
        made = stream(source, tmp_path / str(draw), estimator=estimator, forgetting=length)
        made.advance()
        at = X[rows * (horizon - 1) : rows * horizon]
        error = made.release.predict(at) - curve[rows * (horizon - 1) : rows * horizon]
        squares.append(np.mean(error**2))
    found = np.sqrt(np.mean(squares))
    spread = np.std(squares) / np.sqrt(len(squares)) / (2 * found)
    assert found == pytest.approx(plan.errors.last, abs=3 * spread + 0.1 * found)


def test_errors_fall_as_the_same_is_asked_again():
    X = np.linspace(0, 5, 20)[:, None]
    one, three, twelve = (
        forecast_errors(model(), X, horizon=horizon, people="disjoint") for horizon in (1, 3, 12)
    )
    assert one.first == one.last == three.first == twelve.first
    assert twelve.last < three.last < one.last
    assert one.band is None
    assert twelve.band > three.band > 1
    # What drifts fast is known no better in the end.
    drifting = forecast_errors(
        model(),
        np.column_stack([X, 0 * X]),
        horizon=3,
        people="disjoint",
        step=np.array([0.0, 1e6]),
    )
    assert drifting.last > 0.8 * drifting.first


def many(number, rows=600):
    return month(number, rows=rows).sort_values("day")


def test_a_plan_is_of_all_rows_of_the_first_period_however_they_come(tmp_path):
    tables = [many(number) for number in range(3)]
    days = [part for each in tables for _, part in each.groupby(each["day"] // 1)]
    monthly, daily = (
        stream(source, tmp_path / name, horizon=2).plan()
        for name, source in (("m", tables), ("d", days))
    )
    assert monthly.errors == daily.errors
    assert monthly.errors.rows == 600
    assert "of 600 rows each, such as there are of the first so far" in str(monthly)
    assert "within some 20 %, as a few places stand for the rows" in str(monthly)
    few = stream([tables[0].iloc[:100], *tables[1:]], tmp_path / "f", horizon=2).plan()
    assert few.errors.rows == 100
    assert few.errors.first > 1.5 * monthly.errors.first
    assert "places" not in str(few)
    # A later row of the same person and time counts in the place of an earlier one.
    again = stream([tables[0], tables[0], *tables[1:]], tmp_path / "a", horizon=2, person="who")
    assert again.plan().errors.rows == 600


@pytest.mark.parametrize(
    ("people", "persons"),
    [
        ("disjoint", False),
        ("disjoint", True),
        ("overlapping", False),
        pytest.param("overlapping", True, marks=pytest.mark.slow),
    ],
)
def test_a_plan_of_many_rows_is_near_that_which_holds_them(persons, people, tmp_path):
    """Oracle: the forecast that makes each question of all rows, and the released sds."""
    who = [f"p{row // 3}" for row in range(600)]
    tables = [many(number).assign(who=[f"{number}{one}" for one in who]) for number in range(3)]
    how = {"horizon": 2, "people": people, "person": "who" if persons else ""}
    made = stream(tables, tmp_path / "s", **how)
    found = made.plan().errors
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "HELD_ROWS", 10**6)
        exact = stream(tables, tmp_path / "e", **how).plan().errors
    assert exact.within == 0
    for name in ("first", "last", "prior", "band"):
        assert getattr(found, name) == pytest.approx(getattr(exact, name), rel=found.within)
    made.advance()
    at = tables[1][["age"]].to_numpy()
    released = np.sqrt(np.mean(made.release.predict_latent(at).sd ** 2))
    assert found.last == pytest.approx(released, rel=found.within)
