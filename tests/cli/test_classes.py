"""Private classes from the command line, end to end, and how it fails."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import cloakgp
from cloakgp import Release
from cloakgp.cli import app
from cloakgp.data import FileRows
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release import DenseStrategy, StreamedStrategy

# A class that nobody declares.
SECRET = "hushhush"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with tables of people, in which commands run."""
    rng = np.random.default_rng(7)
    age, weight = rng.uniform(0, 80, 60), rng.uniform(5, 60, 60)
    ill = rng.uniform(size=60) < 1 / (1 + np.exp((40 - age) / 5))
    people = pd.DataFrame({"age": age, "weight": weight})
    people["ill"] = np.where(ill, "yes", "no")
    people["bit"] = ill.astype(int)
    people["stage"] = np.where(ill, "late", np.where(age < 20, "none", "early"))
    people["odd"] = people["ill"].where(people.index != 17, SECRET)
    people["height"] = 100 + age
    people["household"] = np.arange(60) // 2
    people.to_csv(tmp_path / "people.csv", index=False)
    people.to_parquet(tmp_path / "people.parquet", index=False)
    people[["weight", "age"]].head(9).to_csv(tmp_path / "new.csv", index=False)
    people[["weight", "age"]].head(9).to_parquet(tmp_path / "new.parquet", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: object) -> Result:
    """Run a command; an undeclared label is never shown."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert SECRET not in result.output
    assert "Traceback" not in result.output
    return result


def release(table: str = "people.csv", **options: object) -> Result:
    """Run `cloakgp release` with usual options but for those given; None leaves one out."""
    settings: dict[str, object] = {
        "inputs": "age,weight",
        "output": "ill",
        "classes": "no,yes",
        "epsilon": 1,
        "delta": 0.001,
        "noise": "gaussian",
        "inducing": 5,
        "to": "ill.cloak",
        **options,
    }
    words: list[object] = ["release", table]
    for name, value in settings.items():
        if value is not None:
            flag = f"--{name.replace('_', '-')}"
            words += [flag, *(value if isinstance(value, tuple) else (value,))]
    return run(*words)


def fails(result: Result, advice: str) -> None:
    """Expect one red line with advice on standard error, and exit code 1."""
    assert result.exit_code == 1, result.output
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert re.search(advice, errors[0]), errors[0]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_from_table_to_picture(folder, suffix):
    made = release(f"people.{suffix}")
    assert made.exit_code == 0, made.output
    assert "Wrote ill.cloak: probabilities of ill, from 60 rows" in made.stdout
    assert "(ε, δ) = (1, 0.001)" in made.stdout
    kept = Release.load("ill.cloak")
    assert kept.classes == ("no", "yes")
    assert (kept.input_names, kept.output_name) == (("age", "weight"), "ill")
    assert not kept.insecure

    result = run("predict", "ill.cloak", "--at", f"new.{suffix}", "-o", f"out.{suffix}")
    assert result.exit_code == 0, result.output
    read = pd.read_csv if suffix == "csv" else pd.read_parquet
    table = read(f"out.{suffix}")
    assert list(table) == ["weight", "age", "predicted", "p_no", "p_yes"]
    X = read(f"new.{suffix}")[["age", "weight"]]
    np.testing.assert_allclose(table[["p_no", "p_yes"]], kept.predict_proba(X), atol=5.1e-5)
    assert table["predicted"].tolist() == kept.predict(X)

    shown = run("show", "ill.cloak")
    assert shown.exit_code == 0
    for said in ("not protected", "age, weight", "no, yes", "Predictions"):
        assert said in shown.stdout

    drawn = run("plot", "ill.cloak", "-o", "ill.png")
    assert drawn.exit_code == 0, drawn.output
    assert (folder / "ill.png").read_bytes().startswith(b"\x89PNG")
    assert run("plot", "ill.cloak", "-o", "no.png", "--vary", "age", "--class", "no").exit_code == 0
    fails(run("plot", "ill.cloak", "-o", "x.png", "--class", "perhaps"), "its classes are: no, yes")


@pytest.mark.usefixtures("noise_that_repeats")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("classes", ["0,1", "1,0"])
def test_numbers_are_classes_as_they_are_written(suffix, classes):
    made = release(f"people.{suffix}", output="bit", classes=classes, epsilon=200, learn="none")
    assert made.exit_code == 0, made.output
    kept = Release.load("ill.cloak")
    assert kept.classes == tuple(classes.split(","))
    assert run("predict", "ill.cloak", "--at", "people.csv", "-o", "out.csv").exit_code == 0
    table = pd.read_csv("out.csv")
    # With so large a budget, 1 means 1 whatever the order of the declaration.
    assert (table["predicted"] == pd.read_csv("people.csv")["bit"]).mean() > 0.8
    assert (table["predicted"] == (table["p_1"] > 0.5)).all()


@pytest.mark.parametrize("classes", ["no,yes", "none,early,late"])
def test_all_rows_of_a_household_are_protected_together(classes):
    output = "ill" if classes == "no,yes" else "stage"
    alone = release(output=output, classes=classes, learn="none")
    assert alone.exit_code == 0, alone.output
    single = Release.load("ill.cloak")
    together = release(
        output=output,
        classes=classes,
        learn="none",
        person="household",
        to="households.cloak",
    )
    assert together.exit_code == 0, together.output
    kept = Release.load("households.cloak")
    assert kept.measurements[0].strategy.grouped
    assert kept.guarantee.epsilon == single.guarantee.epsilon
    shown = run("show", "households.cloak", "--all").output
    assert "30 people" in " ".join(shown.split())


def test_several_classes():
    made = release(output="stage", classes="none,early,late", learn="none")
    assert made.exit_code == 0, made.output
    assert run("predict", "ill.cloak", "--at", "new.csv", "-o", "out.csv").exit_code == 0
    table = pd.read_csv("out.csv", keep_default_na=False)
    assert list(table)[3:] == ["p_none", "p_early", "p_late"]
    np.testing.assert_allclose(table[["p_none", "p_early", "p_late"]].sum(axis=1), 1, atol=2e-4)
    assert "one class against the others" in " ".join(
        run("show", "ill.cloak", "--all").stdout.split()
    )
    assert run("plot", "ill.cloak", "-o", "out.png", "--vary", "age").exit_code == 0


def test_options_reach_the_release():
    result = release(
        inputs="weight,age",
        queries="new.csv",
        criterion="trace",
        lengthscale="15,20",
        signal_variance=9,
        link="logit",
        class_rates="0.7,0.3",
        learn="none",
        inducing=None,
        gap=0.01,
    )
    assert result.exit_code == 0, result.output
    kept = Release.load("ill.cloak")
    assert str(kept.prior.kernel) == "3**2 * RBF(length_scale=[15, 20])"
    assert kept.likelihood.link_name == "logit"
    assert kept.learned == ()
    (mean,) = kept.likelihood.latent_means
    assert mean < 0
    (one,) = kept.measurements
    assert one.strategy.certificate.criterion == "trace"
    np.testing.assert_allclose(one.strategy.X_query, pd.read_csv("new.csv").to_numpy())


def test_rates_follow_the_declared_order():
    release(class_rates="0.9,0.1", learn="none")
    release(classes="yes,no", class_rates="0.1,0.9", learn="none", to="other.cloak")
    one, other = (
        Release.load(name).likelihood.latent_means[0] for name in ("ill.cloak", "other.cloak")
    )
    assert one == pytest.approx(-other)
    assert one < 0


def test_the_papers_iteration():
    made = release(criterion="newton", steps=2, step_criterion="trace")
    assert made.exit_code == 0, made.output
    kept = Release.load("ill.cloak")
    assert (kept.inference, len(kept.measurements)) == ("newton", 2)
    assert kept.likelihood.link_name == "logit"
    assert {one.strategy.certificate.criterion for one in kept.measurements} == {"trace"}
    assert kept.guarantee.epsilon <= 1.0


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"classes": None}, "either --bounds LO HI.*or --classes"),
        ({"bounds": (0, 1)}, "either --bounds LO HI.*or --classes"),
        ({"classes": "no"}, "one class, no: .* at least two"),
        ({"classes": "no,"}, "no list of names: write them with commas, as yes,no"),
        ({"classes": "no,no"}, "declared twice"),
        ({"classes": "no,maybe"}, "not among the declared classes no, maybe"),
        ({"classes": "No,Yes"}, "letter by letter"),
        ({"output": "odd"}, "'odd' has labels that are not among the declared classes no, yes"),
        ({"output": "bit", "classes": "0.0,1.0"}, "1 is not 1.0"),
        ({"output": "age", "inputs": "age"}, "as input and as output"),
        ({"output": "size"}, "no column size"),
        ({"noise_variance": 1}, "--noise-variance goes with --bounds"),
        ({"mean": 1}, "--mean goes with --bounds"),
        ({"class_rates": "0.5"}, "one per class"),
        ({"class_rates": "0.5,0.6"}, "add up to 1"),
        ({"class_rates": "0.5,x"}, "--class-rates takes positive numbers"),
        ({"link": "cloglog"}, "--link must be one of probit, logit"),
        ({"criterion": "best"}, "must be one of bayes, trace, logdet, newton for classes"),
        ({"learn": "all"}, "must be one of map, average, none"),
        ({"steps": 2}, "--steps and --step-criterion go with --criterion newton"),
        ({"step_criterion": "trace"}, "--steps and --step-criterion go with --criterion newton"),
        ({"criterion": "newton", "step_criterion": "best"}, "--step-criterion must be one of"),
        ({"criterion": "newton", "steps": 0}, "--steps must be at least 1"),
        ({"criterion": "newton", "link": "probit"}, "knows the logit link alone"),
        ({"criterion": "newton", "queries": "new.csv"}, "asks at the rows"),
        (
            {"criterion": "newton", "output": "stage", "classes": "none,early,late"},
            "is for two classes",
        ),
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"to": "people.csv"}, "people.csv"),
    ],
    ids=str,
)
def test_bad_options_fail_with_advice(folder, monkeypatch, options, advice):
    def measured(*_: object, **__: object) -> None:
        raise AssertionError("asked the labels all the same")

    monkeypatch.setattr("cloakgp.fitting.held.ask", measured)
    before = sorted(path.name for path in folder.iterdir())
    fails(release(**options), advice)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_doubtful_rates_are_warned_about():
    result = release(class_rates="0.71234,0.28766", delta=0.05)
    assert result.exit_code == 0
    assert result.stderr.count("look counted in the data") == 1
    assert result.stderr.count("one in 60 rows") == 1
    assert "Warning" not in release(class_rates="0.7,0.3", overwrite=()).stderr


def test_the_command_line_does_what_the_estimator_does():
    """What is asked, of whom and under which prior: but for the noise, and a file's last digits."""
    people = pd.read_csv("people.csv")
    for options, settings in (
        ({}, {}),
        ({"class_rates": "0.7,0.3", "learn": "none"}, {"class_rates": [0.7, 0.3], "learn": None}),
        ({"criterion": "newton", "steps": 2}, {"criterion": "newton", "steps": 2}),
    ):
        assert release(overwrite=(), **options).exit_code == 0
        kept = Release.load("ill.cloak")
        model = cloakgp.DPGPClassifier(
            classes=["no", "yes"],
            epsilon=1.0,
            delta=1e-3,
            noise="gaussian",
            inducing=5,
            **settings,
        )
        made = model.fit(people[["age", "weight"]], people["ill"]).release_
        # Later steps ask what the noise on earlier ones leaves open.
        one, other = kept.measurements[0], made.measurements[0]
        # A question and its opposite are one: which is asked depends on the last bits.
        asked, again = (each.strategy.matrix for each in (one, other))
        np.testing.assert_allclose(asked.T @ asked, again.T @ again, atol=1e-7)
        np.testing.assert_allclose(one.strategy.X_query, other.strategy.X_query, rtol=1e-12)
        assert one.answers.noise_sd == other.answers.noise_sd
        assert str(kept.prior.kernel) == str(made.prior.kernel)
        assert kept.likelihood == made.likelihood
        assert (kept.classes, kept.inference, kept.hyperprior) == (
            made.classes,
            made.inference,
            made.hyperprior,
        )
        assert kept.average == made.average
        assert (kept.input_names, kept.output_name) == (made.input_names, made.output_name)


