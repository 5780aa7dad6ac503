"""Release files: the same doubles back, and no damage or edit that goes unseen."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from cloakgp import DPGPRegressor, Release, ReleaseFileError
from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.release.io.codec import to_tree

POINTS = np.array([[0.1, 0.2], [3.3, -1.0], [7.0, 1 / 3]])


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 10, size=(15, 2))
    return X, np.sin(X[:, 0])


@pytest.fixture
def release(table):
    model = DPGPRegressor(
        RBF([2.0, 3.0]),
        0.1,
        bounds=(-1, 1.5),
        epsilon=1.0,
        delta=1e-3,
        criterion="trace",
        noise="gaussian",
        learn=None,
    )
    return model.fit(*table).release_


@pytest.fixture
def saved(release, tmp_path):
    path = tmp_path / "small.cloakgp"
    release.save(path)
    return path


def repack(payloads, path):
    with zipfile.ZipFile(path, "w") as bundle:
        for name, payload in payloads.items():
            bundle.writestr(name, payload)
    return path


def unpack(path):
    with zipfile.ZipFile(path) as bundle:
        return {name: bundle.read(name) for name in bundle.namelist()}


def forge(path, change, *, digests=True):
    """Edit a file as somebody would who can compute checksums."""
    payloads = unpack(path)
    manifest = json.loads(payloads["manifest.json"])
    change(manifest, payloads)
    if digests and isinstance(manifest.get("sha256"), dict):
        manifest["sha256"] = {
            name: hashlib.sha256(payloads[name]).hexdigest() for name in manifest["sha256"]
        }
    text = json.dumps(manifest).encode()
    payloads["manifest.json"] = text
    if digests:
        payloads["manifest.sha256"] = hashlib.sha256(text).hexdigest().encode()
    return repack(payloads, path)


def assert_same_release(first, second):
    """Equal to the last bit in everything that is published or predicted."""
    assert second.guarantee == first.guarantee
    assert second.insecure == first.insecure
    assert second.input_names == first.input_names
    assert second.output_name == first.output_name
    assert type(second.prior) is type(first.prior)
    assert to_tree(second.prior) == to_tree(first.prior)
    for one, other in zip(first.measurements, second.measurements, strict=True):
        for name in ("X", "matrix", "X_query", "reconstruction"):
            mine, theirs = getattr(one.strategy, name), getattr(other.strategy, name)
            assert mine.tobytes() == theirs.tobytes()
            assert mine.shape == theirs.shape
        assert one.answers.values.tobytes() == other.answers.values.tobytes()
        assert (one.answers.noise_sd, one.question) == (other.answers.noise_sd, other.question)
        assert one.strategy.certificate == other.strategy.certificate
        assert one.strategy.table == other.strategy.table
    points = POINTS[:, : first.n_inputs]
    for mine, theirs in zip(
        first.predict(points, return_cov=True), second.predict(points, return_cov=True), strict=True
    ):
        assert mine.tobytes() == theirs.tobytes()
    assert first.published().values.tobytes() == second.published().values.tobytes()


KERNELS = [
    RBF(2.0),
    RBF([2.0, 1 / 3]),
    Matern(2.0, nu=0.5),
    Matern([1.0, 3.0], nu=np.inf),
    ConstantKernel(2.5) * RationalQuadratic(1.1, 0.3),
    DotProduct(0.3) ** 2 + WhiteKernel(0.1),
    RBF(2.0, length_scale_bounds="fixed") + 0.1 * ExpSineSquared(5.0, 60.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("approximation", ["exact", *APPROXIMATIONS])
def test_the_same_doubles_come_back(kernel, approximation, table, make_release, tmp_path):
    X, y = table
    prior = (
        ExactPrior(kernel=kernel, noise_variance=0.1, mean=1 / 7)
        if approximation == "exact"
        else SparsePrior(
            kernel=kernel,
            noise_variance=0.1,
            mean=1 / 7,
            inducing=X[:4] / 3,
            approximation=approximation,
        )
    )
    release = make_release(prior, X, y)
    release.save(tmp_path / "a")
    assert_same_release(release, Release.load(tmp_path / "a"))


def test_names_and_several_tables_come_back(release, table, tmp_path):
    model = DPGPRegressor(
        RBF([2.0, 3.0]),
        0.1,
        bounds=(-1, 1.5),
        epsilon=1.0,
        delta=1e-3,
        criterion="trace",
        learn=None,
    )
    X, y = table
    other = model.fit(X[:7], y[:7]).release_
    both = release.combine(other, release.combine(other, same_rows=False))
    named = replace(both, input_names=("naïve Länge", "β"), output_name="收入")
    named.save(tmp_path / "a")
    assert_same_release(named, Release.load(tmp_path / "a"))


def test_secure_and_insecure_come_back_as_such(table, tmp_path):
    for seed in (None, 3):
        model = DPGPRegressor(
            RBF(2.0),
            bounds=(-1, 1),
            epsilon=1,
            delta=1e-3,
            insecure_seed=seed,
            criterion="trace",
            learn=None,
        )
        release = model.fit(*table).release_
        release.save(tmp_path / f"{seed}")
        back = Release.load(tmp_path / f"{seed}")
        assert back.insecure is (seed is not None)
        assert_same_release(release, back)


def test_a_release_that_asked_nothing_comes_back(make_release, table, tmp_path):
    X, y = table
    prior = ExactPrior(kernel=RBF(), noise_variance=0.1, mean=0.0)
    release = make_release(prior, X, y, strategy=np.zeros((0, 15)))
    release.save(str(tmp_path / "a"))
    assert_same_release(release, Release.load(str(tmp_path / "a")))


def test_equal_releases_are_equal_files(release, tmp_path):
    paths = [tmp_path / name for name in ("a", "b", "c")]
    release.save(paths[0])
    release.save(paths[1])
    Release.load(paths[0]).save(paths[2])
    assert paths[0].read_bytes() == paths[1].read_bytes() == paths[2].read_bytes()
    with zipfile.ZipFile(paths[0]) as bundle:
        assert {entry.date_time for entry in bundle.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_nothing_is_overwritten_unless_asked(release, saved):
    before = saved.read_bytes()
    with pytest.raises(FileExistsError, match=r"small\.cloakgp exists"):
        release.save(saved)
    assert saved.read_bytes() == before
    saved.write_bytes(b"old")
    release.save(saved, overwrite=True)
    assert saved.read_bytes() == before


def test_a_failed_write_leaves_nothing(release, tmp_path, monkeypatch):
    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        release.save(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_that_cannot_be_written_leaves_nothing(table, make_release, tmp_path):
    class Odd(RBF):
        def __init__(self, length_scale=1.0, length_scale_bounds=(0.1, 1.0), extra=None):
            super().__init__(length_scale, length_scale_bounds)
            self.extra = extra

    prior = ExactPrior(kernel=Odd(extra=object()), noise_variance=0.1, mean=0.0)
    release = make_release(prior, *table)
    with pytest.raises(ValueError, match="kernel parameter 'extra' cannot be written"):
        release.save(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


class Foreign(RBF):
    """A kernel that is not scikit-learn's."""


