"""What is said about a release of classes is true, and says everything that matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import DPGPClassifier, Release
from cloakgp.report.columns import class_names
from cloakgp.report.describe import describe, headline
from cloakgp.report.facts import as_text


def _release(*, classes=("no", "yes"), **options: object) -> Release:
    X = np.random.default_rng(5).uniform(0, 50, size=(40, 2))
    budget = {"epsilon": 1.0, "delta": 0.01, "noise": "gaussian"}
    settings = {**budget, "inducing": 5, **options}
    y = np.array(classes, dtype=object)[(X[:, 0] // 10).astype(int) % len(classes)]
    made = DPGPClassifier(classes=list(classes), **settings).fit(X, y).release_
    return replace(made, input_names=("age", "weight"), output_name="ill")


def _facts(release: Release) -> dict[str, str]:
    return {fact.label: fact.text for section in describe(release) for fact in section.facts}


@pytest.fixture(scope="module")
def two() -> Release:
    """With hyperparameters learned, however faintly the answers speak for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.release.hyperparameters.quadrature.EVIDENCE", 0.0)
        return _release()


def test_everything_a_custodian_needs_is_there(two):
    text = " ".join(as_text(describe(two)).split())
    for needed in (
        "(ε, δ) = (1, 0.01)",
        "the class (ill) of every single row",
        "any other of no, yes",
        "age, weight",
        "counts as -1 for no and as 1 for yes",
        "probit link makes its value the probability of yes",
        "including that of the privacy noise",
        "Matern",
        "FITC, with 5 inducing inputs",
        "fitted to the noisy answers, which costs no privacy",
        "rows: 40",
        "declared to be one of no, yes",
    ):
        assert needed in text, needed
    assert "NOT PRIVATE" not in text
    assert headline(two) == "(1, 0.01)-differentially private"


def test_figures_are_those_of_the_release(two):
    facts, (one,) = _facts(two), two.measurements
    assert f"sd {one.answers.noise_sd:.4g}" in facts["answers"]
    assert facts["answers"].startswith(f"{len(one.strategy.matrix)} numbers")
    latent = two.predict_latent(one.strategy.X_query)
    assert f"{np.sqrt(np.mean(latent.sd**2)):.4g} (root" in facts["latent"]
    assert f"makes {np.sqrt(np.mean(latent.privacy_sd**2)):.4g} of it" in facts["latent"]
    surest = two.predict_proba(one.strategy.X_query).max(axis=1)
    assert f"{surest.min():.2f} to {surest.max():.2f}" in facts["decided"]


def test_success_stands_beside_that_of_the_same_class_for_everybody():
    """By the probabilities of the release at its own query points, and by nothing else."""
    release = _release(classes=("a", "b", "c"), epsilon=8.0)
    mean = release.predict_proba(release.measurements[0].strategy.X_query).mean(axis=0)
    told = _facts(release)["typical success"]
    assert f"naming {'abc'[mean.argmax()]} for everybody, for {100 * mean.max():.0f} %" in told


@pytest.mark.parametrize(
    ("classes", "rates"), [(("no", "yes"), (0.8, 0.2)), (("a", "b", "c"), (0.5, 0.3, 0.2))]
)
def test_declared_rates_are_told_as_declared(classes, rates):
    kernel = ConstantKernel(4.0) * RBF(20.0)
    release = _release(classes=classes, class_rates=rates, learn=None, kernel=kernel)
    assert facts_rates(release) == [
        f"{name} = {r:.2g}" for name, r in zip(classes, rates, strict=True)
    ]
    assert "learned" not in _facts(release)
    np.testing.assert_allclose(
        release.likelihood.prior_rates(release.prior, release.known_inputs), rates, atol=5e-3
    )


def test_declared_rates_are_kept_and_told_where_a_kernel_is_learned(monkeypatch):
    monkeypatch.setattr("cloakgp.release.hyperparameters.quadrature.EVIDENCE", 0.0)
    kernel = ConstantKernel(4.0) * RBF(20.0)
    release = _release(epsilon=8.0, class_rates=(0.9, 0.1), kernel=kernel)
    facts = _facts(release)
    assert facts["class rates"].startswith("no = 0.9, yes = 0.1: before any answer, on average")
    assert facts["learned"].startswith("the kernel's values were fitted")
    far = release.predict_proba(1e6 * np.ones((1, release.known_inputs.shape[1])))
    np.testing.assert_allclose(far, [[0.9, 0.1]], atol=1e-6)


