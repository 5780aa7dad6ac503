"""`cloakgp predict`: intervals, quantiles and probabilities of new outputs, in columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cloakgp import DPGPClassifier, DPGPMultiOutputRegressor, DPGPRegressor
from cloakgp.cli import app
from cloakgp.estimators.baselines import DPHistogramRegressor

GAUSSIAN = {"epsilon": 1.0, "delta": 1e-3, "noise": "gaussian", "insecure_seed": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("releases")
    age = pd.DataFrame({"age": np.linspace(20, 60, 50)})
    height = 150 + age["age"].rename("height") / 4
    outputs = pd.DataFrame({"height": height, "weight": height - 100})
    whole = {"stages": None, "learn": None, "interval": False}
    for name, model, given in [
        ("numbers", DPGPRegressor(bounds=(100, 220), **whole, **GAUSSIAN), height),
        ("classes", DPGPClassifier(classes=[False, True], **GAUSSIAN), height > 160),
        (
            "several",
            DPGPMultiOutputRegressor(bounds=[(100, 220), (0, 150)], interval=False, **GAUSSIAN),
            outputs,
        ),
        ("histogram", DPHistogramRegressor(bounds=(100, 220), **GAUSSIAN), height),
    ]:
        model.fit(age, given).release_.save(made / f"{name}.cloak")
    age.iloc[::10].to_csv(made / "new.csv", index=False)
    return made


@pytest.fixture(autouse=True)
def in_folder(folder, tmp_path, monkeypatch):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)


def predict(kind, *words):
    line = ["predict", f"{kind}.cloak", "--at", "new.csv", "-o", "out.csv", *words]
    return CliRunner().invoke(app, line)


@pytest.mark.parametrize(
    ("kind", "outputs"), [("numbers", [""]), ("several", ["height_", "weight_"])]
)
def test_limits_of_a_new_output_are_its_interval(kind, outputs):
    assert predict(kind, "--new-output", "--interval", "0.95").exit_code == 0
    found = pd.read_csv("out.csv")
    for output in outputs:
        limits, interval = (
            found[[output + end for end in ends]]
            for ends in (["lower", "upper"], ["lo_95", "hi_95"])
        )
        np.testing.assert_array_equal(limits, interval)


def test_numbers_outside_what_was_asked_are_told():
    pd.DataFrame({"age": [300.0, 30.0, 7.0]}).to_csv("far.csv", index=False)
    told = CliRunner().invoke(
        app, ["predict", "numbers.cloak", "--at", "far.csv", "-o", "far.out.csv"]
    )
    assert told.exit_code == 0, told.output
    assert "age is outside 20 to 60 in 2 rows" in " ".join(told.output.split())
    assert "is outside" not in predict("numbers").output


def test_columns_say_what_they_are():
    from cloakgp import load

    words = ["--interval", "0.9", "--quantiles", "0.1,0.5,0.9", "--above", "160"]
    told = predict("numbers", *words)
    assert told.exit_code == 0, told.output
    found = pd.read_csv("out.csv")
    names = ["lo_90", "hi_90", "q_10", "q_50", "q_90", "above_160"]
    assert list(found) == ["age", "mean", "sd", "lower", "upper", *names]
    expected = load("numbers.cloak").predict_frame(
        pd.read_csv("new.csv"), interval=0.9, quantiles=[0.1, 0.5, 0.9], above=160
    )
    np.testing.assert_allclose(found[names[:5]], expected[names[:5]], atol=0.051)
    np.testing.assert_allclose(found["above_160"], expected["above_160"], atol=5.1e-5)


def test_of_several_outputs_thresholds_have_names():
    told = predict("several", "--above", "height=160,weight=60", "--interval", "0.5")
    assert told.exit_code == 0, told.output
    assert list(pd.read_csv("out.csv"))[9:] == [
        "height_lo_50",
        "height_hi_50",
        "height_above_160",
        "weight_lo_50",
        "weight_hi_50",
        "weight_above_60",
    ]


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        ("numbers", ["--interval", "90"], "--interval takes numbers between 0 and 1"),
        ("numbers", ["--quantiles", "0.1;0.9"], "such as 0.9 for 90 %, got '0.1;0.9'"),
        ("numbers", ["--quantiles", "0.1,nan"], "--quantiles takes numbers between 0 and 1"),
        ("numbers", ["--above", "tall"], "--above takes numbers with commas, such as 180"),
        ("numbers", ["--above", "inf"], "--above takes numbers with commas, such as 180"),
        ("numbers", ["--above", "height=160"], "about one output: give thresholds without a name"),
        ("several", ["--above", "height=160,weight"], "such as height=180,weight=80, got"),
        ("several", ["--above", "pay=160"], "above names pay, but the outputs are height, weight"),
        ("classes", ["--interval", "0.9"], "are for numbers: classes have probabilities"),
        ("classes", ["--above", "1"], "are for numbers: classes have probabilities"),
        ("numbers", ["--exposure", "age", "--above", "1"], "--exposure goes with releases of"),
        ("several", ["--exposure", "age", "--above", "1"], "--exposure goes with releases of"),
        ("histogram", ["--interval", "0.9"], "holds a NoisyHistogram: it predicts no table"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, kind, words, said):
    told = predict(kind, *words)
    assert told.exit_code == 1
    assert said in " ".join(told.output.split())
    assert not (tmp_path / "out.csv").exists()
