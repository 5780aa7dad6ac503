"""The published histogram: files, and files that were meddled with."""

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest

from cloakgp import DPGPRegressor, ReleaseFileError
from cloakgp.estimators.baselines import DPHistogramRegressor, NoisyHistogram


@pytest.fixture(params=["gaussian", "laplace"])
def histogram(request, rng):
    X = np.column_stack([rng.uniform(0, 8, size=40), np.full(40, 2.0)])
    model = DPHistogramRegressor(5, bounds=(0, 1), epsilon=1.0, delta=1e-3, noise=request.param)
    return model.fit(X, rng.uniform(size=40)).release_


def test_files_hold_everything(histogram, tmp_path):
    histogram.save(tmp_path / "one.json")
    again = NoisyHistogram.load(tmp_path / "one.json")
    points = np.array([[0.0, 2.0], [4.4, 9.0], [99.0, 2.0]])
    for one, other in zip(
        again.predict(points, return_std=True),
        histogram.predict(points, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    assert again.guarantee == histogram.guarantee
    assert (again.noise, again.bounds) == (histogram.noise, histogram.bounds)
    assert repr(again) == repr(histogram)
    again.save(tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_files_are_not_overwritten_unasked(histogram, tmp_path):
    histogram.save(tmp_path / "one.json")
    with pytest.raises(FileExistsError):
        histogram.save(tmp_path / "one.json")
    histogram.save(tmp_path / "one.json", overwrite=True)


def forge(path, name, value):
    """Change an entry, or the array it names, as somebody would who can compute checksums."""
    with zipfile.ZipFile(path) as bundle:
        payloads = {name: bundle.read(name) for name in bundle.namelist()}
    manifest = json.loads(payloads["manifest.json"])
    array = manifest[name]
    if isinstance(array, str) and array in payloads:
        content = io.BytesIO()
        np.save(content, np.array(value, dtype=np.float64))
        payloads[array] = content.getvalue()
        manifest["sha256"][array] = hashlib.sha256(payloads[array]).hexdigest()
    else:
        manifest[name] = value
    text = json.dumps(manifest).encode()
    payloads["manifest.json"] = text
    payloads["manifest.sha256"] = hashlib.sha256(text).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as bundle:
        for name, payload in payloads.items():
            bundle.writestr(name, payload)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", "other"),
        ("version", 1000),
        ("version", 2),
        ("noise_sd", 0.1),
        ("noise_sd", float("nan")),
        ("noise", "none"),
        ("sums", [1.0]),
        ("counts", [0.0, 1.0, 1.0, 1.0, 1.0]),
        ("counts", [float("nan"), 1.0, 1.0, 1.0, 1.0]),
        ("places", [[0, 0], [1, 0], [2, 0], [3, 0], [99, 0]]),
        ("places", [[0, 0], [1, 0], [2, 0], [2, 0], [3, 0]]),
        ("places", [[0, 0], [1, 0], [2, 0], [2.5, 0], [3, 0]]),
        ("places", [[-1, 0], [1, 0], [2, 0], [3, 0], [4, 0]]),
        ("places", [[0], [1], [2], [3], [4]]),
        ("places", [[0, 0], [2, 0], [1, 0], [3, 0], [4, 0]]),
        ("bins", {"edges": []}),
        ("bins", {"edges": ["array_0.npy"]}),
        ("bins", {"edges": ["array_1.npy", "array_0.npy"]}),
        ("bins", {"edges": ["array_3.npy", "array_1.npy"]}),
        ("bounds", [0.0, 100.0]),
        ("guarantee", {"epsilon": 0.1}),
        ("guarantee", {"type": "pure differential privacy", "epsilon": 0.1}),
        ("guarantee", {"epsilon": 0.1, "delta": 0.0, "mu": 1.0}),
    ],
)
def test_meddled_files_are_refused(histogram, tmp_path, name, value):
    path = tmp_path / "one.cloak"
    histogram.save(path)
    forge(path, name, value)
    with pytest.raises(ReleaseFileError):
        NoisyHistogram.load(path)


def test_damage_is_noticed_and_named(histogram, tmp_path):
    path = tmp_path / "one.cloak"
    histogram.save(path)
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    with pytest.raises(ReleaseFileError, match=r"cut off|changed"):
        NoisyHistogram.load(path)


def test_what_is_no_histogram_is_refused(tmp_path):
    path = tmp_path / "none.cloak"
    for text in ("", "[]", "{}", "null", "{", '{"format": 1}', '{"a":' * 10**5):
        path.write_text(text)
        with pytest.raises(
            ReleaseFileError, match=r"not a release file|damaged|nested|unknown format"
        ):
            NoisyHistogram.load(path)
    DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3).fit([[0.0], [1.0]], [0, 1]).release_.save(
        path, overwrite=True
    )
    with pytest.raises(ReleaseFileError, match=r"a release of one output: open it with cloakgp\."):
        NoisyHistogram.load(path)


def test_points_need_all_inputs(histogram):
    with pytest.raises(ValueError, match="columns"):
        histogram.predict([[1.0]])


@pytest.mark.parametrize(
    ("asked", "of_what"),
    [("predict_interval", 0.9), ("predict_quantile", [0.5]), ("probability_above", 0.5)],
)
def test_distributions_of_new_outputs_are_refused(histogram, asked, of_what):
    with pytest.raises(TypeError, match="NoisyHistogram knows noisy means and not how outputs"):
        getattr(histogram, asked)([[1.0, 2.0]], of_what)
