"""The shape of the code: where y goes, one source of noise, layers, sizes, names, docstrings."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

import cloakgp
from benchmarks.structure import circles_in_folders, circles_of, imports_of, modules_of

ROOT = Path(cloakgp.__file__).parent
PROJECT = ROOT.parents[1]
TESTS = PROJECT / "tests"
MODULES = sorted(ROOT.rglob("*.py"))
# In the repository and not in the package: held to its shape, but free to hold outputs.
EXPERIMENTS = sorted((PROJECT / "experiments").rglob("*.py"))

PRIVATE_NAMES = {"y", "outputs", "labels"}
# The folder that reads y, and those that pass it on.
SEE_Y = ("privacy", "fitting", "estimators", "orders", "data", "cli", "ledger.accounts")
# Rows carry private outputs; this module alone reads what they carry.
READER = "privacy.streaming"

RANDOM_MODULES = {"random", "secrets", "opendp", "uuid"}
SAMPLER = "privacy.sampler"
# These shuffle, split and draw samples of published data; they never draw privacy noise.
SPLITTERS = ("cli.demonstration", "experiments")
# Draw the key of a ledger, and tokens, which must not be guessed.
KEYS = ("ledger.keys", "service.credentials")

# A module is one thought; whoever needs more lines has two.
LONGEST_MODULE = 500
# Folders of tests that stand for no folder of the package: what they are about lies elsewhere, or
# goes through all of it.
OTHER_TESTS = {"experiments", "experiments/reproduction", "benchmarks", "privacy/attacks"}


def name_of(path: Path) -> str:
    """The dotted name: 'privacy.sampler' in the package, 'experiments.kung' beside it."""
    top = ROOT if path.is_relative_to(ROOT) else PROJECT
    return ".".join(path.relative_to(top).with_suffix("").parts).removesuffix(".__init__")


def within(name: str, folders: tuple[str, ...]) -> bool:
    return any(name == folder or name.startswith(folder + ".") for folder in folders)


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def parameters(tree: ast.AST):
    """Every parameter of every function and lambda, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            spec = node.args
            every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
            yield from ((each.arg, node.lineno) for each in every if each is not None)


def imported(tree: ast.AST):
    """Every module imported, dotted, with its line; of ``from a import b`` also a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def dotted(node: ast.AST) -> str:
    """'np.random.default_rng' of an attribute chain; '' of anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def draws(tree: ast.AST):
    """Every way in which a module could draw random numbers, with its line."""
    for module, line in imported(tree):
        top = module.split(".")[0]
        if top in RANDOM_MODULES or module.startswith("numpy.random"):
            yield module, line
        if module.endswith((".check_random_state", ".default_rng", ".urandom", ".getrandom")):
            yield module, line
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            chain = dotted(node)
            if chain in {"np.random", "numpy.random", "os.urandom", "os.getrandom"}:
                yield chain, node.lineno
            if node.attr in {"rvs", "sample_y", "default_rng", "RandomState"}:
                yield node.attr, node.lineno


