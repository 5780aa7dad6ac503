"""Inputs private too: that the comparison compares, and what it found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp.models.features import BinBasis
from cloakgp.privacy.statistics import measure_statistics
from experiments import private_inputs
from experiments.cross_validation import Errors, Protocol


@pytest.fixture
def toy(rng):
    ages = rng.uniform(0, 90, size=80)
    return pd.DataFrame({"age": ages, "height": 150 - 80 * np.exp(-ages / 8)})


def test_the_histogram_tends_to_the_means_of_its_bins(toy):
    """At a huge budget the noise vanishes: plain means by bin, and the middle where nobody is."""
    basis = BinBasis(kernel=RBF(), box=private_inputs.AGES, bins=(10,))
    X, y = toy[["age"]].to_numpy(), toy["height"].to_numpy()
    published = measure_statistics(
        X, y, basis=basis, bounds=(58.27, 158.27), epsilon=1e6, delta=0.01
    )
    bins = np.minimum((X[:, 0] // 10).astype(int), 9)
    truth = np.clip(y, 58.27, 158.27)
    expected = [truth[bins == k].mean() if (bins == k).any() else 108.27 for k in range(10)]
    np.testing.assert_allclose(private_inputs.histogram_means(published), expected, atol=0.5)


def test_every_method_is_judged_on_every_row(toy):
    protocol = Protocol(folds=4, draws=2, insecure_seed=1)
    found = private_inputs.kung_errors(
        toy, epsilon=1e6, neighbours="add-remove", protocol=protocol, bins=(5,)
    )
    assert {error.by_fold.shape for error in found.errors.values()} == {(4, 2)}
    assert set(found.coverage) == {name for name in found.errors if name.startswith("stat")}
    # Without noise to speak of, the smooth curve is found, and five bins cannot say it.
    best = found.errors["statistics, RBF 15 years"].mean
    assert best < 3
    assert found.errors["histogram, 5 bins"].mean > 2 * best
    again = private_inputs.kung_errors(
        toy, epsilon=1e6, neighbours="add-remove", protocol=protocol, bins=(5,)
    )
    assert again.errors["statistics, defaults"].mean == found.errors["statistics, defaults"].mean


@pytest.mark.usefixtures("noise_that_repeats")
def test_intervals_hold_about_as_often_as_they_say():
    """Five standard errors over tables, and no better than perfect."""
    share, error, z = private_inputs.simulated_coverage(
        0.49 * RBF(0.3), epsilon=2.0, neighbours="add-remove", tables=15, rows=150
    )
    assert abs(share - 0.95) < max(5 * error, 0.05)
    assert 0.6 < z < 1.5


@pytest.mark.parametrize("rows", [10, 287])
def test_the_papers_way_is_bounded_or_refused(rows):
    said = "\n".join(private_inputs.dominance_lines(rows))
    assert said.count("apart: one row") + said.count("apart: refused") == 2


@pytest.mark.slow
@pytest.mark.data
def test_the_command_prints_the_table(women, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(private_inputs, "load_kung", lambda **_: women[:60])
    small = private_inputs.PrivateInputs(
        **(private_inputs.PrivateInputs.small | {"simulations": 2})
    )
    small.run(output_dir=tmp_path)
    said = capsys.readouterr().out
    assert "histogram, 10 bins" in said
    assert "statistics, defaults" in said
    assert said.count("95 % intervals, simulated") == 4


@pytest.mark.slow
@pytest.mark.data
def test_statistics_beat_the_histogram_on_the_kung_women(women):
    """At (1, 0.01), replaced rows, against the histogram whose bins suit the table best."""
    found = private_inputs.kung_errors(
        women, epsilon=1.0, neighbours="replace", protocol=Protocol(draws=5)
    )
    histograms = [one.mean for name, one in found.errors.items() if name.startswith("histogram")]
    chosen = found.errors["statistics, defaults"]
    assert isinstance(chosen, Errors)
    assert chosen.mean + 5 * chosen.standard_error < min(histograms) + 0.5
    assert found.coverage["statistics, defaults"] > 0.85
