"""Files written to do harm: small, and yet more than a machine holds, or than a stack bears.

Each of them is refused with a sentence, in little memory and little time.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import signal
import socket
import struct
import time
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest
from row_fits import release_rows
from sklearn.gaussian_process.kernels import RBF

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    MultiOutputRelease,
    Release,
    ReleaseFileError,
    StatisticsRelease,
    load,
)
from cloakgp.data import ArrayRows
from cloakgp.estimators.baselines import DPHistogramRegressor, NoisyHistogram
from cloakgp.models.features import MOST_DIMENSIONS
from cloakgp.release.io.bundle import (
    COEFFICIENTS,
    FORMAT,
    FORMAT_VERSION,
    MOST_MARKS,
    MOST_TEXT,
    bundle_bytes,
    kind_of,
    read_bundle,
)
from cloakgp.release.open import KINDS

# Other work on the machine takes none of the processor seconds, and makes one wait.
MOST_MEMORY, MOST_SECONDS, MOST_WAITING = 64 * 2**20, 30, 600
KIND = "one output"


@contextmanager
def bounded(*, seconds=MOST_SECONDS, waiting=MOST_WAITING, memory=MOST_MEMORY):
    """Fail if what is done takes much processor time, or memory; or waits without end."""

    def late(*_):
        raise AssertionError(f"took more than {seconds} s, or waited for {waiting} s")

    timers = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, late) for number in timers}
    tracemalloc.start()
    # A timer may end as soon as it is set: the other one must not outlive this.
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, waiting)
        yield
        assert tracemalloc.get_traced_memory()[1] < memory
    finally:
        tracemalloc.stop()
        for timer in timers.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def spin():
    while True:
        pass


def test_bounds_are_noticed():
    with pytest.raises(AssertionError, match="took more"), bounded(seconds=0.01):
        spin()
    with pytest.raises(AssertionError, match="took more"), bounded(waiting=0.01):
        time.sleep(1e6)
    with pytest.raises(AssertionError), bounded():
        np.ones(MOST_MEMORY // 8)


def read(path, **settings):
    return read_bundle(
        path,
        kind=KIND,
        parse=lambda manifest, loaded: [loaded(name) for name in manifest["arrays"]],
        **settings,
    )


def refused(path, said):
    with bounded(), pytest.raises(ReleaseFileError, match=said) as caught:
        read(path)
    assert len(str(caught.value)) < 1000


def digest(content):
    return hashlib.sha256(content).hexdigest()


def members(contents, *, text=None, **entries):
    """Return members with checksums that fit, whatever their contents."""
    manifest = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "kind": KIND,
        "arrays": list(contents),
        "sha256": {name: digest(content) for name, content in contents.items()},
        **entries,
    }
    text = json.dumps(manifest).encode() if text is None else text
    return {**contents, "manifest.json": text, "manifest.sha256": digest(text).encode()}


def pack(path, contents, *, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as bundle:
        for name, content in contents.items():
            bundle.writestr(name, content)
    return path


def npy(header, *, numbers=b"", version=b"\x01\x00"):
    header = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header + numbers


def described(shape, *, descr="<f8", fortran_order=False):
    return f"{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': {shape}, }}"


GOOD = npy(described((2,)), numbers=np.arange(2.0).tobytes())
ZEROS = 2**28 + 2**20


def test_what_is_forged_here_would_be_read_if_it_were_harmless(tmp_path):
    [array] = read(pack(tmp_path / "file", members({"a.npy": GOOD})))
    np.testing.assert_array_equal(array, [0.0, 1.0])


@pytest.mark.parametrize("listed", [False, True])
def test_zeros_that_unpack_to_more_than_is_allowed(tmp_path, listed):
    zeros = npy(described((ZEROS // 8,)), numbers=bytes(ZEROS))
    contents = members({"a.npy": zeros} if listed else {"a.npy": GOOD}) | {"a.npy": GOOD}
    contents |= {"a.npy" if listed else "more": zeros}
    path = pack(tmp_path / "file", contents)
    assert path.stat().st_size < ZEROS / 100
    refused(path, r"would unpack to 2\d\d,.* are allowed.*max_bytes")


def test_what_the_manifest_does_not_list(tmp_path):
    refused(pack(tmp_path / "file", members({"a.npy": GOOD}) | {"more": b"!"}), "does not list")


def test_who_trusts_a_file_may_allow_more_and_who_does_not_less(tmp_path):
    path = pack(tmp_path / "file", members({"a.npy": GOOD}))
    with pytest.raises(ReleaseFileError, match="100 are allowed"):
        read(path, max_bytes=100)
    assert len(read(path, max_bytes=1000)) == 1


def test_whatever_is_written_can_be_read(tmp_path, monkeypatch):
    """What would unpack to suspiciously much is written unpacked."""
    monkeypatch.setattr("cloakgp.release.io.bundle.ALWAYS_BYTES", 10_000)
    monkeypatch.setattr("cloakgp.release.io.members.ALWAYS_BYTES", 10_000)
    for entries in (100, 1_000_000):
        content = bundle_bytes(
            kind=KIND, tree=lambda stored, n=entries: {"arrays": [stored(np.zeros(n))]}
        )
        (tmp_path / "file").write_bytes(content)
        assert read(tmp_path / "file")[0].shape == (entries,)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (npy(described((10**12,)), numbers=bytes(8)), "another size"),
        (npy(described((0, 10**12))), "another size"),
        (npy(described((2**62, 4)), numbers=bytes(8)), "another size"),
        (npy(described((-2, -1)), numbers=bytes(16)), "in another way"),
        (npy(described((1,)), numbers=bytes(7)), "another size"),
        (npy(described((1,)), numbers=bytes(9)), "another size"),
        (npy(described((1,) * 100), numbers=bytes(8)), "damaged"),
        (npy(described("(1 1)"), numbers=bytes(8)), "damaged"),
        (npy(described((1,), descr="|O"), numbers=b"cos\nsystem\n(S'id'\ntR."), "another way"),
        (npy(described((2,), descr="<f4"), numbers=bytes(8)), "in another way"),
        (npy(described((1,), descr=">f8"), numbers=bytes(8)), "in another way"),
        (npy(described((1, 1), fortran_order=True), numbers=bytes(8)), "in another way"),
        (npy(described((1,)), numbers=bytes(8), version=b"\x02\x00"), "in another way"),
        (npy(described((1,)), numbers=bytes(8)).replace(b"w\x00", b"x\x00"), "in another way"),
        (npy(described((1,)), numbers=struct.pack("<d", np.inf)), "finite numbers"),
        (npy("(" * 9000), "in another way"),
        (npy("[" * 90), "in another way"),
        (npy("9" * 9000), "in another way"),
        (npy(described((10**999, 10**999)), numbers=bytes(8)), "in another way"),
        (npy(described((10**400, 10**400)), numbers=bytes(8)), "another size"),
        (b"", "in another way"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "in another way"),
    ],
    ids=lambda case: str(case)[:60],
)
def test_arrays_that_are_not_what_they_say(tmp_path, array, said):
    refused(pack(tmp_path / "file", members({"a.npy": array})), said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[" * 200_000 + b"]" * 200_000, "nested far deeper"),
        (b'{"a":' * 200_000 + b"1" + b"}" * 200_000, "nested far deeper"),
        (b'["' + b'\\"' * 100 + b'",' + b"[" * 300 + b"]" * 300 + b"]", "nested far deeper"),
        (b"[" + b"[]," * MOST_MARKS + b"1]", "far more entries"),
        (b'"' + b" " * MOST_TEXT + b'"', "far more than any has"),
        (b'"' + b'\\"' * 2_000_000, "damaged"),
        (b'"' * 4_000_000 + b"\\", "damaged"),
        ('{"format": "x"}'.encode("utf-32"), "damaged"),
        (b"9" * 10_000, "damaged"),
        (b"\xff", "damaged"),
    ],
    ids=lambda case: str(case[:12]),
)
def test_manifests_that_no_parser_should_see(tmp_path, text, said):
    refused(pack(tmp_path / "file", members({}, text=text)), said)


def test_brackets_in_names_are_no_depth(tmp_path):
    names = {"names": ["[" * 1000, '\\"' + "{" * 1000, "é,,,[["]}
    assert len(read(pack(tmp_path / "file", members({"a.npy": GOOD}, **names)))) == 1


def test_an_array_is_loaded_once(tmp_path):
    """Else a small file could have the same large array checked a million times."""
    path = pack(tmp_path / "file", members({"a.npy": GOOD}, arrays=["a.npy"] * 100_000))
    with bounded(seconds=5):
        first, *others = read(path)
    assert all(other is first for other in others)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
@pytest.mark.parametrize("damaged", [False, True])
def test_other_ways_of_packing(tmp_path, method, damaged):
    path = pack(tmp_path / "file", members({"a.npy": GOOD}), method=method)
    if damaged:
        content = bytearray(path.read_bytes())
        content[40:60] = bytes(20)
        path.write_bytes(content)
    refused(path, "packed in a way")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "file", "w") as bundle:
        for name, content in members({"a.npy": GOOD}).items():
            bundle.writestr(name, content)
        bundle.writestr("a.npy", GOOD)
    refused(tmp_path / "file", "same name")


def test_very_many_members(tmp_path):
    path = pack(tmp_path / "file", members({"a.npy": GOOD}) | {str(n): b"" for n in range(8000)})
    refused(path, "does not list")


def with_directory(path, offset, form, value):
    """Change a field of the directory's entry of the first member."""
    content = bytearray(path.read_bytes())
    struct.pack_into(form, content, content.index(b"PK\x01\x02") + offset, value)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("offset", "form", "value", "said"),
    [
        # Method, flags, and sizes packed and unpacked.
        (10, "<H", 99, "packed in a way"),
        (8, "<H", 1, "encrypted"),
        (20, "<I", 5, "cut off"),
        (24, "<I", 2**32 - 2, "would unpack to"),
        (24, "<I", 10, "cut off|changed"),
        (24, "<I", 100_000, "cut off"),
        # More than could be packed into it, and memory for it would be too much.
        (24, "<I", 2**27, "cut off"),
        (16, "<I", 7, "cut off"),
    ],
)
def test_directories_that_lie(tmp_path, offset, form, value, said):
    path = pack(tmp_path / "file", members({"a.npy": GOOD}))
    refused(with_directory(path, offset, form, value), said)


