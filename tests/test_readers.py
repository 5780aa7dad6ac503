"""Readers of release files in other languages say what `release.predict` says."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cloakgp
from cloakgp import (
    DPGPClassifier,
    DPGPClassifierPrivateInputs,
    DPGPMultiOutputRegressor,
    DPGPQuantileRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
)
from cloakgp.columns import Boolean, Category, Date, Number, OrderedCategory, Place, Schema, Vector
from cloakgp.release.io.bundle import COEFFICIENTS, bundle_bytes
from cloakgp.release.io.codec import to_tree

PROJECT = Path(__file__).parents[1]
JAVASCRIPT, R = PROJECT / "readers" / "javascript", PROJECT / "readers" / "r"
GOLDEN = PROJECT / "tests" / "data" / "golden"
BUDGET = {"epsilon": 4.0, "delta": 1e-3, "gap": 0.05, "insecure_seed": 3}
THRESHOLD, COVERAGE = 31.5, 0.8
# Of a table of raw cells: every prediction, an interval, and a share above a threshold.
WITH_NODE = """
import { readFileSync } from "node:fs";
import { readRelease } from "./index.js";
const [file, table] = process.argv.slice(1);
const release = await readRelease(readFileSync(file)), rows = JSON.parse(readFileSync(table));
const told = (what) => { try { return rows.map(what); } catch (error) { return error.message; } };
console.log(JSON.stringify({
  predict: told((row) => release.predict(row)),
  interval: told((row) => release.interval(row, 0.8)),
  above: told((row) => release.above(row, 31.5)),
}));
"""
WITH_R = """
source("cloakgp.R")
given <- commandArgs(trailingOnly = TRUE)
release <- read_release(given[1])
rows <- jsonlite::fromJSON(given[2])
told <- function(what) tryCatch(what(), error = function(e) jsonlite::unbox(conditionMessage(e)))
cat(jsonlite::toJSON(list(
  predict = told(function() predict(release, rows)),
  interval = told(function() predict_interval(release, rows, 0.8)),
  above = told(function() probability_above(release, rows, 31.5))
), digits = NA, na = "null", dataframe = "columns"))
"""


# A prediction for each row of raw cells, or why there is none, whatever the others say.
ROWS_WITH_NODE = """
import { readFileSync } from "node:fs";
import { readRelease } from "./index.js";
const [file, table] = process.argv.slice(1);
const release = await readRelease(readFileSync(file));
console.log(JSON.stringify(JSON.parse(readFileSync(table)).map((row) => {
  try { return release.predict(row).mean; } catch (error) { return error.message; }
})));
"""
ROWS_WITH_R = """
source("cloakgp.R")
given <- commandArgs(trailingOnly = TRUE)
release <- read_release(given[1])
rows <- jsonlite::fromJSON(given[2], simplifyVector = FALSE)
told <- function(row) {
  row[vapply(row, is.null, logical(1))] <- NA
  row <- as.data.frame(row, check.names = FALSE)
  tryCatch(predict(release, row)$mean, error = conditionMessage)
}
cat(jsonlite::toJSON(lapply(rows, told), digits = NA, auto_unbox = TRUE))
"""


@pytest.fixture(scope="module")
def node():
    found = shutil.which("node")
    if found is None:
        pytest.skip("there is no node (on Debian, apt-get install nodejs)")
    version = run([found, "--version"], JAVASCRIPT).strip()
    if int(version[1:].partition(".")[0]) < 20:
        pytest.skip(f"the reader takes Node 20 or later, and here is {version}")
    run([found, "build.js"], JAVASCRIPT)
    return found


@pytest.fixture(scope="module")
def rscript():
    found = shutil.which("Rscript")
    if found is None:
        pytest.skip("there is no Rscript (on Debian, apt-get install r-base-core r-cran-jsonlite)")
    asked = [found, "-e", "stopifnot(requireNamespace('jsonlite', quietly = TRUE))"]
    if subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip("R lacks jsonlite (on Debian, apt-get install r-cran-jsonlite)")
    return found


def run(command, folder):
    made = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


def test_javascript_predicts_every_kept_kind_alike(node):
    said = run([node, "--test", "test/"], JAVASCRIPT)
    passed = int(re.search(r"^# pass (\d+)$", said, re.M)[1])
    assert passed >= len(list(GOLDEN.glob("*.cloak")))


def test_r_predicts_every_kept_kind_alike(rscript):
    said = run([rscript, "golden.R", GOLDEN], R)
    alike, refused = map(int, re.findall(r"\d+", said))
    assert alike + refused == len(list(GOLDEN.glob("*.cloak")))
    # The list is in golden.R, with why.
    assert refused < 7


def test_the_package_is_ready_for_npm(node, tmp_path):
    stated = json.loads((JAVASCRIPT / "package.json").read_text(encoding="utf-8"))
    assert stated["version"] == cloakgp.__version__
    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & set(stated)
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm (on Debian, apt-get install npm)")
    run(
        [npm, "pack", "--offline", "--cache", tmp_path / "cache", "--pack-destination", tmp_path],
        JAVASCRIPT,
    )
    [packed] = tmp_path.glob("*.tgz")
    shutil.unpack_archive(packed, tmp_path, filter="data")
    held = {path.name for path in (tmp_path / "package").iterdir()}
    assert held == {*stated["files"], "package.json", "README.md"}
    shared = PROJECT / "src" / "cloakgp" / "pages" / "templates" / "predictor.js"
    assert (tmp_path / "package" / "predictor.js").read_bytes() == shared.read_bytes()
    # Away from the repository it reads files as well.
    script = WITH_NODE.replace("./index.js", str(tmp_path / "package" / "index.js"))
    (tmp_path / "rows.json").write_text("[[1.0, 2.0]]")
    told = run(
        [
            node,
            "--input-type=module",
            "-e",
            script,
            GOLDEN / "numbers.cloak",
            tmp_path / "rows.json",
        ],
        tmp_path,
    )
    assert set(json.loads(told)["predict"][0]) == {"mean", "sd", "newSd"}


SCHEMA = Schema(
    (
        Number("age", missing="impute", fill=30.0),
        Number("weight", decimal=",", thousands="."),
        Category("job", levels=("clerk", "cook"), missing="category"),
        Category("sex", levels=("f", "m"), missing="drop", other=False),
        OrderedCategory("grade", levels=("low", "middle", "high"), missing="impute", fill=1.0),
        Boolean("smoker", true_values=("yes",), false_values=("no",), missing="impute"),
        Date("when", cycles=("day", "week", "year")),
        Date("born", linear=False, cycles=("year",), missing="impute", fill=100.5),
        Place("home", latitude="lat", longitude="lon", projection="plane", centre=(51.5, -0.1)),
        Place(
            "far",
            latitude="lat2",
            longitude="lon2",
            projection="sphere",
            centre=(3.0, 4.0),
            missing="impute",
        ),
        Vector("word", columns=("w1", "w2", "w3"), centre=(0.1, 0.2, 0.3), missing="impute"),
        Vector(
            "light",
            columns=("l1", "l2", "l3"),
            centre=(0.4, 0.5, 0.6),
            axes=((0.6, 0.8, 0.0), (0.0, 0.0, 1.0)),
        ),
    )
)


def raw_table(count=40):
    rng = np.random.default_rng(4)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, count), "D")
    ages = rng.uniform(20, 80, count).round(2)
    table = pd.DataFrame(
        {
            "age": ages,
            "weight": [f"1.{kilograms:03d},25" for kilograms in rng.integers(0, 999, count)],
            "job": rng.choice(["cook", "clerk", "smith"], count),
            "sex": rng.choice(["f", "m"], count),
            "grade": rng.choice(["low", "middle", "high"], count),
            "smoker": rng.choice(["yes", "NO"], count),
            "when": [
                f"{day:%Y-%m-%d}T{hour:02d}:30"
                for day, hour in zip(days, rng.integers(0, 24, count), strict=True)
            ],
            "born": [f"{day:%Y-%m-%d}" for day in days],
            "lat": rng.uniform(51.3, 51.6, count),
            "lon": rng.uniform(-0.3, 0.1, count),
            "lat2": rng.uniform(-60, 60, count),
            "lon2": rng.uniform(-170, 170, count),
            **{name: rng.normal(size=count) for name in ("w1", "w2", "w3", "l1", "l2", "l3")},
        }
    ).astype(object)
    return table, ages


@pytest.fixture(scope="module")
def table():
    return raw_table()


def gaps(table):
    """Rows with a gap each where one is allowed, and with what was not declared."""
    rows = table.head(10).copy()
    for place, column in enumerate(("age", "job", "sex", "grade", "smoker", "born", "lat2", "w2")):
        rows.loc[place, column] = None
    rows.loc[7, "job"] = "baker"
    rows.loc[7, "grade"] = "unheard of"
    rows.loc[8, "when"] = "2021-03-04T23:15:30+02:00"
    return rows


def models(ages):
    bounds = {"bounds": (10.0, 90.0), "schema": SCHEMA}
    yield "numbers", DPGPRegressor(**bounds, **BUDGET), ages
    yield "logarithms", DPGPRegressor(**bounds, output_transform="log", **BUDGET), ages
    yield "counts", DPGPRegressor(**bounds, likelihood="counts", **BUDGET), np.round(ages)
    quantiles = DPGPQuantileRegressor(quantiles=(0.2, 0.5, 0.9), inducing=10, **bounds, **BUDGET)
    yield "quantiles", quantiles, ages
    classes = DPGPClassifier(classes=["a", "b", "c"], schema=SCHEMA, **BUDGET)
    yield "classes", classes, np.array(["a", "b", "c"])[np.arange(len(ages)) % 3]


NAMES = ("numbers", "logarithms", "counts", "quantiles", "classes")
PLAIN = ("calibrated", "scattered", "trending")


@pytest.fixture(scope="module")
def releases(table):
    return {name: model.fit(table[0], y).release_ for name, model, y in models(table[1])}


PRIVATE = Schema(
    (
        Number("age", missing="impute", ranges=((0.0, 100.0),)),
        Number("weight", decimal=",", thousands=".", ranges=((1000.0, 2000.0),)),
        Category("job", levels=("clerk", "cook"), missing="category"),
        OrderedCategory("grade", levels=("low", "middle", "high"), missing="impute", fill=1.0),
        Boolean("smoker", true_values=("yes",), false_values=("no",), missing="impute"),
        Date("when", cycles=("day", "week", "year"), ranges=((18000.0, 19000.0),)),
        Place("home", latitude="lat", longitude="lon", ranges=((51.0, 52.0), (-1.0, 1.0))),
        Vector("word", columns=("w1", "w2", "w3"), ranges=((-2.0, 2.0),), missing="impute"),
    )
)


@pytest.fixture(scope="module")
def private(table):
    frame, ages = table
    budget = {"schema": PRIVATE, "epsilon": 20.0, "delta": 1e-3, "insecure_seed": 3}
    with warnings.catch_warnings():
        # So few rows, so large a budget.
        warnings.simplefilter("ignore", cloakgp.PrivacyParameterWarning)
        numbers = DPGPRegressorPrivateInputs(bounds=(10.0, 90.0), **budget).fit(frame, ages)
        thirds = np.array(["a", "b", "c"])[np.arange(len(ages)) % 3]
        classes = DPGPClassifierPrivateInputs(classes=["a", "b", "c"], **budget)
        return numbers.release_, classes.fit(frame, thirds).release_


@pytest.mark.parametrize("language", ["javascript", "r"])
def test_whole_rows_of_raw_columns_are_read_alike(language, private, table, tmp_path, request):
    rows = gaps(table[0])
    for release in private:
        paths = saved(release, rows, tmp_path)
        if language == "javascript":
            command = [request.getfixturevalue("node"), "--input-type=module", "-e", WITH_NODE]
            told = json.loads(run([*command, *paths], JAVASCRIPT))
            found = pd.DataFrame(told["predict"])
        else:
            command = [request.getfixturevalue("rscript"), "-e", WITH_R]
            told = json.loads(run([*command, *paths], R))
            found = pd.DataFrame(told["predict"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            if release.class_labels:
                shares = release.predict_proba(rows)
                if language == "javascript":
                    found = pd.DataFrame(
                        found.probabilities.tolist(), columns=["p_a", "p_b", "p_c"]
                    )
                close(found[["p_a", "p_b", "p_c"]], shares)
                continue
            mean, sd = release.predict(rows, return_std=True)
            _, new_sd = release.predict(rows, return_std=True, new_output=True)
            interval = np.column_stack(release.predict_interval(rows, COVERAGE))
            above = release.probability_above(rows, THRESHOLD)
        close(found, np.column_stack([mean, sd, new_sd]))
        close(pd.DataFrame(told["interval"]), interval)
        close(told["above"], above)
        release_path = paths[0]
        release_path.unlink()


def oracle(release, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        frame = release.predict_frame(rows)
        if release.likelihood.outputs == "classes":
            return frame, None, None
        interval = np.column_stack(release.predict_interval(rows, COVERAGE))
        return frame, interval, release.probability_above(rows, THRESHOLD)


def saved(release, rows, folder):
    release.save(folder / "release.cloak")
    (folder / "rows.json").write_text(rows.to_json(orient="records"))
    return folder / "release.cloak", folder / "rows.json"


def close(found, expected):
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_javascript_reads_raw_columns_alike(name, releases, table, node, tmp_path):
    release, rows = releases[name], gaps(table[0])
    command = [node, "--input-type=module", "-e", WITH_NODE, *saved(release, rows, tmp_path)]
    told = json.loads(run(command, JAVASCRIPT))
    frame, interval, above = oracle(release, rows)
    known = [place for place, each in enumerate(told["predict"]) if each is not None]
    # The row that lacks its sex has no prediction, here or there.
    assert known == [0, 1, *range(3, 10)]
    assert frame.iloc[2].isna().all()
    rows = [told["predict"][place] for place in known]
    frame = frame.iloc[known]
    if name == "classes":
        close([row["probabilities"] for row in rows], frame[["p_a", "p_b", "p_c"]])
        assert [row["label"] for row in rows] == frame["predicted"].tolist()
        assert "are told of releases of one number" in told["interval"]
        return
    close([told["interval"][place] for place in known], interval[known])
    close([told["above"][place] for place in known], above[known])
    if name == "quantiles":
        flat = [[each[end] for each in row for end in ("value", "lower", "upper")] for row in rows]
        close(flat, frame)
    elif name == "numbers":
        close([row["sd"] for row in rows], frame["sd"])
        close(np.clip([row["mean"] for row in rows], 10, 90), frame["mean"])
    else:
        middle = "rate" if name == "counts" else "median"
        close(
            [[row[key] for key in (middle, "lower", "upper")] for row in rows],
            frame[["median", "lower", "upper"]],
        )


@pytest.mark.parametrize("name", NAMES)
def test_r_reads_raw_columns_alike(name, releases, table, rscript, tmp_path):
    release, rows = releases[name], gaps(table[0])
    told = json.loads(run([rscript, "-e", WITH_R, *saved(release, rows, tmp_path)], R))
    frame, interval, above = oracle(release, rows)
    found = pd.DataFrame(told["predict"])
    assert found.iloc[2].isna().all()
    assert frame.iloc[2].isna().all()
    if name == "classes":
        close(found[["p_a", "p_b", "p_c"]], frame[["p_a", "p_b", "p_c"]])
        known = frame.index != 2
        assert found["predicted"][known].tolist() == frame["predicted"][known].tolist()
        assert "are told of releases of one number" in told["interval"]
        return
    close(pd.DataFrame(told["interval"]), interval)
    close(told["above"], above)
    if name == "numbers":
        close(found["sd"], frame["sd"])
        close(found["mean"].clip(10, 90), frame["mean"])
    else:
        close(found, frame if name == "quantiles" else frame[["median", "lower", "upper"]])


# Of an exposure of each row, and what is said of those that are none.
EXPOSURES_WITH_NODE = """
import { readFileSync } from "node:fs";
import { readRelease } from "./index.js";
const [file, table, other] = process.argv.slice(1);
const release = await readRelease(readFileSync(file)), rows = JSON.parse(readFileSync(table));
const numbers = await readRelease(readFileSync(other));
const said = (exposure, of = release) => {
  try { return of.above(rows[0], 31.5, { exposure }); } catch (error) { return error.message; }
};
const each = (what) => rows.map((row, i) => what(row, { exposure: EXPOSURES[i] }));
console.log(JSON.stringify({
  interval: each((row, exposure) => release.interval(row, 0.8, exposure) || [null, null]),
  above: each((row, exposure) => release.above(row, 31.5, exposure)),
  refused: [...[[1, 2], [2], "2", 0, NaN, Infinity].map((each) => said(each)), said(1, numbers)],
}));
"""
EXPOSURES_WITH_R = """
source("cloakgp.R")
given <- commandArgs(trailingOnly = TRUE)
release <- read_release(given[1])
rows <- jsonlite::fromJSON(given[2])
exposure <- unlist(jsonlite::fromJSON("EXPOSURES"))
said <- function(exposure, of = release)
  tryCatch(probability_above(of, rows, 31.5, exposure), error = conditionMessage)
