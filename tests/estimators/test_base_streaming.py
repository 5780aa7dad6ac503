"""Tables that are read in passes, from the outside: command line, estimator, words and pictures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cloakgp import DPGPRegressor, DPGridSearchCV, Release
from cloakgp.cli import app
from cloakgp.data import ArrayRows
from cloakgp.fitting.strategies import MANY_ROWS
from cloakgp.plots import display_of
from cloakgp.report.describe import describe, headline

COUNT = MANY_ROWS + 500
SENTINEL = 87.654321


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"age": rng.uniform(0, 90, COUNT), "weight": rng.uniform(3, 90, COUNT)})
    frame["height"] = 60 + 90 * np.sin(frame["age"] / 60) + rng.normal(scale=5, size=COUNT)
    frame.loc[17, "height"] = SENTINEL
    return frame


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    table.to_parquet(folder / "people.parquet", index=False)
    table.to_csv(folder / "people.csv", index=False)
    table[["age", "weight"]].head(50).to_csv(folder / "at.csv", index=False)
    return folder


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def release_command(files, name, *more, to):
    return run(
        *("release", files / name, "--inputs", "age,weight", "--output", "height"),
        *("--bounds", 40, 200, "--epsilon", 1, "--delta", 1e-6, "--inducing", 12, "-o", to),
        *("--stages", "one", "--learn", "none", *more),
    )


@pytest.mark.usefixtures("noise_that_repeats")
@pytest.mark.parametrize(
    ("name", "criterion"), [("people.parquet", "bayes"), ("people.csv", "trace")]
)
def test_the_command_line_reads_large_tables_in_passes(files, tmp_path, table, name, criterion):
    to, out = tmp_path / "heights.cloak", tmp_path / "out.csv"
    made = release_command(files, name, "--criterion", criterion, to=to)
    assert made.exit_code == 0, made.output
    assert f"{COUNT:,} rows" in made.output
    release = Release.load(to)
    assert release.n_rows == COUNT
    assert release.input_names == ("age", "weight")
    assert release.measurements[0].strategy.certificate.criterion == criterion
    assert to.stat().st_size < 200_000
    said = run("show", to)
    assert said.exit_code == 0
    assert "none of which is in the file" in " ".join(said.output.split())
    assert run("predict", to, "--at", files / "at.csv", "-o", out).exit_code == 0
    predicted = pd.read_csv(out)
    truth = 60 + 90 * np.sin(table["age"].head(50) / 60)
    assert np.sqrt(np.mean((predicted["mean"] - truth) ** 2)) < 10
    picture = tmp_path / "map.png"
    assert run("plot", to, "-o", picture).exit_code == 0
    assert picture.stat().st_size > 10_000


def test_small_tables_keep_their_rows(tmp_path, table):
    table.head(60).to_csv(tmp_path / "few.csv", index=False)
    to = tmp_path / "few.cloak"
    assert release_command(tmp_path, "few.csv", to=to).exit_code == 0
    assert len(Release.load(to).known_inputs) == 60


def test_an_input_that_never_varies_is_no_hindrance(tmp_path, table):
    constant = table.assign(weight=70.0)
    constant.to_parquet(tmp_path / "constant.parquet", index=False)
    told = release_command(tmp_path, "constant.parquet", to=tmp_path / "b.cloak")
    assert told.exit_code == 0, told.output
    assert np.isfinite(Release.load(tmp_path / "b.cloak").predict([[30.0, 70.0]])).all()


def test_bad_cells_are_told_plainly(tmp_path, table):
    missing = table.copy()
    missing.loc[COUNT - 3, "height"] = np.nan
    missing.to_parquet(tmp_path / "missing.parquet", index=False)
    told = release_command(tmp_path, "missing.parquet", to=tmp_path / "a.cloak")
    assert told.exit_code == 1
    assert "NaN" in told.output
    assert str(COUNT - 3) not in told.output
    assert str(SENTINEL) not in told.output
    assert not (tmp_path / "a.cloak").exists()


def test_fit_takes_the_way_of_many_rows_by_itself(table):
    X, y = table[["age", "weight"]], table["height"]
    model = DPGPRegressor(
        bounds=(40, 200),
        epsilon=1.0,
        delta=1e-6,
        inducing=10,
        learn=None,
        stages=None,
        insecure_seed=1,
    )
    release = model.fit(X, y).release_
    assert isinstance(release, Release)
    assert release.input_names == ("age", "weight")
    again = model.fit_rows(ArrayRows(X, y.to_numpy())).release_
    np.testing.assert_allclose(again.predict(X.head(5)), release.predict(X.head(5)), rtol=1e-9)
    assert isinstance(model.fit(X.head(40), y.head(40)).release_, Release)
    grouped = model.fit(X.head(40), y.head(40), groups=np.arange(40) // 2)
    assert isinstance(grouped.release_, Release)


def test_fit_rows_refuses_what_it_cannot_do(table):
    X, y = table[["age", "weight"]].to_numpy(), table["height"].to_numpy()
    settings = {"bounds": (40, 200), "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(ValueError, match="stages"):
        DPGPRegressor(**settings, stages=[(0.3, None), (0.6, 1.0)]).fit_rows(ArrayRows(X, y))
    with pytest.raises(ValueError, match="functional"):
        DPGPRegressor(**settings, criterion="functional").fit_rows(ArrayRows(X, y))
    with pytest.raises(ValueError, match="inducing must"):
        DPGPRegressor(**settings, inducing=True).fit_rows(ArrayRows(X, y))
    with pytest.raises(ValueError, match="X_query has 1 columns, expected 2"):
        DPGPRegressor(**settings, inducing=5).fit_rows(ArrayRows(X, y), [[1.0]])


def test_a_search_over_many_rows_is_refused_before_anything_is_spent(table):
    search = DPGridSearchCV(
        DPGPRegressor(bounds=(40, 200), epsilon=1.0, delta=1e-6, inducing=5),
        {"noise_variance": [1.0, 9.0]},
        selection_epsilon=0.5,
    )
    with pytest.raises(ValueError, match="too many"):
        search.fit(table[["age", "weight"]], table["height"])


@pytest.fixture(scope="module")
def release(table):
    model = DPGPRegressor(
        bounds=(40, 200), epsilon=1.0, delta=1e-6, inducing=10, criterion="trace", learn="average"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.fitting.row_learning.LEARNING_CELLS", 300)
        return model.fit_rows(ArrayRows(table[["age"]], table["height"].to_numpy())).release_


def test_words_say_what_is_and_is_not_in_the_file(release):
    sections = {
        one.title: {fact.label: fact.text for fact in one.facts} for one in describe(release)
    }
    assert set(sections) == {"Protection", "Predictions", "Guarantee", "Noise", "Prior", "Data"}
    assert sections["Data"]["rows"].startswith(f"{COUNT:,}")
    assert f"the weight of each of {COUNT:,} rows" in sections["Noise"]["checked"]
    low, high = release.measurements[0].strategy.ranges[:, 0]
    assert sections["Data"]["age"] == f"{low:.4g} to {high:.4g}"
    assert headline(release) == "(1, 1e-06)-differentially private"
    assert release.n_rows == COUNT
    assert "NOT PRIVATE" not in sections


def test_pictures_are_drawn_without_rows(release):
    figure = display_of(release).draw()
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    assert "queried points" in labels
    assert "rows (inputs only)" not in labels


def test_pictures_of_some_inputs_say_where_the_others_are_held(table):
    settings = {"epsilon": 1.0, "inducing": 6, "learn": None, "stages": None}
    model = DPGPRegressor(bounds=(40, 200), **settings)
    made = model.fit_rows(ArrayRows(table[["age", "weight"]], table["height"].to_numpy())).release_
    (axes,) = display_of(made, vary=["age"]).draw().axes
    assert axes.get_title().startswith("at the median of the queried points: weight = ")
