"""The published histogram: files, and files that were meddled with."""

import json

import numpy as np
import pytest

from cloakgp.baselines import DPHistogramRegressor, NoisyHistogram


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", "other"),
        ("version", 2),
        ("noise_sd", 0.1),
        ("noise_sd", float("nan")),
        ("noise", "none"),
        ("sums", [1.0]),
        ("counts", [0.0, 1.0, 1.0, 1.0, 1.0]),
        ("counts", [float("nan"), 1.0, 1.0, 1.0, 1.0]),
        ("cells", [0, 1, 2, 3, 99]),
        ("cells", [0, 1, 2, 2, 3]),
        ("edges", [[0.0, 1.0]]),
        ("edges", [[0.0, 2.0, 1.0, 4.0, 5.0, 6.0], [2.0, 2.0]]),
        ("bounds", [0.0, 100.0]),
        ("guarantee", {"epsilon": 0.1}),
        ("guarantee", {"epsilon": 0.1, "delta": 0.0, "mu": 1.0}),
    ],
)
def test_meddled_files_are_refused(histogram, tmp_path, name, value):
    path = tmp_path / "one.json"
    histogram.save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    with pytest.raises(ValueError, match="not a histogram"):
        NoisyHistogram.load(path)


def test_what_is_no_histogram_is_refused(tmp_path):
    for text in ("", "[]", "{}", "null"):
        (tmp_path / "none.json").write_text(text)
        with pytest.raises(ValueError, match="not a histogram"):
            NoisyHistogram.load(tmp_path / "none.json")


def test_points_need_all_inputs(histogram):
    with pytest.raises(ValueError, match="columns"):
        histogram.predict([[1.0]])
