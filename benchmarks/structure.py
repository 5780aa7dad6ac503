"""Structure of a checkout in figures: modules, imports, circles, and what a fit passes through.

``python -m benchmarks.structure [CHECKOUT ...]`` prints a table with a column for every checkout
(this one if none is given), so that two commits can be compared: ``git archive`` unpacks another.
Counting needs nothing but the files; what a fit passes through is counted while it runs, in a
process of its own (:mod:`benchmarks.traced`). Lines of code are those without docstrings, blanks
and comments.
"""

from __future__ import annotations

import ast
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from benchmarks.traced import RUNS

PACKAGE = "cloakgp"

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
DOCUMENTED = ast.Module | ast.ClassDef | FUNCTIONS
FITTING = f"{PACKAGE}.fitting"

# The packages of one product each: what a fit needs, tables, faces, and what runs by itself.
PRODUCTS = {
    "core": "baselines criteria design estimators fitting models privacy release utils",
    "tables": "columns data",
    "faces": "cli notebook orders pages plots report",
    "streams, custodians, service, ledger and client": "client custodians ledger service streams",
}
# Names that a noise has in code, and the folder in which they belong.
NOISES = frozenset({"gaussian", "laplace"})
NOISE_FOLDER = f"{PACKAGE}.privacy.noise"
# A way of inference has the name of a noise, too.
OTHER_LAPLACE = "inference"

# An instance of each axis, and how its name looks in code: files that name it are those that a
# change to that axis has to visit.
AXES = {
    "a criterion (logdet)": re.compile(r"""["']logdet["']"""),
    "a likelihood (classes)": re.compile(r"\b_?[a-z_]*label[a-z_]*\b|\bLabel[A-Za-z]*\b"),
    "a field of the file (output_name)": re.compile(r"\boutput_name\b"),
    "a noise (Laplace)": re.compile(r"""["']laplace["']|\b[Ll]aplace_?[a-zA-Z]*\b"""),
}