def test_ends_that_lie(tmp_path):
    path = pack(tmp_path / "file", members({"a.npy": GOOD}))
    content = path.read_bytes()
    end = content.rindex(b"PK\x05\x06")
    for offset in (12, 16):
        changed = bytearray(content)
        struct.pack_into("<I", changed, end + offset, 2**32 - 2)
        path.write_bytes(changed)
        refused(path, "cut off|cloakgp release file")


def test_pipes_devices_sockets_and_folders(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as plug:
        # Names of sockets are short.
        place = os.open(tmp_path, os.O_RDONLY)
        plug.bind(f"/proc/self/fd/{place}/plug")
        os.close(place)
        for odd in (tmp_path / "pipe", "/dev/zero", "/dev/null", tmp_path, tmp_path / "plug"):
            refused(odd, "no ordinary file")
            with bounded(), pytest.raises(ReleaseFileError, match="no ordinary file"):
                kind_of(odd)
            with bounded(), pytest.raises(ReleaseFileError, match="no ordinary file"):
                NoisyHistogram.load(odd)


def test_messages_quote_little(tmp_path):
    path = pack(tmp_path / "file", members({"a.npy": GOOD}, arrays=["x" * 10**6]))

    def objects(manifest, _):
        raise KeyError(manifest["arrays"][0])

    with pytest.raises(ReleaseFileError, match="damaged") as caught:
        read_bundle(path, kind=KIND, parse=objects)
    assert len(str(caught.value)) < 1000
    refused(pack(tmp_path / "file", members({"a.npy": GOOD}, kind="x" * 10**6)), "a release of xx")


# Files of every kind.


X, Y = np.linspace(0, 10, 12)[:, None], np.sin(np.linspace(0, 10, 12))
BUDGET = {"epsilon": 1.0, "delta": 1e-3}


def made(kind):
    """Return a release of a kind."""
    if kind == "one output":
        return DPGPRegressor(bounds=(-1, 1), **BUDGET).fit(X, Y).release_
    if kind == "one output, classes":
        return DPGPClassifier(classes=[0, 1], **BUDGET).fit(X, (Y > 0).astype(int)).release_
    if kind == "regression of several outputs":
        both = np.column_stack([Y, Y])
        return DPGPMultiOutputRegressor(bounds=[(-1, 1)] * 2, **BUDGET).fit(X, both).release_
    if kind == "statistics":
        model = DPGPRegressorPrivateInputs(
            RBF(2.0), input_bounds=[(0, 10)], bounds=(-1, 1), n_features=4, **BUDGET
        )
        return model.fit(X, Y).release_
    if kind == "histogram":
        return DPHistogramRegressor(bounds=(-1, 1), **BUDGET).fit(X, Y).release_
    assert kind == "one output, many rows"
    from cloakgp.privacy import OutputBounds

    return release_rows(
        ArrayRows(X, Y),
        bounds=OutputBounds(-1.0, 1.0),
        query=None,
        inducing=3,
        **BUDGET,
    )


CLASSES = {
    "one output": Release,
    "one output, many rows": Release,
    "one output, classes": Release,
    "regression of several outputs": MultiOutputRelease,
    "statistics": StatisticsRelease,
    "histogram": NoisyHistogram,
}


@pytest.fixture(scope="module", params=CLASSES)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def saved(kind):
    """The content of a file of each kind."""
    return made(kind).to_bytes()


def contents_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        return {name: bundle.read(name) for name in bundle.namelist()}


def forged(path, content, change):
    """Write a file with another manifest, as somebody would who can compute checksums."""
    contents = contents_of(content)
    manifest = json.loads(contents["manifest.json"])
    change(manifest)
    text = json.dumps(manifest).encode()
    return pack(path, contents | {"manifest.json": text, "manifest.sha256": digest(text).encode()})


def test_every_kind_is_tried():
    assert {kind.split(",")[0] for kind in CLASSES} == set(KINDS)


def test_files_come_back_the_same(kind, saved, tmp_path):
    (tmp_path / "file").write_bytes(saved)
    assert CLASSES[kind].load(tmp_path / "file").to_bytes() == saved
    assert kind_of(tmp_path / "file") == kind.split(",")[0]
    for loader in (CLASSES[kind].load, load):
        with pytest.raises(ReleaseFileError, match="10 are allowed"):
            loader(tmp_path / "file", max_bytes=10)


def test_whoever_trusts_a_large_file_opens_it(kind, saved, tmp_path, monkeypatch):
    monkeypatch.setattr("cloakgp.release.io.members.MOST_BYTES", 10)
    (tmp_path / "file").write_bytes(saved)
    for loader in (CLASSES[kind].load, load):
        with pytest.raises(ReleaseFileError, match="open it in Python with max_bytes"):
            loader(tmp_path / "file")
        assert loader(tmp_path / "file", max_bytes=10**6).to_bytes() == saved


def test_newer_files_are_refused_with_advice(kind, saved, tmp_path):
    path = forged(tmp_path / "file", saved, lambda manifest: manifest.update(version=1000))
    with pytest.raises(ReleaseFileError, match=r"format version 1000 .* install a newer cloakgp"):
        CLASSES[kind].load(path)


@pytest.mark.parametrize("kind", sorted(set(CLASSES) - {"histogram"}), indirect=True)
@pytest.mark.parametrize("depth", [101, 124, 240])
def test_kernels_within_kernels(kind, saved, tmp_path, depth):
    def deepen(manifest):
        place = manifest.get("basis") or manifest.get("entries", manifest)["prior"]
        for _ in range(depth):
            place["kernel"] = {
                "kernel": "Exponentiation",
                "parameters": {"kernel": place["kernel"], "exponent": 1.0},
            }

    path = forged(tmp_path / "file", saved, deepen)
    with bounded(), pytest.raises(ReleaseFileError, match=r"nested (far deeper|more than 100)"):
        CLASSES[kind].load(path)


@pytest.mark.parametrize("kind", sorted(set(CLASSES) - {"histogram"}), indirect=True)
def test_very_many_kernels(kind, saved, tmp_path):
    def multiply(manifest):
        place = manifest.get("basis") or manifest.get("entries", manifest)["prior"]
        for _ in range(11):
            parts = {"k1": place["kernel"], "k2": place["kernel"]}
            place["kernel"] = {"kernel": "Sum", "parameters": parts}

    path = forged(tmp_path / "file", saved, multiply)
    with bounded(), pytest.raises(ReleaseFileError, match="more than 1000 kernels"):
        CLASSES[kind].load(path)


def test_damaged_files_are_refused_or_read_as_they_were(kind, saved, tmp_path):
    path, chance = tmp_path / "file", random.Random(3)
    with bounded(seconds=120):
        for trial in range(120):
            content = bytearray(saved)
            if trial % 4 == 0:
                del content[chance.randrange(len(content)) :]
            else:
                for _ in range(chance.choice([1, 1, 8])):
                    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            path.write_bytes(content)
            try:
                again = CLASSES[kind].load(path).to_bytes()
            except ReleaseFileError:
                continue
            assert again == saved


ODD_VALUES = [
    *(0, -1, 2, -1.5, 1e308, -1e308, 1e-320, float("nan"), float("inf"), 10**15, 10**400),
    *(None, True, "", "x", "array_0.npy", [], {}, [[]], {"array": [1, 2]}, {"kernel": "RBF"}),
]


def places(tree, place=()):
    """Return every place in a tree but the root."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for name, entry in entries:
        yield (*place, name)
        if isinstance(entry, dict | list):
            yield from places(entry, (*place, name))


def test_forged_manifests_are_refused_or_read(kind, saved, tmp_path):
    """Whatever a manifest says: an error of one kind, or a release, and soon."""
    chance, read_ones = random.Random(4), 0
    for _ in range(100):

        def forge(manifest):
            # What is for other languages is not read, and says nothing here.
            place = chance.choice([each for each in places(manifest) if each[0] != COEFFICIENTS])
            inner = manifest
            for name in place[:-1]:
                inner = inner[name]
            if chance.random() < 0.1:
                del inner[place[-1]]
            else:
                inner[place[-1]] = chance.choice(ODD_VALUES)

        path = forged(tmp_path / "file", saved, forge)
        with bounded(seconds=60):
            try:
                CLASSES[kind].load(path)
            except ReleaseFileError:
                continue
        read_ones += 1
    assert read_ones < 50


def cube(dimensions):
    """The unit cube, as files write boxes."""
    return {"lo": [0.0] * dimensions, "hi": [1.0] * dimensions}


@pytest.mark.parametrize("kind", ["statistics"], indirect=True)
@pytest.mark.parametrize(
    ("basis", "said"),
    [
        ({"type": "eigenfunctions", "wanted": 3, "box": cube(30_000)}, "2048 inputs at most"),
        ({"type": "bins", "bins": [10**9], "box": cube(1)}, "do not fit its basis"),
        ({"type": "eigenfunctions", "wanted": 10**15, "box": cube(1)}, "do not fit its basis"),
    ],
    ids=["box", "bins", "wanted"],
)
def test_bases_that_would_be_large(kind, saved, tmp_path, basis, said):
    def enlarge(manifest):
        manifest["basis"] = {"kernel": manifest["basis"]["kernel"], **basis}

    path = forged(tmp_path / "file", saved, enlarge)
    with bounded(), pytest.raises(ReleaseFileError, match=said):
        CLASSES[kind].load(path)


@pytest.mark.parametrize("kind", ["statistics"], indirect=True)
def test_the_largest_box_that_may_be(kind, saved, tmp_path):
    box = cube(MOST_DIMENSIONS)
    path = forged(tmp_path / "file", saved, lambda manifest: manifest["basis"].update(box=box))
    with bounded():
        assert CLASSES[kind].load(path).n_inputs == MOST_DIMENSIONS


@pytest.mark.parametrize(
    ("edit", "said"),
    [({"box": cube(30_000)}, "2048 inputs at most"), ({"wanted": 10**15}, "damaged")],
    ids=["box", "wanted"],
)
def test_cosines_that_would_be_many(tmp_path, edit, said):
    model = DPGPRegressorPrivateInputs(input_bounds=[(0, 10)], bounds=(-1, 1), **BUDGET)
    model.fit(X, Y).release_.save(tmp_path / "sound")
    path = forged(
        tmp_path / "file",
        (tmp_path / "sound").read_bytes(),
        lambda manifest: manifest["basis"].update(edit),
    )
    with bounded(), pytest.raises(ReleaseFileError, match=said):
        StatisticsRelease.load(path)
