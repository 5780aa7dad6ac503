"""A release with sliders: its prediction for one person, as public inputs are moved.

All that is shown is computed from the release, at no cost in privacy.
"""

from __future__ import annotations

import datetime as dt
import math
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from cloakgp.models.kernels.coregion import CoregionKernel
from cloakgp.release import OneOutputRelease, Release
from cloakgp.report.controls import DAY_MICROSECONDS, Control, controls_of, raw_rows
from cloakgp.report.describe import headline
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import amount, printable
from cloakgp.utils.markup import html_table

with extra("notebook"):
    import ipywidgets as widgets

EPOCH = dt.datetime(1970, 1, 1)
DAY = dt.timedelta(microseconds=DAY_MICROSECONDS)
COVERAGE, LEAST_COVERAGE, MOST_COVERAGE = 0.9, 0.5, 0.99
# Of a slider for numbers that are not whole.
STEPS = 200
# At least.
CELL_DIGITS, SLIDER_DIGITS = 4, 5
WIDE = {"description_width": "initial"}


def explore(release: OneOutputRelease, *, coverage: float = COVERAGE) -> widgets.VBox:
    """Return sliders for the public inputs of a release, with the prediction below them.

    Inputs are kept within those of the rows, or of the query points, or the declared ranges of
    private ones, so that nothing is extrapolated. Of numbers and counts, an interval of one new
    person is shown as well.

    Parameters
    ----------
    release : OneOutputRelease
        Of one output.
    coverage : float
        Of the interval at first, between 0.5 and 0.99.

    Returns
    -------
    ipywidgets.VBox
        Its last child holds the prediction.

    Raises
    ------
    TypeError
        If it is another object, or the entries of several outputs.
    ValueError
        For another coverage.
    MissingExtraError
        Without the extra ``notebook``.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> box = explore(model.release_)
    >>> [slider.description for slider in box.children[:-1]]
    ['x1', 'interval']
    >>> box.children[0].value = 2.0
    >>> "lo_90" in box.children[-1].value
    True
    """
    if not isinstance(release, OneOutputRelease) or _of_entries(release):
        raise TypeError(
            "sliders are for a release of one output, such as `release_` of a fitted estimator; of "
            "several outputs there are none: use `release.predict_frame` of all of them"
        )
    if not LEAST_COVERAGE <= coverage <= MOST_COVERAGE:
        raise ValueError(
            f"coverage must lie between {LEAST_COVERAGE} and {MOST_COVERAGE}, got {coverage:g}"
        )
    controls = controls_of(release)
    inputs = [_input(control) for control in controls]
    chosen = [] if release.class_labels else [_coverage(coverage)]
    shown = widgets.HTML()

    def tell() -> None:
        values = {
            control.name: [_value(control, widget)]
            for control, widget in zip(controls, inputs, strict=True)
        }
        rows = raw_rows(release, controls, values, count=1)
        asked = {"interval": round(chosen[0].value, 2)} if chosen else {}
        [row] = release.predict_frame(rows, **asked).to_dict(orient="records")
        width = _narrowest(row) if chosen else 0.0
        shown.value = html_table(
            headline(release),
            [(printable(str(name)), _text(cell, width=width)) for name, cell in row.items()],
            insecure=release.insecure,
        )

    _watch([*inputs, *chosen], tell)
    tell()
    return widgets.VBox([*inputs, *chosen, shown])


def _of_entries(release: OneOutputRelease) -> bool:
    """Return whether it is the entries of several outputs, in no unit of any of them."""
    return isinstance(release, Release) and isinstance(release.prior.kernel, CoregionKernel)


def _watch(moved: Sequence[Any], tell: Callable[[], None]) -> None:
    for widget in moved:
        widget.observe(lambda _: tell(), names="value")


def _narrowest(row: Mapping[Hashable, Any]) -> float:
    """Return the least width of an interval in a row of numbers, or 0 if none has any."""
    named = {str(name): cell for name, cell in row.items()}
    ends = [
        (low, named.get(name.replace("lo_", "hi_").replace("lower", "upper")))
        for name, low in named.items()
        if name.startswith("lo_") or name.endswith("lower")
    ]
    return min((high - low for low, high in ends if high > low), default=0.0)


def _text(cell: Any, *, width: float) -> str:
    if not isinstance(cell, float):
        return str(cell)
    return amount(cell, _digits(cell, width=width, least=CELL_DIGITS))


def _digits(size: float, *, width: float, least: int) -> int:
    """Return with how many digits numbers of a size are told apart within a width."""
    if not 0 < width < abs(size):
        return least
    return min(max(least, 2 + math.ceil(math.log10(abs(size) / width))), sys.float_info.dig)


def _input(control: Control) -> Any:
    label = printable(f"{control.label} ({control.unit})" if control.unit else control.label)
    if control.kind == "level":
        options = [(printable(level), place) for place, level in enumerate(control.levels)]
        return widgets.Dropdown(
            options=options, value=int(control.typical), description=label, style=WIDE
        )
    if control.kind == "date":
        picker = widgets.NaiveDatetimePicker if control.by_time else widgets.DatePicker
        ends = [_moment(control, days) for days in (control.lo, control.hi, control.typical)]
        return picker(min=ends[0], max=ends[1], value=ends[2], description=label, style=WIDE)
    if control.whole:
        return widgets.IntSlider(
            min=int(control.lo),
            max=int(control.hi),
            value=int(control.typical),
            description=label,
            style=WIDE,
        )
    size, width = max(abs(control.lo), abs(control.hi)), control.hi - control.lo
    return widgets.FloatSlider(
        min=control.lo,
        max=control.hi,
        value=control.typical,
        step=width / STEPS or 1.0,
        readout_format=f".{_digits(size, width=width, least=SLIDER_DIGITS)}g",
        description=label,
        style=WIDE,
    )


def _coverage(coverage: float) -> Any:
    return widgets.FloatSlider(
        min=LEAST_COVERAGE,
        max=MOST_COVERAGE,
        step=0.01,
        value=coverage,
        readout_format=".0%",
        description="interval",
        style=WIDE,
    )


def _moment(control: Control, days: float) -> dt.date:
    moment = EPOCH + days * DAY
    return moment if control.by_time else moment.date()


def _value(control: Control, widget: Any) -> float:
    """Return what a widget holds as a control does; a date that was cleared is a typical one."""
    if control.kind != "date":
        return float(widget.value)
    if widget.value is None:
        return control.typical
    midnight = dt.datetime.min.time()
    value = widget.value
    moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, midnight)
    return (moment - EPOCH) / DAY
