"""Calibration curves show the distribution functions that predictions go by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from cloakgp.plots import CalibrationDisplay, display_of
from cloakgp.plots.themes import LIGHT


@pytest.fixture(scope="module")
def display(calibrated):
    return CalibrationDisplay.of(calibrated)


def test_curves_say_what_the_release_predicts(calibrated, display):
    """In the midst of a stratum, the curve is the probability below by `probability_above`."""
    known = calibrated.calibrated_by
    X = np.linspace(0, 10, 2001)[:, None]
    mean, sd = calibrated.predict(X, return_std=True, new_output=True)
    _, *strata = display.curves
    for middle, curve in zip(known.question.middles, strata, strict=True):
        row = np.abs(mean - middle).argmin()
        threshold = float(mean[row] + 0.3 * sd[row])
        below = 1.0 - calibrated.probability_above(X[[row]], threshold)[0]
        told = np.interp(stats.norm.cdf(0.3), display.modelled, curve.share)
        assert told == pytest.approx(below, abs=0.01)


def test_limits_surround_the_curve_within_what_is_possible(display):
    frame = display.to_frame()
    assert list(frame) == ["rows", "modelled", "share", "lower", "upper"]
    assert frame["rows"].unique().tolist() == [each.rows for each in display.curves]
    assert ((frame["lower"] >= 0) & (frame["upper"] <= 1)).all()
    assert ((frame["lower"] <= frame["share"]) & (frame["share"] <= frame["upper"])).all()
    whole, *strata = display.curves
    assert whole.rows == "all rows"
    assert all(whole.sd.max() < each.sd.max() for each in strata)
    middle = np.searchsorted(display.modelled, 0.5)
    low, high = (limit[middle] for limit in whole.limits)
    assert high - low == pytest.approx(2 * 1.96 * whole.sd[middle], rel=1e-3)


def test_it_draws_the_diagonal_all_rows_and_every_stratum(calibrated, display):
    known = calibrated.calibrated_by
    figure = display.draw(line_kw={"color": "red"})
    [axes] = figure.axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    ends = [f"{end:.3g}" for end in known.question.strata]
    assert list(lines) == [
        "as the model says",
        "all rows",
        f"predicted y below {ends[0]}",
        *(f"predicted y {ends[place]} to {ends[place + 1]}" for place in range(len(ends) - 1)),
        f"predicted y from {ends[-1]} on",
    ]
    np.testing.assert_array_equal(lines["as the model says"].get_xydata(), [[0, 0], [1, 1]])
    np.testing.assert_array_equal(lines["all rows"].get_ydata(), known.together)
    np.testing.assert_array_equal(lines[display.curves[1].rows].get_ydata(), known.curves[0])
    assert lines["all rows"].get_color() == "red"
    looks = {(line.get_color(), line.get_linestyle()) for line in lines.values()}
    assert len(looks) == len(lines)
    assert LIGHT.curve not in {lines[each.rows].get_color() for each in display.curves[1:]}
    [band] = axes.collections
    assert band.get_label() == "95 % limits for all rows"
    assert len(figure.legends[0].get_texts()) == len(lines) + 1
    assert "Calibration of y, INSECURE" in figure.get_suptitle()


def test_one_stratum_is_all_rows(calibrated):
    place = calibrated.calibration
    measured = calibrated.measurements[place]
    question = measured.question
    together = replace(
        question,
        strata=np.zeros(0),
        middles=question.middles[:1],
        sizes=np.array([question.sizes.sum()]),
    )
    counts = measured.answers.values.reshape(question.shape).sum(axis=0)
    one = replace(
        measured,
        question=together,
        answers=replace(measured.answers, values=counts),
    )
    release = replace(
        calibrated, measurements=(*calibrated.measurements[:place], one), calibration=place
    )
    [curve] = CalibrationDisplay.of(release).curves
    assert curve.rows == "all rows"


def test_it_is_found_by_its_kind(calibrated, display):
    axes = Figure().add_subplot()
    found = display_of(calibrated, kind="calibration").plot(axes)
    assert isinstance(found, CalibrationDisplay)
    assert found.ax_ is axes
    np.testing.assert_array_equal(found.curves[0].share, display.curves[0].share)


def test_what_has_no_curve_says_so(calibrated):
    with pytest.raises(ValueError, match="not calibrated"):
        CalibrationDisplay.of(calibrated.without_learning())
    with pytest.raises(TypeError, match="no picture of calibration of a Guarantee"):
        CalibrationDisplay.of(calibrated.guarantee)
