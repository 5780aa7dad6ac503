"""What is imported when: little at start, and what an extra installs only where it is used."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import cloakgp
from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.utils.extras import MODULES, TASKS, MissingExtraError, extra

ROOT = Path(cloakgp.__file__).parent
PROJECT = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["project"]

# What takes long to import, whoever imports it.
HEAVY = {"numpy", "scipy", "sklearn", "pandas", "pyarrow", "matplotlib", "opendp", "dp_accounting"}
OPTIONAL = {name for names in MODULES.values() for name in names} | {"pooch"}
# What only noise and its calibration need.
NOISE = {"opendp", "dp_accounting"}

BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def python(code: str, *, without: set[str] = frozenset()) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, in which some packages are not installed."""
    blocker = BLOCKER.format(blocked=sorted(without))
    return subprocess.run(
        [sys.executable, "-c", blocker + code], capture_output=True, text=True, check=False
    )


def imported(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The packages that a process lists in its last line."""
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


RELEASE = ("release", "a.csv", "--inputs", "a", "--output", "b", "--epsilon", "1", "-o", "c.cloak")
WHOLE = (*RELEASE, "--delta", "0.1")

# Words, the exit code, and part of what is said.
LIGHT = {
    "help": (("--help",), 0, "predict"),
    "version": (("--version",), 0, cloakgp.__version__),
    "help of release": (("release", "--help"), 0, "--epsilon"),
    "help of predict": (("predict", "--help"), 0, "--at"),
    "help of show": (("show", "--help"), 0, "RELEASE"),
    "help of plot": (("plot", "--help"), 0, "--vary"),
    "help of plan": (("plan", "--help"), 0, "--picture"),
    "help of page": (("page", "--help"), 0, "--overwrite"),
    "help of demo": (("demo", "--help"), 0, "--output-dir"),
    "help of serve": (("serve", "--help"), 0, "--scheduler"),
    "an option is missing": (RELEASE[:-4], 2, "--epsilon"),
    "no number": ((*RELEASE, "--delta", "small"), 2, "--delta"),
    "no such option": ((*WHOLE, "--bogus"), 2, "--bogus"),
    "no such command": (("bogus",), 2, "bogus"),
    "neither kind": (WHOLE, 1, "either --bounds LO HI"),
    "of the other kind": ((*WHOLE, "--bounds", "0", "1", "--link", "logit"), 1, "--link goes with"),
    "criterion": ((*WHOLE, "--bounds", "0", "1", "--criterion", "best"), 1, "functional"),
    "criterion of classes": ((*WHOLE, "--classes", "a,b", "--criterion", "best"), 1, "newton"),
    "learning": ((*WHOLE, "--bounds", "0", "1", "--learn", "all"), 1, "--learn must be"),
    "suffix": (("predict", "a.cloak", "--at", "b.csv", "-o", "c.txt"), 1, "must end in"),
}

RUN_ALL = """
import contextlib, io, json, sys
from cloakgp.__main__ import main

def run(words):
    sys.argv = ["cloakgp", *words]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    tops = sorted({{name.partition(".")[0] for name in sys.modules}})
    return code, said.getvalue(), tops

print(json.dumps([run(words) for words in {commands!r}]))
"""


@pytest.fixture(scope="module")
def light():
    """What came of each of the light commands, run one after the other."""
    done = python(RUN_ALL.format(commands=[words for words, _, _ in LIGHT.values()]))
    assert done.returncode == 0, done.stderr
    return dict(zip(LIGHT, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name", LIGHT)
def test_help_and_usage_errors_import_nothing_heavy(light, name):
    _, code, said = LIGHT[name]
    ended, heard, tops = light[name]
    assert ended == code, heard
    assert said in heard
    assert set(tops) & HEAVY == set()
    assert "typer" in tops


def test_the_list_of_what_is_imported_can_be_full(releases):
    """The test above can fail: a command that does its work imports numpy."""
    done = python(RUN_ALL.format(commands=[("show", str(releases / "numbers.cloak"))]))
    ((code, heard, tops),) = json.loads(done.stdout)
    assert code == 0, heard
    assert {"numpy", "sklearn"} <= set(tops)


def test_the_package_imports_nothing_before_it_is_used():
    done = python("import cloakgp\nprint(*sorted(sys.modules))")
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    assert tops & (HEAVY | OPTIONAL | NOISE | {"mpmath"}) == set()
    assert [name for name in done.stdout.split() if name.startswith("cloakgp.")] == []


def test_a_regressor_imports_little_more_than_a_gaussian_process():
    """What is loaded beside scikit-learn's own is this package, and what a fit cannot do without.

    scikit-learn imports pandas where it is installed, and pandas pyarrow.
    """
    done = python(
        """
def tops():
    return {name.partition(".")[0] for name in sys.modules}

from sklearn.gaussian_process import GaussianProcessRegressor
theirs = tops()
from cloakgp import DPGPRegressor, DPGPClassifier, Release
print(*(tops() - theirs))
"""
    )
    found = imported(done)
    assert "cloakgp" in found
    assert found & set(packages_distributions()) <= {"cloakgp", "lazy_loader"}


def test_every_public_name_is_there_and_no_other():
    for name in cloakgp.__all__:
        assert getattr(cloakgp, name) is not None
    assert set(dir(cloakgp)) == set(cloakgp.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = cloakgp.nothing


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """A release of numbers, one of many rows, and one of classes, as files."""
    folder = tmp_path_factory.mktemp("releases")
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 10, (40, 2))
    numbers = DPGPRegressor(bounds=(0, 10), epsilon=1.0, delta=1e-3, inducing=4)
    numbers.fit(X, X[:, 0]).release_.save(folder / "numbers.cloak")
    numbers.fit_rows(cloakgp.data.ArrayRows(X, X[:, 0])).release_.save(folder / "many.cloak")
    classes = DPGPClassifier(classes=["a", "b"], epsilon=1.0, delta=1e-3, inducing=4)
    classes.fit(X, np.where(X[:, 0] > 5, "a", "b")).release_.save(folder / "classes.cloak")
    return folder


def test_predicting_needs_neither_extras_nor_noise(releases):
    done = python(
        f"""
import cloakgp
folder, X = {str(releases)!r}, [[1.0, 2.0], [3.0, 4.0]]
mean, sd = cloakgp.Release.load(folder + "/numbers.cloak").predict(X, return_std=True)
assert mean.shape == sd.shape == (2,)
assert cloakgp.Release.load(folder + "/many.cloak").predict(X).shape == (2,)
assert cloakgp.Release.load(folder + "/classes.cloak").predict_proba(X).shape == (2, 2)
""",
        without=OPTIONAL | NOISE,
    )
    assert done.returncode == 0, done.stderr


def test_python_needs_no_extra():
    """Every public name can be had, modules before all others, and fitted, on arrays alone."""
    done = python(
        """
from cloakgp import baselines, data, models
import numpy as np, cloakgp
for name in cloakgp.__all__:
    getattr(cloakgp, name)
X, y = np.linspace(0, 1, 12)[:, None], np.linspace(0, 1, 12)
spent = dict(epsilon=1.0, delta=1e-3)
release = cloakgp.DPGPRegressor(bounds=(0, 1), **spent).fit(X, y).release_
assert release.predict(X).shape == (12,)
from cloakgp.report.describe import describe
assert describe(release)
labels = np.where(y > 0.5, "a", "b")
cloakgp.DPGPClassifier(classes=["a", "b"], **spent).fit(X, labels).predict_proba(X)
model = cloakgp.DPGPRegressor(bounds=(0, 1), inducing=3, **spent)
model.fit_rows(cloakgp.data.ArrayRows(X, y)).predict(X)
cloakgp.baselines.DPMeanRegressor(bounds=(0, 1), **spent).fit(X, y)
""",
        without=OPTIONAL,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "missing", "name"),
    [
        (("--help",), "typer", "cli"),
        (("plot", "numbers.cloak", "-o", "a.png"), "matplotlib", "plots"),
        pytest.param(
            ("page", "numbers.cloak", "-o", "a.html"), "plotly", "page", marks=pytest.mark.slow
        ),
        (("show", "numbers.cloak", "--html", "a.html"), "jinja2", "page"),
        (("predict", "numbers.cloak", "--at", "new.csv", "-o", "a.csv"), "pyarrow", "tables"),
    ],
)
def test_commands_name_the_extra_that_is_missing(words, missing, name, releases, monkeypatch):
    monkeypatch.chdir(releases)
    code = (
        f"import sys\nfrom cloakgp.__main__ import main\nsys.argv = {['cloakgp', *words]!r}\nmain()"
    )
    done = python(code, without={missing})
    assert done.returncode == 1
    assert done.stderr == f'Error: {TASKS[name]} {missing}: pip install "cloakgp[{name}]"\n'


@pytest.mark.parametrize(
    ("code", "missing", "name"),
    [
        ("from cloakgp.data import FileRows", "pyarrow", "tables"),
        ("from cloakgp import data; data.DaskRows.from_arrays(1, 1)", "distributed", "dask"),
        ("import cloakgp.cli", "rich", "cli"),
    ],
)
def test_python_names_the_extra_that_is_missing(code, missing, name):
    done = python(code, without={missing})
    (said,) = (line for line in done.stderr.splitlines() if "MissingExtraError: " in line)
    assert said.endswith(f'{TASKS[name]} {missing}: pip install "cloakgp[{name}]"')


def test_another_missing_package_is_not_taken_for_an_extra():
    with pytest.raises(ModuleNotFoundError, match="numpyy") as caught, extra("plots"):
        import numpyy  # noqa: F401
    assert not isinstance(caught.value, MissingExtraError)


def test_extras_are_those_of_the_project():
    declared = PROJECT["optional-dependencies"]
    assert set(MODULES) == set(TASKS)
    modules_of: dict[str, set[str]] = {}
    for module, names in packages_distributions().items():
        for name in names:
            modules_of.setdefault(canonicalize_name(name), set()).add(module)
    for name, modules in MODULES.items():
        required = {Requirement(one).name for one in declared[name]} - {"cloakgp"}
        brought = set().union(*(modules_of[one] for one in required))
        if name == "dask":
            brought |= modules_of["distributed"]
        assert set(modules) <= brought
        assert not set(modules) & {Requirement(one).name for one in PROJECT["dependencies"]}
    everything = {part for one in declared["all"] for part in Requirement(one).extras}
    assert everything == set(MODULES)


def optional_imports(tree: ast.Module):
    """Every import of an optional package when a module is loaded, with the extra it stands in."""

    def walk(nodes, within):
        for node in nodes:
            if isinstance(node, ast.With):
                calls = [item.context_expr for item in node.items]
                named = [
                    call.args[0].value
                    for call in calls
                    if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "extra"
                ]
                yield from walk(node.body, named[0] if named else within)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                )
                for name in names:
                    if name.partition(".")[0] in OPTIONAL:
                        yield name, within

    return walk(tree.body, None)


# The command line and the service stand behind one door each.
BEHIND_A_DOOR = ("cli", "service")


def test_what_extras_install_is_imported_as_such():
    unsaid = [
        f"{path.relative_to(ROOT)} imports {name} within {extra}"
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] not in BEHIND_A_DOOR
        for name, extra in optional_imports(ast.parse(path.read_text(encoding="utf-8")))
        if extra is None or name.partition(".")[0] not in MODULES[extra]
    ]
    assert unsaid == []


def test_the_search_for_optional_imports_finds_them():
    found = dict(optional_imports(ast.parse("import pandas.api\nfrom rich import box")))
    assert found == {"pandas.api": None, "rich": None}
    assert list(optional_imports(ast.parse("with extra('plots'):\n    import matplotlib"))) == [
        ("matplotlib", "plots")
    ]
