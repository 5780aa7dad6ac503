"""Names, paths and options in the documents are those of the code."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
from pathlib import Path

import typer

import cloakgp
from cloakgp.cli import app

ROOT = Path(cloakgp.__file__).parent
PROJECT = ROOT.parents[1]
# Pages that are made when the site is built are made of docstrings and examples.
WRITTEN = [
    page
    for page in sorted(PROJECT.glob("docs/**/*"))
    if page.suffix in {".md", ".rst"} and not {"api", "auto_examples", "_templates"} & {*page.parts}
]
ROOT_PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
PAGES = [*(PROJECT / name for name in ROOT_PAGES), *WRITTEN]
EXAMPLES = sorted(PROJECT.glob("gallery/*.py"))
SOURCES = sorted(
    path
    for folder in ("src", "experiments", "benchmarks")
    for path in PROJECT.rglob(f"{folder}/**/*.py")
)
FOLDERS = "|".join(sorted(path.name for path in ROOT.iterdir() if path.is_dir()))

DOTTED = re.compile(r"(?<![\w./-])cloakgp(?:\.\w+)+")
# From the repository's root; or, in backticks, from the package's.
PATH = re.compile(r"(?<![\w/.-])(?:src|tests|docs|experiments|benchmarks)/[\w./-]*\w/?")
INSIDE = re.compile(rf"`((?:{FOLDERS})/[\w./]*)`")
# Pages of examples and of the reference are made with the site, which checks links to them.
LINK = re.compile(r"\]\((?!\S*(?:auto_examples|api)/)([\w./-]+)(?:#[\w-]+)?\)")
EXAMPLE = re.compile(r"auto_examples/(\w+)\.rst")
SHELL = re.compile(r"```sh\n(.*?)```", re.S)
COMMAND = re.compile(r"^cloakgp ([\w-]+)((?:[^\n]*\\\n)*[^\n]*)", re.M)


def relative(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def is_there(dotted: str) -> bool:
    """Whether a dotted name is a module of the package, or something in one."""
    name, found = "cloakgp", cloakgp
    for part in dotted.split(".")[1:]:
        name += f".{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(name)
            except ModuleNotFoundError:
                return False
    return True


def test_dotted_names_are_there():
    missing = [
        f"{relative(page)} names {name}"
        for page in [*PAGES, *SOURCES]
        for name in sorted(set(DOTTED.findall(page.read_text(encoding="utf-8"))))
        if not is_there(name)
    ]
    assert missing == []


def test_paths_and_links_are_there():
    missing = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        inside = [ROOT / path for path in INSIDE.findall(text)]
        wanted = [PROJECT / path for path in PATH.findall(text)]
        wanted += [page.parent / path for path in LINK.findall(text)]
        gone = [path for path in wanted if not path.exists()]
        gone += [path for path in inside if not (path.exists() or path.with_suffix(".py").exists())]
        missing += [f"{relative(page)} names {path}" for path in gone]
    assert missing == []


def test_options_of_commands_are_there():
    commands, unknown = typer.main.get_command(app).commands, []
    for page in PAGES:
        shell = "\n".join(SHELL.findall(page.read_text(encoding="utf-8")))
        for name, words in COMMAND.findall(shell):
            command = commands[name]
            if hasattr(command, "commands"):
                command = command.commands[words.split()[0]]
            known = {option for parameter in command.params for option in parameter.opts}
            told = set(re.findall(r"(?<= )--?[a-z][a-z-]*", words))
            unknown += [f"{relative(page)}: {name} {option}" for option in told - known]
    assert unknown == []


def test_the_searches_find_what_is_missing():
    assert is_there("cloakgp.privacy.grid.integer_sensitivity")
    assert not is_there("cloakgp.privacy.door")
    assert not is_there("cloakgp.nothing")
    assert PATH.findall("see src/cloakgp/privacy/ and `tests/x.py`.") == [
        "src/cloakgp/privacy/",
        "tests/x.py",
    ]
    assert INSIDE.findall("`privacy/sampler`, `release/io/`") == ["privacy/sampler", "release/io/"]
    assert COMMAND.findall("cloakgp release a.csv \\\n    --to b  # c") == [
        ("release", " a.csv \\\n    --to b  # c")
    ]


def entries(page: Path) -> set[str]:
    """The pages that the tables of contents of a page name."""
    text = page.read_text(encoding="utf-8")
    rst = re.findall(r"^\.\. toctree::\n((?:[ \t]+.*\n|\n)+)", text, re.M)
    md = re.findall(r"```\{toctree\}\n(.*?)```", text, re.S)
    named = [line.strip() for block in (*rst, *md) for line in block.splitlines()]
    return {
        (page.parent / name).relative_to(PROJECT / "docs").as_posix()
        for name in named
        if name and not name.startswith(":")
    }


def test_every_page_is_in_a_table_of_contents():
    listed = set().union(*(entries(page) for page in WRITTEN)) - {"auto_examples/index"}
    written = {page.relative_to(PROJECT / "docs").with_suffix("").as_posix() for page in WRITTEN}
    assert written - {"index", "sg_execution_times"} == listed


def test_every_example_has_its_place_in_the_gallery():
    path = PROJECT / "docs" / "_extensions" / "gallery_order.py"
    order = runpy.run_path(str(path))
    names = [page.stem.removeprefix("plot_") for page in EXAMPLES]
    assert sorted(order["ORDER"]) == names
    assert len(names) >= 15
    linked = {
        name for page in WRITTEN for name in EXAMPLE.findall(page.read_text(encoding="utf-8"))
    }
    assert linked - {"index"} <= {page.stem for page in EXAMPLES}


def test_examples_compile_and_begin_with_a_title():
    without = []
    for page in EXAMPLES:
        tree = ast.parse(page.read_text(encoding="utf-8"), filename=relative(page))
        title, rule = ast.get_docstring(tree).splitlines()[:2]
        without += [relative(page)] * (rule != "=" * len(title))
    assert without == []


# Of what people read: sentences that a newcomer stumbled over.
STUMBLED = ("where predictions matter", "this believes what is assumed beforehand")


def test_no_sentence_that_people_stumbled_over_is_left():
    shown = [*PAGES, *(path for path in SOURCES if "src" in path.parts)]
    found = [
        f"{relative(page)}: {words}"
        for page in shown
        for words in STUMBLED
        if words in page.read_text(encoding="utf-8")
    ]
    assert found == []
