"""The public object: predictions, combinations, and what they cost."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cloakgp import DPGPRegressor, Release
from cloakgp.fitting.table import Table
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import compose


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 10, size=(20, 2))
    return X, np.sin(X[:, 0])


@pytest.fixture
def prior():
    return ExactPrior(kernel=RBF(2.0) + WhiteKernel(0.07), noise_variance=0.2, mean=0.3)


@pytest.fixture
def release(prior, table, make_release):
    return make_release(prior, *table)


def test_predictions_come_in_three_consistent_forms(release, rng):
    points = rng.uniform(0, 10, size=(7, 2))
    mean = release.predict(points)
    with_std, with_cov = (
        release.predict(points, return_std=True),
        release.predict(points, return_cov=True),
    )
    np.testing.assert_array_equal(with_std[0], mean)
    np.testing.assert_array_equal(with_cov[0], mean)
    np.testing.assert_allclose(with_std[1] ** 2, np.diag(with_cov[1]), atol=1e-12)
    np.testing.assert_array_equal(with_cov[1], with_cov[1].T)
    assert np.linalg.eigvalsh(with_cov[1])[0] > -1e-12


def test_a_new_output_adds_the_noise_of_an_observation(release, rng):
    points = rng.uniform(0, 10, size=(7, 2))
    latent = release.predict(points, return_cov=True)[1]
    output = release.predict(points, return_cov=True, new_output=True)[1]
    np.testing.assert_allclose(output - latent, 0.27 * np.eye(7), atol=1e-12)
    latent_std, output_std = (
        release.predict(points, return_std=True, new_output=new)[1] for new in (False, True)
    )
    np.testing.assert_allclose(output_std**2 - latent_std**2, 0.27, atol=1e-12)


def test_lists_and_integers_are_inputs_too(release):
    np.testing.assert_array_equal(
        release.predict([[1, 2]]), release.predict(np.array([[1.0, 2.0]]))
    )


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.zeros((3, 1)), "X has 1 columns, expected 2"),
        (np.zeros((3, 3)), "X has 3 columns, expected 2"),
        (np.zeros(2), "X must have two dimensions"),
        (np.zeros((0, 2)), "X needs at least one row"),
        (np.array([[0.0, np.nan]]), "X contains NaN or infinity"),
    ],
)
def test_points_that_do_not_fit_are_named(release, points, message):
    with pytest.raises(ValueError, match=message):
        release.predict(points)


def test_std_and_cov_together_are_refused(release):
    with pytest.raises(ValueError, match="return_std or return_cov"):
        release.predict([[0.0, 0.0]], return_std=True, return_cov=True)


def test_the_guarantee_of_several_is_the_root_of_the_sum_of_squares(prior, table, make_release):
    X, y = table
    parts = [
        make_release(prior, X, y, noise_sd=sd, seed=i) for i, sd in enumerate((9.0, 20.0, 31.0))
    ]
    whole = parts[0].combine(*parts[1:])
    mus = [part.guarantee.mu for part in parts]
    assert whole.guarantee.mu == pytest.approx(math.sqrt(sum(mu**2 for mu in mus)), rel=1e-12)
    assert whole.guarantee.mu >= math.sqrt(sum(mu**2 for mu in mus)) * (1 - 1e-15)
    assert whole.guarantee == compose(*(part.guarantee for part in parts))
    assert whole.guarantee.epsilon > max(part.guarantee.epsilon for part in parts)


def test_other_rows_cost_the_same_for_somebody_in_both(prior, table, make_release, rng):
    X, y = table
    one = make_release(prior, X, y)
    two = make_release(prior, rng.uniform(size=(8, 2)), np.zeros(8))
    assert one.combine(two).guarantee == compose(one.guarantee, two.guarantee)


def test_combining_in_steps_is_combining_at_once(prior, table, make_release, rng):
    X, y = table
    Z = rng.uniform(size=(8, 2))
    points = rng.uniform(0, 10, size=(5, 2))
    one, two, three = (
        make_release(prior, X, y, seed=1),
        make_release(prior, Z, np.zeros(8), seed=2),
        make_release(prior, X, y, seed=3),
    )
    at_once = one.combine(two, three)
    for other in (
        one.combine(two).combine(three),
        one.combine(two.combine(three)),
        three.combine(two, one),
    ):
        np.testing.assert_allclose(other.predict(points), at_once.predict(points), atol=1e-10)
        np.testing.assert_allclose(
            other.predict(points, return_std=True)[1],
            at_once.predict(points, return_std=True)[1],
            atol=1e-10,
        )
        assert other.guarantee.mu == pytest.approx(at_once.guarantee.mu)


@pytest.mark.parametrize(("same_rows", "tables"), [(None, [0, 0]), (True, [0, 0]), (False, [0, 1])])
def test_whose_rows_they_are_can_be_said(prior, table, make_release, same_rows, tables):
    X, y = table
    one, two = (make_release(prior, X, y, seed=seed) for seed in (1, 2))
    both = one.combine(two, same_rows=same_rows)
    assert [part.strategy.table for part in both.measurements] == tables


def test_other_rows_at_the_same_places_tell_more_about_the_function(prior, table, make_release):
    X, y = table
    one, two = (make_release(prior, X, y, noise_sd=1e-3, seed=seed) for seed in (1, 2))
    same, other = (
        one.combine(two, same_rows=flag).predict(X, return_std=True)[1] for flag in (True, False)
    )
    assert (other < same).all()


def test_same_rows_of_different_inputs_are_refused(prior, table, make_release):
    X, y = table
    one, two = make_release(prior, X, y), make_release(prior, X + 1, y)
    with pytest.raises(ValueError, match="same_rows=True, but the releases have different inputs"):
        one.combine(two, same_rows=True)


@pytest.mark.parametrize(
    "other",
    [
        ExactPrior(kernel=RBF(2.0) + WhiteKernel(0.07), noise_variance=0.2, mean=0.4),
        ExactPrior(kernel=RBF(2.0) + WhiteKernel(0.07), noise_variance=0.3, mean=0.3),
        ExactPrior(kernel=RBF(2.1) + WhiteKernel(0.07), noise_variance=0.2, mean=0.3),
        SparsePrior(
            kernel=RBF(2.0) + WhiteKernel(0.07),
            noise_variance=0.2,
            mean=0.3,
            inducing=np.ones((2, 2)),
        ),
    ],
)
def test_other_priors_are_refused(release, other, table, make_release):
    with pytest.raises(ValueError, match="different priors"):
        release.combine(make_release(other, *table))


def test_fits_with_default_priors_are_told_what_to_give():
    """They were advised to refit one, which spends again and changes nothing."""
    X = np.linspace(0.0, 5.0, 12)[:, None]
    model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, gap=0.1)
    first, second = (model.fit(at, np.sin(X).ravel()).release_ for at in (X, 2.0 * X))
    with pytest.raises(ValueError, match=r"give every fit .* the same kernel, noise_variance"):
        first.combine(second)


@pytest.mark.parametrize("other", [None, "release.cloak"])
def test_what_is_no_release_is_not_combined(release, other):
    with pytest.raises(TypeError, match=f"of its kind, not {type(other).__name__}"):
        release.combine(other)


def test_sparse_priors_with_other_inducing_inputs_are_refused(table, make_release):
    first, second = (
        make_release(
            SparsePrior(kernel=RBF(), noise_variance=0.2, mean=0.0, inducing=inducing), *table
        )
        for inducing in (np.zeros((1, 2)), np.ones((1, 2)))
    )
    with pytest.raises(ValueError, match="different priors"):
        first.combine(second)
    # The same answers twice are the same answers.
    assert len(first.combine(first).measurements) == 1


def test_combining_leaves_the_parts_alone(release, prior, table, make_release):
    before = release.predict([[1.0, 1.0]])
    release.combine(make_release(prior, *table, seed=9))
    assert len(release.measurements) == 1
    np.testing.assert_array_equal(release.predict([[1.0, 1.0]]), before)


def test_tables_said_to_be_different_stay_different(prior, table, make_release):
    X, y = table
    one, two, three = (make_release(prior, X, y, seed=seed) for seed in range(3))
    different = two.combine(three, same_rows=False)
    tables = [part.strategy.table for part in one.combine(different).measurements]
    assert tables[1] != tables[2]


def test_the_same_answers_are_not_counted_twice(release):
    points = np.array([[1.0, 1.0]])
    try:
        twice = release.combine(release)
    except ValueError:
        return
    np.testing.assert_allclose(
        twice.predict(points, return_std=True)[1], release.predict(points, return_std=True)[1]
    )


def test_releases_of_other_dimensions_are_refused(prior, table, make_release):
    X, y = table
    with pytest.raises(ValueError, match=r"inputs|columns|dimension"):
        make_release(prior, X, y).combine(make_release(prior, X[:, :1], y))


def test_a_release_that_asked_nothing_is_the_prior_and_free(monkeypatch):
    """A fit refuses to ask nothing; earlier files may have done so."""
    monkeypatch.setattr(Table, "check_asks", lambda *_: None)
    X, y = np.linspace(0, 1, 10)[:, None], np.linspace(0, 1, 10)
    model = DPGPRegressor(
        WhiteKernel(1.0), 0.1, bounds=(0, 1), epsilon=1.0, delta=1e-3, criterion="trace", learn=None
    )
    release = model.fit(X, y).release_
    assert release.measurements[0].strategy.matrix.shape == (0, 10)
    assert release.guarantee.mu == 0
    assert release.guarantee.delta_at(0.0) == 0.0
    mean, std = release.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, np.full(10, 0.5))
    np.testing.assert_array_equal(std, np.zeros(10))
    published = release.published()
    np.testing.assert_array_equal(published.values, np.full(10, 0.5))
    np.testing.assert_array_equal(published.noise_cov, np.zeros((10, 10)))


def test_nothing_asked_combines_with_something(prior, table, make_release):
    X, y = table
    nothing = make_release(prior, X, y, strategy=np.zeros((0, 20)))
    something = make_release(prior, X, y)
    for both in (nothing.combine(something), something.combine(nothing)):
        np.testing.assert_allclose(both.predict(X), something.predict(X), atol=1e-12)
        assert both.guarantee.mu == pytest.approx(something.guarantee.mu)


def test_it_says_what_it_is(release):
    assert repr(release).startswith(
        f"<Release of {len(release.measurements[0].strategy.matrix)} noisy answers, ("
    )
    assert "INSECURE" not in repr(release)
    assert release.n_inputs == 2


def test_seeded_noise_is_admitted_for_ever(table):
    X, y = table
    arguments = {
        "bounds": (-1, 1),
        "epsilon": 1.0,
        "delta": 1e-3,
        "kernel": RBF(2.0),
        "criterion": "trace",
        "learn": None,
    }
    seeded = DPGPRegressor(**arguments, insecure_seed=0).fit(X, y).release_
    honest = DPGPRegressor(**arguments).fit(X, y).release_
    assert not honest.insecure
    for one in (
        seeded,
        honest.combine(seeded),
        seeded.combine(honest),
        pickle.loads(pickle.dumps(seeded)),
        copy.deepcopy(seeded),
    ):
        assert one.insecure
        assert "INSECURE: seeded noise, not private" in repr(one)


def test_copies_of_one_visit_are_not_about_other_rows(prior, table, make_release):
    """Their noise was drawn once: counted as two draws, it would average out."""
    X, y = table
    one, two = (make_release(prior, X, y, seed=seed) for seed in (1, 2))
    for first, second in ((one, one), (one, one.combine(two)), (two.combine(one), one)):
        with pytest.raises(ValueError, match="share noisy answers"):
            first.combine(second, same_rows=False)
    assert len(one.combine(two).combine(one).measurements) == 2


@pytest.mark.parametrize("criterion", ["trace", "functional"])
def test_published_values_carry_the_mark_of_seeded_noise(table, criterion):
    X, y = table
    seeded, honest = (
        DPGPRegressor(
            bounds=(-1, 1), epsilon=1.0, delta=1e-3, criterion=criterion, learn=None, **seed
        )
        .fit(X, y)
        .release_.published()
        for seed in ({"insecure_seed": 0}, {})
    )
    assert seeded.insecure
    assert "INSECURE: seeded noise, not private" in repr(seeded)
    assert not honest.insecure
    assert "INSECURE" not in repr(honest)


def test_published_names_its_measurement(prior, table, make_release):
    X, y = table
    one, two = make_release(prior, X, y, seed=1), make_release(prior, X[:5], y[:5], seed=2)
    both = one.combine(two)
    np.testing.assert_array_equal(both.published().values, one.published().values)
    np.testing.assert_array_equal(both.published(1).values, two.published().values)
    with pytest.raises(IndexError):
        both.published(2)


def test_releases_are_frozen(release):
    with pytest.raises(AttributeError):
        release.output_name = "z"
    assert isinstance(release, Release)
