"""The page that predicts says what `release.predict` says, in a real browser."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect
from sklearn.gaussian_process import kernels as sk
from test_every_kind import KINDS, release_of

from cloakgp import (
    DPGPClassifier,
    DPGPClassifierPrivateInputs,
    DPGPMultiOutputRegressor,
    DPGPQuantileRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    Release,
)
from cloakgp.columns import Boolean, Category, Date, Number, OrderedCategory, Place, Schema, Vector
from cloakgp.models import gibbs_kernel
from cloakgp.models.scatter import Scatter
from cloakgp.pages import prediction
from cloakgp.pages.prediction import KERNELS, prediction_html
from cloakgp.release import OneOutputRelease
from cloakgp.report.controls import controls_of, raw_rows

COUNT = 4
COVERAGE = 0.8
BUDGET = {"epsilon": 2.0, "delta": 1e-3, "insecure_seed": 3}
RNG = np.random.default_rng(8)
X = RNG.uniform(1, 5, size=(20, 2))
# Those whose inputs a page can have.
PAGED = [name for name, kind in KINDS.items() if kind.drawn]


@pytest.fixture
def without_pictures(monkeypatch):
    """Numbers alone: the script of the pictures is most of a page."""
    monkeypatch.setattr(prediction, "get_plotlyjs", lambda: "const Plotly = {react() {}};")


def chosen(release, *, count=COUNT):
    """Values of all inputs, as the page holds them."""
    columns = []
    for control in controls_of(release):
        if control.kind == "level":
            columns.append(np.arange(count) % len(control.levels))
        else:
            columns.append(RNG.uniform(control.lo, control.hi, size=count).round(6))
    return np.column_stack(columns).astype(float)


def agrees(release, page, *, rtol=1e-8):
    """Expect the page's numbers to be those of the release."""
    values, controls = chosen(release), controls_of(release)
    named = {control.name: column for control, column in zip(controls, values.T, strict=True)}
    rows = raw_rows(release, controls, named, count=COUNT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if release.class_labels:
            found = page.evaluate("rows => rows.map(Cloak.probabilities)", values.tolist())
            np.testing.assert_allclose(found, release.predict_proba(rows), rtol=rtol)
            return
        of_quantiles = release.of_quantiles
        if of_quantiles:
            mean = release.predict(rows)
        else:
            mean, sd = release.predict(rows, return_std=True)
            _, new_sd = release.predict(rows, return_std=True, new_output=True)
        limits = [release.predict_limits(rows), release.predict_interval(rows, COVERAGE)]
        thresholds = release.predict_quantile(rows, 0.3)
        above = [
            release.probability_above(rows, limit)[place] for place, limit in enumerate(thresholds)
        ]
    told = page.evaluate(
        "([rows, share]) => rows.map((row) => Cloak.predicted(row, share))",
        [values.tolist(), COVERAGE],
    )
    found = page.evaluate(
        "([rows, limits]) => rows.map((row, i) => Cloak.above(row, limits[i]))",
        [values.tolist(), thresholds.tolist()],
    )
    np.testing.assert_allclose(found, above, rtol=rtol, atol=10 * rtol)
    if of_quantiles:
        agree_on_quantiles(told, mean, limits, rtol=rtol)
        return
    counts = isinstance(release, Release) and release.likelihood.windowed
    middle = mean if counts else np.clip(mean, *release.output_bounds)
    np.testing.assert_allclose([each["middle"] for each in told], middle, rtol=rtol, atol=rtol)
    for name, ends in zip(("curve", "person"), limits, strict=True):
        found = [each[name] for each in told]
        np.testing.assert_allclose(found, np.column_stack(ends), rtol=rtol, atol=rtol)
    if isinstance(release, Release) and release.transform is not None:
        return
    found = page.evaluate("rows => rows.map(Cloak.numbers)", values.tolist())
    for name, oracle in (("mean", mean), ("sd", sd), ("newSd", new_sd)):
        told = [each[name] for each in found]
        np.testing.assert_allclose(told, oracle, rtol=rtol, atol=rtol)


def agree_on_quantiles(told, values, limits, *, rtol):
    """Expect the page's quantiles, and limits of curves and of a person, to be the release's."""
    known = [[each["middle"] for each in row["quantiles"]] for row in told]
    np.testing.assert_allclose(known, values, rtol=rtol, atol=rtol)
    curves = [[each["curve"] for each in row["quantiles"]] for row in told]
    np.testing.assert_allclose(curves, np.stack(limits[0], axis=-1), rtol=rtol, atol=rtol)
    people = [row["person"] for row in told]
    np.testing.assert_allclose(people, np.column_stack(limits[1]), rtol=rtol, atol=rtol)


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("name", PAGED)
def test_every_kind_predicts_alike(name, opened):
    release = release_of(name)
    assert isinstance(release, OneOutputRelease)
    agrees(release, opened(prediction_html(release)), rtol=1e-6)


def whole_rows(*, classes=()):
    """A release of raw private columns, of numbers or of classes."""
    schema = Schema(
        (
            Number("age", unit="years", ranges=((0.0, 100.0),)),
            Category("job", levels=("clerk", "cook")),
            OrderedCategory("grade", levels=("low", "middle", "high")),
            Boolean("smoker", true_values=("yes",), false_values=("no",)),
            Date("when", cycles=("year",), ranges=((17897.0, 19357.0),)),
            Place("home", latitude="lat", longitude="lon", ranges=((51.0, 52.0), (-1.0, 1.0))),
            Vector("light", columns=("l1", "l2"), ranges=((-1.0, 1.0),)),
        )
    )
    rng, count = np.random.default_rng(0), 60
    days = np.datetime64("2019-01-01") + rng.integers(0, 1400, count)
    table = {
        "age": rng.uniform(20, 80, count),
        "job": rng.choice(["clerk", "cook", "baker"], count),
        "grade": rng.choice(["low", "middle", "high"], count),
        "smoker": rng.choice(["yes", "no"], count),
        "when": days.astype("datetime64[us]"),
        "lat": rng.uniform(51, 52, count),
        "lon": rng.uniform(-1, 1, count),
        "l1": rng.uniform(-1, 1, count),
        "l2": rng.uniform(-1, 1, count),
    }
    asked = {"schema": schema, "epsilon": 30.0, "delta": 1e-2, "insecure_seed": 3}
    with warnings.catch_warnings():
        # So few rows, so large a budget.
        warnings.simplefilter("ignore")
        if classes:
            labels = rng.choice(classes, count)
            return DPGPClassifierPrivateInputs(classes=classes, **asked).fit(table, labels).release_
        outputs = table["age"] + 10 * (table["job"] == "cook")
        return DPGPRegressorPrivateInputs(bounds=(0, 100), **asked).fit(table, outputs).release_


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("classes", [(), ("a", "b", "c")], ids=["numbers", "classes"])
def test_whole_rows_of_raw_columns_predict_alike(classes, opened):
    release = whole_rows(classes=classes)
    page = opened(prediction_html(release))
    agrees(release, page, rtol=1e-7)
    page.fill("#value-0", "130")
    expect(page.locator("#outside")).to_contain_text("It is taken as at the nearest end")


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("transform", ["log", "logit"])
def test_what_was_transformed_is_taken_back(transform, opened):
    X = np.linspace(0, 6, 20)[:, None]
    ends = (1.0, 1000.0) if transform == "log" else (0.01, 0.99)
    model = DPGPRegressor(output_transform=transform, **{**BUDGET, "bounds": ends})
    page = opened(prediction_html(model.fit(X, np.linspace(*ends, 20)).release_))
    agrees(model.release_, page)
    assert "The median of such people" in page.inner_text("#curve")


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("learn", ["map", "average"])
def test_quantiles_are_sorted_and_taken_back_alike(learn, opened):
    """Of few rows and of steep scales, curves cross; 0.2 and 0.9 have the tails of normal laws."""
    X = np.linspace(0, 6, 30)[:, None]
    model = DPGPQuantileRegressor(
        quantiles=(0.2, 0.45, 0.5, 0.9),
        bounds=(1.0, 1000.0),
        learn=learn,
        inducing=8,
        gap=0.05,
        **BUDGET,
    )
    release = model.fit(X, np.linspace(1.0, 1000.0, 30)).release_
    page = opened(prediction_html(release))
    agrees(release, page, rtol=1e-7)
    points = np.linspace(0.0, 6.0, 25)[:, None]
    for coverage in (0.1, 0.5, 0.9, 0.99):
        told = page.evaluate(
            "([rows, share]) => rows.map((row) => Cloak.predicted(row, share).person)",
            [points.tolist(), coverage],
        )
        ends = np.column_stack(release.predict_interval(points, coverage))
        np.testing.assert_allclose(told, ends, rtol=1e-7)
    for threshold in (0.5, 3.0, 60.0, 400.0, 2000.0):
        told = page.evaluate(
            "([rows, limit]) => rows.map((row) => Cloak.above(row, limit))",
            [points.tolist(), threshold],
        )
        above = release.probability_above(points, threshold)
        np.testing.assert_allclose(told, above, rtol=1e-6, atol=1e-9)
    text = page.inner_text("#curve")
    for share in ("20 %", "45 %", "50 %", "90 %"):
        assert f"{share} of such people are at most" in text


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize(
    ("most", "overdispersion"),
    [
        *((6, 0.0), (6, 40.0), (3000, 1e-8), (3000, 0.3), (3000, 40.0)),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in ((6, 1e-8), (6, 0.3), (3000, 0.0))),
    ],
)
def test_counts_are_mixed_alike(overdispersion, most, opened):
    X = np.linspace(0, 6, 30)[:, None]
    model = DPGPRegressor(
        bounds=(0, most), likelihood="counts", overdispersion=overdispersion, gap=0.1, **BUDGET
    )
    release = model.fit(X, np.round(np.linspace(0, most, 30)), exposure=np.full(30, 2.0)).release_
    page = opened(prediction_html(release))
    points = np.linspace(0.0, 6.0, 9)[:, None]
    for coverage, exposure in ((0.5, 1.0), (0.95, 0.03), (0.99, 20.0)):
        told = page.evaluate(
            "([rows, share, e]) => rows.map((row) => Cloak.predicted(row, share, e).person)",
            [points.tolist(), coverage, exposure],
        )
        ends = np.column_stack(release.predict_interval(points, coverage, exposure=exposure))
        np.testing.assert_array_equal(told, ends)
    for threshold, exposure in ((-0.5, 1.0), (0.0, 0.03), (2.5, 1.0), (most, 20.0)):
        told = page.evaluate(
            "([rows, limit, e]) => rows.map((row) => Cloak.above(row, limit, e))",
            [points.tolist(), threshold, exposure],
        )
        above = release.probability_above(points, threshold, exposure=exposure)
        np.testing.assert_allclose(told, above, rtol=1e-6, atol=1e-9)
    assert "The rate of such people lies in" in page.inner_text("#curve")


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("transform", [None, pytest.param("log", marks=pytest.mark.slow)])
def test_counts_calibrate_intervals_alike(transform, opened):
    rng = np.random.default_rng(2)
    X = rng.uniform(0.0, 10.0, size=(3000, 1))
    y = 5.0 + 2.0 * np.sin(X[:, 0]) + 0.3 * (1.0 + X[:, 0] / 5) * (rng.gamma(1.0, size=3000) - 1.0)
    model = DPGPRegressor(
        bounds=(1.0, 12.0),
        epsilon=3.0,
        inducing=10,
        interval=False,
        gap=0.05,
        output_transform=transform,
        insecure_seed=1,
    )
    release = model.fit(X, y).release_
    assert len(release.calibrated_by.curves) > 1
    page = opened(prediction_html(release))
    agrees(release, page, rtol=1e-7)
    points = np.linspace(0.0, 10.0, 41)[:, None]
    for coverage in (0.5, 0.9, 0.99):
        told = page.evaluate(
            "([rows, share]) => rows.map((row) => Cloak.predicted(row, share).person)",
            [points.tolist(), coverage],
        )
        ends = np.column_stack(release.predict_interval(points, coverage))
        np.testing.assert_allclose(told, ends, rtol=1e-7)
    for threshold in (0.0, 3.5, 6.0, 11.9, 12.0):
        told = page.evaluate(
            "([rows, limit]) => rows.map((row) => Cloak.above(row, limit))",
            [points.tolist(), threshold],
        )
        above = release.probability_above(points, threshold)
        np.testing.assert_allclose(told, above, rtol=1e-6, atol=1e-9)


