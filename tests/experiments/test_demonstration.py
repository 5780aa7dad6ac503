"""The demonstration's figures: how they are laid out, and that kept ones are of these patients."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from cloakgp.cli.demonstration import BOUNDS, load_people
from experiments.demonstration import Demonstration
from experiments.pages import Kept
from experiments.written import Plain


def test_errors_of_ways_are_means_over_draws():
    people = load_people()
    trial = SimpleNamespace(
        name="one", private_rmse=np.array([59.0, 60.0, 61.0, 60.0, 60.0]), rmse=58.0
    )
    found = SimpleNamespace(people=people, trials=(trial,), middle_rmse=80.0, output_sd=77.0)
    [table] = map(Plain.of, Demonstration(draws=5).tables(found))
    assert table.rows == [
        ["one", "60.0 (0.3)", "58.0"],
        ["their mean", "", "77.0"],
        ["the middle of the bounds", "80.0", ""],
    ]


def test_what_needs_no_noise_is_kept_as_it_is_today():
    people, kept = load_people(), Kept.read("demonstration")
    middle = np.sqrt(np.mean(np.square(people.y_test - BOUNDS.middle)))
    told = kept.cell(1, row="their mean", column="without privacy")
    assert told == f"{people.y_test.std():.1f}"
    assert kept.cell(1, row="the middle of the bounds", column="private") == f"{middle:.1f}"


def test_all_ways_cost_little_and_are_better_than_knowing_the_mean():
    *ways, mean, _ = Kept.read("demonstration").table(1).rows
    for _, private, without in ways:
        assert float(without) < float(private.split()[0]) < float(mean[2])
