"""The page about release files names every member and every field of them, and no other."""

from __future__ import annotations

import inspect
import json
import re
import zipfile
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.release import Release
from cloakgp.release.coefficient_tree import coefficient_tree
from cloakgp.release.histogram import NoisyHistogram
from cloakgp.release.io.bundle import ENVELOPE, FORMAT_VERSION
from cloakgp.release.io.codec import _types
from cloakgp.release.several_outputs import MultiOutputRelease
from cloakgp.release.statistics import StatisticsRelease

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs" / "file-format.md").read_text(encoding="utf-8")
GOLDEN = sorted((PROJECT / "tests" / "data" / "golden").glob("*.cloak"))
KINDS = (Release, MultiOutputRelease, StatisticsRelease, NoisyHistogram)
NAMES = {kind: name for name, kind in _types().items()}
PLAIN = (bool, int, float, str, type(None), np.ndarray, np.generic, Kernel)


def section(title):
    """A part of the page, without those below it."""
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)[1]


def rows(title):
    """The tables of a part: of what, to the names in the second column."""
    lines = re.findall(r"^\| `?([^|`]+?)`? \| (.*?) \|", section(title), re.M)
    return {what: set(re.findall(r"`(\w+)`", listed)) for what, listed in lines if "`" in listed}


def classes_of(hint):
    """The dataclasses that a value of some annotation can be."""
    if get_args(hint):
        return set().union(*map(classes_of, get_args(hint)))
    if not isinstance(hint, type) or hint is object or issubclass(hint, PLAIN):
        return set()
    known = {kind for kind in NAMES if issubclass(kind, hint)}
    return known | ({hint} if is_dataclass(hint) and not inspect.isabstract(hint) else set())


def reached():
    """Every dataclass that a file can hold, by what the page calls it."""
    found, left = {}, list(KINDS)
    while left:
        kind = left.pop()
        name = NAMES.get(kind, kind.__name__)
        if name in found:
            continue
        found[name] = {field.name for field in fields(kind)}
        hints = get_type_hints(kind)
        left += [inner for field in fields(kind) for inner in classes_of(hints[field.name])]
    return found


def manifests():
    for path in GOLDEN:
        with zipfile.ZipFile(path) as archive:
            yield archive.namelist(), json.loads(archive.read("manifest.json"))


def test_every_object_has_its_row_with_every_field():
    assert rows("Objects") == {
        name: held | ({"type"} if name in NAMES.values() else set())
        for name, held in reached().items()
    }


def test_every_member_of_the_archive_is_named():
    named = set(re.findall(r"`([\w.]+)`", section("Archive").partition("\n\n| ")[2]))
    for members, manifest in manifests():
        plain = {re.sub(r"^array_\d+\.npy$", "array_N.npy", member) for member in members}
        assert plain <= named
        assert set(ENVELOPE) - {"coefficients"} <= set(manifest) & named
    assert f"version {FORMAT_VERSION}" in section("Archive")


# Of the coefficients, what its parts are called on the page.
INNER = {
    "parts": "part",
    "features": "features",
    "axes": "axis",
    "channels": "channel",
    "questions": "question",
    "link": "link",
    "quantiles": "quantiles",
    "counts": "counts",
    "calibration": "calibration",
    "unknown_noise": "unknown_noise",
    "scatter": "scatter",
    "trend": "trend",
    "several": "output",
}


def held_in(tree, name, found):
    """Note the names in a tree of coefficients, by what the page calls its parts."""
    found.setdefault(name, set()).update(tree)
    for key, value in tree.items():
        if key == "kernel":
            continue
        left = [value]
        while left:
            inner = left.pop()
            if isinstance(inner, list):
                left += inner
            if isinstance(inner, dict):
                held_in(inner, INNER[key], found)


def test_the_coefficients_are_named_field_by_field(calibrated, scattered, trending):
    found = {}
    for release in (calibrated, scattered, trending):
        for beside in (False, True):
            tree = coefficient_tree(release, stored=np.ndarray.tolist, beside=beside)
            held_in(tree, "coefficients", found)
    for _, manifest in manifests():
        if "coefficients" in manifest:
            held_in(manifest["coefficients"], "coefficients", found)
        else:
            assert manifest["kind"] == "histogram"
    assert rows("Coefficients") == found