def test_coverage_and_threshold_are_chosen_on_the_page(opened):
    release = DPGPRegressor(bounds=(-4, 8), **BUDGET).fit(X, X[:, 0]).release_
    page = opened(prediction_html(release), width=390)
    assert "with 95 %." in page.inner_text("#person")
    assert page.inner_text("#beyond") == ""
    page.select_option("#coverage", "80")
    expect(page.locator("#person")).to_contain_text("80 %")
    typical = [control.typical for control in controls_of(release)]
    for given, share in (("2,5", release.probability_above([typical], 2.5)[0]), ("9", 0.0)):
        page.fill("#above", given)
        expected = f"above {given.replace(',', '.')} with {100 * share:.1f} %"
        expect(page.locator("#beyond")).to_contain_text(expected)
    for given in ("tall", "1,000"):
        page.fill("#above", given)
        expect(page.locator("#beyond")).to_have_text("")
        assert page.get_attribute("#above", "aria-invalid") == "true"
    expect(page.locator("#outside")).to_have_text(
        "threshold: 1,000 may be 1000 or 1.000, write one of these."
    )
    page.fill("#above", "")
    expect(page.locator("#outside")).to_have_text("")
    assert page.get_attribute("#above", "aria-invalid") is None
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_noise_that_varies_with_the_inputs_does_on_the_page(opened):
    model = DPGPRegressor(bounds=(0, 1), **BUDGET).fit(X, np.linspace(0.2, 0.8, len(X)))
    scatter = Scatter(
        centres=X[:3], units=np.array([1.0, 2.0]), length=1.5, weights=np.array([1.0, -0.5, 7.0])
    )
    learned = [
        replace(one, prior=replace(one.prior, scatter=scatter)) for one in model.release_.learned
    ]
    release = replace(model.release_, learned=tuple(learned))
    agrees(release, opened(prediction_html(release)))


