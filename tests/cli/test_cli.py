"""The command line from end to end, and how it fails: one line, exit code 1, no private value."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import cloakgp
from cloakgp import Release
from cloakgp.cli import app
from cloakgp.release.io.bundle import bundle_bytes

SECRET = 123.456789


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of people, in which commands run."""
    rng = np.random.default_rng(7)
    age, weight = rng.uniform(0, 80, 60), rng.uniform(5, 60, 60)
    height = 90 + 60 * np.tanh(age / 20) + rng.normal(0, 5, 60)
    height[17] = SECRET
    people = pd.DataFrame({"age": age, "weight": weight, "height": height, "name": "x"})
    people.to_csv(tmp_path / "people.csv", index=False)
    people.to_parquet(tmp_path / "people.parquet", index=False)
    people[["weight", "age"]].head(9).to_csv(tmp_path / "new.csv", index=False)
    people[["weight", "age"]].head(9).to_parquet(tmp_path / "new.parquet", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: object) -> Result:
    """Run a command; no private value is ever shown."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert str(SECRET) not in result.output
    assert "Traceback" not in result.output
    return result


def release(table: str = "people.csv", **options: object) -> Result:
    """Run `cloakgp release` with usual options but for those given; None leaves one out."""
    settings: dict[str, object] = {
        "inputs": "age,weight",
        "output": "height",
        "bounds": (84.6, 184.6),
        "epsilon": 1,
        "delta": 0.001,
        "inducing": 5,
        "to": "heights.cloak",
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
    made = release(f"people.{suffix}", noise="gaussian")
    assert made.exit_code == 0, made.output
    assert "Wrote heights.cloak" in made.stdout
    assert "(ε, δ) = (1, 0.001)" in made.stdout
    kept = Release.load("heights.cloak")
    assert kept.input_names == ("age", "weight")
    assert kept.output_name == "height"
    assert not kept.insecure

    result = run("predict", "heights.cloak", "--at", f"new.{suffix}", "-o", f"out.{suffix}")
    assert result.exit_code == 0, result.output
    read = pd.read_csv if suffix == "csv" else pd.read_parquet
    table = read(f"out.{suffix}")
    assert list(table) == ["weight", "age", "mean", "sd", "lower", "upper"]
    mean, sd = kept.predict(read(f"new.{suffix}")[["age", "weight"]], return_std=True)
    lower, upper = (np.clip(mean + sign * 1.96 * sd, 84.6, 184.6) for sign in (-1, 1))
    oracle = {"mean": np.clip(mean, 84.6, 184.6), "sd": sd, "lower": lower, "upper": upper}
    for name, column in oracle.items():
        # Three digits of the smallest sd are written.
        np.testing.assert_allclose(table[name], column, rtol=0, atol=0.0051 * sd.min())

    shown = run("show", "heights.cloak")
    assert shown.exit_code == 0
    assert "not protected" in shown.stdout
    assert "age, weight" in shown.stdout

    drawn = run("plot", "heights.cloak", "-o", "heights.png")
    assert drawn.exit_code == 0, drawn.output
    assert (folder / "heights.png").read_bytes().startswith(b"\x89PNG")


def test_new_outputs_are_less_certain():
    release()
    run("predict", "heights.cloak", "--at", "new.csv", "-o", "curve.csv")
    run("predict", "heights.cloak", "--at", "new.csv", "-o", "output.csv", "--new-output")
    curve, output = pd.read_csv("curve.csv"), pd.read_csv("output.csv")
    learned = Release.load("heights.cloak").learned
    noise_variance = sum(one.weight * one.prior.noise_variance for one in learned)
    np.testing.assert_allclose(output["sd"], np.sqrt(curve["sd"] ** 2 + noise_variance), rtol=1e-2)


def test_options_reach_the_release():
    result = release(
        inputs="weight,age",
        queries="new.csv",
        criterion="logdet",
        lengthscale="15,20",
        signal_variance=650,
        noise_variance=45,
        mean=130,
        inducing=None,
        gap=0.01,
    )
    assert result.exit_code == 0, result.output
    kept = Release.load("heights.cloak")
    assert str(kept.prior.kernel) == "25.5**2 * RBF(length_scale=[15, 20])"
    assert (kept.prior.noise_variance, kept.prior.mean) == (45.0, 130.0)
    (one,) = kept.measurements
    assert one.strategy.certificate.criterion == "logdet"
    np.testing.assert_allclose(one.strategy.X_query, pd.read_csv("new.csv").to_numpy())


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        ({"inputs": "age"}, "25**2 + 10**2 * Linear("),
        ({"inputs": "age", "signal_variance": 100}, "10**2"),
        ({"lengthscale": "15"}, "30**2 * RBF(length_scale=15)"),
    ],
)
def test_kernels_are_filled_from_public_values(options, kernel):
    assert release(**options).exit_code == 0
    assert str(Release.load("heights.cloak").prior.kernel).startswith(kernel)


def test_bounds_may_be_negative():
    assert release(bounds=(-5, 5)).exit_code == 0
    assert Release.load("heights.cloak").measurements[0].question.limits == (-5.0, 5.0)
    assert release(bounds=(-300, -200), mean=-250, overwrite=()).exit_code == 0


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"table": "none.csv"}, "there is no file none.csv"),
        ({"table": "people.docx"}, "must end in"),
        ({"inputs": "age,size"}, "no column size; its columns are: age, weight, height, name"),
        ({"inputs": "age,"}, "no list of names"),
        ({"inputs": "height"}, "as input and as output"),
        ({"output": "name"}, "'name' has cells that are not numbers"),
        ({"bounds": (5, -5)}, "lower bound must be below"),
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"epsilon": -1}, "epsilon must be positive"),
        ({"delta": 1}, "delta must be at least 0 and below 1"),
        ({"bounds": None}, "either --bounds LO HI.*or --classes"),
        ({"classes": "no,yes"}, "either --bounds LO HI.*or --classes"),
        ({"class_rates": "0.5,0.5"}, "--class-rates goes with --classes"),
        ({"link": "probit"}, "--link goes with --classes"),
        ({"steps": 2}, "--steps goes with --classes"),
        ({"gap": 0}, "--gap must be positive"),
        ({"criterion": "best"}, "must be one of bayes, trace, logdet"),
        ({"learn": "all"}, "must be one of map, average, none"),
        ({"inducing": 0}, "at least 1"),
        ({"inducing": "many"}, "--inducing must be a whole number or auto"),
        ({"lengthscale": "long"}, "--lengthscale takes positive numbers"),
        ({"lengthscale": "-1"}, "--lengthscale takes positive numbers"),
        ({"lengthscale": "1,2,3"}, "has 3 numbers and --inputs 2 parts"),
        ({"signal_variance": 0}, "--signal-variance must be positive"),
        ({"signal_variance": 1e-300}, "--signal-variance = 1e-300 is a curve that varies by less"),
        ({"signal_variance": 1e150}, "is a variance beyond 1e\\+140"),
        ({"noise_variance": -1}, "noise_variance must be at least 0"),
        ({"noise_variance": 1e12}, "nothing was asked, and nothing spent"),
        ({"queries": "none.csv"}, "there is no file none.csv"),
        ({"to": "none/heights.cloak"}, "no folder none: create it first"),
        ({"to": "new.csv"}, "new.csv exists"),
        ({"to": "people.csv"}, "people.csv is read here"),
        ({"to": "people.csv", "overwrite": ()}, "people.csv is read here"),
        ({"mean": 1e308}, "lies so far beyond the bounds"),
    ],
    ids=str,
)
def test_bad_options_fail_with_advice(folder, options, advice):
    before = sorted(path.name for path in folder.iterdir())
    fails(release(**options), advice)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    "content",
    [
        f"age,weight,height\n1,2,{SECRET}cm\n",
        f"age,weight,height\n1,2,\n3,4,{SECRET}\n",
        "age,weight,height\n" + f"1,2,{SECRET}\n" * 20 + f"x,4,{SECRET}\n",
        f"age,weight,height\n1,2,3\n1,2,3,{SECRET}\n",
        f"1,2,{SECRET}\n",
        f'age,weight,height\n1,2,"{SECRET}',
        f"age,weight,height\n1,2,{SECRET}\n3",
        "age,weight,height\n",
        "",
    ],
)
def test_bad_tables_never_show_a_private_value(folder, content):
    (folder / "people.csv").write_text(content)
    fails(release(), r"column|cannot be read|no rows|is empty|same in every row")


def test_a_table_may_have_inputs_that_never_vary():
    people = pd.read_csv("people.csv").assign(weight=3.0)
    people.to_csv("people.csv", index=False)
    assert release(signal_variance=100).exit_code == 0
    assert release(overwrite=()).exit_code == 0


def test_everything_may_be_asked_at_once():
    assert release(stages="one", inducing=None).exit_code == 0
    assert len(Release.load("heights.cloak").measurements) == 1
    assert release(overwrite=(), stages="auto", inducing=None).exit_code == 0
    assert len(Release.load("heights.cloak").measurements) > 1
    fails(release(stages="two"), "--stages must be")


def test_nothing_is_asked_if_the_result_could_not_be_written(folder, monkeypatch):
    (folder / "heights.cloak").write_text("precious")

    def measured(*_: object, **__: object) -> None:
        raise AssertionError("asked the private outputs in vain")

    monkeypatch.setattr("cloakgp.fitting.held.ask", measured)
    fails(release(), "heights.cloak exists.*--overwrite")
    assert (folder / "heights.cloak").read_text() == "precious"


def test_files_are_replaced_if_allowed():
    assert release().exit_code == 0
    assert release(overwrite=()).exit_code == 0
    words = ("predict", "heights.cloak", "--at", "new.csv", "-o", "out.csv")
    assert run(*words).exit_code == 0
    fails(run(*words), "out.csv exists.*--overwrite")
    assert run(*words, "--overwrite").exit_code == 0
    picture = ("plot", "heights.cloak", "-o", "out.png")
    assert run(*picture).exit_code == 0
    fails(run(*picture), "out.png exists.*--overwrite")
    assert run(*picture, "--overwrite").exit_code == 0


def test_doubtful_budgets_are_warned_about():
    result = release(delta=0.05, epsilon=20, bounds=(84.6123, 184.6), mean=200)
    assert result.exit_code == 0
    for warning in ("one in 60 rows", "hardly anyone", "look computed from the data", "mean 200"):
        assert warning in result.stderr
        # Once, and before anything is asked.
        assert result.stderr.count(warning) == 1
    assert "Warning" not in release(overwrite=()).stderr


def test_predictions_do_not_overwrite_inputs_of_the_same_name():
    people = pd.read_csv("people.csv").rename(columns={"age": "mean"})
    people.to_csv("people.csv", index=False)
    assert release(inputs="mean").exit_code == 0
    assert run("predict", "heights.cloak", "--at", "people.csv", "-o", "out.csv").exit_code == 0
    columns = ["mean", "weight", "name", "predicted_mean"]
    assert list(pd.read_csv("out.csv"))[:4] == columns


def test_bad_predictions_fail_with_advice(folder):
    release()
    (folder / "part.csv").write_text("age\n3\n")
    (folder / "cut.cloak").write_bytes((folder / "heights.cloak").read_bytes()[:500])
    predict = ("--at", "new.csv", "-o", "out.csv")
    fails(run("predict", "heights.cloak", "--at", "part.csv", "-o", "out.csv"), "no column weight")
    fails(run("predict", "none.cloak", *predict), "no file none.cloak")
    fails(run("predict", "cut.cloak", *predict), "was cut off")
    fails(run("predict", "people.csv", *predict), "not a release file")
    fails(run("predict", "heights.cloak", "--at", "new.csv", "-o", "out.txt"), "must end in")
    fails(run("show", "cut.cloak"), "was cut off")
    fails(run("show", "."), "no ordinary file")


def test_bad_pictures_fail_with_advice():
    people = pd.read_csv("people.csv")
    people.assign(shoe=people["age"] % 7).to_csv("people.csv", index=False)
    release(inputs="age,weight,shoe")
    assert run("plot", "heights.cloak", "-o", "each.png").exit_code == 0
    fails(run("plot", "heights.cloak", "-o", "out.png", "--vary", "age,age"), "twice")
    fails(run("plot", "heights.cloak", "-o", "out.bmp"), "must end in")
    fails(run("plot", "heights.cloak", "-o", "out.png", "--vary", "sex"), "no input sex")
    fails(run("plot", "heights.cloak", "-o", "out.png", "--vary", "age", "--class", "a"), "--class")
    picture = ("plot", "heights.cloak", "-o", "out.png", "--kind")
    fails(run(*picture, "pie"), "--kind must be one of prediction, fan, calibration")
    fails(run(*picture, "fan", "--class", "a"), "--class")
    fails(run(*picture, "calibration", "--vary", "age"), "leave --vary out")
    fails(run(*picture, "calibration"), "not calibrated")
    assert run(*picture, "fan", "--vary", "age").exit_code == 0
    assert run("plot", "heights.cloak", "-o", "one.svg", "--vary", "age").exit_code == 0
    assert run("plot", "heights.cloak", "-o", "two.pdf", "--vary", "age, shoe").exit_code == 0


def test_releases_of_other_kinds_are_shown_and_named_where_they_do_not_serve(folder):
    (folder / "odd.cloak").write_bytes(bundle_bytes(kind="counts", tree=lambda _: {}))
    X, y = np.linspace(0, 1, 20)[:, None], np.linspace(0, 1, 20)
    spending = {"bounds": (0, 1), "epsilon": 1.0, "delta": 1e-3}
    kept = cloakgp.DPGPRegressorPrivateInputs(input_bounds=(0, 1), n_features=3, **spending)
    kept.fit(X, y).release_.save("sums.cloak")
    assert "whole rows" in run("show", "sums.cloak").stdout
    for words in (
        ("show",),
        ("plot", "-o", "out.png"),
        ("predict", "--at", "new.csv", "-o", "o.csv"),
    ):
        fails(run(words[0], "odd.cloak", *words[1:]), "a release of counts")
    assert run("plot", "sums.cloak", "-o", "out.png").exit_code == 0
    assert "256 places" in " ".join(run("compare", "sums.cloak", "sums.cloak").stdout.split())
    Path("new.csv").write_text("x1\n0.5\n", encoding="utf-8")
    assert run("predict", "sums.cloak", "--at", "new.csv", "-o", "o.csv").exit_code == 0


def test_questions_that_were_given_are_shown_as_such():
    """They were said to be chosen for the least noise, and certified."""
    X, y = np.linspace(0, 1, 20)[:, None], np.linspace(0, 1, 20)
    model = cloakgp.baselines.DPMeanRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3)
    model.fit(X, y).release_.save("mean.cloak")
    said = " ".join(run("show", "mean.cloak", "--all").stdout.split())
    assert "given and not designed" in said
    assert "certified" not in said
    assert "chosen for" not in said


def test_seeded_releases_are_shown_as_such():
    release()
    kept = cloakgp.DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3, insecure_seed=3)
    kept.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_.save("seeded.cloak")
    assert "NOT PRIVATE" in run("show", "seeded.cloak").stdout
    assert "NOT PRIVATE" not in run("show", "heights.cloak").stdout


@pytest.mark.parametrize("kind", [RuntimeError, TypeError, AssertionError])
def test_unforeseen_errors_show_neither_message_nor_variables(monkeypatch, kind):
    def broken(_: object, y: np.ndarray, *__: object) -> None:
        raise kind(f"cannot digest {y.tolist()}")

    monkeypatch.setattr("cloakgp.estimators.base.fit", broken)
    fails(release(), rf"unforeseen happened \({kind.__name__} at test_cli.py, line \d+\)")


def test_too_little_memory_is_explained(monkeypatch):
    def greedy(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("cloakgp.estimators.regression.choose_prior", greedy)
    fails(release(), "--inducing 200")


def test_system_errors_lose_their_numbers(monkeypatch):
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "heights.cloak")

    monkeypatch.setattr("cloakgp.release.Release.to_bytes", refused)
    fails(release(), r"^Error: heights.cloak: Permission denied$")


def test_models_that_do_not_fit_into_memory_are_sparse_and_it_is_said_once():
    people = pd.read_csv("people.csv")
    pd.concat([people] * 4).to_csv("people.csv", index=False)
    made = release(inducing=None, memory=3.5e-3)
    assert made.exit_code == 0, made.output
    said = " ".join(made.stderr.split())
    assert said.count("exact Gaussian process of 240 rows would take some") == 1
    assert "sparse one with 24 inducing inputs" in said
    assert len(Release.load("heights.cloak").prior.inducing) == 24
    assert "Warning" not in release(inducing=None, overwrite=()).stderr


def test_what_does_not_fit_at_all_is_refused_before_anything_is_asked(folder, monkeypatch):
    def measured(*_: object, **__: object) -> None:
        raise AssertionError("asked the private outputs in vain")

    monkeypatch.setattr("cloakgp.fitting.held.ask", measured)
    fails(release(inducing=None, memory=1e-6), "GB may be used")
    fails(release(memory=-1), "--memory must be positive")
    assert not (folder / "heights.cloak").exists()


def test_the_command_line_does_what_the_estimator_does():
    """What is asked, of whom and under which prior: to the last bit, but for the noise."""
    # As text first: old versions of pandas read the last digits wrong.
    columns = ["age", "weight", "height"]
    people = pd.read_csv("people.csv", usecols=columns, dtype=str).astype(np.float64)
    for options, settings in (
        ({"inducing": None}, {}),
        ({"criterion": "trace", "learn": "none"}, {"criterion": "trace", "learn": None}),
        ({"noise_variance": 40, "mean": 120}, {"noise_variance": 40.0, "mean": 120.0}),
    ):
        assert release(overwrite=(), **options).exit_code == 0
        kept = Release.load("heights.cloak")
        settings = {"inducing": 5 if "inducing" not in options else None, **settings}
        model = cloakgp.DPGPRegressor(bounds=(84.6, 184.6), epsilon=1.0, delta=1e-3, **settings)
        made = model.fit(people[["age", "weight"]], people["height"]).release_
        one, other = kept.measurements[0], made.measurements[0]
        assert len(kept.measurements) == len(made.measurements)
        np.testing.assert_array_equal(one.strategy.matrix, other.strategy.matrix)
        np.testing.assert_array_equal(one.strategy.X_query, other.strategy.X_query)
        assert one.answers.noise_sd == other.answers.noise_sd
        assert str(kept.prior.kernel) == str(made.prior.kernel)
        assert kept.prior.noise_variance == made.prior.noise_variance
        assert kept.prior.mean == made.prior.mean
        assert kept.hyperprior == made.hyperprior
        names = ("input_names", "output_name")
        assert [getattr(kept, name) for name in names] == [getattr(made, name) for name in names]


def test_the_version_and_help_are_told():
    assert run("--version").stdout == f"cloakgp {cloakgp.__version__}\n"
    for command in ("plan", "release", "predict", "show", "plot", "page", "demo"):
        assert command in run("--help").stdout
        assert run(command, "--help").exit_code == 0


def test_terminals_without_greek_letters_show_something_else():
    """They got half of what was to be shown, and an error."""
    release(noise="gaussian")
    program = """
        import sys
        from cloakgp.__main__ import main
        for words in (["show", "heights.cloak"], ["predict", "--help"], ["release", "--help"]):
            sys.argv = ["cloakgp", *words]
            try:
                main()
            except SystemExit as ended:
                assert not ended.code, ended.code
    """
    shown = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        encoding="ascii",
        check=False,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "(?, ?) = (1, 0.001)" in shown.stdout
    assert "declared to lie in 84.6 to 184.6" in shown.stdout
    assert "--new-output" in shown.stdout
    assert "--epsilon" in shown.stdout


def test_the_installed_command():
    script = Path(sys.executable).with_name("cloakgp")
    options = "--output height --bounds 84.6 184.6 --epsilon 1 --delta 0.001 --inducing 5"
    words = ["release", "people.csv", "--inputs", "age,weight", "-o", "heights.cloak"]
    words += options.split(" ")
    made = subprocess.run([script, *words], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "Wrote heights.cloak" in made.stdout
    wrong = [script, *words, "--learn", "all"]
    again = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert again.stderr.strip().startswith("Error: --learn must be")
    assert str(SECRET) not in made.stdout + made.stderr + again.stdout + again.stderr