@pytest.mark.parametrize(
    ("classes", "rates", "atol"),
    [(("no", "yes"), (0.95, 0.05), 1e-6), (("a", "b", "c"), (0.9, 0.08, 0.02), 0.01)],
)
@pytest.mark.parametrize("link", ["probit", "logit"])
@pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
def test_declared_rates_are_kept_by_the_default_where_rows_lie_far_apart(
    classes, rates, atol, link, monkeypatch
):
    """The linear part gives rows variances that differ: rates hold on average over them."""
    monkeypatch.setattr("cloakgp.release.hyperparameters.quadrature.EVIDENCE", 0.0)
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 2)), [[60, 60], [70, 0], [0, 90]]])
    y = np.array(classes)[(X[:, 0] > 0).astype(int)]
    release = (
        DPGPClassifier(classes=classes, class_rates=rates, epsilon=20.0, link=link)
        .fit(X, y)
        .release_
    )
    assert str(release.fitted_prior.kernel) != str(release.prior.kernel)
    for prior, likelihood in (
        (release.prior, release.likelihood),
        (release.fitted.prior, release.fitted.likelihood),
    ):
        found = likelihood.prior_rates(prior, release.known_inputs)
        np.testing.assert_allclose(found, rates, atol=atol)
    assert _facts(release)["learned"].startswith("the kernel's values were fitted")


def facts_rates(release: Release) -> list[str]:
    return _facts(release)["class rates"].split(":")[0].split(", ")


def test_learned_values_stand_beside_the_declared_ones(two):
    facts = _facts(two)
    assert "no = 0.5, yes = 0.5" in facts["declared"]
    assert str(two.prior.kernel) in facts["declared"]
    assert str(two.fitted_prior.kernel) in facts["kernel"]


def test_several_classes_are_told_as_one_against_the_others():
    release = _release(classes=("a", "b", "c"), link="logit", learn="average")
    facts = _facts(release)
    assert facts["how"].startswith("one class against the others")
    assert "logistic link" in facts["how"]
    assert "numbers for each of 3 classes" in facts["answers"]
    assert "less 1/3" in facts["answers"]
    assert f"average over {len(release.learned)} such priors" in facts["learned"]


@pytest.mark.parametrize(
    ("options", "design"),
    [
        ({"criterion": "bayes"}, "linear prior over labels that is nearest"),
        ({"criterion": "trace"}, "least mean square noise on one Newton step at the queried"),
        ({"criterion": "logdet"}, "least volume of noise on one Newton step at the queried"),
        (
            {"criterion": "newton", "step_criterion": "trace"},
            "least mean square noise on the papers' Newton step at all rows",
        ),
        ({"criterion": "newton"}, "least volume of noise on the papers' Newton step at all rows"),
    ],
)
def test_designs_are_told(options, design):
    release = _release(**{"learn": None, "link": "logit", **options})
    assert design in _facts(release)["design"]


def test_newton_steps_are_told_one_by_one():
    release = _release(criterion="newton", steps=2, link="logit")
    facts = _facts(release)
    assert "2 Newton steps" in facts["how"]
    assert "2 measurements" in facts["composition"]
    assert {"answers 1", "design 1", "answers 2", "design 2"} <= set(facts)
    assert facts["rows"] == "40"


def test_seeded_noise_is_told_first_and_loudly():
    release = _release(insecure_seed=1)
    assert describe(release)[0].title == "NOT PRIVATE"
    assert "FIXED SEED" in _facts(release)["answers"]
    assert headline(release) == "INSECURE: seeded noise, not private"


def test_tables_are_counted(two):
    apart = two.combine(_release(), same_rows=False)
    assert _facts(apart)["rows"] == "40 + 40, in 2 tables"
    assert len(apart.known_inputs) == 80
    assert "2 measurements" in _facts(apart)["composition"]


def test_asking_nothing_costs_nothing(two):
    (one,) = two.measurements
    silent = replace(
        one,
        strategy=replace(one.strategy, matrix=np.zeros((0, 40))),
        answers=replace(
            one.answers,
            values=np.zeros((0, 1)),
            noise_sd=0.0,
            guarantee=replace(one.answers.guarantee, mu=0.0, answers=0, coarseness=0.0),
        ),
    )
    facts = _facts(replace(two, measurements=(silent,), learned=()))
    assert "nothing depends on any output" in facts["guarantee"]
    assert facts["answers"] == "nothing was asked."


def test_classes_that_read_alike_are_told_apart():
    assert class_names(_release(classes=(0, 1))) == ("0", "1")
    assert class_names(_release(classes=(1, "1"))) == ("1", "'1'")


def test_learning_that_changed_nothing_says_so():
    """At a tiny budget the answers tell nothing apart, and the declared values stay."""
    facts = _facts(_release(epsilon=0.01, delta=1e-6, learn="map"))
    assert facts["learned"].startswith("nothing")