SCHEMA = Schema(
    (
        Number("age", unit="years", missing="impute", fill=30.0),
        Category("job", levels=("cook", "clerk"), missing="category"),
        OrderedCategory("grade", levels=("low", "middle", "high")),
        Boolean("smoker", true_values=("yes",), false_values=("no",)),
        Date("when", cycles=("week", "year")),
        Place("home", latitude="lat", longitude="lon", projection="plane", centre=(51.5, -0.1)),
        Place("far", latitude="lat2", longitude="lon2", projection="sphere"),
        Vector("word", columns=("w1", "w2", "w3"), centre=(0.1, 0.2, 0.3), missing="impute"),
        Vector(
            "light",
            columns=("l1", "l2", "l3"),
            centre=(0.4, 0.5, 0.6),
            axes=((0.6, 0.8, 0.0), (0.0, 0.0, 1.0)),
        ),
    )
)


@pytest.fixture(scope="module")
def table():
    count = 30
    rng = np.random.default_rng(4)
    ages = rng.uniform(20, 80, count)
    ages[3] = np.nan
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, count), "D")
    return pd.DataFrame(
        {
            "age": ages,
            "job": rng.choice(["cook", "clerk", "smith"], count),
            "grade": rng.choice(["low", "middle", "high"], count),
            "smoker": rng.choice(["yes", "no"], count),
            "when": days,
            "lat": rng.uniform(51.3, 51.6, count),
            "lon": rng.uniform(-0.3, 0.1, count),
            "lat2": rng.uniform(-60, 60, count),
            "lon2": rng.uniform(-170, 170, count),
            **{name: rng.normal(size=count) for name in ("w1", "w2", "w3", "l1", "l2", "l3")},
        }
    )


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("of", ["numbers", "classes"])
def test_raw_columns_of_every_kind_are_encoded_alike(of, table, opened):
    ages = table["age"].fillna(50).to_numpy()
    if of == "numbers":
        model = DPGPRegressor(bounds=(0, 100), schema=SCHEMA, **BUDGET).fit(table, ages)
    else:
        model = DPGPClassifier(classes=["a", "b", "c"], schema=SCHEMA, **BUDGET)
        model.fit(table, np.array(["a", "b", "c"])[np.arange(len(ages)) % 3])
    agrees(model.release_, opened(prediction_html(model.release_)))