def modules_of(checkout: Path) -> dict[str, Path]:
    """Return the installed modules of a checkout by dotted name."""
    root = checkout / "src" / PACKAGE
    return {
        ".".join((PACKAGE, *path.relative_to(root).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in sorted(root.rglob("*.py"))
    }


def imports_of(modules: dict[str, Path]) -> dict[str, set[str]]:
    """Return which modules of the package each of them imports when it is imported itself."""
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        targets = set()
        for node in _run_on_import(ast.parse(path.read_text(encoding="utf-8")).body):
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                below = {f"{node.module}.{alias.name}" for alias in node.names}
                targets |= {each for each in below if each in modules} or {node.module}
        found[name] = {each for each in targets if each in modules and each != name}
    return found


def _run_on_import(body: Iterable[ast.stmt]) -> Iterable[ast.stmt]:
    """Yield the statements outside functions and outside ``if TYPE_CHECKING``."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
            yield from _run_on_import([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _run_on_import(node.body)


def circles_of(imports: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of names that import each other in a loop.

    Examples
    --------
    >>> circles = circles_of({"a": {"b"}, "b": {"a", "c"}, "c": set()})
    >>> [sorted(circle) for circle in circles]
    [['a', 'b']]
    """
    reached = {name: _reachable(name, imports) for name in imports}
    circles: list[set[str]] = []
    for name in imports:
        circle = {other for other in reached[name] if name in reached.get(other, ())}
        if name in circle and circle not in circles:
            circles.append(circle)
    return circles


def _reachable(start: str, imports: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(imports[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(imports.get(name, ()))
    return seen


def folders_of(imports: dict[str, set[str]], *, within: str = PACKAGE) -> dict[str, set[str]]:
    """Return the same between the folders in a folder, and the modules that lie in none of them.

    Examples
    --------
    >>> folders_of({"top.a.b": {"top.c"}, "top.c": set()}, within="top")
    {'top.a': {'top.c'}, 'top.c': set()}
    """
    depth = within.count(".") + 2
    inside = [name for name in imports if name.startswith(f"{within}.")]

    def folder(name: str) -> str:
        return ".".join(name.split(".")[:depth])

    found: dict[str, set[str]] = {}
    # The folder itself hands names on, and is no part of a circle.
    for name in inside:
        targets = {folder(each) for each in imports[name] if each.startswith(f"{within}.")}
        found.setdefault(folder(name), set()).update(targets - {folder(name)})
    return found


def circles_in_folders(imports: dict[str, set[str]]) -> list[set[str]]:
    """Return the circles of folders and modules in every folder, at any depth."""
    parents = {name.rpartition(".")[0] for name in imports} - {""}
    return [
        circle
        for parent in sorted(parents)
        for circle in circles_of(folders_of(imports, within=parent))
    ]


def lines_of(paths: Iterable[Path]) -> list[int]:
    """Return the number of lines of every file."""
    return [len(path.read_text(encoding="utf-8").splitlines()) for path in paths]


def code_lines(text: str) -> int:
    r"""Return the number of lines that are neither blank nor a comment nor part of a docstring.

    Examples
    --------
    >>> code_lines("'Two numbers.'\n\n# The first.\na = 1\nb = 2  # The second.")
    2
    """
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            documented |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in documented
        for number, line in enumerate(text.splitlines(), start=1)
    )


def functions_in(tree: ast.Module) -> int:
    """Return the number of functions and methods in a module, inner ones included."""
    return sum(isinstance(node, FUNCTIONS) for node in ast.walk(tree))


def type_tests(trees: Iterable[ast.Module]) -> tuple[int, int]:
    r"""Return how often code tests for its own classes by ``isinstance``, and asserts a class.

    Examples
    --------
    >>> type_tests([ast.parse("class A: ...\nisinstance(x, A | int)\nassert isinstance(x, str)")])
    (1, 1)
    """
    nodes = [node for tree in trees for node in ast.walk(tree)]
    own = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    tests = [node for node in nodes if _tests_a_type(node)]
    asserts = [
        node
        for node in nodes
        if isinstance(node, ast.Assert) and any(map(_tests_a_type, ast.walk(node.test)))
    ]
    return sum(not own.isdisjoint(_names_in(each.args[1])) for each in tests), len(asserts)


def _tests_a_type(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
    )


def _names_in(node: ast.AST) -> set[str]:
    """Return the last part of every name in an expression."""
    return {
        each.id if isinstance(each, ast.Name) else each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Name | ast.Attribute)
    }


def noise_names(tree: ast.Module) -> tuple[int, int]:
    """Return how often code compares with a noise's name or looks it up, and dicts keyed by it.

    Examples
    --------
    >>> noise_names(ast.parse("noise == 'laplace'; {'gaussian': 1}; inference == 'laplace'"))
    (1, 1)
    """
    compared = keyed = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and not _names_in(node) & {OTHER_LAPLACE}:
            compared += any(_names_a_noise(each) for each in (node.left, *node.comparators))
        elif isinstance(node, ast.Subscript):
            compared += _names_a_noise(node.slice)
        elif isinstance(node, ast.MatchValue):
            compared += _names_a_noise(node.value)
        elif isinstance(node, ast.Dict):
            keyed += any(_names_a_noise(key) for key in node.keys if key is not None)
    return compared, keyed


def _names_a_noise(node: ast.AST) -> bool:
    """Whether an expression is a noise's name or its constant, or a collection with one."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(_names_a_noise, node.elts))
    if isinstance(node, ast.Constant):
        return node.value in NOISES if isinstance(node.value, str) else False
    return bool({each.lower() for each in _names_in(node) if each.isupper()} & NOISES)


def runs_of(checkout: Path) -> dict[str, dict[str, Any]]:
    """Return what fits enter, and y's way through them: :mod:`benchmarks.traced` of a checkout."""
    done = subprocess.run(
        [sys.executable, "-P", str(Path(__file__).with_name("traced.py")), str(checkout), *RUNS],
        env={**os.environ, "PYTHONPATH": str(checkout / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    figures: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return figures


def runs_in_figures(runs: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return figures of runs by what they say."""
    entered = {name: {tuple(each) for each in run["entered"]} for name, run in runs.items()}
    held, passes = entered["fit"], entered["fit in passes"]
    figures = {
        f"modules, functions entered by a {name}": f"{len({file for file, _ in functions})}, "
        f"{len(functions)}"
        for name, functions in entered.items()
        if name in ("fit", "plain fit", "fit in passes")
    }
    figures["functions that a fit in passes shares with one of held rows"] = (
        f"{len(held & passes)} of {len(passes)}"
    )
    for name, run in runs.items():
        if "way" in run:
            told = ", ".join(f"{count} {what}" for what, count in run["way"].items())
            figures[f"y's way in `{name}`"] = told
    return figures


def structure_of(checkout: Path) -> dict[str, str]:
    """Return all figures of a checkout, by what they say."""
    modules = modules_of(checkout)
    imports = imports_of(modules)
    folders = folders_of(imports)
    lines = lines_of(modules.values())
    root = checkout / "src" / PACKAGE
    texts = {name: path.read_text(encoding="utf-8") for name, path in modules.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    code = {name: code_lines(text) for name, text in texts.items()}
    fitting = {name: targets for name, targets in imports.items() if _is_in(name, "fitting")}
    own, asserted = type_tests(trees.values())
    elsewhere = {name: noise_names(tree) for name, tree in trees.items() if not _of_noise(name)}
    named: Callable[[re.Pattern[str]], int] = lambda pattern: sum(  # noqa: E731
        bool(pattern.search(text)) for text in texts.values()
    )
    return {
        "modules in the root": str(len(list(root.glob("*.py")))),
        "folders in the root, and modules beside them": str(len(folders)),
        "imports between these": str(sum(map(len, folders.values()))),
        "modules installed": str(len(modules)),
        "lines installed": f"{sum(lines):,}",
        "lines of a module, median and most": f"{statistics.median(lines):.0f}, {max(lines)}",
        "lines of code": f"{sum(code.values()):,}",
        **{
            f"lines of code of the {product}": f"{_in_folders(code, folders.split()):,}"
            for product, folders in PRODUCTS.items()
        },
        "circles of modules": str(len(circles_of(imports))),
        "circles of folders, at any depth": str(len(circles_in_folders(imports))),
        "modules in fitting, imports between them": (
            f"{len(fitting.keys() - {FITTING})}, "
            f"{sum(len(targets & fitting.keys()) for targets in fitting.values())}"
        ),
        "functions, lines of code in fitting": (
            f"{sum(functions_in(trees[name]) for name in fitting)}, "
            f"{_in_folders(code, ['fitting']):,}"
        ),
        "`isinstance` of own classes, `assert isinstance`": f"{own}, {asserted}",
        "comparisons with a noise's name outside its folder, dicts keyed by it": (
            f"{sum(compared for compared, _ in elsewhere.values())}, "
            f"{sum(keyed for _, keyed in elsewhere.values())}"
        ),
        **runs_in_figures(runs_of(checkout)),
        **{f"files that name {axis}": str(named(pattern)) for axis, pattern in AXES.items()},
        "lines of tests": f"{sum(lines_of((checkout / 'tests').rglob('*.py'))):,}",
    }


def _is_in(name: str, folder: str) -> bool:
    return f"{name}.".startswith(f"{PACKAGE}.{folder}.")


def _of_noise(name: str) -> bool:
    return f"{name}.".startswith(f"{NOISE_FOLDER}.")


def _in_folders(counts: Mapping[str, int], folders: Iterable[str]) -> int:
    return sum(
        count for name, count in counts.items() if any(_is_in(name, each) for each in folders)
    )


def commit_of(checkout: Path) -> str:
    """Return the commit that is checked out, or the folder's name where there is no repository."""
    if not (checkout / ".git").exists():
        return checkout.name
    asked = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def main(checkouts: list[str]) -> None:
    """Print the figures of checkouts beside each other, as a table in Markdown."""
    paths = [Path(each).resolve() for each in checkouts] or [Path(__file__).resolve().parents[1]]
    columns = [structure_of(path) for path in paths]
    rows = [["", *map(commit_of, paths)], ["---"] * (len(paths) + 1)]
    rows += [[what, *(column[what] for column in columns)] for what in columns[0]]
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))


if __name__ == "__main__":
    main(sys.argv[1:])
