"""What holds of every kind of release. A new kind joins by a line of `KINDS`.

Every kind must say what it costs, be marked if its noise was seeded, give back equal predictions
from a file, find its inputs by their names, tell the truth about itself, and show no output.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import (
    DPGPClassifier,
    DPGPClassifierPrivateInputs,
    DPGPMultiOutputRegressor,
    DPGPQuantileRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
    Guarantee,
    Release,
    ReleaseFileError,
    cloak,
    extend,
    load,
    refine,
)
from cloakgp.criteria import CRITERIA
from cloakgp.data import ArrayRows
from cloakgp.estimators.baselines import (
    DPHistogramRegressor,
    DPIntegralHistogramRegressor,
    DPMeanRegressor,
    DPRowNoiseRegressor,
)
from cloakgp.fitting.bands import Step
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.steps import take_step
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.table import DesignSettings, Model
from cloakgp.models.kernels.integral import points_as_boxes
from cloakgp.models.likelihoods import QuantileLikelihood
from cloakgp.plots import display_of
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.release import StatisticsRelease
from cloakgp.report.describe import describe, headline
from cloakgp.report.facts import as_text
from cloakgp.utils.formatting import ceiling

NAMES = ("age", "weight")
ROWS = 24
PUBLIC = np.random.default_rng(3)
X = np.round(PUBLIC.uniform(0, 5, size=(ROWS, 2)), 3)
FRAME = pd.DataFrame(X, columns=list(NAMES))
POINTS = FRAME[:5] + 0.25
# Recognisable to the last digit: 17 of them, in no public array.
Y = np.random.default_rng(4).uniform(-2.9, 2.9, size=ROWS)
LABELS = np.array(["ill", "well"])[(X[:, 0] > 2.5).astype(int)]
THREE = np.array(["ill", "well", "so-so"])[np.arange(ROWS) % 3]
EPSILON, DELTA = 1.0, 1e-3
BUDGET = {"epsilon": EPSILON, "delta": DELTA}
GAUSSIAN = {**BUDGET, "noise": "gaussian"}
NUMBERS = {"bounds": (-3.0, 3.0), "gap": 1e-2, "noise": "gaussian", **BUDGET}
PURE = {"noise": "laplace", "delta": 0.0}
SPARSE = {"inducing": 5, "random_state": 0}


def numbers(seed, **changes):
    return DPGPRegressor(**{**NUMBERS, **changes}, insecure_seed=seed).fit(FRAME, Y).release_


def groups(seed, **changes):
    people = [number // 2 for number in range(ROWS)]
    model = DPGPRegressor(**{**NUMBERS, **changes}, learn=None, insecure_seed=seed)
    return model.fit(FRAME, Y, groups=people).release_


def chosen(seed):
    model = DPGPRegressor(**NUMBERS, learn=None, insecure_seed=seed)
    search = DPGridSearchCV(model, {"mean": [-1.0, 1.0]}, selection_epsilon=0.5, cv=2)
    return search.fit(FRAME, Y).release_


def classes(seed, labels=LABELS, **changes):
    settings = {"classes": sorted(set(labels)), "gap": 1e-2, **BUDGET, "insecure_seed": seed}
    settings["noise"] = "gaussian"
    return DPGPClassifier(**{**settings, **changes}).fit(FRAME, labels).release_


def many(seed, **changes):
    rows = ArrayRows(X, Y, input_names=NAMES, chunk_rows=10)
    model = DPGPRegressor(**NUMBERS, **SPARSE, insecure_seed=seed, **changes)
    return model.fit_rows(rows).release_


def spread(seed):
    release = numbers(seed, stages=None)
    first = release.measurements[0]
    query = Query(first.strategy.X_query, first.strategy.query_weights)
    _, asked = take_step(
        HeldTable.of(first.strategy.X),
        Y,
        Model(prior=release.prior, question=first.question),
        Step(stage=None, budget=Budget(EPSILON, DELTA)),
        settings=DesignSettings(query=query),
        known=release,
        insecure_seed=later(seed),
    )
    return release.with_measurements((*release.measurements, asked))


def many_groups(seed):
    people = [number // 2 for number in range(ROWS)]
    rows = ArrayRows(X, Y, input_names=NAMES, groups=people, chunk_rows=10)
    return DPGPRegressor(**NUMBERS, **SPARSE, insecure_seed=seed).fit_rows(rows).release_


def many_later(seed):
    rows = ArrayRows(X, Y, input_names=NAMES, chunk_rows=10)
    new = ArrayRows(X + 0.125, Y, input_names=NAMES, chunk_rows=10)
    release = refine(many(seed, learn=None), rows, POINTS, **GAUSSIAN, insecure_seed=later(seed))
    last = None if seed is None else seed + 2
    return extend(release, new, **GAUSSIAN, insecure_seed=last)


def many_labels(seed, labels=LABELS, **changes):
    rows = ArrayRows(X, labels, input_names=NAMES, chunk_rows=10)
    settings = {"classes": sorted(set(labels)), **GAUSSIAN, **SPARSE, "insecure_seed": seed}
    return DPGPClassifier(**{**settings, **changes}).fit_rows(rows).release_


def private_inputs(seed, **changes):
    model = DPGPRegressorPrivateInputs(
        input_bounds=(0, 6), bounds=(-3.0, 3.0), **BUDGET, n_features=5, insecure_seed=seed
    )
    return model.set_params(**changes).fit(FRAME, Y).release_


def private_labels(seed, classes=2):
    model = DPGPClassifierPrivateInputs(
        classes=list(range(classes)),
        input_bounds=(0, 6),
        **BUDGET,
        n_features=5,
        insecure_seed=seed,
    )
    return model.fit(FRAME, np.digitize(Y, np.linspace(0, 1, classes)[:-1])).release_


def several(seed, **changes):
    model = DPGPMultiOutputRegressor(
        bounds=[(-3.0, 3.0), (0.0, 10.0)], gap=1e-2, **GAUSSIAN, insecure_seed=seed
    )
    return model.set_params(**changes).fit(FRAME, np.column_stack([Y, 4 + Y])).release_


def quantiles(seed, **changes):
    settings = {"bounds": (-3.0, 3.0), "gap": 1e-2, **GAUSSIAN, "insecure_seed": seed}
    return DPGPQuantileRegressor(**{**settings, **changes}).fit(FRAME, Y).release_


def many_quantiles(seed, **changes):
    rows = ArrayRows(X, Y, input_names=NAMES, chunk_rows=10)
    settings = {"bounds": (-3.0, 3.0), "gap": 1e-2, **GAUSSIAN, **SPARSE, "insecure_seed": seed}
    return DPGPQuantileRegressor(**{**settings, **changes}).fit_rows(rows).release_


def counts(seed, **changes):
    settings = {"bounds": (0, 9), "gap": 1e-1, **GAUSSIAN, "insecure_seed": seed}
    model = DPGPRegressor(**{**settings, "likelihood": "counts", **changes})
    return model.fit(FRAME, np.floor(3 + Y), exposure=1.0 + X[:, 0]).release_


def baseline(model, seed, **changes):
    return model(bounds=(-3.0, 3.0), **{**BUDGET, **changes}, insecure_seed=seed).fit(FRAME, Y)


def later(seed):
    return None if seed is None else seed + 1


def combined(seed):
    first, second = (numbers(one, learn=None) for one in (seed, later(seed)))
    return first.combine(second)


def refined(seed):
    return refine(numbers(seed, learn=None), Y, POINTS, **GAUSSIAN, insecure_seed=later(seed))


def extended(seed):
    new = FRAME + 0.125
    return extend(numbers(seed, learn=None), new, Y, **GAUSSIAN, insecure_seed=later(seed))


def cloaked(seed):
    C = numbers(None, learn=None).prior.cloaking_matrix(POINTS.to_numpy(), X)
    return cloak(C, Y, bounds=(-3.0, 3.0), noise="gaussian", **BUDGET, insecure_seed=seed)


@dataclass(frozen=True)
class Kind:
    """How to make a release of a kind, and what differs from the most usual one."""

    make: Callable[[int | None], Any]
    guarantee: type = Guarantee
    pure: bool = False
    spent: float = 1
    over_boxes: bool = False
    predicts: bool = True
    drawn: bool = True
    # Whether a file has the coefficients of its predictions.
    latent: bool = True


# `spent` is how many times μ² of the budget: two visits at the full budget spend it twice.
KINDS = {
    "exact": Kind(lambda seed: numbers(seed, learn=None)),
    "learned": Kind(numbers),
    "averaged": Kind(lambda seed: numbers(seed, learn="average")),
    "trace": Kind(lambda seed: numbers(seed, criterion="trace", learn=None)),
    "logdet": Kind(lambda seed: numbers(seed, criterion="logdet", learn=None)),
    "functional": Kind(lambda seed: numbers(seed, criterion="functional", learn=None)),
    "sparse": Kind(lambda seed: numbers(seed, **SPARSE, learn=None)),
    "one stage": Kind(lambda seed: numbers(seed, stages=None)),
    "two stages": Kind(lambda seed: numbers(seed, stages=[(0.5, None), (0.5, 1.0)])),
    "spread": Kind(spread, spent=2),
    "Laplace": Kind(lambda seed: numbers(seed, **PURE), pure=True),
    "Laplace, one stage": Kind(lambda seed: numbers(seed, **PURE, stages=None), pure=True),
    "Laplace, groups": Kind(lambda seed: groups(seed, **PURE), pure=True),
    "Laplace, classes": Kind(lambda seed: classes(seed, THREE, **PURE, learn=None), pure=True),
    "Laplace, several outputs": Kind(
        lambda seed: several(seed, **PURE, learn=None), pure=True, drawn=False
    ),
    "groups": Kind(groups),
    "grid search": Kind(chosen, guarantee=MixedGuarantee),
    "combined": Kind(combined, spent=2),
    "refined": Kind(refined, spent=2),
    "extended": Kind(extended, spent=2),
    "two classes": Kind(classes),
    "two classes, trace": Kind(lambda seed: classes(seed, criterion="trace", learn=None)),
    "three classes": Kind(lambda seed: classes(seed, THREE, learn=None)),
    "papers' iteration": Kind(lambda seed: classes(seed, criterion="newton", steps=2)),
    "many rows": Kind(many),
    "many rows, trace": Kind(lambda seed: many(seed, criterion="trace", learn=None)),
    "many rows, logdet": Kind(lambda seed: many(seed, criterion="logdet", learn=None)),
    "many rows, groups": Kind(many_groups),
    "many rows, refined and extended": Kind(many_later, spent=3),
    "many rows, two classes": Kind(many_labels),
    "many rows, three classes": Kind(lambda seed: many_labels(seed, THREE, learn="average")),
    "private inputs": Kind(private_inputs, latent=False),
    "private inputs, rows too": Kind(
        lambda seed: private_inputs(seed, neighbours="add-remove"), latent=False
    ),
    "private inputs, classes": Kind(private_labels, latent=False),
    "private inputs, three classes": Kind(lambda seed: private_labels(seed, 3), latent=False),
    "private inputs, a declared kernel": Kind(
        lambda seed: private_inputs(seed, kernel=RBF(2.0)), latent=False
    ),
    "several outputs": Kind(lambda seed: several(seed, learn=None, noise="gaussian"), drawn=False),
    "several outputs, raw": Kind(
        lambda seed: several(seed, criterion="trace", learn=None, noise="gaussian"), drawn=False
    ),
    "public prediction": Kind(lambda seed: numbers(seed, public_prediction="weight")),
    "public prediction, trace": Kind(
        lambda seed: numbers(seed, public_prediction="weight", criterion="trace", learn=None)
    ),
    "public prediction, sparse": Kind(
        lambda seed: numbers(seed, public_prediction="weight", **SPARSE, learn=None)
    ),
    "public prediction, functional": Kind(
        lambda seed: numbers(seed, public_prediction="age", criterion="functional", learn=None)
    ),
    "public prediction, many rows": Kind(lambda seed: many(seed, public_prediction="weight")),
    "quantiles": Kind(quantiles),
    "one quantile, Laplace": Kind(
        lambda seed: quantiles(seed, quantiles=0.7, stages=None, **PURE), pure=True
    ),
    "many rows, quantiles": Kind(many_quantiles),
    "many rows, one quantile, Laplace": Kind(
        lambda seed: many_quantiles(seed, quantiles=0.7, stages=None, **PURE), pure=True
    ),
    "counts": Kind(counts),
    "counts, Poisson, sparse, Laplace": Kind(
        lambda seed: counts(seed, overdispersion=0.0, stages=None, **SPARSE, **PURE), pure=True
    ),
    "noise on rows": Kind(lambda seed: baseline(DPRowNoiseRegressor, seed).release_),
    "noise on the mean": Kind(lambda seed: baseline(DPMeanRegressor, seed).release_),
    "histogram": Kind(lambda seed: baseline(DPHistogramRegressor, seed).release_, drawn=False),
    "histogram, laplace": Kind(
        lambda seed: baseline(DPHistogramRegressor, seed, noise="laplace").release_,
        pure=True,
        drawn=False,
    ),
    "integral histogram": Kind(
        lambda seed: baseline(DPIntegralHistogramRegressor, seed, learn=None).release_,
        over_boxes=True,
        drawn=False,
    ),
    "cloaked predictions": Kind(cloaked, predicts=False, drawn=False),
}
SEED = 17
# What files call their kinds, and a release of each.
FILES = {
    "one output": "exact",
    "one output, many rows": "many rows",
    "one output, classes": "two classes",
    "regression of several outputs": "several outputs",
    "statistics": "private inputs",
    "histogram": "histogram",
}


@functools.cache
def release_of(name, seed=None):
    return KINDS[name].make(seed)


def those(**wanted):
    return [
        name
        for name, kind in KINDS.items()
        if all(getattr(kind, key) == value for key, value in wanted.items())
    ]


def predicted(release, points):
    """All numbers that a release predicts."""
    if isinstance(release, StatisticsRelease) and release.class_labels:
        return [release.predict_proba(points), *release.weights]
    if isinstance(release, Release) and release.class_labels:
        latent = release.predict_latent(points)
        return [release.predict_proba(points), latent.mean, latent.sd]
    if isinstance(release, Release) and isinstance(release.likelihood, QuantileLikelihood):
        return [release.predict(points), *release.predict_limits(points)]
    return list(release.predict(points, return_std=True))


@functools.cache
def words(release):
    return as_text(describe(release), width=10_000)


def points_of(name):
    """New inputs, as a table in the release's own order."""
    if not KINDS[name].over_boxes:
        return POINTS
    columns = [f"{one} {end}" for end in ("from", "to") for one in NAMES]
    return pd.DataFrame(points_as_boxes(POINTS.to_numpy()), columns=columns)


