"""The container of every release file: kinds, arrays, and what is refused before meaning."""

from __future__ import annotations

import hashlib
import json
import zipfile

import numpy as np
import pytest

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    MultiOutputRelease,
    Release,
    ReleaseFileError,
    load,
)
from cloakgp.release.io.bundle import (
    FORMAT,
    FORMAT_VERSION,
    bundle_bytes,
    kind_of,
    read_bundle,
)
from cloakgp.release.open import KINDS

ARRAYS = [np.arange(6.0).reshape(2, 3), np.zeros((0, 4)), np.array([1 / 3, -0.0, 5e-324, 1e308])]


def write(path, *, kind="one output", arrays=ARRAYS, extra=None):
    content = bundle_bytes(
        kind=kind,
        tree=lambda stored: {"arrays": [stored(array) for array in arrays], **(extra or {})},
    )
    path.write_bytes(content)
    return path


def read(path, *, kind="one output"):
    return read_bundle(
        path,
        kind=kind,
        parse=lambda manifest, loaded: [loaded(name) for name in manifest["arrays"]],
    )


def forge(path, change):
    """Edit the manifest as somebody would who can compute checksums."""
    with zipfile.ZipFile(path) as bundle:
        payloads = {name: bundle.read(name) for name in bundle.namelist()}
    manifest = json.loads(payloads["manifest.json"])
    change(manifest)
    text = json.dumps(manifest).encode()
    payloads["manifest.json"] = text
    payloads["manifest.sha256"] = hashlib.sha256(text).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as bundle:
        for name, payload in payloads.items():
            bundle.writestr(name, payload)
    return path


def test_the_same_doubles_come_back(tmp_path):
    found = read(write(tmp_path / "file"))
    for one, other in zip(ARRAYS, found, strict=True):
        assert one.tobytes() == other.tobytes()
        assert one.shape == other.shape


def test_arrays_in_another_order_of_memory_come_back(tmp_path):
    turned = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    [found] = read(write(tmp_path / "file", arrays=[turned[:, ::-1]]))
    np.testing.assert_array_equal(found, turned[:, ::-1])


def test_equal_contents_are_equal_files(tmp_path):
    one, other = write(tmp_path / "one"), write(tmp_path / "two")
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_says_what_it_holds(kind, tmp_path):
    assert kind_of(write(tmp_path / "file", kind=kind)) == kind


def test_another_kind_is_refused_with_advice(tmp_path):
    path = write(tmp_path / "file", kind="statistics")
    with pytest.raises(ReleaseFileError, match="release of statistics: open it with"):
        read(path)


def test_an_unknown_kind_is_refused_with_advice(tmp_path):
    with pytest.raises(ReleaseFileError, match="clairvoyance, which this package does not know"):
        load(write(tmp_path / "file", kind="clairvoyance"))


def test_each_release_refuses_the_others_files(tmp_path):
    X = np.linspace(0, 5, 8)[:, None]
    budget = {"epsilon": 1.0, "delta": 1e-3, "learn": None}
    model = DPGPMultiOutputRegressor(bounds=[(0, 1), (0, 2)], **budget)
    model.fit(X, np.zeros((8, 2))).release_.save(tmp_path / "several")
    DPGPClassifier(classes=[0, 1], **budget).fit(X, [0, 1] * 4).release_.save(tmp_path / "one")
    with pytest.raises(ReleaseFileError, match=r"of several outputs: open it with"):
        Release.load(tmp_path / "several")
    with pytest.raises(ReleaseFileError, match=r"of one output: open it with"):
        MultiOutputRelease.load(tmp_path / "one")
    assert kind_of(tmp_path / "several") == "regression of several outputs"
    assert kind_of(tmp_path / "one") == "one output"


def test_an_array_that_is_named_twice_is_made_once(tmp_path):
    twice = forge(write(tmp_path / "file"), lambda m: m.update(arrays=["array_0.npy"] * 2))
    one, other = read(twice)
    assert one is other