EVERY_KERNEL = {
    "sums": sk.ConstantKernel(4.0) * sk.RBF([2.0, 3.0]) + sk.WhiteKernel(0.5) + sk.DotProduct(0.3),
    "Matern": sk.Matern(2.0, nu=0.5) + sk.Matern([1.0, 4.0], nu=2.5) + sk.Matern(3.0, nu=np.inf),
    "others": sk.RationalQuadratic(2.0, 0.7) * sk.ExpSineSquared(3.0, 4.0) + sk.RBF(2.0) ** 2,
}


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("name", EVERY_KERNEL)
def test_every_kernel_is_evaluated_alike(name, opened):
    model = DPGPRegressor(EVERY_KERNEL[name], 1.0, bounds=(-4, 4), learn=None, **BUDGET)
    release = model.fit(X, np.sin(X[:, 0])).release_
    agrees(release, opened(prediction_html(release)), rtol=1e-7)


def test_releases_of_several_outputs_are_refused():
    model = DPGPMultiOutputRegressor(bounds=[(0, 5)] * 2, **BUDGET)
    with pytest.raises(TypeError, match="a page predicts one output"):
        prediction_html(model.fit(X, X).release_)


def test_kernels_that_a_page_cannot_evaluate_are_refused():
    named = {name for each in EVERY_KERNEL.values() for name in names_of(each)}
    # The default prior's, which the tests above go through.
    assert named | {"BlockMatern", "LinearKernel"} == KERNELS
    for kernel, name in (
        (gibbs_kernel(X, bandwidth=1.0, longest=2.0, crowd=2.0), "GibbsKernel"),
        (sk.Matern(1.0, nu=2.0), "Matern"),
    ):
        model = DPGPRegressor(kernel, 1.0, bounds=(-4, 4), learn=None, **BUDGET)
        with pytest.raises(ValueError, match=f"cannot evaluate the kernel {name}"):
            prediction_html(model.fit(X, X[:, 0]).release_)


