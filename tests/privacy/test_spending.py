"""Spending: every draw of every mechanism is told to whoever counts, before it is made."""

from __future__ import annotations

import ast
import inspect
import math
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from attacks.families import ATTACKS, BY_NAME, Table
from counting_keeper import Counting

import cloakgp
from cloakgp import DPGPRegressor, DPGPRegressorPrivateInputs, DPGridSearchCV, cloak
from cloakgp.data import ArrayRows
from cloakgp.ledger import Ledger
from cloakgp.privacy import Guarantee, OutputBounds, ask, filters, sampler, spending
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.filters import Amount
from cloakgp.privacy.spending import (
    Cost,
    SpendingError,
    counted_by,
    digest_of,
    keeper_in_force,
    spend,
)
from cloakgp.privacy.tally import tallied

pytestmark = [
    pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning"),
    pytest.mark.filterwarnings("ignore::cloakgp.design.DesignGapWarning"),
]

ROOT = Path(cloakgp.__file__).parent
X = np.linspace(0, 10, 30)[:, None]
y = X[:, 0] / 10
TABLE = Table.of(7)
# One of every mechanism; the others of the table take long.
QUICK = {
    *("bayes", "functional", "two stages", "groups, trace", "cloak, trace", "noise on rows"),
    *("histogram", "histogram, Laplace", "two classes", "three Newton steps", "select, squared"),
    *("two outputs, trace", "arrays in chunks, trace", "classes in CSV", "given questions"),
    *("private bins, replaced", "refine, extend and combine"),
}
# Their clusters are of other tests, and their noise is drawn here as for other rows.
ON_A_CLUSTER = {"Dask", "Dask, classes"}


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, marks=[] if attack.name in QUICK else [pytest.mark.slow])
        for attack in ATTACKS
        if attack.name not in ON_A_CLUSTER and attack.counted is None
    ],
    ids=lambda attack: attack.name,
)
def test_every_mechanism_counts_at_least_what_it_states(attack):
    """All that the table of mechanisms has; what counts is what noise was drawn with."""
    data = attack.neighbourhoods(TABLE)[0][0]
    keeper = Counting()
    with counted_by(keeper):
        outcome = attack.run(data, TABLE)
    assert keeper.costs
    assert {charge.ended for charge in keeper.charges} == {"committed"}
    for guarantee in outcome.guarantees:
        gaussian, pure = guarantee, 0.0
        if isinstance(guarantee, MixedGuarantee):
            gaussian, pure = guarantee.release, guarantee.selection_epsilon
        elif not isinstance(guarantee, Guarantee):
            gaussian, pure = None, getattr(guarantee, "epsilon", 0.0)
        if gaussian is not None:
            # What must hold whatever was chosen is a little more.
            assert keeper.mu >= gaussian.mu * (1 - 1e-5)
        assert keeper.pure >= pure * (1 - 1e-9)


@pytest.mark.parametrize(
    "attack",
    [attack for attack in ATTACKS if attack.counted is not None],
    ids=lambda attack: attack.name,
)
def test_what_names_its_ledger_counts_every_draw_and_at_least_what_it_states(attack, tmp_path):
    ledger = Ledger.create(tmp_path / "people.db")
    ledger.open_account("people", epsilon=100.0, delta=1e-3)
    data = attack.neighbourhoods(TABLE)[0][0]
    with tallied() as drawn:
        outcome = attack.counted(data, TABLE, ledger)
    standings = ledger.standings()
    spent = [one.spent for one in standings]
    assert sum(spent, start=Amount()) == sum(map(Amount.of, drawn), start=Amount()) != Amount()
    assert not any(one.open for one in standings)
    assert ledger.verify().findings == ()
    # Where every period has an account, nobody is in two of them.
    (guarantee,) = outcome.guarantees
    mu = math.sqrt(max(one.gaussian for one in spent) / filters.UNITS)
    assert mu >= guarantee.mu * (1 - 1e-9)
    pure = max(one.laplace + one.pure for one in spent) / filters.UNITS
    assert pure >= math.fsum(guarantee.laplace) * (1 - 1e-9)