def test_foreign_kernels_load_with_their_class(table, make_release, tmp_path):
    prior = ExactPrior(kernel=2.0 * Foreign(2.0), noise_variance=0.1, mean=0.0)
    release = make_release(prior, *table)
    release.save(tmp_path / "a")
    with pytest.raises(ReleaseFileError, match=r"unknown kernel 'Foreign'.*kernels=\(\.\.\.,\)"):
        Release.load(tmp_path / "a")
    assert_same_release(release, Release.load(tmp_path / "a", kernels=[Foreign]))


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        Release.load(tmp_path / "a")


@pytest.mark.parametrize("content", [b"", b"age,height\n1,2\n", b"PK\x03\x04", b"\x00" * 1000])
def test_what_is_no_zip_is_no_release(content, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(ReleaseFileError, match="is not a release file, or was cut off"):
        Release.load(path)


def test_another_zip_is_no_release(tmp_path):
    with pytest.raises(ReleaseFileError, match="not a cloakgp release file"):
        Release.load(repack({"a.txt": b"hello"}, tmp_path / "a"))
    payloads = {"manifest.json": b"{}", "manifest.sha256": b""}
    with pytest.raises(ReleaseFileError, match="not a cloakgp release file"):
        Release.load(repack(payloads, tmp_path / "b"))


def test_truncated_files_are_refused(saved):
    content = saved.read_bytes()
    for length in sorted({*range(0, len(content), 97), len(content) - 1, len(content) - 23}):
        saved.write_bytes(content[:length])
        with pytest.raises(ReleaseFileError):
            Release.load(saved)


def flip(saved, release, positions):
    """Flip a byte at each position: refused, or of no consequence. Return other errors."""
    content = saved.read_bytes()
    surprises = {}
    for position in positions:
        for mask in (0x01, 0xFF):
            changed = bytearray(content)
            changed[position] ^= mask
            saved.write_bytes(bytes(changed))
            try:
                back = Release.load(saved)
            except ReleaseFileError:
                continue
            except Exception as error:
                surprises[position, mask] = repr(error)
            else:
                assert_same_release(release, back)
    return surprises


def test_flipped_bytes_inside_entries_are_refused_or_harmless(saved, release):
    with zipfile.ZipFile(saved) as bundle:
        starts = [entry.header_offset + 30 + len(entry.filename) for entry in bundle.infolist()]
        sizes = [entry.compress_size for entry in bundle.infolist()]
    positions = [
        start + offset
        for start, size in zip(starts, sizes, strict=True)
        for offset in {0, 7, size // 3, size // 2, size - 1}
    ]
    assert flip(saved, release, positions) == {}


def test_flipped_bytes_anywhere_are_refused_or_harmless(saved, release):
    with zipfile.ZipFile(saved) as bundle:
        directory = bundle.start_dir
    length = saved.stat().st_size
    # The first entry's header, its line in the directory, and the end of the directory.
    positions = [*range(45), *range(directory, directory + 60), *range(length - 22, length)]
    assert flip(saved, release, positions) == {}


def test_careless_edits_are_noticed(saved):
    def lower(manifest, _):
        manifest["measurements"][0]["answers"]["guarantee"]["epsilon"] = 0.1

    with pytest.raises(ReleaseFileError, match="was changed after it was written"):
        Release.load(forge(saved, lower, digests=False))


def test_an_edited_array_is_noticed(saved):
    payloads = unpack(saved)
    name = next(name for name in payloads if name.endswith(".npy"))
    payloads[name] = payloads[name][:-1] + bytes([payloads[name][-1] ^ 1])
    with pytest.raises(ReleaseFileError, match="was changed after it was written"):
        Release.load(repack(payloads, saved))


def test_missing_arrays_are_noticed(saved):
    payloads = unpack(saved)
    for name in [name for name in payloads if name.endswith(".npy")]:
        rest = {key: value for key, value in payloads.items() if key != name}
        with pytest.raises(ReleaseFileError, match="was changed after it was written"):
            Release.load(repack(rest, saved))


# What stands beside the strategy of a measurement.
OF_ANSWERS = {"values", "guarantee", "noise_sd", "centre"}


def part_of(key):
    return "answers" if key in OF_ANSWERS else "strategy"


def setting(*path, to):
    def change(manifest, _):
        place = manifest
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


def in_measurement(*path, to):
    part = () if path[0] == "question" else (part_of(path[0]),)
    return setting("measurements", 0, *part, *path, to=to)


def bounds(lo, hi):
    return {"type": "bounds", "lo": lo, "hi": hi}


def scale_noise(factor):
    def change(manifest, _):
        manifest["measurements"][0]["answers"]["noise_sd"] *= factor

    return change


def replace_array(key, array):
    def change(manifest, payloads):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, allow_pickle=True)
        payloads[manifest["measurements"][0][part_of(key)][key]] = buffer.getvalue()

    return change


NAN = float("nan")
FORGERIES = {
    "smaller epsilon": (in_measurement("guarantee", "epsilon", to=0.5), "guarantee does not hold"),
    "smaller delta": (in_measurement("guarantee", "delta", to=1e-9), "guarantee does not hold"),
    "smaller mu": (in_measurement("guarantee", "mu", to=0.01), "noise is less than"),
    "mu of nothing": (in_measurement("guarantee", "mu", to=0.0), "carry no noise"),
    "larger mu": (in_measurement("guarantee", "mu", to=9.0), "guarantee does not hold"),
    "less noise": (scale_noise(0.99), "noise is less than"),
    "no noise": (scale_noise(0.0), "carry no noise"),
    "negative noise": (scale_noise(-1.0), "carry no noise"),
    "wider bounds": (in_measurement("question", to=bounds(-99.75, 100.25)), "noise is less than"),
    "longer questions": (replace_array("matrix", np.ones((15, 15))), "do not fit|noise is less"),
    "negative epsilon": (in_measurement("guarantee", "epsilon", to=-1.0), "damaged"),
    "coarse noise": (in_measurement("guarantee", "coarseness", to=2.0), "guarantee does not hold"),
    "newer version": (setting("version", to=99), "version 99 .* install a newer cloakgp"),
    "no version": (lambda manifest, _: manifest.pop("version"), "damaged"),
    "another format": (setting("format", to="zip"), "not a cloakgp release"),
    "no measurements": (setting("measurements", to=[]), "holds no measurement"),
    "measurements of nothing": (setting("measurements", to=None), "damaged"),
    "no prior": (lambda manifest, _: manifest.pop("prior"), "damaged"),
    "unknown kernel": (setting("prior", "kernel", "kernel", to="Evil"), "unknown kernel 'Evil'"),
    "unknown prior": (setting("prior", "type", to="magic"), "of an unknown kind"),
    "a rule for a prior": (setting("prior", "type", to="ball rule"), "of an unknown kind"),
    "something more": (setting("prior", "approximation", to="fitc"), "holds something unknown"),
    "negative noise variance": (setting("prior", "noise_variance", to=-1.0), "damaged"),
    "prior mean of NaN": (setting("prior", "mean", to=NAN), "damaged"),
    "array that is not there": (in_measurement("X", to="array_99.npy"), "was changed"),
    "array from elsewhere": (in_measurement("X", to="../x.npy"), "was changed"),
    "pickled array": (
        replace_array("values", np.array([{"a": 1}], dtype=object)),
        "an array is written in another way",
    ),
    "array of NaN": (replace_array("values", np.array([NAN])), "not of finite numbers"),
    "array of integers": (
        replace_array("X", np.ones((15, 2), int)),
        "an array is written in another way",
    ),
    "too few rows": (replace_array("X", np.ones((14, 2))), "do not fit each other"),
    "too few answers": (replace_array("values", np.ones(1)), "do not fit each other"),
    "too many inputs": (replace_array("X_query", np.ones((15, 3))), "do not fit each other"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_with_good_checksums_are_refused(saved, name):
    change, message = FORGERIES[name]
    with pytest.raises(ReleaseFileError, match=message):
        Release.load(forge(saved, change))


UNSEEN = {
    "mu of NaN": in_measurement("guarantee", "mu", to=NAN),
    "delta of NaN": in_measurement("guarantee", "delta", to=NAN),
    "delta of 2": in_measurement("guarantee", "delta", to=2.0),
    "fewer answers": in_measurement("guarantee", "answers", to=0),
    "finer noise": in_measurement("guarantee", "coarseness", to=-1.0),
    "noise of NaN": in_measurement("noise_sd", to=NAN),
    "infinite noise": in_measurement("noise_sd", to=float("inf")),
    "reversed bounds": in_measurement("question", to=bounds(1.5, -1.0)),
    "equal bounds": in_measurement("question", to=bounds(1.0, 1.0)),
    "bounds of NaN": in_measurement("question", to=bounds(NAN, 1.0)),
    "centre of NaN": in_measurement("centre", to=NAN),
    "centre elsewhere": in_measurement("centre", to=1e6),
    "checksums as a list": setting("sha256", to=["a"]),
    "kernel of negative lengthscale": setting(
        "prior", "kernel", to={"kernel": "RBF", "parameters": {"length_scale": NAN}}
    ),
    "criterion unknown": in_measurement("certificate", "criterion", to="magic"),
    "kernel parts that are words": setting(
        "prior", "kernel", to={"kernel": "Sum", "parameters": {"k1": "a", "k2": "b"}}
    ),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_subtler_forgeries_are_refused(saved, name):
    with pytest.raises(ReleaseFileError):
        Release.load(forge(saved, UNSEEN[name]))


def test_files_hold_no_pickle(saved):
    for name, payload in unpack(saved).items():
        assert name.startswith("manifest.") or payload.startswith(b"\x93NUMPY")
        assert b"sklearn" not in payload


def kernels_of(tree, name):
    """Descriptions of the kernels of a name, however deep, by their parameters."""
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    own = [tree["parameters"]] if isinstance(tree, dict) and tree.get("kernel") == name else []
    return own + [each for value in inner for each in kernels_of(value, name)]


EDITS = {
    "a shorter centre": ("LinearKernel", lambda one: one["centre"]["array"].pop()),
    "a longer scale": ("LinearKernel", lambda one: one["scale"]["array"].append(1.0)),
    "no centre": ("LinearKernel", lambda one: one.update(centre=None)),
    "a centre of text": ("LinearKernel", lambda one: one.update(centre="a")),
    "a scale of zero": ("LinearKernel", lambda one: one.update(scale={"array": [0.0, 0.0, 0.0]})),
    "more lengthscales": ("Matern", lambda one: one["length_scale"]["array"].append(1.0)),
    "no lengthscales": ("Matern", lambda one: one.update(length_scale=None)),
    "lengthscales in a matrix": ("Matern", lambda one: one.update(length_scale={"array": [[1.0]]})),
    "an odd smoothness": ("Matern", lambda one: one.update(nu="rough")),
    "a variance beyond all": ("ConstantKernel", lambda one: one.update(constant_value=1e200)),
}


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A file of the default kernel over three inputs, and of what was learned of it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (60, 3))
    model = DPGPRegressor(bounds=(0, 10), epsilon=2.0, delta=1e-5, insecure_seed=0)
    path = tmp_path_factory.mktemp("learned") / "a.cloak"
    model.fit(X, X.mean(axis=1)).release_.save(path)
    return path


@pytest.mark.parametrize("place", ["prior", "learned"])
@pytest.mark.parametrize("name", EDITS)
def test_kernels_that_are_edited_by_hand_are_refused_in_plain_words(learned, tmp_path, place, name):
    """With digests that fit: what cannot be computed with is seen when the file is opened."""
    kernel, change = EDITS[name]

    def edit(manifest, _payloads):
        found = kernels_of(manifest[place], kernel)
        assert found
        change(found[0])

    edited = tmp_path / "edited.cloak"
    edited.write_bytes(learned.read_bytes())
    forge(edited, edit)
    with pytest.raises(ReleaseFileError) as refused:
        Release.load(edited)
    for raw in ("broadcast", "NoneType", "shapes (", "float()", "not supported", "axis"):
        assert raw not in str(refused.value)
    Release.load(learned)


@pytest.mark.parametrize("place", ["prior", "learned"])
@pytest.mark.parametrize(("name", "number"), [("noise_variance", 1e308), ("mean", -1e308)])
def test_numbers_that_nothing_can_be_computed_with_are_refused(
    learned, tmp_path, place, name, number
):
    def edit(manifest, _payloads):
        outer = manifest[place] if place == "prior" else manifest[place][0]["prior"]
        assert name in outer
        outer[name] = number

    edited = tmp_path / "edited.cloak"
    edited.write_bytes(learned.read_bytes())
    forge(edited, edit)
    with pytest.raises(ReleaseFileError, match="mean or noise variance is damaged"):
        Release.load(edited)
