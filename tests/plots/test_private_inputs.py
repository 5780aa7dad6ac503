"""Pictures of releases of whole rows: no row is marked, and all numbers are those predicted."""

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPClassifierPrivateInputs, DPGPRegressorPrivateInputs
from cloakgp.notebook import explore
from cloakgp.pages.sheet import sheet_html
from cloakgp.plots import CalibrationDisplay, FanDisplay, PredictionDisplay, plot
from cloakgp.plots.fan import QUANTILES
from cloakgp.report.controls import controls_of

ASKED = {"input_bounds": [(0, 100), (0, 5)], "epsilon": 2.0, "delta": 1e-5, "insecure_seed": 1}


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    age = 100 * rng.beta(2, 6, size=1000)
    return pd.DataFrame({"age": age, "dose": rng.uniform(0, 5, size=1000)})


@pytest.fixture(scope="module")
def numbers(people):
    y = pd.Series(100 + people.age + 3 * people.dose, name="height")
    return DPGPRegressorPrivateInputs(bounds=(80, 220), **ASKED).fit(people, y).release_


@pytest.fixture(scope="module")
def classes(people):
    y = np.array(["S", "M", "L"])[np.digitize(people.age, [20, 40])]
    return DPGPClassifierPrivateInputs(classes=["S", "M", "L"], **ASKED).fit(people, y).release_


def words_of(figure):
    legends = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    titles = [axes.get_title() for axes in figure.axes]
    return " ".join([*legends, *titles])


def test_inputs_go_over_declared_ranges_and_are_held_at_published_medians(numbers, people):
    age, dose = controls_of(numbers)
    assert (age.name, age.lo, age.hi, dose.hi) == ("age", 0.0, 100.0, 5.0)
    assert len(age.known) == 0
    assert age.typical == pytest.approx(people.age.median(), abs=5)
    assert age.typical != people.age.median()


def test_curves_are_what_is_predicted_and_no_row_is_marked(numbers):
    display = PredictionDisplay.of(numbers, vary=["age"])
    figure = display.draw()
    frame = display.to_frame()
    points = np.column_stack([frame.age, np.full(len(frame), controls_of(numbers)[1].typical)])
    mean = numbers.predict(points)
    np.testing.assert_allclose(frame["mean"], np.clip(mean, frame.lower, frame.upper))
    np.testing.assert_allclose(
        frame[["new_lower", "new_upper"]].T, numbers.predict_interval(points, 0.95)
    )
    assert (frame.upper <= 220).all()
    said = words_of(figure)
    assert "inputs only" not in said
    assert "noisy counts" in said


def test_of_a_declared_kernel_others_are_held_in_the_middle_of_their_ranges(people):
    model = DPGPRegressorPrivateInputs(RBF([30.0, 2.0]), bounds=(80, 220), **ASKED)
    figure = PredictionDisplay.of(model.fit(people, people.age).release_, vary=["age"]).draw()
    assert "at the middle of the declared ranges: dose = 2.5" in words_of(figure)


def test_sheets_have_pictures_over_inputs_that_they_do_not_call_public(numbers, classes):
    page = sheet_html(numbers)
    assert page.count("data:image/svg+xml") == 2
    assert "public column" not in page
    assert "query points" not in page
    # Of classes as well, of whose accuracy nothing is said.
    assert sheet_html(classes).count("data:image/svg+xml") == 2


def test_maps_are_drawn_all_over_the_range(numbers):
    display = PredictionDisplay.of(numbers)
    assert display.parts[0].piece.near.all()
    assert "inputs only" not in words_of(display.draw())


def test_fans_are_predicted_quantiles(numbers):
    display = FanDisplay.of(numbers, vary=["dose"])
    frame = display.to_frame()
    points = np.column_stack([np.full(len(frame), controls_of(numbers)[0].typical), frame.dose])
    expected = numbers.predict_quantile(points, QUANTILES)
    np.testing.assert_allclose(frame.iloc[:, 1:], expected)
    with pytest.raises(ValueError, match="not calibrated"):
        CalibrationDisplay.of(numbers)


def test_probabilities_are_curves_that_claim_no_limits(classes):
    display = plot(classes)
    assert display.n_panels == 2
    frame = display.to_frame()
    assert frame[["lower", "upper"]].isna().all(axis=None)
    over_age = frame[frame["class"] == "L"].dropna(subset=["age"])
    points = np.column_stack(
        [over_age.age, np.full(len(over_age), controls_of(classes)[1].typical)]
    )
    np.testing.assert_allclose(
        over_age.probability, classes.predict_proba(points)[:, classes.class_labels.index("L")]
    )
    said = words_of(display.figure_)
    assert "95 %" not in said
    assert "inputs only" not in said
    assert plot(classes, only="S").ax_ is not None


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_sliders(kind, numbers, classes):
    release = {"numbers": numbers, "classes": classes}[kind]
    box = explore(release)
    assert (box.children[0].min, box.children[0].max) == (0.0, 100.0)
    box.children[0].value = 80.0
    assert ("lo_90" if kind == "numbers" else "p_S") in box.children[-1].value


def test_limits(numbers, classes):
    points = [[10.0, 1.0], [99.0, 4.0]]
    mean, sd = numbers.predict(points, return_std=True)
    lower, upper = numbers.predict_limits(points)
    np.testing.assert_allclose(lower, np.clip(mean - 1.959964 * sd, 80, 220), rtol=1e-6)
    assert (upper > lower).all()
    with pytest.raises(TypeError, match="no limits"):
        classes.predict_limits(points)