def test_the_quick_ones_are_in_the_table():
    assert set(BY_NAME) >= QUICK | ON_A_CLUSTER


def test_what_counts_is_what_is_stated():
    keeper = Counting()
    with counted_by(keeper):
        model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-6, noise="gaussian").fit(X, y)
    spent = model.guarantee_
    assert keeper.mu == pytest.approx(spent.mu, rel=1e-12)
    assert sum(cost.answers for cost in keeper.costs) == spent.answers
    coarseness = math.fsum(cost.coarseness for cost in keeper.costs)
    assert coarseness == pytest.approx(spent.coarseness, rel=1e-12)


def test_the_budget_of_a_fit_is_held_before_its_first_draw():
    keeper = Counting()
    with counted_by(keeper):
        DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-6, noise="gaussian").fit(X, y)
    (charge,) = keeper.charges
    assert charge.held == [((1.0, 1e-6),)]
    assert len(charge.costs) == len(charge.digests) > 1


def test_a_choice_and_its_release_are_held_together():
    keeper = Counting()
    search = DPGridSearchCV(
        DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-6),
        {"noise_variance": [0.1, 0.01]},
        selection_epsilon=0.5,
        cv=3,
    )
    with counted_by(keeper):
        search.fit(X, y)
    (charge,) = keeper.charges
    # What the release holds for itself is a part of that.
    assert charge.held[0] == ((0.5, 0.0), (1.0, 1e-6))
    assert charge.costs[0].mechanism == "permute-and-flip"


def test_digests_are_those_of_the_published_answers():
    keeper = Counting()
    with counted_by(keeper):
        release = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-6).fit(X, y).release_
    (charge,) = keeper.charges
    assert charge.digests == [digest_of(one.answers.values) for one in release.measurements]


@pytest.mark.parametrize("step", [2.0**-40, 1.0, 2.0**900])
def test_digests_do_not_depend_on_the_grid(step):
    integers = np.array([2**59 + 1, -7, 0])
    assert digest_of(integers) == digest_of(integers.astype(float) * step)
    assert digest_of(integers) != digest_of(integers + np.array([2**10, 0, 0]))
    assert digest_of(-0.0 * integers) == digest_of(0 * integers)


UNITS = {
    "one row": (
        "row",
        lambda: ask(np.ones((1, 2)), [0, 1], question=OutputBounds.checked((0, 1)), **BUDGET),
    ),
    "groups": (
        "person",
        lambda: ask(
            np.ones((1, 2)), [0, 1], question=OutputBounds.checked((0, 1)), groups=[1, 1], **BUDGET
        ),
    ),
    "groups of a fit": (
        "person",
        lambda: DPGPRegressor(bounds=(0, 1), **BUDGET).fit(X, y, groups=[1, 2] * 15),
    ),
    "groups of rows": (
        "person",
        lambda: DPGPRegressor(bounds=(0, 1), inducing=3, **BUDGET).fit_rows(
            ArrayRows(X, y, groups=[1, 2] * 15)
        ),
    ),
    "rows": (
        "row",
        lambda: DPGPRegressor(bounds=(0, 1), inducing=3, **BUDGET).fit_rows(ArrayRows(X, y)),
    ),
    "several outputs of a row": (
        "row",
        lambda: cloakgp.DPGPMultiOutputRegressor(bounds=[(0, 1)] * 2, **BUDGET).fit(
            X, np.column_stack([y, y])
        ),
    ),
    "whole rows": (
        "whole row replaced",
        lambda: DPGPRegressorPrivateInputs(
            bounds=(0, 1), input_bounds=[(0, 10)], neighbours="replace", **BUDGET
        ).fit(X, y),
    ),
    "whole rows that come and go": (
        "whole row added or removed",
        lambda: DPGPRegressorPrivateInputs(
            bounds=(0, 1), input_bounds=[(0, 10)], neighbours="add-remove", **BUDGET
        ).fit(X, y),
    ),
}
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize("name", UNITS)
def test_a_charge_says_whom_it_protects(name):
    unit, run = UNITS[name]
    keeper = Counting()
    with counted_by(keeper):
        run()
    (charge,) = keeper.charges
    assert charge.spender.unit == unit