def names_of(kernel):
    parts = [
        kernel.get_params(deep=False)[key]
        for key in ("k1", "k2", "kernel")
        if key in kernel.get_params(deep=False)
    ]
    return {type(kernel).__name__}.union(*map(names_of, parts))


def test_moving_an_input_moves_the_prediction(table, opened):
    columns = ["age", "job", "when"]
    model = DPGPRegressor(bounds=(0, 100), **{**BUDGET, "epsilon": 8.0})
    assert table["age"].min() < 40 < table["age"].median()
    model.fit(table[columns], pd.Series(table["age"].fillna(50).to_numpy(), name="size"))
    page = opened(prediction_html(model.release_), width=390)
    said = page.inner_text("#prediction")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.fill("#input-0", "40")
    expect(page.locator("#prediction")).not_to_have_text(said)
    expected = page.evaluate(
        "Cloak.numbers([40, ...Cloak.release.controls.slice(1).map((each) => each.typical)]).mean"
    )
    assert float(page.inner_text("#prediction")) == pytest.approx(expected, abs=0.6)
    page.select_option("#input-1", label="clerk")
    page.fill("#input-2", "2021-03-04")
    for over in columns:
        page.select_option("#over", label=over)
        expect(page.locator("#picture .xtitle")).to_have_text(over)
    page.set_viewport_size({"width": 1200, "height": 900})
    page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
    text = page.inner_text("body")
    assert "NOT PRIVATE" in text.upper()
    assert "e^ε" in text


