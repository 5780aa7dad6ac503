"""The posterior from noisy statistics: exact without noise, honest with it, and its file."""

import json
import math
import re
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from cloakgp.models.features import BinBasis, EigenBasis, InputBox
from cloakgp.privacy import Guarantee
from cloakgp.privacy.statistics import Statistics, measure_statistics
from cloakgp.release import ReleaseFileError
from cloakgp.release.io.bundle import bundle_bytes
from cloakgp.release.io.codec import to_tree
from cloakgp.release.statistics import StatisticsRelease, posterior_weights

LINE = InputBox((0.0,), (10.0,))
KERNEL = ConstantKernel(4.0) * RBF(1.5)
EIGEN = EigenBasis(kernel=KERNEL, box=LINE, wanted=12)
BINS = BinBasis(kernel=KERNEL, box=LINE, bins=(6,))
NOISE = 0.25


def table(rng, rows=80):
    X = 10 * rng.beta(2, 3, size=(rows, 1))
    return X, 3.0 + 2 * np.sin(X[:, 0]) + 0.5 * rng.normal(size=rows)


def stated(gram, moments, *, gram_sd, moment_sd, rows, exclusive=False):
    """Statistics with any noise, to check the posterior by other means."""
    return Statistics(
        gram=gram,
        moments=moments,
        gram_sd=gram_sd,
        moment_sd=moment_sd,
        weighting=1.0,
        bounds=(0.0, 6.0),
        neighbours="replace" if rows else "add-remove",
        rows=rows,
        exclusive=exclusive,
        guarantee=Guarantee(epsilon=1.0, delta=0.1, mu=0.5),
    )


def released(basis=EIGEN, *, neighbours="replace", epsilon=1.0, rows=80, seed=None):
    X, y = table(np.random.default_rng(0), rows)
    statistics = measure_statistics(
        X,
        y,
        basis=basis,
        bounds=(0.0, 6.0),
        epsilon=epsilon,
        delta=1e-3,
        neighbours=neighbours,
        insecure_seed=seed,
    )
    return StatisticsRelease(basis=basis, statistics=statistics, noise_variance=NOISE)


@pytest.mark.parametrize("basis", [EIGEN, BINS], ids=["eigen", "bins"])
@pytest.mark.parametrize("public", [True, False])
def test_without_noise_it_is_bayesian_linear_regression(basis, public, rng):
    X, y = table(rng)
    features, centred = basis.features(X), y - 3.0
    statistics = stated(
        features.T @ features,
        features.T @ centred,
        gram_sd=1e-7,
        moment_sd=1e-7,
        rows=len(X) if public else None,
        exclusive=basis.exclusive,
    )
    mean, covariance = posterior_weights(
        statistics,
        prior=basis.weight_covariance,
        reference=basis.features(basis.box.reference),
        noise_variance=NOISE,
    )
    precision = np.linalg.inv(basis.weight_covariance) + features.T @ features / NOISE
    expected = np.linalg.inv(precision)
    np.testing.assert_allclose(covariance, expected, atol=2e-4 * expected.max())
    np.testing.assert_allclose(
        basis.features(LINE.reference) @ mean,
        basis.features(LINE.reference) @ expected @ features.T @ centred / NOISE,
        atol=5e-3,
    )


def test_at_a_huge_budget_it_is_scikit_learns_gaussian_process():
    X, y = table(np.random.default_rng(0))
    basis = EigenBasis(kernel=KERNEL, box=LINE, wanted=25)
    release = released(basis, epsilon=1e9)
    plain = GaussianProcessRegressor(kernel=KERNEL, alpha=NOISE, optimizer=None)
    points = np.linspace(0, 10, 60)[:, None]
    mean, sd = plain.fit(X, np.clip(y, 0, 6) - 3.0).predict(points, return_std=True)
    found, found_sd = release.predict(points, return_std=True)
    np.testing.assert_allclose(found, mean + 3.0, atol=0.03)
    np.testing.assert_allclose(found_sd, sd, atol=0.03)