def test_a_later_visit_to_groups_protects_the_groups():
    release = DPGPRegressor(bounds=(0, 1), **BUDGET).fit(X, y, groups=[1, 2] * 15).release_
    keeper = Counting()
    with counted_by(keeper):
        cloakgp.refine(release, y, **BUDGET)
    assert [charge.spender.unit for charge in keeper.charges] == ["person"]


def test_nothing_is_drawn_where_it_is_refused(monkeypatch):
    drawn = []
    real = sampler.spend

    def watched(cost, draw):
        return real(cost, lambda: drawn.append(cost) or draw())

    monkeypatch.setattr(sampler, "spend", watched)
    keeper = Counting(refuse_after=1)
    with counted_by(keeper), pytest.raises(SpendingError, match="no more"):
        DPGPRegressor(bounds=(0, 1), **BUDGET).fit(X, y)
    assert len(drawn) == 1
    assert [charge.ended for charge in keeper.charges] == ["failed"]


def test_what_is_wrong_is_never_drawn_for():
    keeper = Counting()
    with counted_by(keeper):
        for outputs in (["text", "text"], [0.0], [math.nan, 1.0]):
            with pytest.raises((ValueError, TypeError)):
                cloak(np.ones((1, 2)), outputs, bounds=(0, 1), **BUDGET)
    assert keeper.costs == []


def test_the_outputs_are_forgotten_where_a_keeper_refuses():
    class Refusing:
        def open_charge(self, _):
            raise SpendingError("no more")

    secret = 0.123456789
    with counted_by(Refusing()), pytest.raises(SpendingError) as caught:
        ask(np.ones((1, 2)), [secret, 1.0], question=OutputBounds.checked((0, 1)), **BUDGET)
    frames, trace = [], caught.value.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    # Those of this test keep their own.
    assert str(secret) not in str([frame.f_locals for frame in frames[1:]])


def test_a_keeper_that_fails_at_the_end_does_not_hide_the_failure():
    class Failing(Counting):
        def open_charge(self, spender):
            charge = super().open_charge(spender)
            charge.close = lambda **_: (each for each in ()).throw(OSError("gone"))
            return charge

    with counted_by(Failing()), pytest.raises(ValueError, match="bounds") as caught:
        ask(np.ones((1, 2)), [0, 1], question=OutputBounds(1.0, 0.0), **BUDGET)
    assert "counts as spent" in caught.value.__notes__[0]
    # What the ledger does not know must not get out.
    with counted_by(Failing()), pytest.raises(OSError, match="gone"):
        ask(np.ones((1, 2)), [0, 1], question=OutputBounds.checked((0, 1)), **BUDGET)


def test_the_bare_sampler_is_refused_where_somebody_counts():
    with counted_by(Counting()), pytest.raises(SpendingError, match="whom this noise protects"):
        sampler.add_discrete_gaussian(np.zeros(1, dtype=np.int64), scale=4.0, sensitivity=1)


def test_threads_that_start_within_a_block_count():
    keeper = Counting()

    def run():
        ask(np.ones((1, 2)), [0, 1], question=OutputBounds.checked((0, 1)), **BUDGET)

    with counted_by(keeper):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(keeper.charges) == 1
    assert keeper_in_force() is None


def test_an_environment_that_nobody_answers_is_refused(monkeypatch):
    monkeypatch.setenv("CLOAKGP_LEDGER", "people.db")
    monkeypatch.setattr(spending, "entry_points", lambda **_: [])
    with pytest.raises(SpendingError, match="no installed package keeps one"):
        ask(np.ones((1, 2)), [0, 1], question=OutputBounds.checked((0, 1)), **BUDGET)