def test_classes_that_do_not_fit_into_memory_are_sparse_and_it_is_said_once():
    people = pd.read_csv("people.csv")
    pd.concat([people] * 4).to_csv("people.csv", index=False)
    made = release(inducing=None, memory=3.5e-3)
    assert made.exit_code == 0, made.output
    said = " ".join(made.stderr.split())
    assert said.count("sparse one with 24 inducing inputs") == 1
    assert len(Release.load("ill.cloak").prior.inducing) == 24


def test_new_outputs_are_for_numbers():
    release()
    words = ("predict", "ill.cloak", "--at", "new.csv", "-o", "out.csv")
    fails(run(*words, "--new-output"), "--new-output goes with releases of numbers")


def test_predictions_do_not_overwrite_inputs_of_the_same_name():
    people = pd.read_csv("people.csv").rename(columns={"age": "p_yes"})
    people.to_csv("people.csv", index=False)
    assert release(inputs="p_yes").exit_code == 0
    assert run("predict", "ill.cloak", "--at", "people.csv", "-o", "out.csv").exit_code == 0
    expected = ["p_yes", "predicted_predicted", "predicted_p_no", "predicted_p_yes"]
    assert list(pd.read_csv("out.csv"))[:1] == expected[:1]
    assert list(pd.read_csv("out.csv"))[-3:] == expected[1:]


