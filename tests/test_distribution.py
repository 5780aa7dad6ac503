"""What is published: the README away from its files, versions that agree, honest addresses."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import cloakgp

PROJECT = Path(cloakgp.__file__).parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
METADATA = runpy.run_path(str(PROJECT / "distribution" / "metadata.py"))
REPOSITORY = "https://example.org/someone/cloakgp"
# Of links and pictures that are no web addresses.
RELATIVE = re.compile(r"\]\((?!https://)")


@pytest.mark.parametrize("repository", ["", REPOSITORY])
def test_the_readme_of_an_index_has_no_link_that_leads_nowhere(repository):
    assert RELATIVE.search(README)
    text = METADATA["readable_alone"](README, repository=repository, version="1.2")
    assert not RELATIVE.search(text)
    # What a link calls itself may go on in the next line.
    lines = [line for line in README.splitlines() if not re.search(r"\[|\]\(", line)]
    assert len(lines) > 200
    assert set(lines) <= set(text.splitlines())


def test_links_go_to_the_files_of_the_version():
    text = METADATA["readable_alone"](README, repository=REPOSITORY, version="1.2")
    pages = re.findall(rf"\]\({REPOSITORY}/blob/v1\.2/([\w./-]+)(#[\w-]+)?\)", text)
    pictures = re.findall(rf"!\[[^\]]+\]\({REPOSITORY}/raw/v1\.2/([\w./-]+)\)", text)
    assert len(pages) > 20
    assert pictures == ["docs/images/demo.png", "docs/images/service-plan.png"]
    for path in (*(page for page, _ in pages), *pictures):
        assert (PROJECT / path).exists()


def test_no_address_is_made_up():
    known = METADATA["addresses"]("", version="1.2")
    assert set(known) == {"Paper of 2018", "Paper of 2021"}
    given = METADATA["addresses"](REPOSITORY, version="1.2")
    assert given["Security"] == f"{REPOSITORY}/blob/v1.2/SECURITY.md"


def test_the_version_is_the_same_everywhere():
    citation = (PROJECT / "CITATION.cff").read_text(encoding="utf-8")
    recipe = (PROJECT / "distribution" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.M) == [cloakgp.__version__]
    assert re.findall(r'^  version: "(.+)"$', recipe, re.M) == [cloakgp.__version__]


def test_the_conda_recipe_needs_what_the_package_needs():
    recipe = (PROJECT / "distribution" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    run = recipe.partition("\n  run:\n")[2].partition("\n\n")[0]
    named = {line.strip(" -").replace(" ", "") for line in run.splitlines()} - {"python>=3.11"}
    assert named == set(PYPROJECT["dependencies"])
    assert PYPROJECT["requires-python"] == ">=3.11"


def test_the_versions_tested_are_allowed():
    tested = dict(
        re.findall(
            r"^([\w.-]+)==([\w.]+)",
            (PROJECT / "distribution" / "tested.txt").read_text(encoding="utf-8"),
            re.M,
        )
    )
    wanted = [*PYPROJECT["dependencies"], *PYPROJECT["optional-dependencies"]["test"]]
    for requirement in map(Requirement, wanted):
        if requirement.name != "cloakgp":
            assert tested[requirement.name.lower()] in requirement.specifier, requirement


def test_extras_name_each_other_without_circles():
    extras = PYPROJECT["optional-dependencies"]

    def names(extra: str, above: tuple[str, ...] = ()) -> set[str]:
        assert extra not in above
        found = {extra}
        for requirement in map(Requirement, extras[extra]):
            if requirement.name == "cloakgp":
                found = found.union(*(names(one, (*above, extra)) for one in requirement.extras))
        return found

    for_users = {"cli", "tables", "excel", "sql", "plots", "page", "dask", "ledger", "notebook"}
    for_users |= {"client", "custodians", "service"}
    assert names("all") == {"all", *for_users}
    assert set(extras) == for_users | {
        "all",
        "experiments",
        "rivals",
        "test",
        "dev",
        "docs",
        "dist",
    }
