r"""Page that predicts: one file with inputs to move, without a server.

The page evaluates the posterior itself, by the coefficients of `cloakgp.release.coefficients`, in
the float64 arithmetic of every browser: no grid and no interpolation, so that its numbers are those
of `release.predict` but for rounding. Intervals and probabilities of one person are those of
`release.predict_interval` and `release.probability_above`, by the same counts. What a kernel is has
to be written down again in JavaScript (`templates/predictor.js`, which the reader of files in
`readers/javascript` uses too); a kernel that is not there is refused by name.

Pictures are drawn by Plotly, whose package ships its script and offers it by a public function
(`plotly.offline.get_plotlyjs`); it needs nothing else, and knows nothing of the release.
"""

from __future__ import annotations

import base64
import json
from importlib.resources import files
from typing import Any

import numpy as np

from cloakgp.pages.rendering import POLICY, SCRIPTS, render
from cloakgp.release import OneOutputRelease
from cloakgp.release.io.codec import to_tree
from cloakgp.report.columns import class_names
from cloakgp.report.controls import Control, controls_of
from cloakgp.report.describe import describe, headline
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import printable

with extra("page"):
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

# Kernels that the page can evaluate, and the smoothness of those of Matérn.
KERNELS = frozenset(
    {
        "BlockMatern",
        "ConstantKernel",
        "DotProduct",
        "ExpSineSquared",
        "Exponentiation",
        "LinearKernel",
        "Matern",
        "Product",
        "RBF",
        "RationalQuadratic",
        "Sum",
        "WhiteKernel",
    }
)
SMOOTHNESSES = (0.5, 1.5, 2.5)
# Of intervals for one person, in per cent, and the one that is shown first.
COVERAGES = (50, 80, 90, 95, 99)
COVERAGE = 95
# Sections of the sheet that the page shows.
SHOWN = ("NOT PRIVATE", "Protection", "Predictions", "Guarantee")


def prediction_html(release: OneOutputRelease) -> str:
    """Return a page that predicts, as one file of HTML.

    Parameters
    ----------
    release : OneOutputRelease
        Of numbers or of classes, of few rows or of many, or of whole rows.

    Raises
    ------
    TypeError
        If it is a release of another kind.
    ValueError
        If its kernel cannot be evaluated on a page.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> "https://" in prediction_html(model.release_).partition("<script>")[0]
    False
    """
    if not isinstance(release, OneOutputRelease):
        raise TypeError("a page predicts one output from numbers or columns: take predict")
    if release.predicts_within:
        raise ValueError(
            "a page cannot predict by a release or public rows within the release: fit with their "
            "predictions as a column"
        )
    controls = controls_of(release)
    coefficients = release.coefficients(stored=_numbers)
    if coefficients is None:
        raise ValueError("a page does not know how these outputs are predicted: take predict")
    if coefficients["margins"]:
        raise ValueError(
            "a page cannot predict by margins of rows that were kept out: use `cloakgp predict` "
            "for this release"
        )
    for part in coefficients["parts"]:
        kernel = part.get("features", part).get("kernel")
        if kernel is not None:
            _check_kernel(kernel)
        if part["noise"] is None:
            raise ValueError("a page cannot tell noise that varies with the inputs: take predict")
    classes = [printable(name) for name in class_names(release)] or None
    described = coefficients | {
        "output": printable(release.output_name),
        "classes": classes,
        "controls": [_control(control) for control in controls],
        "clipped": release.private_inputs,
        "schema": None if release.schema is None else to_tree(release.schema),
    }
    return render(
        "prediction.html",
        title=release.output_name,
        headline=headline(release),
        insecure=release.insecure,
        classes=bool(release.class_labels),
        counts=coefficients["counts"] is not None,
        controls=tuple(enumerate(controls)),
        coverages=COVERAGES,
        coverage=COVERAGE,
        sections=[section for section in describe(release) if section.title in SHOWN],
        data=_as_script(described),
        script=Markup("\n".join(map(_template, ("predictor.js", "predict.js")))),
        plotly=Markup(get_plotlyjs()),
        policy=POLICY + SCRIPTS,
    )


def _template(name: str) -> str:
    return files("cloakgp.pages").joinpath("templates", name).read_text("utf-8")


def _as_script(values: Any) -> Markup:
    """Return JSON that ends no script, for any text in it."""
    text = json.dumps(values, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _numbers(values: Array) -> dict[str, Any]:
    """Return an array as its bytes, to the last bit."""
    array = np.ascontiguousarray(values, dtype="<f8")
    return {"shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode("ascii")}


def _check_kernel(tree: Any) -> None:
    name, parameters = tree["kernel"], tree["parameters"]
    smooth = name != "Matern" or parameters["nu"] in SMOOTHNESSES
    if name not in KERNELS or not smooth:
        raise ValueError(
            f"a page cannot evaluate the kernel {name}: use `cloakgp predict` for this release"
        )
    for value in parameters.values():
        if isinstance(value, dict) and "kernel" in value:
            _check_kernel(value)


def _control(control: Control) -> dict[str, Any]:
    return {
        "label": printable(control.label),
        "unit": printable(control.unit),
        "kind": control.kind,
        "lo": control.lo,
        "hi": control.hi,
        "typical": control.typical,
        "whole": control.whole,
        "byTime": control.by_time,
        "levels": [printable(level) for level in control.levels],
    }
