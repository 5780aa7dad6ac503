"""Filters beside plain sums: the kept tables are what rules and adversaries give."""

from __future__ import annotations

from experiments import filters, progress
from experiments.adversaries import adding_up, filtering
from experiments.filters import LIMITS, RULES, Filters, accepted_releases
from experiments.pages import Kept
from experiments.written import Plain


def test_releases_accepted_are_those_that_are_kept():
    kept = Kept.read("filters").table(1)
    assert [row[0] for row in kept.rows] == list(RULES)
    for name, *cells in kept.rows:
        counts = [accepted_releases(RULES[name], limit) for limit in LIMITS]
        assert [", ".join(map(str, one)) for one in counts] == cells


def test_zero_concentrated_privacy_accepts_no_more_than_its_closed_form_allows():
    """Gaussian answers alone: the bound of a grid of orders is never below the exact curve."""
    for limit in LIMITS:
        gaussian, _, _ = accepted_releases(filters.concentrating, limit)
        assert gaussian <= accepted_releases(filtering, limit)[0]
        assert gaussian <= accepted_releases(adding_up, limit)[0]


def test_few_bits_reach_what_is_kept():
    experiment = Filters(bits=(1, 2))
    _, reached = map(Plain.of, experiment.tables(experiment.compute(progress.quietly)))
    kept = Kept.read("filters").table(2)
    assert [row[:4] for row in kept.rows] == reached.rows
    assert all(
        float(cell) <= 1 for rule, _, *cells in kept.rows if "filter" in rule for cell in cells
    )
