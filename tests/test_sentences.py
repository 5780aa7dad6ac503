"""Sentences of pages about what the code decides are true of it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import cloakgp
from cloakgp import Guarantee
from cloakgp.criteria import CRITERIA
from cloakgp.fitting import release_plan
from cloakgp.fitting.bands import default_stages
from cloakgp.fitting.calibration import NOISIEST, calibration_share
from cloakgp.fitting.schedule import schedule_release
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy import OutputBounds, grid, statistics
from cloakgp.privacy.accounting import discretisation_delta, exact_noise_multiplier
from cloakgp.privacy.grid import Magnitudes, Sensitivity, integer_sensitivity
from cloakgp.privacy.guesses import odds_beyond, odds_beyond_once
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.privacy.rounding import gamma
from cloakgp.report.worth import HELD

ROOT = Path(cloakgp.__file__).parent
PROJECT = ROOT.parents[1]
POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
# What adds noise to what it is given.
DRAWS = re.compile(r"(?:GAUSSIAN\.add|\bnoisy|\bwith_noise|\breport_noisy_max)\(")
ADDERS = {"grid", "sampler"}


def said(page: str) -> str:
    """The text of a page on one line, without its comments."""
    text = (PROJECT / page).read_text(encoding="utf-8")
    return " ".join(re.sub(r"<!--.*?-->", "", text, flags=re.S).split())


def test_how_often_odds_move_far_is_so():
    mu = 1 / exact_noise_multiplier(1.0, 0.01)
    once = odds_beyond_once(mu, 1.0)
    stages = odds_beyond(Guarantee(epsilon=1.0, delta=0.01, mu=mu), 1.0)
    told = re.search(
        r"At \(1, 0\.01\) that has a probability of about (\d+) % .* at most (\d+) % where",
        said("docs/sharp-edges.md"),
    )
    assert [round(100 * once), math.ceil(100 * stages)] == [int(each) for each in told.groups()]


def test_so_many_rows_of_two_outputs_are_counted():
    page, budget = said("docs/how-to/intervals.md"), Budget(1.0, 0.0, noise="laplace")
    assert NOISIEST == 0.01
    assert "a count's noise is then at most one row in a hundred" in page
    [least] = re.findall(r"takes twice as many rows, some ([\d,]+) at ε = 1", page)
    least = int(least.replace(",", ""))
    for rows, asked in ((least - 100, False), (least + 100, True)):
        assert bool(calibration_share(budget, rows=rows, outputs=2)) == asked
        assert bool(calibration_share(budget, rows=rows // 2)) == asked


@pytest.mark.parametrize(
    ("page", "begins"), [("how-to/several-rows", "**C"), ("tables", "Where a")]
)
def test_persons_are_protected_but_by_one_criterion(page, begins):
    """tests/cli/test_classes.py has classes of persons, in passes and held."""
    [exceptions] = re.findall(
        re.escape(begins) + r"[^.]*?(?:--person|have groups)[^.]* but for ([^:]*?)[:,]",
        said(f"docs/{page}.md"),
    )
    iterating = [name for name, criterion in CRITERIA.items() if criterion.iterates]
    assert exceptions == " and ".join(f"`--criterion {name}`" for name in iterating)


def test_what_cannot_be_planned_is_named():
    page = (PROJECT / "docs/choose.md").read_text(encoding="utf-8")
    linked = {*re.findall(r"api/cloakgp\.([A-Za-z]+)\.rst", page)}
    without = {name for name in linked if not hasattr(getattr(cloakgp, name), "plan")}
    [excepted] = re.findall(r"all but (.*?) can be", said("docs/choose.md"))
    assert set(re.findall(r"`(\w+)`", excepted)) == without


def test_what_cannot_be_forecast_is_named():
    [sentence] = re.findall(r"There is (none for .*?);", said("docs/pages.md"))
    kinds = {name.removeprefix("NOT_OF_") for name in vars(release_plan) if "NOT_OF_" in name}
    assert set(re.findall(r"none for (\w+) \(", sentence)) == {kind.lower() for kind in kinds}
    assert "that are read in passes" in sentence
    assert "is not forecast" in release_plan.NOT_IN_PASSES


@pytest.mark.parametrize("rows", [200, 1000, 10_000, 10**6])
def test_so_much_of_a_budget_is_for_bands(rows):
    """If one round is enough to find an interval."""
    assert "half of the budget or more, with Gaussian noise seven tenths, is spent on outputs" in (
        said("docs/sharp-edges.md")
    )
    shares = []
    for budget in (Budget(1.0, 0.0, noise="laplace"), Budget(1.0, 1e-5)):
        schedule = schedule_release(
            budget,
            bounds=OutputBounds(0, 100),
            stages=default_stages(budget.law),
            rows=rows,
            most_rows=1,
            ask_spread=True,
            searched=True,
            calibrated=True,
        )
        assert schedule.search.rounds
        # ε of Laplace noise adds up, and so do inverse variances of Gaussian.
        power = -1 if budget.law.name == "laplace" else -2
        in_bands = [step.budget for step in schedule.steps if step.stage and step.stage.width]
        parts = math.fsum(part.unit_sd() ** power for part in in_bands)
        shares.append(parts / budget.unit_sd() ** power)
    assert 0.5 < shares[0] < 0.7
    assert shares[1] == pytest.approx(0.7, abs=0.07)


def test_grids_and_what_they_cost_are_as_fine_as_is_said():
    page = said("docs/threat-model.md")
    told = re.search(r"some 2([⁰-⁹²³¹]+) times finer than the noise \(2([⁰-⁹²³¹]+) times", page)
    bits = [int(each.translate(POWERS)) for each in told.groups()]
    assert bits == [grid.GRID_BITS, statistics.GRID_BITS]
    told = re.search(r"For a hundred numbers .* order 10(\S+), .* protected 10(\S+),", page)
    for place, power in zip(bits, told.groups(), strict=True):
        cost = discretisation_delta(1.0, answers=100, coarseness=100 * 4.0**-place)
        assert math.floor(math.log10(cost)) == int(power.translate(POWERS))


def test_mechanisms_beside_the_one_place_are_named():
    """In the threat model by module; the paper says what they are for."""
    modules = {path.stem: path.read_text(encoding="utf-8") for path in ROOT.glob("privacy/*.py")}
    drawing = {name for name, text in modules.items() if DRAWS.search(text)} - ADDERS
    [others] = re.findall(r"Other, optional mechanisms .*? 2\. ", said("docs/threat-model.md"))
    assert drawing == {"ask", *re.findall(r"`cloakgp\.privacy\.(\w+)`", others)}
    paper = said("docs/paper/paper.typ")
    assert "(A choice among candidates, and whole rows where inputs are private too, have" in paper
    assert "But for choices and whole rows, no function but the door" in paper


@pytest.mark.parametrize("step", [2.0**-60, 2.0**-40, 0.25])
@pytest.mark.parametrize("chunks", [1, 2, 7])
def test_the_paper_bounds_rounding_as_the_grid_does(chunks, step):
    """By its formula, read as Python."""
    [formula] = re.findall(r"\$ (ceil\(.*?gamma.*?\)) \$ steps", said("docs/paper/paper.typ"))
    for written, read in (
        ("d L", "moved"),
        ("2 T gamma_(n + 2) B S", "2 * chunks * gamma(rows + 2) * largest * summed"),
        ("T ||bold(1)_k||", "chunks * math.sqrt(answers)"),
        ("\\/ h", "/ step"),
    ):
        assert written in formula
        formula = formula.replace(written, read)
    sizes = {"answers": 9, "rows": 50, "summed": 40.0}
    values = {"moved": 1e-12, "largest": 3.0, "chunks": chunks, "step": step, **sizes}
    found = integer_sensitivity(
        Magnitudes(entry=1.0, answer=80.0, sums=chunks, **sizes),
        sensitivity=Sensitivity(distance=values["moved"], largest=values["largest"]),
        step=step,
    )
    told = eval(formula, {"ceil": math.ceil, "math": math, "gamma": gamma}, values)
    assert told <= found <= told * (1 + 1e-12) + 1


def test_the_paper_says_what_the_spread_is_asked_by():
    assert "the sum of the logarithms of distances from earlier predictions, clipped" in (
        said("docs/paper/paper.typ")
    )
    question = SpreadQuestion(mean=np.zeros(5), sd=np.ones(5))
    shares = question.share_of(np.array([0.1, 0.25, 0.5, 1.0, 3.0]))
    np.testing.assert_allclose(shares, [0, 0.25, 0.5, 0.75, 1])


def test_files_of_other_versions_are_not_said_to_be_read():
    """`tests/release/io/test_bundle.py` has older ones refused."""
    for page, words in (
        ("docs/faq.md", "Until 1.0 a version with another format refuses it"),
        ("docs/stability.md", "Until 1.0 one version is read at a time"),
        ("docs/paper/paper.typ", "until 1.0 others than the current one are refused"),
    ):
        assert words in said(page)


def test_how_often_ranges_held_is_what_releases_say():
    told = re.findall(r"of tables that were tried, ([^)]*)\)", said("docs/start/custodian.md"))
    assert told
    assert set(told) == {HELD}