@pytest.mark.usefixtures("without_pictures")
def test_numbers_are_typed_and_what_lies_outside_is_told(opened):
    release = DPGPRegressor(bounds=(-4, 8), **BUDGET).fit(X, X[:, 0]).release_
    first, second = controls_of(release)
    page = opened(prediction_html(release))
    assert float(page.input_value("#value-0")) == pytest.approx(first.typical, abs=0.02)
    assert page.inner_text("#outside") == ""
    page.fill("#value-0", "2,5")
    expected = release.predict([[2.5, second.typical]])[0]
    expect(page.locator("#input-0")).to_have_value("2.5")
    expect(page.locator("#prediction")).not_to_have_text("")
    assert page.evaluate(f"Cloak.numbers([2.5, {second.typical}]).mean") == pytest.approx(expected)
    page.fill("#value-0", "300")
    expect(page.locator("#outside")).to_contain_text("is outside")
    expect(page.locator("#outside")).to_contain_text(f"to {first.hi:.2f}"[:-1])
    told = float(page.inner_text("#prediction"))
    beyond = np.clip(release.predict([[300.0, second.typical]])[0], -4, 8)
    assert told == pytest.approx(beyond, abs=0.01)
    page.fill("#value-0", "tall")
    assert page.get_attribute("#value-0", "aria-invalid") == "true"
    page.fill("#value-0", "2")
    expect(page.locator("#outside")).to_have_text("")


@pytest.mark.usefixtures("without_pictures")
def test_digits_go_by_how_sure_a_prediction_is_and_not_by_wide_bounds(opened):
    rng, count = np.random.default_rng(0), 400
    inputs = np.column_stack([rng.uniform(0, 0.0009, count), 1000 * rng.uniform(size=count)])
    inputs = np.column_stack([inputs, np.full(count, 0.00123)])
    model = DPGPRegressor(bounds=(0, 10000), epsilon=10.0, insecure_seed=3)
    release = model.fit(inputs, 0.3 + rng.normal(0, 0.02, count)).release_
    page = opened(prediction_html(release))
    found = page.evaluate("Cloak.predicted(Cloak.release.controls.map((one) => one.typical), 0.95)")
    width = found["curve"][1] - found["curve"][0]
    assert 0 < width < 1
    told = float(page.inner_text("#prediction").replace(",", ""))
    assert told == pytest.approx(found["middle"], abs=width / 50)
    ends = page.inner_text("#curve").partition("lies in ")[2].partition(", with")[0]
    told = [float(end.replace(",", "")) for end in ends.split(" to ")]
    assert told == pytest.approx(found["curve"], abs=width / 50)
    # Of inputs the digits are those that predictions are of.
    for place, control in enumerate(controls_of(release)):
        told = float(page.input_value(f"#value-{place}"))
        assert told == pytest.approx(control.typical, rel=1e-5)
    page.fill("#value-1", "0.004")
    page.locator("#value-1").press("Tab")
    assert page.input_value("#value-1") == "0.004"
    page.fill("#input-1", "5.8333")
    expect(page.locator("#value-1")).to_have_value("5.8333")


@pytest.mark.usefixtures("without_pictures")
def test_what_may_be_thousands_or_decimals_is_refused(opened):
    release = DPGPRegressor(bounds=(-4, 8), **BUDGET).fit(1000 * X, X[:, 0]).release_
    page = opened(prediction_html(release))
    for text in ("2,500", "-2,500"):
        before = page.input_value("#input-0")
        page.fill("#value-0", text)
        plain = text.replace(",", "")
        expect(page.locator("#outside")).to_contain_text(
            f"{controls_of(release)[0].label}: {text} may be {plain} or "
            f"{text.replace(',', '.')}, write one of these."
        )
        assert page.get_attribute("#value-0", "aria-invalid") == "true"
        # What was typed is told still where the field shows again what predictions are of.
        page.locator("#value-0").press("Tab")
        assert page.get_attribute("#value-0", "aria-invalid") is None
        expect(page.locator("#outside")).to_contain_text(text)
        assert page.input_value("#input-0") == before
    for text, value in (("2500", 2500), ("2500,125", 2500.125), ("1500,5", 1500.5)):
        page.fill("#value-0", text)
        expect(page.locator("#input-0")).to_have_value(str(value))
        expect(page.locator("#outside")).to_have_text("")