def test_costs_are_rounded_up_and_never_beyond_what_is_exact():
    cost = Cost.of_gaussian(sensitivity=1, scale=3.0, answers=2)
    assert Fraction(math.nextafter(cost.mu, 0)) < Fraction(1, 3) <= Fraction(cost.mu)
    assert Cost.of_pure("laplace", sensitivity=3, scale=4.0).epsilon == 0.75


def test_the_outermost_call_is_the_charge():
    keeper = Counting()
    with counted_by(keeper):
        cloak(np.ones((1, 2)), [0.0, 1.0], bounds=(0, 1), **BUDGET)
    assert [charge.spender.call for charge in keeper.charges] == ["cloak"]
    assert (keeper.charges[0].spender.epsilon, keeper.charges[0].spender.delta) == (1.0, 1e-6)


# The shape of the code.


def calls(node):
    return [
        call.func.id
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    ]


def test_every_draw_of_the_sampler_is_passed_through_spend():
    """Whatever makes a measurement of OpenDP's calls it within `spend`, and nowhere else."""
    tree = ast.parse(Path(sampler.__file__).read_text())
    drawing = []
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        made = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute) and node.attr.startswith("make_")
        ]
        if not made:
            if "default_rng" in ast.dump(function):
                assert "refuse_seed" in calls(function), function.name
            continue
        drawing.append(function.name)
        inside = [
            call
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "spend"
            for call in calls(node)
        ]
        assert calls(function).count("measurement") == inside.count("measurement") == 1
    assert drawing == [
        "add_discrete_gaussian",
        "report_noisy_max",
        "add_discrete_laplace",
        "add_share_of_gaussian",
    ]


def test_polya_numbers_are_drawn_within_spend_alone():
    tree = ast.parse(Path(sampler.__file__).read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    drawing = [name for name, node in functions.items() if "draw_polya" in calls(node)]
    assert drawing == ["_polya_differences"]
    [asking] = [name for name, node in functions.items() if "_polya_differences" in calls(node)]
    inside = [
        call
        for node in ast.walk(functions[asking])
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "spend"
        for call in calls(node)
    ]
    assert inside.count("_polya_differences") == calls(functions[asking]).count(
        "_polya_differences"
    )


def test_every_function_that_lets_the_sampler_draw_is_a_charge():
    """Public functions of `privacy` that are given outputs and a budget."""
    found = set()
    for path in sorted((ROOT / "privacy").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            names = {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
            if "epsilon" in names and names & {"y", "rows"}:
                decorators = [getattr(one, "id", "") for one in node.decorator_list]
                if "forget_on_failure" in decorators:
                    assert decorators == ["forget_on_failure", "one_charge"], node.name
                    found.add(node.name)
    assert {"ask", "ask_chunks", "select", "cloak"} <= found


def test_a_charge_may_give_kept_answers_in_the_place_of_a_draw():
    """Then nothing is reserved or drawn, and the digest is that of the kept answers."""
    heard = []
    cost = Cost(mechanism="laplace", epsilon=1.0)

    class Recalling(Counting):
        def open_charge(self, spender):
            charge = super().open_charge(spender)
            charge.recall = lambda cost: heard.append(cost) or self.kept
            charge.keep = lambda published: heard.append(published)
            return charge

    keeper = Recalling()
    published = np.array([3, 4])

    @spending.one_charge
    def ask_with(y, epsilon):
        del y, epsilon
        return spend(cost, lambda: published)

    keeper.kept = None
    with counted_by(keeper):
        assert ask_with([], 1.0) is published
        assert heard == [cost, published]
        keeper.kept = np.array([5, 6])
        assert ask_with([], 1.0) is keeper.kept
    first, second = keeper.charges
    assert (first.costs, second.costs) == ([cost], [])
    assert [first.digests, second.digests] == [[digest_of(published)], [digest_of(keeper.kept)]]
    assert len(heard) == 3


def test_spend_without_a_keeper_only_draws():
    assert spend(Cost(mechanism="laplace", epsilon=1.0), lambda: 3) == 3
    assert "BaseException" in inspect.getsource(spending.one_charge)
