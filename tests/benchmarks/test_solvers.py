import numpy as np
import pytest

from benchmarks import peers, processes, solver_report, solvers
from benchmarks.problems import Problem, synthetic_problem
from benchmarks.processes import Limits, Outcome
from benchmarks.store import Store

LIMITS = Limits(seconds=600)


@pytest.fixture
def measure(tmp_path):
    def rows(problems, chosen, **settings):
        found = solvers.measure_all(
            problems,
            solvers=chosen,
            limits=LIMITS,
            reference_limits=Limits(seconds=601),
            store=Store(tmp_path),
            repeats=2,
            **settings,
        )
        return list(found)

    return rows


@pytest.fixture
def answers(monkeypatch):
    """Let every process give the same outcome, and note which were run with what limit."""

    def answer(outcome):
        asked = []

        def run(runner, *, arrays, limits, **_):
            asked.append((runner.name, arrays["C"].shape[1], limits.seconds))
            return outcome(runner.name) if callable(outcome) else outcome

        monkeypatch.setattr(processes, "run", run)
        return asked

    return answer


def outcome_of(seconds, weights, *, settings="all"):
    report = {
        "settings": settings, "stated_scale": 1.0, "seconds": seconds, "cpu_seconds": seconds,
        "runs": 1, "start_mb": 1.0, "peak_mb": 2.0,
    }  # fmt: skip
    return Outcome("ok", arrays={"weights": weights}, report=report)


def test_our_solvers_are_measured_and_are_their_own_measure(measure):
    logdet, trace = measure([synthetic_problem(40, 6, inputs=1)], solvers.OURS)
    for row in (logdet, trace):
        assert (row["N"], row["P"], row["status"], row["time / ours"]) == (40, 6, "ok", 1)
        assert row["sensitivity"] == pytest.approx(1)
        assert 0 < row["seconds"] < 600
        assert row["runs"] == 2
    assert logdet["log det"] < trace["log det"]
    assert trace["mean square"] < logdet["mean square"]


@pytest.mark.parametrize("criterion", ["logdet", "trace"])
def test_a_convex_program_finds_the_same_optimum(measure, monkeypatch, criterion):
    pytest.importorskip("cvxpy")
    monkeypatch.setattr(peers, "interpreter", lambda *_, **__: processes.Path(peers.sys.executable))
    problem = Problem("made", np.random.default_rng(0).normal(size=(4, 15)))
    ours, theirs = measure(
        [problem], [solvers.cloakgp(criterion), solvers.cvxpy("CLARABEL", criterion)]
    )
    assert theirs["status"] == "ok"
    column = {"logdet": "log det", "trace": "mean square"}[criterion]
    assert theirs[column] == pytest.approx(ours[column], rel=2e-3)
    assert theirs[f"{column} as stated"] == pytest.approx(theirs[column], rel=1e-3)


def test_what_did_not_end_is_not_tried_on_larger_problems_of_the_family(measure, answers):
    asked = answers(Outcome(processes.LIMIT, "600 s"))
    sizes = [(20, 1), (30, 1), (20, 4)]
    problems = [synthetic_problem(rows, 5, inputs=inputs) for rows, inputs in sizes]
    rows = measure(problems, [solvers.DP4GP_DEFAULT])
    assert [size for _, size, _ in asked] == [20, 20]
    assert rows[1]["status"] == "not tried: no result on 1-d, N=20, P=5"
    assert rows[0].get("seconds") is None


def test_the_longer_limit_is_for_the_reference_on_the_papers_problems(measure, answers):
    asked = answers(Outcome("skipped"))
    C = np.eye(3)
    measure([Problem("theirs", C, papers=True)], [solvers.DP4GP_DEFAULT, *solvers.OURS])
    measure([Problem("made", C)], [solvers.DP4GP_DEFAULT])
    assert [limit for _, _, limit in asked] == [601, 600, 600, 600]


