"""Predictions for tables, chunk by chunk: what would be written of all rows at once."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.columns import Category, Number, Schema
from cloakgp.orders.predictions import TablePredictions
from cloakgp.orders.progress import Reporter
from cloakgp.release.distribution_columns import NOTHING, DistributionColumns
from cloakgp.release.points import NoPredictionWarning, UnseenLevelWarning
from cloakgp.release.predictions import sensible_digits

SCHEMA = Schema((Number("age", missing="drop"), Category("job", levels=("cook", "clerk"))))
ASKED = {"epsilon": 1.0, "delta": 1e-3, "noise": "gaussian", "insecure_seed": 1}


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {"age": rng.uniform(20, 60, 12).round(1), "job": rng.choice(["cook", "clerk"], 12)}
    )


@pytest.fixture(scope="module")
def numbers(people):
    model = DPGPRegressor(bounds=(0, 100), schema=SCHEMA, stages=None, interval=False, **ASKED)
    return model.fit(people, people["age"].rename("pay")).release_


@pytest.fixture(scope="module")
def classes(people):
    model = DPGPClassifier(classes=["no", "yes"], schema=SCHEMA, **ASKED)
    return model.fit(
        people, people["age"].gt(40).map({False: "no", True: "yes"}).rename("ill")
    ).release_


def written(release, at, *, suffix, chunk_rows, told=None, asked=NOTHING):
    file = io.BytesIO()
    predictions = TablePredictions(
        release,
        at,
        spool=io.BytesIO(),
        suffix=suffix,
        new_output=False,
        estimate="median",
        asked=asked,
        reporter=Reporter(show=lambda _: None),
        notify=[].append if told is None else told.append,
        chunk_rows=chunk_rows,
    )
    rows = predictions.write(file)
    return file.getvalue(), rows


def test_a_gap_that_no_fitted_row_had_refuses_that_row_alone(people, tmp_path):
    """Here and in Python; a cell that holds something else is a mistake in the whole table."""
    schema = Schema((Number("age"), Category("job", levels=("cook", "clerk"))))
    model = DPGPRegressor(bounds=(0, 100), schema=schema, stages=None, interval=False, **ASKED)
    release = model.fit(people, people["age"].rename("pay")).release_
    at = tmp_path / "new.csv"
    at.write_text("age,job\n30,cook\n,cook\n40,clerk\n,clerk\n", "utf-8")
    told = []
    content, rows = written(release, at, suffix=".csv", chunk_rows=2, told=told)
    assert rows == 4
    assert told == ["2 rows lack age: there is no prediction for them"]
    found = pd.read_csv(io.BytesIO(content))
    assert found["mean"].isna().tolist() == [False, True, False, True]
    new = pd.read_csv(at)
    with pytest.warns(NoPredictionWarning, match="2 rows lack age: there is no prediction"):
        mean, sd = release.predict(new, return_std=True)
    assert np.isnan(mean).tolist() == np.isnan(sd).tolist() == [False, True, False, True]
    np.testing.assert_allclose(mean[[0, 2]], release.predict(new.iloc[[0, 2]]))
    with pytest.raises(ValueError, match=r"every row lacks .* no prediction: age"):
        release.predict(new.iloc[[1]])
    at.write_text("age,job\n,cook\n,clerk\n", "utf-8")
    with pytest.raises(ValueError, match=r"every row lacks .* no prediction: age"):
        written(release, at, suffix=".csv", chunk_rows=1)
    at.write_text("age,job\n30,cook\nold,cook\n", "utf-8")
    with pytest.raises(ValueError, match="is not a number"):
        written(release, at, suffix=".csv", chunk_rows=2)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_no_rows_have_no_predictions_under_the_same_names(request, tmp_path, kind, suffix):
    release, at = request.getfixturevalue(kind), tmp_path / "new.csv"
    tables = []
    for cells in ("", "30,cook\n"):
        at.write_text(f"age,job\n{cells}", "utf-8")
        content, rows = written(release, at, suffix=suffix, chunk_rows=2)
        assert rows == bool(cells)
        read = pd.read_csv if suffix == ".csv" else pd.read_parquet
        tables.append(read(io.BytesIO(content)))
    assert list(tables[0]) == list(tables[1])
    assert len(tables[0]) == 0


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["20", "31.5", "59", ""]),
        st.sampled_from(["cook", "clerk", "pilot", "judge"]),
        st.sampled_from(["1", "2.50", "", "x"]),
    ),
    min_size=1,
    max_size=15,
)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
@given(rows=ROWS)
@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_chunks_give_what_all_rows_give_at_once(request, tmp_path, kind, rows):
    release = request.getfixturevalue(kind)
    frame = pd.DataFrame(rows, columns=["age", "job", "note"]).assign(pay="secret", ill="secret")
    path = tmp_path / "new.csv"
    frame.drop(columns="ill" if kind == "numbers" else "pay").to_csv(path, index=False)
    if not (frame["age"] != "").any():
        with pytest.raises(ValueError, match="every row lacks"):
            written(release, path, suffix=".csv", chunk_rows=1)
        return
    told = []
    whole, count = written(release, path, suffix=".csv", chunk_rows=100, told=told)
    assert count == len(frame)
    assert b"secret" not in whole
    for chunk_rows in (1, 7):
        again = []
        assert written(release, path, suffix=".csv", chunk_rows=chunk_rows, told=again)[0] == whole
        assert again == told
    tables = [
        pq.read_table(
            io.BytesIO(written(release, path, suffix=".parquet", chunk_rows=chunk_rows)[0])
        )
        for chunk_rows in (1, 7, 100)
    ]
    assert tables[0] == tables[1] == tables[2]
    # The oracle: everything at once, by the release itself.
    raw = frame[["age", "job"]].replace("", None)
    if raw["job"].isin(["pilot", "judge"]).any():
        with pytest.warns(UnseenLevelWarning) as warned:
            expected = release.predict_frame(raw)
        assert str(warned[0].message) in told
    else:
        expected = release.predict_frame(raw)
        # What lies outside of the asked range has a line of its own, and so have gaps.
        others = ("Nothing was asked there", "there is no prediction for")
        assert len([one for one in told if not any(part in one for part in others)]) == 1
    digits = 4 if kind == "classes" else sensible_digits(expected["sd"].to_numpy())
    found = tables[0].to_pandas()
    for name, column in expected.round(digits).items():
        if name == "predicted":
            assert [each or None for each in found[name].where(found[name].notna(), "")] == [
                each or None for each in column.where(column.notna(), "")
            ]
        else:
            np.testing.assert_array_equal(found[name], column)


def test_levels_are_told_once_however_many_there_are(numbers, tmp_path):
    path = tmp_path / "new.csv"
    jobs = [f"job {number}" for number in range(3000)]
    pd.DataFrame({"age": 30.0, "job": jobs}).to_csv(path, index=False)
    told = []
    written(numbers, path, suffix=".csv", chunk_rows=100, told=told)
    (sentence,) = told
    assert "'job 0', 'job 1', 'job 2' and many more) in 3,000 rows" in sentence


def test_distributions_of_new_outputs_stand_behind_in_any_chunks(numbers, classes, tmp_path):
    path = tmp_path / "new.csv"
    people = pd.DataFrame({"age": [20.0, None, 59.0], "job": ["cook", "cook", "clerk"]})
    people.to_csv(path, index=False)
    questions = {"interval": 0.9, "quantiles": [0.1, 0.5], "above": 25}
    asked = DistributionColumns.asked(**questions)
    whole, _ = written(numbers, path, suffix=".csv", chunk_rows=9, told=[], asked=asked)
    assert written(numbers, path, suffix=".csv", chunk_rows=1, told=[], asked=asked)[0] == whole
    found = pd.read_csv(io.BytesIO(whole)).iloc[:, 2:]
    expected = numbers.predict_frame(people, **questions)
    assert list(found) == list(expected)
    digits = sensible_digits(expected["sd"].to_numpy())
    rounded = expected.round(dict.fromkeys(expected, digits) | {"above_25": 4})
    pd.testing.assert_frame_equal(found, rounded, check_index_type=False)
    # Rounded by the sd, it would be no probability.
    assert found["above_25"].dropna().between(0.001, 0.999).all()
    with pytest.raises(ValueError, match="are for numbers: classes have probabilities"):
        written(classes, path, suffix=".csv", chunk_rows=9, asked=asked)
    named = DistributionColumns.asked(above={"pay": 25})
    with pytest.raises(ValueError, match="about one output"):
        written(numbers, path, suffix=".csv", chunk_rows=9, asked=named)
