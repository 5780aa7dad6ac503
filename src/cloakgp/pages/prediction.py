r"""Page that predicts: one file with inputs to move, without a server.

The page evaluates the posterior itself, by the coefficients of `cloakgp.release.coefficients`, in
the float64 arithmetic of every browser: no grid and no interpolation, so that its numbers are those
of `release.predict` but for rounding. Intervals and probabilities of one person are those of
`release.predict_interval` and `release.probability_above`, by the same counts. What a kernel is has
to be written down again in JavaScript (`templates/predict.js`); a kernel that is not there is
refused by name.

Pictures are drawn by Plotly, whose package ships its script and offers it by a public function
(`plotly.offline.get_plotlyjs`); it needs nothing else, and knows nothing of the release.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import numpy as np

from cloakgp.columns import Schema
from cloakgp.columns.base import Column
from cloakgp.columns.categories import CORNER, Category
from cloakgp.columns.dates import MONDAY, PERIODS, Date
from cloakgp.columns.places import RADIUS, Place
from cloakgp.models.latent import has_white_noise, white_noise_variance
from cloakgp.models.likelihoods import CountLikelihood, Likelihood, QuantileLikelihood
from cloakgp.models.likelihoods.classes import class_likelihood
from cloakgp.models.likelihoods.counts import HERMITE_NODES, HERMITE_SHARES
from cloakgp.models.scatter import LARGEST_LOG, Scatter
from cloakgp.pages.rendering import POLICY, SCRIPTS, render
from cloakgp.release import Release
from cloakgp.release.coefficients import Coefficients, coefficients
from cloakgp.release.io.kernel_tree import kernel_to_tree
from cloakgp.report.columns import class_names, has_classes, known_inputs
from cloakgp.report.controls import Control, controls_of, offsets
from cloakgp.report.describe import describe, headline
from cloakgp.report.outputs import bounds
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import NORMAL_95, printable

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
SMOOTHNESSES = (0.5, 1.5, 2.5, np.inf)
# Of intervals for one person, in per cent, and the one that is shown first.
COVERAGES = (50, 80, 90, 95, 99)
COVERAGE = 95
# Sections of the sheet that the page shows.
SHOWN = ("NOT PRIVATE", "Protection", "Predictions", "Guarantee")


def prediction_html(release: Release) -> str:
    """Return a page that predicts, as one file of HTML.

    Parameters
    ----------
    release : Release
        Of numbers or of classes, of few rows or of many.

    Raises
    ------
    ValueError
        If its kernel cannot be evaluated on a page.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> "https://" in prediction_html(model.release_).partition("<script>")[0]
    False
    """
    if release.margins is not None:
        raise ValueError(
            "a page cannot predict by margins of rows that were kept out: use `cloakgp predict` "
            "for this release"
        )
    if release.predictor is not None or release.public_rows is not None:
        raise ValueError(
            "a page cannot predict by a release or public rows within the release: fit with their "
            "predictions as a column"
        )
    controls = controls_of(release)
    described = {
        "output": printable(release.output_name),
        "classes": [printable(name) for name in class_names(release)]
        if has_classes(release)
        else None,
        "bounds": None if has_classes(release) else list(bounds(release)),
        "transform": None if release.transform is None else release.transform.name,
        "link": _link(release),
        "quantiles": _quantiles(release.likelihood),
        "counts": _counts(release.likelihood),
        "normal95": NORMAL_95,
        "calibration": _calibration(release),
        "controls": [_control(control) for control in controls],
        "columns": _columns(release.schema, controls),
        "parts": [_part(part, known_inputs(release)) for part in coefficients(release)],
    }
    return render(
        "prediction.html",
        title=release.output_name,
        headline=headline(release),
        insecure=release.insecure,
        classes=has_classes(release),
        counts=release.likelihood.windowed,
        controls=tuple(enumerate(controls)),
        coverages=COVERAGES,
        coverage=COVERAGE,
        sections=[section for section in describe(release) if section.title in SHOWN],
        data=_as_script(described),
        script=Markup(files("cloakgp.pages").joinpath("templates/predict.js").read_text("utf-8")),
        plotly=Markup(get_plotlyjs()),
        policy=POLICY + SCRIPTS,
    )


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


def _part(part: Coefficients, X: Array) -> dict[str, Any]:
    tree = kernel_to_tree(part.kernel)
    _check_kernel(tree)
    white = 0.0
    if has_white_noise(part.kernel):
        found = white_noise_variance(part.kernel, X)
        white = float(found.mean())
        if np.ptp(found) > 1e-9 * max(white, 1e-300):
            raise ValueError("a page cannot tell noise that varies with the inputs: take predict")
    return {
        "weight": part.weight,
        "kernel": tree,
        "centres": _numbers(part.centres),
        "factor": None if part.factor is None else _numbers(part.factor),
        "allExplained": part.all_explained,
        "noise": part.noise_variance + white,
        "scatter": None if part.scatter is None else _scatter(part.scatter),
        "trend": None if part.trend is None else asdict(part.trend),
        **_learned(part.likelihood),
        "channels": [
            {
                "mean": channel.mean,
                "weights": _numbers(channel.weights),
                "subtracted": _numbers(channel.subtracted),
                "added": _numbers(channel.added),
            }
            for channel in part.channels
        ],
    }


def _scatter(scatter: Scatter) -> dict[str, Any]:
    return {
        "centres": scatter.centres.tolist(),
        "scales": (scatter.units * scatter.length).tolist(),
        "weights": scatter.weights.tolist(),
        "largest": LARGEST_LOG,
    }


def _learned(likelihood: Likelihood) -> dict[str, Any]:
    """Return what the page takes of a likelihood, beside its latent functions."""
    if isinstance(likelihood, QuantileLikelihood):
        return {"scales": list(likelihood.scales)}
    if isinstance(likelihood, CountLikelihood):
        return {"overdispersion": likelihood.overdispersion}
    return {}


def _check_kernel(tree: Any) -> None:
    name, parameters = tree["kernel"], tree["parameters"]
    smooth = name != "Matern" or parameters["nu"] in SMOOTHNESSES
    if name not in KERNELS or not smooth:
        raise ValueError(
            f"a page cannot evaluate the kernel {name}: use `cloakgp predict` for this release"
        )
    if name == "Matern" and parameters["nu"] == np.inf:
        tree["kernel"] = "RBF"
        del parameters["nu"]
    for key in [key for key in parameters if key.endswith("_bounds")]:
        del parameters[key]
    for value in parameters.values():
        if isinstance(value, dict) and "kernel" in value:
            _check_kernel(value)


def _link(release: Release) -> dict[str, list[float]] | None:
    if not has_classes(release):
        return None
    link = class_likelihood(release.fitted.likelihood).link
    return {"scales": link.scales.tolist(), "weights": link.weights.tolist()}


def _quantiles(likelihood: Likelihood) -> dict[str, Any] | None:
    """Return which quantiles are predicted, and which of them is nearest to the median."""
    if not isinstance(likelihood, QuantileLikelihood):
        return None
    return {
        "levels": list(likelihood.quantiles),
        "steps": likelihood.steps.tolist(),
        "middle": likelihood.middle,
    }


def _counts(likelihood: Likelihood) -> dict[str, list[float]] | None:
    """Return the nodes and shares over which counts are mixed."""
    if not isinstance(likelihood, CountLikelihood):
        return None
    return {"nodes": HERMITE_NODES.tolist(), "shares": HERMITE_SHARES.tolist()}


def _calibration(release: Release) -> dict[str, Any] | None:
    """Return the distribution functions that noisy counts told, between which the page mixes."""
    known = release.calibrated_by
    if known is None:
        return None
    return {
        "grid": _numbers(known.grid[None, :]),
        "middles": known.question.middles.tolist(),
        "curves": _numbers(known.curves),
    }


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


def _columns(schema: Schema | None, controls: tuple[Control, ...]) -> list[dict[str, Any]]:
    """Return the encoding of choices as inputs, column by column, in order."""
    if schema is None:
        return [{"kind": "number", "controls": [place]} for place in range(len(controls))]
    place, found = 0, []
    for column, _ in offsets(schema):
        count = 2 if isinstance(column, Place) else 1
        found.append(_column(column) | {"controls": list(range(place, place + count))})
        place += count
    return found


def _column(column: Column) -> dict[str, Any]:
    filled = {"filled": column.missing == "impute"}
    if isinstance(column, Category):
        return {"kind": "category", "slots": len(column.slots), "corner": CORNER, **filled}
    if isinstance(column, Date):
        cycles = [[PERIODS[cycle], MONDAY] for cycle in column.cycles]
        return {"kind": "date", "linear": column.linear, "cycles": cycles, **filled}
    if isinstance(column, Place):
        return {
            "kind": "place",
            "sphere": column.projection == "sphere",
            "centre": list(column.centre),
            "radius": RADIUS,
            **filled,
        }
    # Numbers, ranks and truth values stand for themselves.
    return {"kind": "number", **filled}