def test_equal_arrays_are_kept_once(tmp_path):
    path = write(tmp_path / "file", arrays=[np.ones(500), np.ones(500), np.zeros(500)])
    with zipfile.ZipFile(path) as bundle:
        assert sum(name.endswith(".npy") for name in bundle.namelist()) == 2
    assert [each.sum() for each in read(path)] == [500, 500, 0]


FORGERIES = {
    "another format": (lambda m: m.update(format="pickle"), "not a cloakgp release file"),
    "no format": (lambda m: m.pop("format"), "not a cloakgp release file"),
    "newer": (lambda m: m.update(version=FORMAT_VERSION + 1), "install a newer cloakgp"),
    "no version": (lambda m: m.pop("version"), "damaged"),
    "a truth value for a version": (lambda m: m.update(version=True), "version is damaged"),
    "older": (lambda m: m.update(version=FORMAT_VERSION - 1), "have it made anew"),
    "a number for a kind": (lambda m: m.update(kind=7), "kind is damaged"),
    "no kind": (lambda m: m.pop("kind"), "kind is damaged"),
    "no checksums": (lambda m: m.pop("sha256"), "damaged"),
    "an array without a checksum": (lambda m: m["sha256"].pop("array_0.npy"), "does not list"),
    "an array that is not there": (lambda m: m["sha256"].update(more="0"), "changed after"),
    "another array": (lambda m: m.update(arrays=["manifest.json"]), "changed after"),
    "a number for an array": (lambda m: m.update(arrays=[7]), "changed after|damaged"),
    "a list for an array": (lambda m: m.update(arrays=[[]]), "damaged"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused(name, tmp_path):
    change, complaint = FORGERIES[name]
    path = forge(write(tmp_path / "file"), change)
    with pytest.raises(ReleaseFileError, match=complaint) as caught:
        read(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_arrays_of_what_is_not_finite_are_refused(value, tmp_path):
    with pytest.raises(ReleaseFileError, match="finite"):
        read(write(tmp_path / "file", arrays=[np.array([value])]))


@pytest.mark.parametrize("reader", [read, kind_of])
def test_missing_and_foreign_files(reader, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        reader(tmp_path / "nothing")
    (tmp_path / "text").write_text("not a zip")
    with pytest.raises(ReleaseFileError, match="not a release file"):
        reader(tmp_path / "text")
    with zipfile.ZipFile(tmp_path / "zip", "w") as bundle:
        bundle.writestr("hello", "there")
    with pytest.raises(ReleaseFileError, match="not a cloakgp release file"):
        reader(tmp_path / "zip")
    with zipfile.ZipFile(tmp_path / "list", "w") as bundle:
        bundle.writestr("manifest.json", "[]")
        bundle.writestr("manifest.sha256", hashlib.sha256(b"[]").hexdigest())
    with pytest.raises(ReleaseFileError, match="not a cloakgp release file"):
        reader(tmp_path / "list")


def test_a_manifest_that_is_no_json_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "file", "w") as bundle:
        bundle.writestr("manifest.json", "{")
        bundle.writestr("manifest.sha256", hashlib.sha256(b"{").hexdigest())
    for reader in (read, kind_of):
        with pytest.raises(ReleaseFileError, match="damaged"):
            reader(tmp_path / "file")


def test_what_the_parser_objects_to_is_damage(tmp_path):
    path = write(tmp_path / "file")

    def objects(manifest, loaded):  # noqa: ARG001
        raise ValueError("seven legs")

    with pytest.raises(ReleaseFileError, match="damaged: seven legs"):
        read_bundle(path, kind="one output", parse=objects)


def test_what_is_no_json_cannot_be_written(tmp_path):
    with pytest.raises(TypeError):
        bundle_bytes(kind="x", tree=lambda _: {"bad": object()})
    path = write(tmp_path / "file")
    assert json.loads(zipfile.ZipFile(path).read("manifest.json"))["format"] == FORMAT