def test_releases_from_python_are_opened_by_kind():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [True, False, True, True]
    made = cloakgp.DPGPClassifier(classes=[False, True], epsilon=1.0, delta=1e-3, insecure_seed=3)
    replace(made.fit(X, y).release_, input_names=("age",)).save("seeded.cloak")
    assert "NOT PRIVATE" in run("show", "seeded.cloak").stdout
    assert run("predict", "seeded.cloak", "--at", "new.csv", "-o", "out.csv").exit_code == 0
    assert list(pd.read_csv("out.csv"))[-3:] == ["predicted", "p_False", "p_True"]
    assert run("plot", "seeded.cloak", "-o", "out.svg").exit_code == 0
    release(output="height", classes=None, bounds=(50, 200), to="height.cloak")
    assert isinstance(Release.load("height.cloak"), Release)
    assert "NOT PRIVATE" not in run("show", "height.cloak").stdout


@pytest.mark.parametrize("kind", [RuntimeError, TypeError])
def test_unforeseen_errors_show_neither_message_nor_variables(monkeypatch, kind):
    def broken(_: object, y: np.ndarray, *__: object) -> None:
        raise kind(f"cannot digest {SECRET} {y.tolist()}")

    monkeypatch.setattr("cloakgp.estimators.base.fit", broken)
    fails(release(), rf"unforeseen happened \({kind.__name__} at test_classes.py, line \d+\)")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_classes_of_many_rows_go_by_passes_over_the_file(suffix, folder, monkeypatch):
    """As `DPGPClassifier.fit_rows` asks them, but for the noise."""
    monkeypatch.setattr("cloakgp.fitting.planning.MANY_ROWS", 50)
    monkeypatch.setattr("cloakgp.orders.estimators.read_people", None)
    made = release(f"people.{suffix}", output="stage", classes="none,late,early", queries="new.csv")
    assert made.exit_code == 0, made.output
    assert "probabilities of stage, from 60 rows" in made.stdout
    kept = Release.load("ill.cloak")
    [measurement] = kept.measurements
    assert isinstance(measurement.strategy, StreamedStrategy)
    assert kept.classes == ("none", "late", "early")
    assert (kept.input_names, kept.output_name) == (("age", "weight"), "stage")
    rows = FileRows(folder / f"people.{suffix}", inputs=["age", "weight"], output="stage")
    model = cloakgp.DPGPClassifier(
        classes=Classes(kept.classes), epsilon=1.0, delta=1e-3, inducing=5, noise="gaussian"
    )
    asked = model.fit_rows(rows, pd.read_csv("new.csv")).release_.measurements[0]
    # A question and its opposite are one: which is asked depends on the last bits.
    grams = [each.strategy.rule.matrix for each in (measurement, asked)]
    grams = [matrix.T @ matrix for matrix in grams]
    np.testing.assert_allclose(*grams, atol=1e-9 * np.abs(grams[1]).max())
    np.testing.assert_allclose(measurement.strategy.X_query, asked.strategy.X_query, rtol=1e-12)
    assert measurement.answers.noise_sd == asked.answers.noise_sd