@pytest.mark.parametrize("name", KINDS)
def test_the_guarantee_is_what_was_asked(name):
    guarantee = release_of(name).guarantee
    assert isinstance(guarantee, KINDS[name].guarantee)
    if KINDS[name].pure:
        assert EPSILON * (1 - 1e-5) <= guarantee.epsilon <= EPSILON
        assert guarantee.epsilon >= guarantee.pure_epsilon
        assert (guarantee.delta, guarantee.delta_at(guarantee.epsilon)) == (0.0, 0.0)
        return
    assert guarantee.delta == DELTA
    assert guarantee.delta_at(guarantee.epsilon) <= DELTA
    if isinstance(guarantee, MixedGuarantee):
        assert (guarantee.selection_epsilon, guarantee.release.epsilon) == (0.5, EPSILON)
    elif KINDS[name].spent == 1:
        # Two stages and steps keep back a little, so that rounding cannot exceed the budget.
        assert EPSILON * (1 - 1e-5) <= guarantee.epsilon <= EPSILON
    else:
        once = replace(guarantee, mu=guarantee.mu / np.sqrt(KINDS[name].spent))
        assert once.epsilon_at(DELTA) == pytest.approx(EPSILON, rel=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_seeded_noise_is_marked_wherever_a_release_is_shown(name):
    seeded, honest = release_of(name, SEED), release_of(name)
    assert seeded.insecure
    assert "INSECURE: seeded noise, not private" in repr(seeded)
    assert words(seeded).startswith("NOT PRIVATE\n")
    assert headline(seeded) == "INSECURE: seeded noise, not private"
    assert "FIXED SEED" in words(seeded)
    assert not honest.insecure
    for shown in (repr(honest), words(honest), headline(honest)):
        assert "INSECURE" not in shown
        assert "FIXED SEED" not in shown


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *((name, SEED) for name in those(predicts=True)),
        # What a file says of its noise depends on no kind.
        ("learned", None),
        *(
            pytest.param(name, None, marks=pytest.mark.slow)
            for name in those(predicts=True)
            if name != "learned"
        ),
    ],
)
def test_a_file_gives_back_equal_predictions(name, seed, tmp_path):
    release, path, points = release_of(name, seed), tmp_path / "release", points_of(name)
    release.save(path)
    loaded = load(path)
    assert type(loaded) is type(release)
    for one, other in zip(predicted(release, points), predicted(loaded, points), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.guarantee == release.guarantee
    assert loaded.insecure == release.insecure
    assert loaded.input_names == release.input_names
    assert words(loaded) == words(release)
    with pytest.raises(FileExistsError):
        release.save(path)


@pytest.mark.parametrize("kind", FILES)
def test_other_loaders_say_what_a_file_holds(kind, tmp_path):
    release, path = release_of(FILES[kind]), tmp_path / "release"
    release.save(path)
    for other in {type(release_of(one)) for one in FILES.values()} - {type(release)}:
        with pytest.raises(ReleaseFileError) as caught:
            other.load(path)
        said = f"this is a release of {kind.split(',')[0]}: open it with cloakgp.load"
        assert str(caught.value).endswith(said)


@pytest.mark.parametrize("name", those(predicts=True))
def test_inputs_are_found_by_their_names(name):
    """Swapped columns gave wrong numbers, and no complaint."""
    release, points = release_of(name), points_of(name)
    assert release.input_names == tuple(points.columns)
    assert release.n_inputs == len(points.columns)
    swapped = points[points.columns[::-1]].assign(id="somebody")
    expected = predicted(release, points.to_numpy())
    for table in (points, swapped):
        for one, other in zip(expected, predicted(release, table), strict=True):
            np.testing.assert_array_equal(one, other)
    first = points.columns[0]
    with pytest.raises(ValueError, match=f"X has no column {first}: the inputs are {first}"):
        predicted(release, points.drop(columns=first))
    unnamed = pd.DataFrame(points.to_numpy())
    np.testing.assert_array_equal(predicted(release, unnamed)[0], expected[0])
    with pytest.raises(ValueError, match="columns, expected"):
        predicted(release, unnamed.assign(more=1.0).to_numpy())


def criteria_of(release):
    """The certificates of all that a release was asked with."""
    if hasattr(release, "entries"):
        return criteria_of(release.entries)
    return [one.strategy.certificate for one in getattr(release, "measurements", ())]


@pytest.mark.parametrize("name", KINDS)
def test_the_words_are_true(name):
    release, text = release_of(name), words(release_of(name))
    guarantee, certificates = release.guarantee, criteria_of(release)
    # What it is good for comes first, where it can be told.
    first = "PREDICTIONS\n" if "\nPROTECTION\n" in text else "PROTECTION\n"
    assert text.startswith(first)
    for title in ("GUARANTEE", "NOISE"):
        assert f"\n{title}\n" in text
    if KINDS[name].pure:
        assert f"ε = {ceiling(guarantee.epsilon)}, with no δ" in text
    else:
        assert f"(ε, δ) = ({ceiling(guarantee.epsilon)}, {guarantee.delta:.4g})" in text
    # A certificate is spoken of where there is one, and nowhere else.
    certified = [one for one in certificates if CRITERIA[one.criterion].certified]
    if name == "cloaked predictions":
        assert text.count("certified to be within") == 1
    else:
        assert text.count("certified to be within") == len(certified)
        assert ("was chosen for" in text or "were chosen for" in text) == bool(certified)
    for one in certificates:
        if name == "spread" and one.criterion == "given":
            assert "one question about all rows alike" in text
            continue
        aim = CRITERIA[one.criterion].aim.partition("{")[0]
        assert aim in text
    law = "Laplace" if KINDS[name].pure else "normal"
    assert f"{law} noise" in text
    assert ("Laplace noise" in text) == (law == "Laplace")
    for one in getattr(release, "input_names", ()):
        assert one in text


# Pictures go by what is predicted and from how many parts, not by what was asked for it.
DRAWN_AS_OTHERS = {
    *("exact", "trace", "logdet", "sparse", "one stage", "two stages", "spread"),
    *("Laplace, one stage", "Laplace, groups", "groups", "combined", "refined", "extended"),
    *("two classes, trace", "many rows, trace", "many rows, logdet", "many rows, groups"),
    *("private inputs, rows too", "public prediction, trace", "public prediction, sparse"),
    *("many rows, two classes", "many rows, one quantile, Laplace"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in DRAWN_AS_OTHERS))
        for name in those(drawn=True)
    ],
)
def test_it_can_be_drawn(name, tmp_path):
    release = release_of(name, SEED)
    for vary in (["age"], list(NAMES)):
        figure = display_of(release, vary=vary).draw()
        assert isinstance(figure, Figure)
        assert "INSECURE" in figure.get_suptitle()
    # Where everything goes is tried with the pictures themselves, and takes most of the time.
    figure.set_layout_engine("none")
    figure.savefig(tmp_path / "both.png", dpi=20)


