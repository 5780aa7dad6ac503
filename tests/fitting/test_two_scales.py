"""A finer part beside the curve of a table in passes: when it is learned, and what it is worth."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Sum

from cloakgp import DPGPRegressor, Release
from cloakgp.data import ArrayRows
from cloakgp.fitting.row_learning import RowLearning
from cloakgp.models.two_scales import with_finer_part
from cloakgp.release.hyperparameters.learning import linear_log_evidence

pytestmark = [
    pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning"),
    pytest.mark.filterwarnings("ignore::cloakgp.design.strategy.DesignGapWarning"),
]

DECLARED = ConstantKernel(1.0) * RBF(2.0)


def course(X, *, fine):
    return np.sin(1.5 * X[:, 0]) + fine * np.sin(14 * X[:, 0])


def released(*, fine, **changes):
    """Fit rows of a smooth course, with or without one nine times as fast beside it."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 4, size=(1500, 1))
    y = course(X, fine=fine) + 0.05 * rng.normal(size=len(X))
    settings = {
        "bounds": (-1.5, 1.5),
        "epsilon": 20.0,
        "delta": 1e-6,
        "gap": 0.05,
        "kernel": DECLARED,
        "interval": False,
        "inducing": "auto",
        "insecure_seed": 1,
        "stages": [(0.2, None), (0.3, 1.5), (0.5, 1.0)],
    }
    model = DPGPRegressor(**(settings | changes))
    return X, model.fit_rows(ArrayRows(X, y, jobs=1), X[:40]).release_


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Few inducing inputs at first, which do not explain what is fine."""
    monkeypatch.setattr("cloakgp.estimators.base.INDUCING", 8)


@pytest.fixture
def evidence(monkeypatch):
    """Log densities of the answers under a curve in two scales and what else was learned."""
    seen, or_in_two = [], RowLearning._or_in_two_scales

    def watched(learning, learned, stated, **named):
        found, under = or_in_two(learning, learned, stated, **named)
        if found is not learned:
            other = linear_log_evidence(learned[0].prior, stated)
            seen.append((linear_log_evidence(found[0].prior, under), other))
        return found, under

    monkeypatch.setattr(RowLearning, "_or_in_two_scales", watched)
    return seen


def without_it(monkeypatch):
    monkeypatch.setattr(RowLearning, "_or_in_two_scales", lambda _, *learned, **__: learned)


def test_what_is_finer_is_not_taken_for_noise(evidence, monkeypatch, tmp_path):
    X, found = released(fine=0.3)
    kernel = found.fitted_prior.kernel
    assert isinstance(kernel, Sum)
    smooth, fine = (term.k2.length_scale for term in (kernel.k1, kernel.k2))
    assert fine < smooth / 4
    assert evidence
    for two, one in evidence:
        # A nat for each of two more hyperparameters.
        assert two - one >= 2.0
    truth = course(X, fine=0.3)
    error = np.square(found.predict(X) - truth).mean()
    # What is declared, and asked first, is as it was.
    assert found.prior.kernel == DECLARED
    assert found.measurements[0].strategy.prior.kernel == DECLARED
    # Files hold it, and readers in other languages have a kernel of the usual parts.
    found.save(tmp_path / "two.cloak")
    loaded = Release.load(tmp_path / "two.cloak")
    np.testing.assert_array_equal(loaded.predict(X[:50]), found.predict(X[:50]))
    [part] = loaded.coefficients(stored=np.ndarray.tolist)["parts"]
    assert part["kernel"]["kernel"] == "Sum"
    without_it(monkeypatch)
    _, other = released(fine=0.3)
    np.testing.assert_array_equal(
        other.measurements[0].answers.values, found.measurements[0].answers.values
    )
    assert error < 0.5 * np.square(other.predict(X) - truth).mean()


@pytest.mark.parametrize(
    ("fine", "changes"),
    [
        (0.0, {}),
        (0.3, {"inducing": 8}),
        (0.3, {"stages": [(0.3, None), (0.7, 1.5)]}),
        (0.3, {"kernel": ConstantKernel(1.0, "fixed") * RBF(2.0)}),
    ],
)
def test_elsewhere_nothing_changes(fine, changes, monkeypatch):
    """Of smooth outputs, a fixed number of inducing inputs, two stages, or what is declared."""
    X, found = released(fine=fine, **changes)
    without_it(monkeypatch)
    _, other = released(fine=fine, **changes)
    np.testing.assert_array_equal(found.predict(X), other.predict(X))
    assert len(found.fitted_prior.kernel.theta) == len(found.prior.kernel.theta)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(1.0),
        ConstantKernel(2.0),
        ConstantKernel(2.0) * RBF(1.0, "fixed"),
        ConstantKernel(2.0) * RBF(1.0) + ConstantKernel(1.0) * RBF(3.0),
    ],
)
def test_other_kernels_have_none(kernel):
    assert with_finer_part(kernel, shorter=0.5) is None
