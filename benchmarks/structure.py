"""Structure of a checkout in figures: modules, imports, circles, and what a fit passes through.

``python -m benchmarks.structure [CHECKOUT ...]`` prints a table with a column for every checkout
(this one if none is given), so that two commits can be compared: ``git archive`` unpacks another.
Counting needs nothing but the files; what a fit passes through is counted while it runs, in a
process of its own.
"""

from __future__ import annotations

import ast
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

PACKAGE = "cloakgp"

# What is counted while a fit of untouched defaults runs.
TRACED_FIT = """
import json, sys
import numpy as np
from cloakgp import DPGPRegressor

X = np.linspace(0.0, 10.0, 60)[:, None]
model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3)
modules, functions = set(), set()

def entered(frame, event, argument):
    code = frame.f_code
    if event == "call" and "/cloakgp/" in code.co_filename and not code.co_name.startswith("<"):
        modules.add(code.co_filename)
        functions.add((code.co_filename, code.co_qualname))

# Once before: what is imported when it is first used is no part of a fit.
model.fit(X, np.sin(X).ravel())
sys.setprofile(entered)
model.fit(X, np.sin(X).ravel())
sys.setprofile(None)
print(json.dumps([len(modules), len(functions)]))
"""

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


def fit_of(checkout: Path) -> tuple[int, int]:
    """Return how many modules and functions of the package one fit enters."""
    done = subprocess.run(
        [sys.executable, "-c", TRACED_FIT],
        env={**os.environ, "PYTHONPATH": str(checkout / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    modules, functions = json.loads(done.stdout)
    return modules, functions


def structure_of(checkout: Path) -> dict[str, str]:
    """Return all figures of a checkout, by what they say."""
    modules = modules_of(checkout)
    imports = imports_of(modules)
    folders = folders_of(imports)
    lines = lines_of(modules.values())
    root = checkout / "src" / PACKAGE
    entered_modules, entered_functions = fit_of(checkout)
    texts = {path: path.read_text(encoding="utf-8") for path in modules.values()}
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
        "circles of modules": str(len(circles_of(imports))),
        "circles of folders, at any depth": str(len(circles_in_folders(imports))),
        "modules entered by a fit": str(entered_modules),
        "functions entered by a fit": str(entered_functions),
        **{f"files that name {axis}": str(named(pattern)) for axis, pattern in AXES.items()},
        "lines of tests": f"{sum(lines_of((checkout / 'tests').rglob('*.py'))):,}",
    }


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
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
