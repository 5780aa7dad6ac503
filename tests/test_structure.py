"""The shape of the code: where y goes, one source of noise, layers, sizes, names, docstrings."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

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
READER = "privacy.ask"

RANDOM_MODULES = {"random", "secrets", "opendp", "uuid"}
SAMPLER = "privacy.sampler"
# These shuffle, split and draw samples of published data, draw places among public inputs, or
# simulate people; they never draw privacy noise.
SPLITTERS = ("cli.demonstration", "data.example", "experiments", "fitting.resolution")
# Draw the key of a ledger or of marks, and tokens, which must not be guessed; and keys of requests,
# of which no two may be alike.
KEYS = ("client.keys", "ledger.keys", "service.credentials", "streams.marks")

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


def test_y_is_read_in_privacy_alone():
    """Other folders have no parameter that could hold it, but for those that pass it on."""
    holding = [
        f"{name_of(path)}:{line} takes {parameter}"
        for path in MODULES
        if not within(name_of(path), SEE_Y)
        for parameter, line in parameters(tree_of(path))
        if parameter in PRIVATE_NAMES
    ]
    reading = [
        f"{name_of(path)}:{line} goes over rows"
        for path in MODULES
        if not within(name_of(path), ("data", READER))
        for line in passes_over_rows(tree_of(path))
    ]
    assert holding + reading == []


def test_noise_has_one_source():
    """Nothing but the sampler draws; k-means gets an integer, and draws inside scikit-learn."""
    drawing = []
    for path in [*MODULES, *EXPERIMENTS]:
        name = name_of(path)
        splits = within(name, SPLITTERS)
        drawing += [
            f"{name}:{line} uses {source}"
            for source, line in draws(tree_of(path))
            if name not in (SAMPLER, *KEYS)
            and (not splits or source.startswith(("opendp", "secrets", "os.")))
        ]
    assert drawing == []


def test_nothing_uninitialised_is_near_privacy():
    """Entries of np.empty that nobody fills are whatever the memory held: also groups, once."""
    for path in MODULES:
        if within(name_of(path), ("privacy", "data")):
            found = [
                line
                for line in path.read_text(encoding="utf-8").splitlines()
                if "np.empty" in line and "dtype=object" not in line
            ]
            assert not found, path


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
    assert passes_over_rows(tree_of(ROOT / "privacy" / "ask.py"))


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


def test_everything_public_is_documented():
    undocumented = [
        f"{name_of(path)}:{getattr(node, 'lineno', 1)} {name}"
        for path in [*MODULES, *EXPERIMENTS]
        for name, node in [("the module", tree_of(path)), *public_definitions(tree_of(path))]
        if not is_overload(node) and not ast.get_docstring(node)
    ]
    assert undocumented == []


def test_the_public_names_show_themselves_at_work():
    for name in cloakgp.__all__:
        assert getattr(cloakgp, name).__doc__, name
    shown = [name for name in cloakgp.__all__ if ">>>" in getattr(cloakgp, name).__doc__]
    assert {"DPGPRegressor", "Guarantee", "Release", "cloak", "compose"} <= set(shown)
