"""The published object of classification: probabilities, latent functions, combining, contents."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cloakgp import DPGPClassifier, compose
from cloakgp.release import Measurement
from cloakgp.release.posterior.mixture import answered_tables

KERNEL = ConstantKernel(4.0) * RBF(1.5)
Z = np.linspace(-1, 7, 9)[:, None]

KINDS = {
    "bayes": {},
    "logit": {"link": "logit"},
    "learned": {"learn": "map"},
    "averaged": {"learn": "average"},
    "sparse": {"inducing": 4},
    "sor": {"inducing": 4, "approximation": "sor"},
    "trace": {"criterion": "trace"},
    "rates": {"class_rates": [0.3, 0.7]},
    "white": {"kernel": KERNEL + WhiteKernel(0.5)},
    "three": {"count": 3},
    "three, averaged": {"count": 3, "learn": "average", "kernel": RBF(1.5)},
    "laplace": {"criterion": "newton", "link": "logit", "steps": 2},
}


def fitted(*, count=2, rows=14, seed=0, shift=0.0, **changes):
    rng = np.random.default_rng(9)
    X = np.sort(rng.uniform(0, 6, size=(rows, 1)), axis=0) + shift
    y = (np.floor(X[:, 0]) % count).astype(int)
    settings = {
        "kernel": KERNEL,
        "epsilon": 3.0,
        "delta": 0.01,
        "noise": "gaussian",
        "learn": None,
    }
    model = DPGPClassifier(
        classes=list(range(count)), insecure_seed=seed, **{**settings, **changes}
    )
    return model.fit(X, y).release_


@pytest.fixture(scope="module", params=KINDS)
def release(request):
    return fitted(**KINDS[request.param])


def test_probabilities_are_probabilities(release):
    far = np.vstack([Z, [[1e6]], [[-1e6]]])
    for noise in (True, False):
        found = release.predict_proba(far, privacy_noise=noise)
        assert found.shape == (11, len(release.classes))
        assert ((found >= 0) & (found <= 1)).all()
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    best = release.predict_proba(far).argmax(axis=1)
    assert release.predict(far) == [release.classes[index] for index in best]


def test_latent_predictions_have_shapes_and_parts(release):
    found = release.predict_latent(Z)
    shape = (9,) if len(release.classes) == 2 else (9, 3)
    assert found.mean.shape == found.sd.shape == found.privacy_sd.shape == shape
    assert (found.sd >= 0).all()
    assert (found.privacy_sd >= 0).all()
    assert (found.privacy_sd <= found.sd * (1 + 1e-9) + 1e-9).all()
    assert found.privacy_sd.max() > 0.01


def test_without_privacy_noise_probabilities_are_sharper():
    for name in ("bayes", "logit", "averaged", "laplace", "sparse"):
        release = fitted(**KINDS[name])
        honest, bold = (
            release.predict_proba(Z, privacy_noise=noise)[:, 1] - 0.5 for noise in (True, False)
        )
        if name != "averaged":
            assert (np.abs(bold) >= np.abs(honest) - 1e-12).all()
        assert np.abs(bold).max() > np.abs(honest).max()


def test_far_from_every_row_the_class_rates_come_back():
    far = np.array([[1e4]])
    for rates, count in (([0.3, 0.7], 2), ([0.1, 0.2, 0.7], 3)):
        release = fitted(count=count, class_rates=rates)
        np.testing.assert_allclose(release.predict_proba(far), [rates], atol=1e-6)


def test_the_class_rates_count_the_white_noise():
    release = fitted(kernel=KERNEL + WhiteKernel(6.0), class_rates=[0.1, 0.9])
    np.testing.assert_allclose(release.predict_proba([[1e4]]), [[0.1, 0.9]], atol=1e-3)


def test_probabilities_are_the_link_averaged_over_the_latent_function():
    release = fitted()
    latent = release.predict_latent(Z)
    rng = np.random.default_rng(1)
    draws = latent.mean + latent.sd * rng.normal(size=(200_000, 9))
    simulated = release.likelihood.link.probability(draws).mean(axis=0)
    np.testing.assert_allclose(release.predict_proba(Z)[:, 1], simulated, atol=0.005)


def test_an_average_has_the_total_variance():
    release = fitted(learn="average")
    parts = [
        replace(
            release,
            hyperprior=None,
            learned=(),
            prior=weighted.prior,
            likelihood=weighted.likelihood,
        ).predict_latent(Z)
        for weighted in release.learned
    ]
    weights = [weighted.weight for weighted in release.learned]
    assert len(parts) > 1
    mean = sum(w * one.mean for w, one in zip(weights, parts, strict=True))
    second = sum(w * (one.sd**2 + one.mean**2) for w, one in zip(weights, parts, strict=True))
    found = release.predict_latent(Z)
    np.testing.assert_allclose(found.mean, mean, atol=1e-10)
    np.testing.assert_allclose(found.sd**2, second - mean**2, atol=1e-9)


def test_ties_go_to_the_first_class():
    """Nothing asked, all alike: every class is as probable as every other."""
    for count in (2, 3):
        release = fitted(count=count)
        silent = replace(
            release,
            measurements=tuple(
                Measurement(
                    strategy=measurement.strategy,
                    question=measurement.question,
                    answers=replace(measurement.answers, noise_sd=0.0),
                )
                for measurement in release.measurements
            ),
        )
        np.testing.assert_allclose(silent.predict_proba(Z), 1 / count, atol=1e-12)
        means = (0.0,) * silent.likelihood.channels
        exact = replace(silent, likelihood=replace(silent.likelihood, latent_means=means))
        assert exact.predict(Z) == [0] * 9


# --- combining ---


def test_combining_the_same_rows_adds_up_answers_and_costs():
    one, other = fitted(seed=1), fitted(seed=2)
    both = one.combine(other)
    assert [part.strategy.table for part in both.measurements] == [0, 0]
    assert both.guarantee == compose(one.guarantee, other.guarantee)
    assert both.guarantee.mu == pytest.approx(np.sqrt(2) * one.guarantee.mu)
    assert (both.predict_latent(Z).sd <= one.predict_latent(Z).sd + 1e-3).all()
    # Two looks at the same labels, asked alike, are one look with half the variance.
    tables, _ = answered_tables(both.prior, both.measurements)
    averaged = replace(
        one.measurements[0],
        answers=replace(
            one.measurements[0].answers,
            values=(one.measurements[0].answers.values + other.measurements[0].answers.values) / 2,
            noise_sd=one.measurements[0].answers.noise_sd / np.sqrt(2),
        ),
    )
    assert len(tables) == 1
    once = replace(one, measurements=(averaged,))
    np.testing.assert_allclose(both.predict_proba(Z), once.predict_proba(Z), atol=1e-4)


def test_combining_other_rows_at_the_same_places_knows_that_they_are_others():
    one, other = fitted(seed=1), fitted(seed=2)
    same, others = one.combine(other), one.combine(other, same_rows=False)
    assert [part.strategy.table for part in others.measurements] == [0, 1]
    assert others.guarantee == same.guarantee
    assert np.abs(others.predict_proba(Z) - same.predict_proba(Z)).max() > 1e-4


def test_combining_with_other_rows_is_the_same_in_either_order():
    """The default kernel depends on X: a declared one does not."""
    one, other = fitted(seed=1, epsilon=2.0), fitted(seed=2, rows=10)
    other = replace(other, prior=one.prior)
    there, back = one.combine(other), other.combine(one)
    assert [part.strategy.table for part in there.measurements] == [0, 1]
    np.testing.assert_allclose(there.predict_proba(Z), back.predict_proba(Z), atol=1e-5)
    with pytest.raises(ValueError, match="different inputs"):
        one.combine(other, same_rows=True)


def test_the_same_release_twice_counts_once():
    one, other = fitted(seed=1), fitted(seed=2)
    again = one.combine(one, one)
    assert len(again.measurements) == 1
    assert again.guarantee == one.guarantee
    np.testing.assert_array_equal(again.predict_proba(Z), one.predict_proba(Z))
    both = one.combine(other)
    assert len(both.combine(other).measurements) == 2
    assert len(both.combine(both).measurements) == 2


def test_copies_of_one_visit_are_not_about_other_rows():
    one, other = fitted(seed=1), fitted(seed=2)
    for first, second in ((one, one), (one, one.combine(other)), (other.combine(one), one)):
        with pytest.raises(ValueError, match="share noisy answers"):
            first.combine(second, same_rows=False)


def test_combining_does_not_change_its_parts():
    one, other = fitted(seed=1), fitted(seed=2)
    before = one.predict_proba(Z)
    one.combine(other, same_rows=False)
    assert len(one.measurements) == len(other.measurements) == 1
    assert other.measurements[0].strategy.table == 0
    np.testing.assert_array_equal(one.predict_proba(Z), before)


def test_combining_learns_anew():
    one, other = fitted(seed=1, learn="map"), fitted(seed=2, learn=None)
    both = one.combine(other)
    assert both.hyperprior == one.hyperprior is not None
    assert len(both.learned) == 1
    assert other.combine(one).learned == ()


def test_papers_answers_join_by_the_posterior():
    one, other = fitted(**KINDS["laplace"], seed=1), fitted(link="logit", seed=20)
    both = one.combine(other)
    assert one.inference == "newton"
    assert both.inference == "posterior"
    assert len(both.measurements) == 3
    assert np.isfinite(both.predict_proba(Z)).all()


UNLIKE = {
    "classes": (lambda _: fitted(count=3), "different priors|different classes"),
    "rates": (lambda _: fitted(class_rates=[0.2, 0.8]), "different priors"),
    "link": (lambda _: fitted(link="logit"), "different priors"),
    "kernel": (lambda _: fitted(kernel=RBF(1.0)), "different priors"),
    "names": (lambda one: replace(one, input_names=("age",)), "different columns"),
    "output": (lambda one: replace(one, output_name="ill"), "different columns"),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_what_differs_is_not_combined(name):
    one = fitted()
    change, complaint = UNLIKE[name]
    with pytest.raises(ValueError, match=complaint):
        one.combine(change(one))


def test_other_names_of_classes_are_not_combined():
    X, y = np.linspace(0, 5, 8)[:, None], np.array([0, 1] * 4)
    budget = {"epsilon": 1.0, "delta": 0.01, "learn": None}
    one = DPGPClassifier(classes=[0, 1], **budget).fit(X, y).release_
    other = DPGPClassifier(classes=["0", "1"], **budget).fit(X, y.astype(str)).release_
    with pytest.raises(ValueError, match="different classes"):
        one.combine(other)


# --- learning, and what is held ---


def test_learning_can_be_done_and_undone():
    plain = fitted()
    learned = plain.learn()
    assert learned.guarantee == plain.guarantee
    undone = learned.without_learning()
    np.testing.assert_array_equal(undone.predict_proba(Z), plain.predict_proba(Z))
    assert undone.fitted_prior is plain.prior
    np.testing.assert_array_equal(fitted(learn="map").predict_proba(Z), learned.predict_proba(Z))


@pytest.mark.parametrize("name", KINDS)
def test_a_release_holds_no_labels_nor_sums_of_them(name):
    changes = dict(KINDS[name])
    count = changes.get("count", 2)
    release = fitted(**changes)
    release.predict_proba(Z)
    X = release.measurements[0].strategy.X
    labels = (np.floor(X[:, 0]) % count).astype(int).tolist()
    dump = pickle.dumps(release)
    for one in release.measurements:
        encoded = one.question.encode(one.question.read(labels, rows=len(X)))
        unnoised = one.strategy.matrix @ encoded
        for private in (encoded, encoded[:, 0], unnoised):
            for form in (np.ascontiguousarray(private), np.asfortranarray(private)):
                assert form.tobytes("A") not in dump
        for number in unnoised.ravel():
            assert np.float64(number).tobytes() not in dump
        # The search finds what is there.
        assert one.answers.values.tobytes() in dump
        assert X.tobytes() in dump
    assert np.array(labels).tobytes() not in dump
    assert np.array(labels, dtype=bool).tobytes() not in dump


def test_what_it_says_of_itself_is_public():
    release = fitted()
    assert "INSECURE" in repr(release)
    assert release.insecure
    secure = fitted(seed=None)
    assert "INSECURE" not in repr(secure)
    assert not secure.insecure
    assert str(secure.guarantee) in repr(secure)
    answers = secure.measurements[0].answers.values.size
    assert repr(secure).startswith(f"<Release of {answers} noisy answers about classes")


@pytest.mark.parametrize("points", [[[0.0, 1.0]], [[np.nan]], [0.0]])
def test_bad_points_are_refused(points):
    release = fitted()
    for method in (release.predict, release.predict_proba, release.predict_latent):
        with pytest.raises(ValueError, match="X "):
            method(points)