@pytest.mark.parametrize("name", those(drawn=False))
def test_what_cannot_be_drawn_says_so(name):
    with pytest.raises((TypeError, ValueError), match="picture"):
        display_of(release_of(name), vary=[points_of(name).columns[0]])


def exact_values(name):
    """Outputs, and exact functions of them, that nothing may show."""
    values = [*Y, Y.sum(), Y.mean()]
    if "several" in name:
        values += [*(4 + Y)]
    return values


@pytest.mark.parametrize("name", KINDS)
def test_no_output_is_kept_or_shown(name, tmp_path):
    release = release_of(name)
    shown = repr(release) + words(release) + headline(release)
    stored = pickle.dumps(release)
    if KINDS[name].predicts:
        release.save(tmp_path / "release")
        stored += (tmp_path / "release").read_bytes()
    for value in exact_values(name):
        assert np.float64(value).tobytes() not in stored
        assert repr(float(value)) not in shown
        assert repr(float(value)).encode() not in stored


@pytest.mark.parametrize("name", KINDS)
def test_copies_are_equal(name):
    release = release_of(name)
    again = pickle.loads(pickle.dumps(release))
    assert repr(again) == repr(release)
    if KINDS[name].predicts:
        for one, other in zip(
            predicted(release, points_of(name)),
            predicted(again, points_of(name)),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("criterion", ["trace", "functional"])
def test_raw_predictions_say_what_their_noise_is(criterion):
    for seed in (None, SEED):
        published = numbers(seed, criterion=criterion, learn=None).published()
        text = words(published)
        assert ("NOT PRIVATE" in text) == ("FIXED SEED" in text) == (seed is not None)


def test_whole_functions_find_their_inputs_by_name():
    released = release_of("functional").function()
    swapped = POINTS[["weight", "age"]]
    np.testing.assert_array_equal(released(swapped), released(POINTS.to_numpy()))
    np.testing.assert_array_equal(released.noise_sd(swapped), released.noise_sd(POINTS.to_numpy()))
    with pytest.raises(ValueError, match="no column age"):
        released(POINTS[["weight"]])


def test_inducing_inputs_are_found_by_name():
    inducing = FRAME[:4]
    kernel = ConstantKernel(2.0) * RBF([1.0, 3.0])
    for swapped in (inducing, inducing[["weight", "age"]]):
        release = numbers(SEED, kernel=kernel, inducing=swapped, learn=None)
        np.testing.assert_array_equal(release.prior.inducing, X[:4])
