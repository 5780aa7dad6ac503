"""Releases of every kind, kept as files, load and predict as they did when they were made.

The files, and what was expected of each when it was made, are in ``data/golden``; where the form of
files changes, the script there rewrites them. Predictions are compared to a billionth of their
size: they are recomputed from the file, and kernels of linear algebra differ in the last bits. All
noise is from fixed seeds, and the data are invented.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cloakgp import load as opened
from cloakgp.release.io.bundle import COEFFICIENTS, FORMAT_VERSION
from cloakgp.report.describe import describe

GOLDEN = Path(__file__).parent / "data" / "golden"
KINDS = sorted(path.stem for path in GOLDEN.glob("*.cloak"))
# Those about a choice by the exponential mechanism take long.
IN_WORDS = [
    pytest.param(kind, marks=[pytest.mark.slow] * ("exponential" in kind)) for kind in KINDS
]
TOLERANCE = 1e-9


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def path_of(kind):
    return GOLDEN / f"{kind}.cloak"


def expected_of(kind):
    return json.loads((GOLDEN / f"{kind}.json").read_text(encoding="utf-8"))


def assert_alike(found, expected):
    """Equal to a billionth of the largest entry."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    if expected.dtype.kind == "f":
        size = np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE * size)
    else:
        np.testing.assert_array_equal(found, expected)


def assert_predicts(release, expected):
    points = np.array(expected["points"])
    known = dict(expected["predictions"])
    if "probabilities" in known:
        latent = release.predict_latent(points)
        found = {
            "classes": release.classes,
            "labels": release.predict(points),
            "probabilities": release.predict_proba(points),
            "probabilities_without_privacy_noise": release.predict_proba(
                points, privacy_noise=False
            ),
            "latent": [latent.mean, latent.sd, latent.privacy_sd],
        }
    elif "mean_probabilities" in known:
        found = {"mean_probabilities": release.predict_proba(points)}
    elif "quantiles" in known:
        lower, upper = release.predict_limits(points)
        found = {"quantiles": release.predict(points), "lower": lower, "upper": upper}
    else:
        found = dict(zip(("mean", "sd"), release.predict(points, return_std=True), strict=True))
        if "sd_of_new_output" in known:
            _, found["sd_of_new_output"] = release.predict(points, return_std=True, new_output=True)
        if "covariance" in known:
            _, found["covariance"] = release.predict(points, return_cov=True)
    if "quartiles_of_new_output" in known:
        found["quartiles_of_new_output"] = release.predict_quantile(points, [0.25, 0.75])
    if "interval_of_new_output" in known:
        found["interval_of_new_output"] = release.predict_interval(points, 0.8)
    assert found.keys() == known.keys()
    for name, values in known.items():
        if name == "latent":
            for moment, known_moment in zip(found[name], values, strict=True):
                assert_alike(moment, known_moment)
        else:
            assert_alike(found[name], values)


def test_there_are_files_of_every_kind():
    written = {path.stem for path in GOLDEN.glob("*.json")}
    assert written == set(KINDS)
    assert len(KINDS) >= 40
    assert sum(path.stat().st_size for path in GOLDEN.iterdir() if path.is_file()) < 800_000


def test_it_predicts_as_it_did_and_after_being_saved_again(kind, tmp_path):
    release, expected = opened(path_of(kind)), expected_of(kind)
    assert_predicts(release, expected)
    release.save(tmp_path / "again.cloak")
    assert_predicts(opened(tmp_path / "again.cloak"), expected)
    if expected["input_names"] is not None:
        assert list(release.input_names) == expected["input_names"]
    if expected["output_name"] is not None:
        assert release.output_name == expected["output_name"]


def test_what_other_programs_predict_by_is_in_a_file_that_is_written_again(kind):
    """Of kept files alone, readers in other languages would not notice that it is gone."""

    def told(content):
        with zipfile.ZipFile(io.BytesIO(content)) as bundle:
            return set(json.loads(bundle.read("manifest.json")).get(COEFFICIENTS, {}))

    assert told(opened(path_of(kind)).to_bytes()) >= told(path_of(kind).read_bytes())


def test_it_guarantees_what_it_did(kind):
    release, expected = opened(path_of(kind)), expected_of(kind)
    assert release.insecure is expected["insecure"] is True
    guarantee, known = release.guarantee, expected["guarantee"]
    assert_alike(
        [guarantee.epsilon, guarantee.delta, guarantee.mu],
        [known["epsilon"], known["delta"], known["mu"]],
    )
    for epsilon, delta in known["deltas"]:
        assert guarantee.delta_at(epsilon) == pytest.approx(delta, rel=1e-7, abs=1e-15)
    if "laplace" in known:
        assert list(guarantee.laplace) == known["laplace"]
    if "selection_epsilon" in known:
        assert guarantee.selection_epsilon == known["selection_epsilon"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "published" in expected_of(kind)])
def test_its_raw_predictions_are_what_they_were(kind):
    published = opened(path_of(kind)).published()
    values, variances = expected_of(kind)["published"]
    assert_alike(published.values, values)
    assert_alike(np.diag(published.noise_cov), variances)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "function" in expected_of(kind)])
def test_its_function_is_what_it_was(kind):
    expected = expected_of(kind)
    function = opened(path_of(kind)).function()
    values, noise_sd = expected["function"]
    assert_alike(function(expected["points"]), values)
    assert_alike(function.noise_sd(expected["points"]), noise_sd)


@pytest.mark.parametrize("kind", IN_WORDS)
def test_it_can_be_put_into_words(kind):
    sections = describe(opened(path_of(kind)))
    assert sections[0].title == "NOT PRIVATE"
    assert all(fact.text for section in sections for fact in section.facts)


def test_another_version_of_the_format_is_refused_with_a_sentence(tmp_path):
    kind = KINDS[0]
    other = tmp_path / "other.cloak"
    for version, advice in ((1000, "install a newer cloakgp"), (0, "have it made anew")):
        other.write_bytes(with_version(path_of(kind).read_bytes(), version))
        with pytest.raises(ValueError, match=rf"other\.cloak.*version {version} .*{advice}"):
            opened(other)
    # It is the version that is refused: the same edit to the same version is not.
    other.write_bytes(with_version(path_of(kind).read_bytes(), FORMAT_VERSION))
    assert_predicts(opened(other), expected_of(kind))


def with_version(content, version):
    """Return a file's content with another format version, and checksums that fit."""
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        payloads = {name: bundle.read(name) for name in bundle.namelist()}
    manifest = {**json.loads(payloads["manifest.json"]), "version": version}
    text = json.dumps(manifest, indent=1).encode()
    digest = hashlib.sha256(text).hexdigest().encode()
    payloads |= {"manifest.json": text, "manifest.sha256": digest}
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w") as bundle:
        for name, payload in payloads.items():
            bundle.writestr(name, payload)
    return changed.getvalue()