@pytest.mark.parametrize("of", ["numbers", "classes"])
def test_all_levels_are_drawn_whatever_their_names(of, opened):
    levels = ["constructor", "x", "__proto__", "toString", "2", "ten"]
    table = pd.DataFrame({"age": X[:, 0], "job": np.resize(levels, len(X))})
    if of == "numbers":
        release = DPGPRegressor(bounds=(-4, 8), **BUDGET).fit(table, X[:, 0]).release_
    else:
        model = DPGPClassifier(classes=levels, **BUDGET)
        release = model.fit(table, np.resize(levels, len(X))).release_
    page = opened(prediction_html(release))
    page.select_option("#over", label="job")
    expect(page.locator("#picture .xtitle")).to_have_text("job")
    drawn = controls_of(release)[1].levels
    assert set(levels) <= set(drawn)
    expect(page.locator("#picture .xtick text")).to_have_text(list(drawn))
    points = page.locator("#picture .scatterlayer .trace").first.locator(".point")
    expect(points).to_have_count(len(drawn))
    points.first.hover(force=True)
    expect(page.locator("#picture .hoverlayer")).to_contain_text(f"({drawn[0]}, ")


def test_of_many_levels_as_many_are_named_as_there_is_room_for(opened):
    levels = [f"town {number:03}" for number in range(120)]
    table = pd.DataFrame({"town": np.resize(levels, 240)})
    model = DPGPRegressor(bounds=(0, 1), **BUDGET)
    release = model.fit(table, np.full(240, 0.5)).release_
    drawn = len(controls_of(release)[0].levels)
    page = opened(prediction_html(release), width=700)
    expect(page.locator("#picture .scatterlayer .point")).to_have_count(drawn)
    assert 10 < page.locator("#picture .xtick text").count() < 60


def test_the_page_is_dark_where_all_is_and_its_picture_with_it(opened):
    release = DPGPRegressor(bounds=(-4, 8), **BUDGET).fit(X, X[:, 0]).release_
    page = opened(prediction_html(release))
    page.wait_for_selector("#picture .xtitle")
    looks = (
        "[getComputedStyle(document.body).backgroundColor, "
        "getComputedStyle(document.querySelector('#picture .xtitle')).fill]"
    )
    seen = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        ink = "rgb(230, 237, 243)" if scheme == "dark" else "rgb(34, 48, 60)"
        expect(page.locator("#picture .xtitle")).to_have_css("fill", ink)
        seen.append(page.evaluate(looks))
        drawn = page.locator("#picture .main-svg").first
        assert "rgba(0, 0, 0, 0)" in drawn.evaluate("each => getComputedStyle(each).background")
    assert seen[0][0] == "rgb(255, 255, 255)"
    assert seen[1][0] == "rgb(20, 25, 31)"


def test_names_are_shown_and_not_obeyed(opened):
    bad = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    labels = [f"{bad}no", f"{bad}yes"]
    numbers = DPGPRegressor(bounds=(-4, 4), **BUDGET).fit(X, X[:, 0]).release_
    classes = DPGPClassifier(classes=labels, **BUDGET)
    classes = classes.fit(X, np.where(X[:, 0] > 3, *labels)).release_
    for release in (numbers, classes):
        odd = replace(release, input_names=(bad, "age\u202eega"), output_name=bad)
        page = opened(prediction_html(odd))
        page.wait_for_selector("#picture .xtitle")
        assert page.evaluate("document.images.length") == 0
        assert bad in page.inner_text("h1")
        assert page.text_content("#picture .xtitle") == bad
        assert "\u202e" not in page.inner_text("body")


def test_what_is_embedded_holds_no_output():
    secret = 2.71234567890123
    model = DPGPRegressor(bounds=(-4, 4), **{**BUDGET, "insecure_seed": None})
    content = prediction_html(model.fit(X, np.full(20, secret)).release_)
    embedded = content.partition('id="release">')[2].partition("</script>")[0]
    assert "2.71234567890" not in content
    assert set(json.loads(embedded)) >= {"controls", "parts", "bounds"}