cat(jsonlite::toJSON(list(
  interval = as.matrix(predict_interval(release, rows, 0.8, exposure)),
  above = probability_above(release, rows, 31.5, exposure),
  refused = c(
    lapply(list(c(1, 2), numeric(0), "2", 0, NaN, Inf), said), said(1, read_release(given[3]))
  )
), digits = NA, na = "null", auto_unbox = TRUE))
"""


@pytest.mark.parametrize("language", ["javascript", "r"])
def test_every_row_has_its_own_exposure(language, releases, table, tmp_path, request):
    # The third row has no prediction, and moves the exposures of no others.
    rows, exposures = gaps(table[0]), [0.1, 1.0, 30.0, 20.0, 0.5, 2.0, 3.0, 1e4, 0.7, 5.0]
    releases["numbers"].save(tmp_path / "numbers.cloak")
    paths = (*saved(releases["counts"], rows, tmp_path), tmp_path / "numbers.cloak")
    if language == "javascript":
        command = [
            request.getfixturevalue("node"),
            "--input-type=module",
            "-e",
            EXPOSURES_WITH_NODE,
        ]
    else:
        command = [request.getfixturevalue("rscript"), "-e", EXPOSURES_WITH_R]
    command[-1] = command[-1].replace("EXPOSURES", json.dumps(exposures))
    told = json.loads(run([*command, *paths], PROJECT / "readers" / language))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        interval = releases["counts"].predict_interval(rows, COVERAGE, exposure=exposures)
        above = releases["counts"].probability_above(rows, THRESHOLD, exposure=exposures)
    close(told["interval"], np.column_stack(interval))
    close(told["above"], above)
    *refused, other = told["refused"]
    for said in refused:
        assert re.fullmatch(
            r"(an )?exposure is (a number, or one for each row|positive and finite)", said
        )
    assert other == "exposure is of counts, and this release is about other outputs"


@pytest.mark.parametrize("name", ["constructor", "__proto__"])
def test_what_every_object_has_is_no_column_of_a_row(name, node, tmp_path):
    """In JavaScript, `"constructor" in row` is true of every row."""
    X = np.linspace(0, 1, 20)[:, None]
    numbers = DPGPRegressor(bounds=(0, 1), epsilon=1.0, insecure_seed=0)
    for column in (X, np.resize(["clerk", "cook"], 20)):
        frame = pd.DataFrame({"age": X[:, 0], name: np.ravel(column)})
        release = numbers.fit(frame, X[:, 0]).release_
        told = []
        for rows in (frame.head(1)[["age"]], frame.head(1)):
            folder = tmp_path / f"{column.dtype.kind}{rows.shape[1]}"
            folder.mkdir()
            command = [node, "--input-type=module", "-e", ROWS_WITH_NODE]
            told += json.loads(run([*command, *saved(release, rows, folder)], JAVASCRIPT))
        assert told[0] == f"there is no column {name}"
        assert told[1] == pytest.approx(release.predict(frame.head(1))[0])


@pytest.mark.parametrize("language", ["javascript", "r"])
@pytest.mark.parametrize("name", PLAIN)
def test_calibration_and_noise_that_varies_are_told_alike(name, language, tmp_path, request):
    release = request.getfixturevalue(name)
    rows = pd.DataFrame(release.measurements[0].strategy.X_query[:7])
    paths = saved(release, rows, tmp_path)
    paths[1].write_text(json.dumps(rows.to_numpy().tolist()))
    if language == "javascript":
        node = request.getfixturevalue("node")
        told = json.loads(run([node, "--input-type=module", "-e", WITH_NODE, *paths], JAVASCRIPT))
        found = pd.DataFrame(told["predict"]).to_numpy()
    else:
        rscript = request.getfixturevalue("rscript")
        told = json.loads(run([rscript, "-e", WITH_R, *paths], R))
        found = pd.DataFrame(told["predict"]).to_numpy()
    mean, sd = release.predict(rows.to_numpy(), return_std=True)
    _, new_sd = release.predict(rows.to_numpy(), return_std=True, new_output=True)
    close(found, np.column_stack([mean, sd, new_sd]))
    interval = np.column_stack(release.predict_interval(rows.to_numpy(), COVERAGE))
    close(pd.DataFrame(told["interval"]), interval)
    close(told["above"], release.probability_above(rows.to_numpy(), THRESHOLD))


@pytest.mark.parametrize("language", ["javascript", "r"])
def test_several_outputs_of_raw_columns_are_told_alike(language, table, tmp_path, request):
    """Of a release that this version wrote: kept files are of earlier ones."""
    X, y = table
    outputs = pd.DataFrame({"pay": y, "été": 60 - y / 2})
    model = DPGPMultiOutputRegressor(bounds=[(0, 60), (0, 60)], **BUDGET)
    release, rows = model.fit(X, outputs).release_, X.head(7)
    paths = saved(release, rows, tmp_path)
    if language == "javascript":
        command = [request.getfixturevalue("node"), "--input-type=module", "-e", WITH_NODE, *paths]
        told = json.loads(run(command, JAVASCRIPT))["predict"]
        assert [each["name"] for each in told[0]] == ["pay", "été"]
        found = [[(each["mean"], each["sd"], each["newSd"]) for each in row] for row in told]
        found = np.array(found).reshape(len(rows), 6)
    else:
        command = [request.getfixturevalue("rscript"), "-e", WITH_R, *paths]
        told = json.loads(run(command, R))["predict"]
        parts = ("", "_sd", "_new_sd")
        assert list(told) == [name + part for name in ("pay", "été") for part in parts]
        found = np.column_stack(list(told.values()))
    mean, sd = release.predict(rows, return_std=True)
    _, new_sd = release.predict(rows, return_std=True, new_output=True)
    close(found, np.stack([mean, sd, new_sd], axis=2).reshape(len(rows), 6))


# Intervals of one row for any exposures.
EXPOSED_WITH_NODE = """
import { readFileSync } from "node:fs";
import { readRelease } from "./index.js";
const [file, table, exposures] = process.argv.slice(1);
const release = await readRelease(readFileSync(file)), [row] = JSON.parse(readFileSync(table));
const told = JSON.parse(exposures).map((exposure) => release.interval(row, 0.8, { exposure }));
console.log(JSON.stringify(told));
"""
EXPOSED_WITH_R = """
source("cloakgp.R")
given <- commandArgs(trailingOnly = TRUE)
release <- read_release(given[1])
rows <- jsonlite::fromJSON(given[2])
told <- function(each) unname(unlist(predict_interval(release, rows, 0.8, each)))
cat(jsonlite::toJSON(lapply(jsonlite::fromJSON(given[3]), told), digits = NA))
"""


@pytest.mark.parametrize("language", ["javascript", "r"])
def test_intervals_of_enormous_counts_end_and_are_told_alike(
    language, releases, table, tmp_path, request
):
    exposures = [1.0, 1e6, 1e9, 1e40, 1e300, 1e308]
    row = table[0].head(1)
    command = (
        [request.getfixturevalue("node"), "--input-type=module", "-e", EXPOSED_WITH_NODE]
        if language == "javascript"
        else [request.getfixturevalue("rscript"), "-e", EXPOSED_WITH_R]
    )
    paths = saved(releases["counts"], row, tmp_path)
    folder = JAVASCRIPT if language == "javascript" else R
    told = json.loads(run([*command, *paths, json.dumps(exposures)], folder))
    expected = [
        np.ravel(releases["counts"].predict_interval(row, COVERAGE, exposure=each))
        for each in exposures
    ]
    np.testing.assert_allclose(told, expected, rtol=1e-6)


FAULTS = {
    "age": "twelve",
    "weight": "1.2,5",
    "sex": "x",
    "smoker": "perhaps",
    "when": "03.04.2020",
    "lat": 95.0,
    "lon": None,
}


@pytest.mark.parametrize("language", ["javascript", "r"])
def test_cells_at_fault_are_refused_and_named(language, releases, table, tmp_path, request):
    sound = table[0].head(1).to_dict("records")[0]
    rows = [sound | {column: cell} for column, cell in FAULTS.items()]
    told = told_of_rows(language, releases["numbers"], rows, tmp_path, request)
    for column, said in zip(FAULTS, told, strict=True):
        assert isinstance(said, str), column
        assert column in said


@pytest.mark.parametrize("language", ["javascript", "r"])
@pytest.mark.parametrize("where", ["whole", "part"])
def test_what_a_reader_does_not_know_is_refused_by_name(language, where, tmp_path, request):
    release = cloakgp.load(GOLDEN / "numbers.cloak")

    def tree(stored):
        found = release.coefficients(stored=stored, beside=True)
        (found if where == "whole" else found["parts"][0])["tide"] = {"moon": 1.0}
        return to_tree(release, stored=stored) | {COEFFICIENTS: found}

    paths = (tmp_path / "strange.cloak", tmp_path / "rows.json")
    paths[0].write_bytes(bundle_bytes(kind=release.kind, tree=tree))
    paths[1].write_text("[[1.0, 2.0]]")
    np.testing.assert_array_equal(
        cloakgp.load(paths[0]).predict([[1.0, 2.0]]), release.predict([[1.0, 2.0]])
    )
    if language == "javascript":
        command = [request.getfixturevalue("node"), "--input-type=module", "-e", WITH_NODE, *paths]
        folder = JAVASCRIPT
    else:
        command, folder = [request.getfixturevalue("rscript"), "-e", WITH_R, *paths], R
    made = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert made.returncode != 0
    assert "it predicts by tide, which this reader does not know: predict in Python" in made.stderr


def compares_digests(rscript):
    """Whether R has SHA-256; a release says of itself whether its digests were compared."""
    script = f'source("cloakgp.R"); cat(read_release("{GOLDEN / "numbers.cloak"}")$checked)'
    return run([rscript, "-e", script], R) == "TRUE"


@pytest.mark.parametrize("language", ["javascript", "r"])
@pytest.mark.parametrize("cut", ["short", "edited"])
def test_damaged_files_are_refused(language, cut, tmp_path, request):
    content = bytearray((GOLDEN / "numbers.cloak").read_bytes())
    if cut == "short":
        del content[-200:]
    else:
        place = content.index(b"PK\x01\x02") - 20
        content[place] ^= 1
    (tmp_path / "damaged.cloak").write_bytes(content)
    (tmp_path / "rows.json").write_text("[[1.0, 2.0]]")
    paths = (tmp_path / "damaged.cloak", tmp_path / "rows.json")
    if language == "javascript":
        command = [request.getfixturevalue("node"), "--input-type=module", "-e", WITH_NODE, *paths]
        folder = JAVASCRIPT
    else:
        command, folder = [request.getfixturevalue("rscript"), "-e", WITH_R, *paths], R
    made = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False
    )
    if language == "r" and cut == "edited" and not compares_digests(command[0]):
        pytest.skip("R before 4.5 lacks SHA-256 (on Debian, apt-get install r-cran-digest)")
    assert made.returncode != 0
    assert "this is no release file that can be read here" in made.stderr


CELLS = Schema(
    (
        Number("amount", missing="impute", fill=40.0),
        Number("price", decimal=",", thousands=".", missing="impute", fill=1300.0),
        Category(
            "zip",
            levels=("100000", "200000", "0.5", "0.30000000000000004", "1e-05", "true", "inf", "é"),
            missing="category",
        ),
        OrderedCategory("grade", levels=("1", "2", "3"), missing="impute", fill=1.0),
        Boolean("paid", true_values=("true", "1"), false_values=("false", "0"), missing="impute"),
        Boolean("member", true_values=("yes",), false_values=("no",), missing="impute"),
        Date("iso", linear=False, cycles=("day", "week", "year"), missing="impute"),
        Date("swapped", form="%Y-%d-%m", linear=False, cycles=("year",), missing="impute"),
        Date("clock", form="%d.%m.%Y %H:%M", linear=False, cycles=("day",), missing="impute"),
        Date("whole", form="%Y%m%d", linear=False, cycles=("year",), missing="impute"),
        Date("exact", form="%d/%m/%Y %H:%M:%S.%f", linear=False, cycles=("day",), missing="impute"),
        Date("named", form="%d %b %Y", linear=False, cycles=("year",), missing="impute"),
        Date("short", form="%m/%d/%y %I:%M %p", linear=False, cycles=("day",), missing="impute"),
        Place("home", latitude="lat", longitude="lon", centre=(51.5, 0.0), missing="impute"),
    ),
    missing_values=("-99", "NA", "unknown"),
)
# The row in which every cell below stands.
BESIDE = {
    "amount": 35.0,
    "price": "1.234,5",
    "zip": "100000",
    "grade": "2",
    "paid": "true",
    "member": "yes",
    "iso": "2020-02-03",
    "swapped": None,
    "clock": None,
    "whole": None,
    "exact": None,
    "named": None,
    "short": None,
    "lat": 51.5,
    "lon": 0.1,
}
GAPS = (None, "", "  ", "NA", " NA ", "unknown", "-99", "-99.0", -99, -99.0, "NaN", "nan", "NULL")
ROW_CELLS = {
    "amount": (
        *GAPS,
        *("-99.00", "-9.9e1", "+35", "35.", ".5", "3.5E1", "035", "1_000", "1,5", "1.234,5"),
        *("0x10", "abc", "inf", "-Infinity", "1e400", "1e-400", "1e0000000001", "٣٥", "35\n"),
        *("\u00a035", "\t35 ", '"35"', '" 35 "', '"35', '"NA"', "\u00a0", "\n", "True", "false"),
        *(True, False, "NAN", "--5", "5-", ".", "e5", "1e", "36", 36, 36.5),
    ),
    "price": (
        *GAPS,
        *("1234,5", "1.234", "1234", "1.2,5", "1.234.", "1.234.567,8", "12.34", "1,234.5", "1,2,3"),
        *("-99,0", "+1.234", "1234e-1", '"1.234,5"', '"1234', "true", True, "1.234,", ",5", "inf"),
        *("\u00a01.234,5", " 1.234,5 ", 1234.5, 1234, "1 234,5", "1'234,5"),
    ),
    "zip": (
        *GAPS,
        *(100000, 100000.0, "100000.0", " 100000 ", "\u00a0100000\u3000", "100000\x1f", "1e+05"),
        *("\ufeff100000", 200000, 0.5, 0.1 + 0.2, 0.3, 0.00001, 1e-7, True, False, "TRUE", "inf"),
        *("é", "e\u0301", "É", "other", "100 000"),
    ),
    "grade": (*GAPS, 1, 1.0, 3.0, "1.0", " 3 ", 2.5, True),
    "paid": (*GAPS, True, False, "TRUE", " False ", "1", 1, 1.0, 0.0, "1.0", "t", "yes", 2),
    "member": (*GAPS, "YES", "No", True, False, 1),
    "iso": (
        *GAPS,
        *("1969-12-31", "1900-03-01", "0001-01-01", "0000-01-01", "2020-02-29", "2021-02-29"),
        *("1900-02-29", "2020-13-01", "2020-00-10", "2020-01-00", "2020-2-3", "03.02.2020"),
        *("2020-02-03T10:30", "2020-02-03 10:30", "2020-02-03T10:30:15", "2020-02-03T25:00"),
        *("2020-02-03T99:99", "2020-02-03T24:30", "2020-02-03T10:60", "2020-02-03T10:30:60"),
        *("2020-02-03T10:30:15.5", "2020-02-03T10:30:15,5", "2020-02-03T10:30:15.1234567"),
        *("2020-02-03T10:30:15.", "2020-02-03T10:30Z", "2020-02-03T10:30z", "2020-02-03Z"),
        *("2020-02-03T10:30+02:00", "2020-02-03T10:30-0330", "2020-02-03 10:30:00+02"),
        *("2020-02-03T10:30+24:00", "2020-02-03T23:30-02:00", "1969-12-31T23:59:59.999999Z"),
        *("2020-02-03T", "2020-02", "20200203", 20200203, 18295.5, True, " 2020-02-03 "),
        *("٢٠٢٠-02-03", "+2020-02-03", "12020-02-03", "2020-02-03T10:30 +02:00x"),
    ),
    "swapped": (
        *GAPS,
        *("2020-02-03", "2020-31-12", "2020-12-31", "2020-2-3", "2020-29-02", "2021-29-02"),
        *("2020-02-03T00:00", "0000-01-01", "1969-31-12", " 2020-02-04 ", "20-02-03", 20200203),
    ),
    "short": (
        *GAPS,
        *("12/31/68 12:15 AM", "1/1/69 12:15 pm", "1/1/00 1:05 Am", "01/01/99 11:59 PM"),
        *("04/03/20 13:30 PM", "04/03/20 0:30 AM", "04/03/20 10:30", "04/03/2020 10:30 AM"),
        *("13/01/20 10:30 AM", "02/29/00 10:30 AM", "02/29/99 10:30 AM", "4/3/9 10:30 AM"),
    ),
    "clock": (
        *GAPS,
        *("03.04.2020 12:45", "3.4.2020 1:5", "03.04.2020  10:31", "03.04.2020T10:30"),
        *("03.04.2020 24:00", "03.04.2020 10:60", "2020-04-03 10:30", "03.04.2020 10:30:15"),
        *("03.04.2020", "03.04.2020 1", "03-04-2020 10:30", "03.04.2020 10:305"),
    ),
    "whole": (*GAPS, 20200304, 20200304.0, "2020034", "2020111", "202001011", "20201301"),
    "exact": (
        *("03/04/2020 10:30:15.5", "03/04/2020 10:30:15.123456", "03/04/2020 10:30:15.1234567"),
        *("03/04/2020 10:30:15", "03/04/2020 10:30:60.0", "03/04/2020 10:30:61.5"),
    ),
    "lat": (*GAPS, "51.25", "51,25", 95, "inf", True, "south"),
}
# What Python reads, and readers refuse by the column's name.
ONLY_PYTHON = {
    "zip": (9007199254740993, 1e22),
    "iso": (
        *("2020-02-03t10:30", "2020-02-03T10", "20200203T1030", "2020-W05-1"),
        *("2020-02-03+02:00", "2020-02-03T10:30+01:60"),
    ),
    "named": ("03 Apr 2020", "3 apr 2020"),
}


# What a cell of a language's own type means in Python, or that it is refused.
REFUSED = object()
NOON, EPOCH = dt.datetime(2020, 5, 6, 12), dt.datetime(1970, 1, 1)
OWN_TYPES = {
    "javascript": (
        *(("iso", "new Date(Date.UTC(2020, 4, 6, 12))", NOON), ("iso", "new Date(NaN)", None)),
        *(("swapped", "new Date(Date.UTC(2020, 4, 6, 12))", NOON), ("named", "new Date(0)", EPOCH)),
        *(
            ("iso", "new Date(2020, 4, 6, 14)", NOON),
            ("iso", "new Date('2020-02-03')", "2020-02-03"),
        ),
        *(("zip", "100000n", 100000), ("zip", "new Date(0)", REFUSED), ("zip", "NaN", None)),
        *(("zip", "-0", -0.0), ("zip", "Infinity", np.inf), ("zip", "['100000']", REFUSED)),
        *(("amount", "35n", 35), ("amount", "NaN", None), ("amount", "undefined", None)),
        *(("amount", "Infinity", REFUSED), ("amount", "[35]", REFUSED), ("amount", "{}", REFUSED)),
        *(("price", "-99n", None), ("iso", "18000n", REFUSED), ("amount", "new Date(0)", REFUSED)),
    ),
    "r": (
        *(
            ("iso", "as.POSIXct('2020-05-06 12:00', tz = 'UTC')", NOON),
            ("iso", "as.Date(NA)", None),
        ),
        *(("iso", "as.POSIXct('2020-05-06 14:00', tz = 'Etc/GMT-2')", NOON),),
        # They name no zone: what a clock shows, in winter and where it is put back.
        *(("iso", "as.POSIXct('2020-05-06 12:00')", NOON), ("iso", "as.POSIXct(NA)", None)),
        *(("iso", "as.POSIXct('2020-02-03')", "2020-02-03"),),
        *(("iso", "as.POSIXct('1969-12-31 23:30:15')", "1969-12-31T23:30:15"),),
        *(("iso", "as.POSIXct('2020-10-25 03:30')", "2020-10-25T03:30"),),
        *(("iso", "as.POSIXlt(as.POSIXct('2020-05-06 14:00'), tz = 'UTC')", NOON),),
        *(("swapped", "as.Date('2020-05-06')", dt.date(2020, 5, 6)),),
        *(("named", "as.Date('1970-01-01')", EPOCH), ("iso", "factor('2020-02-03')", "2020-02-03")),
        *(
            ("zip", "100000L", 100000),
            ("zip", "1e5", 100000),
            ("zip", "factor('200000')", "200000"),
        ),
        *(("zip", "I('200000')", "200000"), ("zip", "Inf", np.inf), ("zip", "-0", -0.0)),
        *(("zip", "NA", None), ("zip", "Sys.Date()", REFUSED), ("zip", "0.1 + 0.2", 0.1 + 0.2)),
        *(("amount", "structure(35, class = 'integer64')", REFUSED), ("amount", "35L", 35)),
        *(("amount", "as.difftime(35, units = 'mins')", REFUSED), ("amount", "NaN", None)),
        *(("amount", "Inf", REFUSED), ("amount", "35i", REFUSED), ("amount", "factor('35')", "35")),
        *(("amount", "TRUE", True), ("price", "-99L", None), ("iso", "18000", REFUSED)),
    ),
}
OWN_TYPES_WITH_NODE = """
import { readFileSync } from "node:fs";
import { readRelease } from "./index.js";
const [file, table] = process.argv.slice(1);
const release = await readRelease(readFileSync(file)), beside = JSON.parse(readFileSync(table));
const told = (name, cell) => {
  try { return release.predict({ ...beside, [name]: cell }).mean; }
  catch (error) { return error.message; }
};
console.log(JSON.stringify([CELLS]));
"""
OWN_TYPES_WITH_R = """
source("cloakgp.R")
given <- commandArgs(trailingOnly = TRUE)
release <- read_release(given[1])
beside <- jsonlite::fromJSON(given[2], simplifyVector = FALSE)
beside[vapply(beside, is.null, logical(1))] <- NA
beside <- as.data.frame(beside, check.names = FALSE)
told <- function(name, cell) {
  beside[[name]] <- cell
  tryCatch(predict(release, beside)$mean, error = conditionMessage)
}
cat(jsonlite::toJSON(list(CELLS), digits = NA, auto_unbox = TRUE))
"""


def beside(column, cell):
    return BESIDE | {column: cell}


@pytest.fixture(scope="module")
def cells():
    """A release on whose raw columns predictions depend, all of them."""
    rng = np.random.default_rng(5)
    choices = {
        "amount": (20.0, 35.0, 50.0, None),
        "price": ("1.234,5", "1.300", "1.400"),
        "zip": ("100000", "200000", "0.5", "0.30000000000000004", "1e-05", "true", "smith", None),
        "grade": ("1", "2", "3"),
        "paid": ("true", "false", None),
        "member": ("yes", "no"),
        "iso": ("2020-02-03", "2020-05-06T12:00", "2020-08-07T18:00"),
        "swapped": ("2020-03-02", "2020-02-03", "2020-07-08"),
        "clock": ("03.04.2020 10:30", "03.04.2020 16:30"),
        "whole": ("20200203", "20200804"),
        "exact": ("03/04/2020 10:30:15.25", "03/04/2020 18:30:15.25"),
        "named": ("03 Apr 2020", None),
        "short": ("04/03/20 10:30 AM", "04/03/99 04:30 PM", None),
        "lat": (51.25, 51.5, 51.75),
        "lon": (0.0, 0.1),
    }
    count = 60
    drawn = {
        name: [values[place] for place in rng.integers(len(values), size=count)]
        for name, values in choices.items()
    }
    table = pd.DataFrame(drawn, dtype=object)
    model = DPGPRegressor(bounds=(0.0, 10.0), schema=CELLS, **BUDGET | {"epsilon": 20.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(table, rng.uniform(0, 10, count)).release_


def told_of_rows(language, release, rows, folder, request, *, scripts=None):
    with_node, with_r = scripts or (ROWS_WITH_NODE, ROWS_WITH_R)
    release.save(folder / "release.cloak")
    (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    paths = (folder / "release.cloak", folder / "rows.json")
    if language == "javascript":
        node = request.getfixturevalue("node")
        return json.loads(run([node, "--input-type=module", "-e", with_node, *paths], JAVASCRIPT))
    return json.loads(run([request.getfixturevalue("rscript"), "-e", with_r, *paths], R))


def python_says(release, row):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            [mean] = release.predict(
                pd.DataFrame({name: [row[name]] for name in row}, dtype=object)
            )
        except ValueError as error:
            return str(error)
    return mean


def all_cells():
    """Return every cell of either dictionary above, with its column and its dictionary."""
    return [
        (name, cell, asked)
        for asked in (ROW_CELLS, ONLY_PYTHON)
        for name, cells in asked.items()
        for cell in cells
    ]


@pytest.fixture(scope="module")
def expected(cells):
    """What Python says of all cells."""
    return [python_says(cells, beside(name, cell)) for name, cell, _ in all_cells()]


@pytest.fixture(scope="module")
def told(cells, tmp_path_factory, request):
    """What a language says of all cells, when it is started once."""
    rows = [beside(name, cell) for name, cell, _ in all_cells()]
    return told_of_rows(request.param, cells, rows, tmp_path_factory.mktemp("cells"), request)


def of_column(column, asked, said):
    """Return what was said of a column's cells in one of the dictionaries."""
    known = zip(all_cells(), said, strict=True)
    return [each for (name, _, cells), each in known if name == column and cells is asked]


