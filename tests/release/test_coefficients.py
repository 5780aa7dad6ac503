"""Coefficients give back what a release predicts, for every kind."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from test_every_kind import KINDS, POINTS, release_of

from cloakgp import DPGPRegressor
from cloakgp.models.latent import latent_covariance, latent_variance
from cloakgp.release.coefficient_tree import coefficient_tree
from cloakgp.release.coefficients import _column_scales, coefficients
from cloakgp.release.io.bundle import bundle_bytes
from cloakgp.release.io.codec import to_tree

X = POINTS.to_numpy()


def by_questions(part, channel, basis):
    """What the coefficients of a channel go by."""
    if part.questions is None:
        return basis
    return np.vstack(
        [
            block.matrix @ (block.scale[:, None] * basis[block.start :][: len(block.scale)])
            for block in part.questions[channel]
        ]
    )


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside the release"])
@pytest.mark.parametrize(
    "name", [name for name, kind in KINDS.items() if kind.drawn and kind.latent]
)
def test_they_are_the_latent_functions(name, beside):
    release, means, variances, weights = release_of(name), [], [], []
    for part in coefficients(release, beside=beside):
        basis = latent_covariance(part.kernel, part.centres, X)
        if part.factor is not None:
            basis = np.linalg.solve(part.factor, basis)
        own = np.square(basis).sum(axis=0) if part.all_explained else None
        own = latent_variance(part.kernel, X) if own is None else own
        trend = 0.0 if part.trend is None else part.trend(X)
        bases = [by_questions(part, place, basis) for place in range(len(part.channels))]
        both = list(zip(part.channels, bases, strict=True))
        means.append([each.mean + trend + each.weights @ basis for each, basis in both])
        variances.append(
            [
                np.maximum(own - np.square(each.subtracted @ basis).sum(axis=0), 0)
                + np.square(each.added @ basis).sum(axis=0)
                for each, basis in both
            ]
        )
        weights.append(part.weight)
    assert sum(weights) == pytest.approx(1.0)
    means, variances = np.array(means), np.array(variances)
    mean = np.tensordot(weights, means, axes=1)
    variance = np.tensordot(weights, variances + (means - mean) ** 2, axes=1)
    oracle = release.predict_latent(X)
    np.testing.assert_allclose(mean.T.reshape(oracle.mean.shape), oracle.mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        np.sqrt(variance).T.reshape(oracle.sd.shape), oracle.sd, rtol=1e-6, atol=1e-9
    )


def test_beside_a_release_they_take_no_room_for_its_rows_and_questions():
    inputs = np.random.default_rng(0).normal(size=(300, 2))
    model = DPGPRegressor(bounds=(-3.0, 3.0), epsilon=1.0, insecure_seed=2)
    release = model.fit(inputs, np.sin(inputs[:, 0])).release_
    # Three stages about outputs, and questions that do not tell where they are.
    assert not all(each.question.locates for each in release.measurements)
    content = release.to_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        manifest = json.loads(file.read("manifest.json"))
        own = json.dumps({**manifest, "sha256": {}, "coefficients": {}})
        room = {
            each.filename: each.compress_size
            for each in file.infolist()
            if each.filename.endswith(".npy") and f'"{each.filename}"' not in own
        }
        shapes = [np.load(io.BytesIO(file.read(name))).shape for name in room]
    [part] = manifest["coefficients"]["parts"]
    answers = sum(len(each.matrix) for each in coefficients(release, beside=True)[0].questions[0])
    assert set(shapes) <= {(300,), (answers,), (answers, answers), (0, answers)}
    assert [len(each) for each in part["questions"]] == [3]
    # Alone, a matrix of answers by rows for each prior would be there.
    alone = bundle_bytes(
        kind="one output",
        tree=lambda stored: (
            to_tree(release, stored=stored)
            | {"coefficients": coefficient_tree(release, stored=stored)}
        ),
    )
    assert len(content) < 0.75 * len(alone)


def test_rows_that_are_alike_are_one_centre_where_that_is_shorter():
    inputs = np.repeat(np.arange(5.0), 40)[:, None]
    model = DPGPRegressor(bounds=(-3.0, 3.0), epsilon=1.0, insecure_seed=1)
    release = model.fit(inputs, np.sin(inputs[:, 0])).release_
    [part] = coefficients(release, beside=True)
    assert part.questions is None
    assert len(part.centres) == 5


def test_questions_that_no_measurement_asks_are_kept_whole():
    matrix = np.array([[1.0, 0.0, 2.0], [3.0, 0.0, -1.0]])
    scale = np.array([0.5, 7.0, 2.0])
    np.testing.assert_array_equal(_column_scales(matrix, matrix * scale), np.array([0.5, 0.0, 2.0]))
    assert _column_scales(matrix, matrix[::-1] * scale) is None
    assert _column_scales(matrix, matrix * scale + np.array([0.0, 1e-9, 0.0])) is None
    assert _column_scales(matrix[:1], matrix * scale) is None