def test_at_no_budget_it_is_the_prior():
    points = np.linspace(0, 10, 20)[:, None]
    for basis in (EIGEN, BINS):
        mean, sd = released(basis, epsilon=1e-5).predict(points, return_std=True)
        np.testing.assert_allclose(mean, 3.0, atol=0.4)
        # A bin's value and the spread about it are counted as independent: never too narrow.
        assert sd.min() > 1.98
        assert sd.max() < (2.02 if basis is EIGEN else 2.0 * math.sqrt(2))


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 50.0), st.booleans())
def test_any_noise_gives_a_posterior(seed, gram_sd, public):
    """However wild the noisy statistics, sds are finite, and never beyond the prior's."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(12, 12)) * gram_sd
    release = StatisticsRelease(
        basis=EIGEN,
        statistics=stated(
            noise + noise.T,
            rng.normal(size=12) * gram_sd,
            gram_sd=gram_sd,
            moment_sd=gram_sd,
            rows=50 if public else None,
        ),
        noise_variance=NOISE,
    )
    points = rng.uniform(-5, 15, size=(9, 1))
    mean, sd = release.predict(points, return_std=True)
    assert np.isfinite(mean).all()
    assert (sd > 0).all()
    assert (sd <= 2.0 + 1e-6).all()


def test_less_noise_never_widens_the_intervals_much():
    sds = [
        released(epsilon=epsilon, seed=3).predict(LINE.reference, return_std=True)[1].mean()
        for epsilon in (0.1, 1.0, 10.0, 100.0)
    ]
    assert sds == sorted(sds, reverse=True)


@pytest.mark.parametrize("public", [True, False])
def test_the_noise_of_the_gram_matrix_is_not_ignored(public):
    """Mutation: where it alone matters, a posterior that trusts it is far too sure of itself."""
    rng, z = np.random.default_rng(1), {"aware": [], "trusting": []}
    basis = EigenBasis(kernel=ConstantKernel(4.0) * RBF(3.0), box=LINE, wanted=6)
    reference = basis.features(LINE.reference)
    prior = basis.weight_covariance
    for _ in range(60):
        features = basis.features(10 * rng.uniform(size=(150, 1)))
        weights = np.linalg.cholesky(prior) @ rng.normal(size=basis.count)
        noise = rng.normal(size=(basis.count, basis.count))
        noise = 5.0 * (noise + noise.T) / 2
        published = stated(
            features.T @ features + noise,
            features.T @ (features @ weights + 0.5 * rng.normal(size=150)),
            gram_sd=5.0,
            moment_sd=0.01,
            rows=150 if public else None,
        )
        for name, one in (("aware", published), ("trusting", replace(published, gram_sd=1e-9))):
            mean, covariance = posterior_weights(
                one, prior=prior, reference=reference, noise_variance=NOISE
            )
            sd = np.sqrt(np.einsum("ni,ij,nj->n", reference, covariance, reference))
            z[name].append(np.mean(np.square(reference @ (mean - weights) / sd)))
    aware, trusting = (math.sqrt(np.mean(z[name])) for name in ("aware", "trusting"))
    assert 0.7 < aware < 1.4
    assert trusting > 1.6 * aware


def test_predictions_in_three_forms():
    release = released()
    points = np.array([[1.0], [4.0], [4.0]])
    mean, sd = release.predict(points, return_std=True)
    also, covariance = release.predict(points, return_cov=True)
    np.testing.assert_array_equal(mean, also)
    np.testing.assert_array_equal(mean, release.predict(points))
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), sd, rtol=1e-6)
    assert mean[1] == pytest.approx(mean[2], rel=1e-12)
    _, wider = release.predict(points, return_std=True, new_output=True)
    np.testing.assert_allclose(wider**2, sd**2 + NOISE)
    _, with_noise = release.predict(points, return_cov=True, new_output=True)
    np.testing.assert_allclose(with_noise - covariance, NOISE * np.eye(3), atol=1e-12)
    with pytest.raises(ValueError, match="not both"):
        release.predict(points, return_std=True, return_cov=True)


# --- the file ---


@pytest.mark.parametrize("basis", [EIGEN, BINS], ids=["eigen", "bins"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_files_keep_everything(basis, neighbours, tmp_path):
    release = released(basis, neighbours=neighbours, seed=5)
    release.save(tmp_path / "one.cloak")
    loaded = StatisticsRelease.load(tmp_path / "one.cloak")
    assert loaded.guarantee == release.guarantee
    assert loaded.insecure
    assert loaded.statistics.rows == (80 if neighbours == "replace" else None)
    points = np.linspace(0, 10, 7)[:, None]
    for found, expected in zip(
        loaded.predict(points, return_std=True),
        release.predict(points, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(FileExistsError):
        release.save(tmp_path / "one.cloak")
    release.save(tmp_path / "one.cloak", overwrite=True)


def test_files_of_very_many_inputs_come_back(tmp_path):
    """More than a thousand were saved, and could not be read."""
    box = InputBox((0.0,) * 1001, (1.0,) * 1001)
    basis = EigenBasis(kernel=DotProduct(), box=box, wanted=3)
    X = np.random.default_rng(0).uniform(size=(50, 1001))
    statistics = measure_statistics(
        X, X[:, 0], basis=basis, bounds=(0.0, 1.0), epsilon=1.0, delta=1e-3
    )
    release = StatisticsRelease(basis=basis, statistics=statistics, noise_variance=NOISE)
    release.save(tmp_path / "wide.cloak")
    loaded = StatisticsRelease.load(tmp_path / "wide.cloak")
    np.testing.assert_array_equal(loaded.predict(X), release.predict(X))


def test_they_are_shown_in_one_line_without_arrays():
    for seed, mark in ((None, ""), (5, " INSECURE: seeded noise, not private.")):
        release = released(seed=seed)
        cost = r"\(1, 0\.001\)-differential privacy \(mu = [0-9.]+\)\." + re.escape(mark)
        for shown, what in (
            (repr(release), "StatisticsRelease of 12 features of 1 inputs"),
            (repr(release.statistics), "Noisy statistics of 12 features"),
        ):
            assert re.fullmatch(f"<{what}, {cost}>", shown)


def edited(release, path, **changes):
    """Save a release whose statistics say something else, with checksums that agree."""
    guarantee = replace(
        release.guarantee, **{k: changes.pop(k) for k in ("mu", "delta", "answers") if k in changes}
    )
    statistics = replace(release.statistics, guarantee=guarantee, **changes)
    return saved(replace(release, statistics=statistics), path)


def saved(forged, path):
    """Save a release that may be none: nothing predicts from it, and it has no coefficients."""
    path.write_bytes(
        bundle_bytes(kind=forged.kind, tree=lambda stored: to_tree(forged, stored=stored))
    )
    return path


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"gram_sd": 0.1, "moment_sd": 0.3 / 0.9}, "noise"),
        ({"gram_sd": math.nan}, "noise"),
        ({"moment_sd": 1e-9}, "noise"),
        ({"mu": 1e-3}, "noise is less"),
        ({"mu": 50.0}, "guarantee does not hold"),
        ({"delta": 0.0}, "delta"),
        ({"rows": None}, "rows"),
        ({"neighbours": "friends"}, "neighbours"),
        ({"neighbours": "add-remove"}, "rows"),
        ({"exclusive": True}, "guarantee"),
        ({"exclusive": True, "answers": 24}, "basis"),
        ({"gram": np.zeros((12, 11))}, "fit"),
        ({"bounds": (1.0, 1.0)}, "bound"),
        ({"weighting": -1.0}, "noise"),
        ({"moments": np.zeros(3)}, "fit"),
        ({"gram": np.zeros((3, 3)), "moments": np.zeros(3), "answers": 9}, "fit its basis"),
        ({"moments": np.full(12, np.nan)}, "finite"),
    ],
)
def test_files_that_were_tampered_with_are_refused(changes, complaint, tmp_path):
    with pytest.raises(ReleaseFileError, match=complaint):
        StatisticsRelease.load(edited(released(), tmp_path / "bad.cloak", **changes))


@pytest.mark.parametrize(
    "basis",
    [
        replace(EIGEN, wanted=0),
        replace(EIGEN, box=InputBox((10.0,), (0.0,))),
        replace(EIGEN, box=InputBox((0.0, 0.0), (10.0,))),
        replace(BINS, bins=(2, 3)),
        replace(BINS, box=InputBox((0.0, 0.0), (1.0, 1.0)), bins=(-2, -3)),
    ],
    ids=repr,
)
def test_files_of_a_basis_that_is_none_are_refused(basis, tmp_path):
    release = released(BINS if isinstance(basis, BinBasis) else EIGEN)
    path = saved(replace(release, basis=basis), tmp_path / "bad.cloak")
    with pytest.raises(ReleaseFileError):
        StatisticsRelease.load(path)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("not a release")
    with pytest.raises(ReleaseFileError, match="not a release"):
        StatisticsRelease.load(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        StatisticsRelease.load(tmp_path / "nothing")
    released().save(tmp_path / "good")
    with zipfile.ZipFile(tmp_path / "good") as bundle:
        manifest = json.loads(bundle.read("manifest.json"))
        rest = {name: bundle.read(name) for name in bundle.namelist()}
    manifest["noise_variance"] = 9.0
    with zipfile.ZipFile(tmp_path / "changed", "w") as bundle:
        for name, payload in rest.items():
            bundle.writestr(name, json.dumps(manifest) if name == "manifest.json" else payload)
    with pytest.raises(ReleaseFileError, match="changed"):
        StatisticsRelease.load(tmp_path / "changed")
    replace(released(), noise_variance=-1.0).save(tmp_path / "negative")
    with pytest.raises(ReleaseFileError, match="noise variance"):
        StatisticsRelease.load(tmp_path / "negative")


def test_two_dimensions():
    box = InputBox((0.0, -1.0), (1.0, 1.0))
    basis = EigenBasis(kernel=Matern([0.5, 1.0], nu=1.5), box=box, wanted=10)
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(400, 2)) * [1, 2] - [0, 1]
    f = np.sin(3 * X[:, 0]) * X[:, 1]
    statistics = measure_statistics(
        X, f, basis=basis, bounds=(-1, 1), epsilon=20.0, delta=1e-3, insecure_seed=1
    )
    release = StatisticsRelease(basis=basis, statistics=statistics, noise_variance=0.01)
    mean, sd = release.predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - f) ** 2)) < 0.6 * f.std()
    assert np.mean(np.abs(mean - f) < 1.96 * sd) > 0.85