@pytest.mark.parametrize(
    ("ours", "theirs", "weights", "settings", "verdict"),
    [
        (1.0, 1000.0, [0.9, 0.3], "all", "holds"),
        (1.0, 999.0, [0.9, 0.3], "all", "does not hold"),
        (1.0, 1000.0, [1.0, 1.0], "all", "does not hold"),
        (1.0, 1e6, [0.9, 0.3], "1 x 30 steps, shortened", "not measured"),
    ],
)
def test_claims_are_judged_by_what_was_measured(
    measure, answers, ours, theirs, weights, settings, verdict
):
    optimal = np.ones(2)

    def outcome(runner):
        if runner.startswith("cloakgp"):
            return outcome_of(ours, optimal)
        return outcome_of(theirs, np.array(weights), settings=settings)

    answers(outcome)
    rows = measure([Problem("made", np.eye(2))], [*solvers.OURS, solvers.DP4GP_DEFAULT])
    (found,) = solver_report.claims(rows).rows
    assert found["verdict"] == verdict
    if settings == "all":
        assert found["faster by"] == theirs / ours
    else:
        assert rows[-1]["time / ours"] is None


def test_a_page_compares_volumes_with_logdet_and_mean_squares_with_trace(measure, answers):
    def outcome(runner):
        if runner.startswith("dp4gp"):
            return Outcome(processes.LIMIT, "600 s")
        weights = np.array([0.9, 0.3]) if runner.startswith("cvxpy") else np.ones(2)
        return outcome_of(2.0, weights)

    answers(outcome)
    theirs = (solvers.DP4GP_DEFAULT, solvers.cvxpy("SCS", "logdet"))
    rows = measure([Problem("made", np.eye(2))], [*solvers.OURS, *theirs])
    [table] = solver_report.tables_for_pages(rows, setting="a test")
    by_solver = {row["solver"]: row for row in table.rows}
    assert by_solver["cloakgp trace"]["mean square over `trace`"] == "1.000"
    assert by_solver["cloakgp trace"]["log det above `logdet`"] == "0"
    scs, trace = rows[-1], rows[1]
    ratio = scs["mean square"] / trace["mean square"]
    assert by_solver["cvxpy SCS logdet"]["mean square over `trace`"] == f"{ratio:.3f}"
    assert by_solver["cvxpy SCS logdet"]["CPU seconds"] == 2.0
    assert by_solver["dp4gp, default"]["failed"] == "stopped at the limit: 600 s"
    assert len(table.columns) <= 8


def test_a_claim_about_what_is_not_installed_is_not_measured(measure, answers):
    answers(Outcome(processes.NOT_INSTALLED))
    rows = measure([Problem("made", np.eye(2))], [*solvers.OURS, solvers.DP4GP_DEFAULT])
    assert [row["status"] for row in rows] == ["not installed"] * 3
    (found,) = solver_report.claims(rows).rows
    assert found["verdict"] == "not measured"


@pytest.mark.slow
@pytest.mark.parametrize("solver", solvers.PEERS, ids=lambda one: one.name)
def test_installed_peers_come_near_the_optimum(measure, solver):
    if peers.interpreter(solver.peer, cache=peers.DEFAULT_CACHE) is None:
        pytest.skip(f"{solver.peer} is not installed")
    ours, theirs = measure(
        [synthetic_problem(40, 6, inputs=1)], [solvers.cloakgp(solver.criterion), solver]
    )
    assert theirs["status"] == "ok"
    column = {"logdet": "log det", "trace": "mean square"}[solver.criterion]
    # Scaling to exact sensitivity may cost more: a loose solver leaves directions too little noise.
    assert theirs[f"{column} as stated"] == pytest.approx(ours[column], rel=0.1)
    assert theirs[column] >= ours[column] - 2e-3 * abs(ours[column])


@pytest.mark.slow
def test_sharper_gaps_are_ours_too_and_no_measure_of_themselves(measure):
    names = [one.name for one in solvers.OURS + solvers.SHARPER + solvers.PEERS]
    assert len(set(names)) == len(names)
    problem = synthetic_problem(40, 6, inputs=1)
    rows = measure([problem], [*solvers.OURS, *solvers.SHARPER])
    first = {row["criterion"]: row for row in rows[:2]}
    for row in rows[2:]:
        assert row["status"] == "ok"
        ours = first[row["criterion"]]
        assert row["time / ours"] == pytest.approx(row["seconds"] / ours["seconds"])
        assert row["mean square / ours"] == pytest.approx(row["mean square"] / ours["mean square"])