@pytest.mark.parametrize("output", ["ill", "stage"])
def test_classes_of_many_rows_of_persons_go_by_passes(output, monkeypatch):
    """They were refused: leave groups out."""
    monkeypatch.setattr("cloakgp.fitting.planning.MANY_ROWS", 50)
    classes = {"ill": "no,yes", "stage": "none,late,early"}[output]
    made = release(output=output, classes=classes, person="household", inducing=5)
    assert made.exit_code == 0, made.output
    kept = Release.load("ill.cloak")
    [measurement] = kept.measurements
    assert isinstance(measurement.strategy, StreamedStrategy)
    assert measurement.strategy.grouped
    shown = " ".join(run("show", "ill.cloak").stdout.split())
    assert "of one person, over all rows" in shown
    assert run("predict", "ill.cloak", "--at", "new.csv", "-o", "out.csv").exit_code == 0


def test_what_cannot_be_asked_in_passes_is_held_in_memory(monkeypatch):
    monkeypatch.setattr("cloakgp.fitting.planning.MANY_ROWS", 50)
    assert release(criterion="newton").exit_code == 0
    assert isinstance(Release.load("ill.cloak").measurements[0].strategy, DenseStrategy)


def test_undeclared_classes_of_many_rows_are_not_shown(monkeypatch):
    monkeypatch.setattr("cloakgp.fitting.planning.MANY_ROWS", 50)
    fails(release(output="odd"), "not among the declared classes")
    fails(release(output="height", classes="100,101"), "not among the declared classes")


def test_there_is_no_fan_of_classes_and_that_is_said():
    assert release().exit_code == 0
    fails(
        run("plot", "ill.cloak", "--kind", "fan", "-o", "fan.png"),
        "quantiles are of numbers: classes have probabilities",
    )
    assert not Path("fan.png").exists()