def passes_over_rows(tree: ast.AST) -> list[int]:
    """The lines in which a module goes over the outputs of rows that come in chunks."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "over_rows"
    ]


def test_the_root_holds_folders():
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "__main__.py"}
    assert {"estimators.regression", SAMPLER} <= {name_of(path) for path in MODULES}


def test_tests_mirror_the_package():
    folders = {path.parent.relative_to(ROOT).as_posix() for path in MODULES}
    tested = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    assert tested - OTHER_TESTS == folders


def test_the_package_stands_without_the_experiments():
    """They are no part of it: nothing imports them, and their folder is not inside."""
    assert "experiments.__main__" in [name_of(path) for path in EXPERIMENTS]
    assert [
        f"{name_of(path)} imports {module}"
        for path in MODULES
        for module, _ in imported(tree_of(path))
        if module.split(".")[0] in {"experiments", "benchmarks", "pooch"}
    ] == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_y_is_read_in_privacy_alone(path):
    """Other folders have no parameter that could hold it, but for those that pass it on."""
    name, tree = name_of(path), tree_of(path)
    if not within(name, SEE_Y):
        assert [found for found in parameters(tree) if found[0] in PRIVATE_NAMES] == []
    if not within(name, ("data", READER)):
        assert passes_over_rows(tree) == []


@pytest.mark.parametrize("path", [*MODULES, *EXPERIMENTS], ids=name_of)
def test_noise_has_one_source(path):
    """Nothing but the sampler draws; k-means gets an integer, and draws inside scikit-learn."""
    name = name_of(path)
    if name in (SAMPLER, *KEYS):
        return
    found = [f"{what}, line {line}" for what, line in draws(tree_of(path))]
    if within(name, SPLITTERS):
        found = [what for what in found if what.startswith(("opendp", "secrets", "os."))]
    assert found == []


def test_the_searches_find_what_they_look_for():
    """The scans above can fail: each of these is seen."""
    for code in (
        "import random",
        "import secrets as s",
        "from os import urandom",
        "import numpy as np\nnp.random.normal()",
        "import numpy as np\nnp.random.default_rng(0)",
        "from numpy.random import default_rng",
        "from numpy import random",
        "import opendp.prelude as dp",
        "from scipy import stats\nstats.norm.rvs()",
        "from sklearn.utils import check_random_state",
        "def f():\n    import opendp",
    ):
        assert list(draws(ast.parse(code))), code
    assert list(draws(tree_of(ROOT / "privacy" / "sampler.py")))
    assert not list(draws(ast.parse("KMeans(random_state=0)")))
    for code in (
        "def f(y): ...",
        "def f(*, y): ...",
        "def f(y, /): ...",
        "def f(*y): ...",
        "def f(**y): ...",
        "lambda y: y",
        "class A:\n    async def f(self, y=None): ...",
    ):
        assert "y" in [name for name, _ in parameters(ast.parse(code))], code
    assert passes_over_rows(tree_of(ROOT / "privacy" / "streaming.py"))


def test_imports_go_one_way():
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [program, "--no-cache"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_no_module_imports_another_in_a_circle():
    assert circles_of(imports_of(modules_of(PROJECT))) == []


def test_no_folder_imports_another_in_a_circle():
    imports = imports_of(modules_of(PROJECT))
    assert circles_in_folders(imports) == []
    imports["cloakgp.release.tables"].add("cloakgp.release.posterior.mixture")
    assert len(circles_in_folders(imports)) == 1


def public_definitions(tree: ast.Module):
    """Public functions and classes of a module, and the public methods of those classes."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    for node in tree.body:
        if not isinstance(node, kinds) or node.name.startswith("_"):
            continue
        yield node.name, node
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, kinds) and not inner.name.startswith("_"):
                    yield f"{node.name}.{inner.name}", inner


def is_overload(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", ())
    return any(dotted(each) in {"overload", "typing.overload"} for each in decorators)


@pytest.mark.parametrize("path", [*MODULES, *EXPERIMENTS], ids=name_of)
def test_modules_are_short_and_everything_public_is_documented(path):
    tree = tree_of(path)
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_MODULE
    assert ast.get_docstring(tree), "the module says nothing of itself"
    definitions = [each for each in public_definitions(tree) if not is_overload(each[1])]
    assert [name for name, node in definitions if not ast.get_docstring(node)] == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_begins_with_the_name_of_what_is_in_it(path):
    """In one line that is a sentence; a question, or what one does with it, is no name."""
    head = ast.get_docstring(tree_of(path)).splitlines()[0]
    assert head.endswith(".")
    assert head.split()[0] not in {"What", "How", "Where", "Which", "Who", "When", "Why", "Open"}


def test_the_public_names_show_themselves_at_work():
    for name in cloakgp.__all__:
        assert getattr(cloakgp, name).__doc__, name
    shown = [name for name in cloakgp.__all__ if ">>>" in getattr(cloakgp, name).__doc__]
    assert {"DPGPRegressor", "Guarantee", "Release", "cloak", "compose"} <= set(shown)