in_both_languages = pytest.mark.parametrize("told", ["javascript", "r"], indirect=True)


@in_both_languages
@pytest.mark.parametrize("column", ROW_CELLS)
def test_every_cell_is_read_alike_or_refused_by_both(column, told, expected):
    told, expected = (of_column(column, ROW_CELLS, said) for said in (told, expected))
    # Cells are read differently, or nothing is compared.
    assert len({each for each in expected if not isinstance(each, str)}) > 1
    wrong = []
    for cell, found, known in zip(ROW_CELLS[column], told, expected, strict=True):
        if isinstance(known, str) or isinstance(found, str):
            fits = isinstance(known, str) and isinstance(found, str) and column in found
        else:
            fits = abs(found - known) <= 1e-7
        if not fits:
            wrong.append((cell, found, known))
    assert not wrong, "\n".join(map(str, wrong))


@in_both_languages
@pytest.mark.parametrize("column", ONLY_PYTHON)
def test_what_only_python_reads_is_refused_by_name(column, told, expected):
    told, expected = (of_column(column, ONLY_PYTHON, said) for said in (told, expected))
    assert all(isinstance(each, float) for each in expected)
    for said in told:
        assert isinstance(said, str)
        assert column in said


@pytest.mark.parametrize("language", ["javascript", "r"])
def test_cells_of_a_languages_own_types_are_read_or_refused(
    language, cells, tmp_path, request, monkeypatch
):
    # Two hours ahead of UTC in summer, and one in winter.
    monkeypatch.setenv("TZ", "Europe/Berlin")
    written = ", ".join(f"told('{name}', {cell})" for name, cell, _ in OWN_TYPES[language])
    scripts = [each.replace("CELLS", written) for each in (OWN_TYPES_WITH_NODE, OWN_TYPES_WITH_R)]
    told = told_of_rows(language, cells, BESIDE, tmp_path, request, scripts=scripts)
    for (name, cell, meant), found in zip(OWN_TYPES[language], told, strict=True):
        if meant is REFUSED:
            assert isinstance(found, str), cell
            assert f"column {name}" in found
        else:
            assert found == pytest.approx(python_says(cells, beside(name, meant)), abs=1e-7), cell
