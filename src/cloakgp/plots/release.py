"""Pictures of a release, from the public object alone: no output is ever drawn, none is there.

Figures are made without pyplot, so nothing is kept open and no window appears.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from cloakgp.models.kernels.integral import IntegralRBF
from cloakgp.models.kernels.latent import components
from cloakgp.models.likelihoods import ClassLikelihood
from cloakgp.plots.regression import INK, WARNING, draw_curve, draw_map
from cloakgp.release import Release
from cloakgp.report.columns import input_names
from cloakgp.report.describe import headline
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

SUFFIXES = (".png", ".pdf", ".svg")
PIXELS_PER_INCH = 160
# Characters of a title after which the guarantee goes on a line of its own.
LONG_SUBJECT = 30


def plot_release(release: Release, *, vary: Sequence[str] = ()) -> Figure:
    """Draw the predictions of a release: a curve over one input, or a map over two.

    Parameters
    ----------
    release : Release
    vary : sequence of str
        One or two inputs to draw over; the others are held at their medians. All of them if not
        given.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    TypeError
        If it is a release of another kind.
    ValueError
        If an input is unknown, or there are more than two and none were chosen; or its inputs are
        boxes.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3)
    >>> figure = plot_release(model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_)
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
    ('x1', 'y')
    """
    if not isinstance(release, Release):
        raise TypeError(f"there is no picture of a {type(release).__name__}")
    if isinstance(release.likelihood, ClassLikelihood):
        raise TypeError("probabilities of classes are drawn by plot_classes")
    if any(isinstance(one, IntegralRBF) for one in components(release.prior.kernel)):
        raise ValueError("there is no picture of a release whose inputs are boxes")
    chosen = chosen_inputs(release, vary=vary)
    figure = new_figure(width=8.0, height=5.2 if len(chosen) == 1 else 5.8)
    axes = figure.add_subplot()
    draw = draw_curve if len(chosen) == 1 else draw_map
    draw(axes, release, vary=chosen)
    write_title(figure, release, vary=chosen)
    return figure


def new_figure(*, width: float, height: float) -> Figure:
    """Return an empty figure with room around it, of a size in inches."""
    layout = ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.12)
    return Figure(figsize=(width, height), layout=layout)


def write_title(figure: Figure, release: Release, *, vary: Sequence[str]) -> None:
    """Say above a figure what it shows, and what is guaranteed.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    release : Release
    vary : sequence of str
        The inputs drawn over.
    """
    subject = f"{release.output_name} from {' and '.join(vary)}"
    guarantee = headline(release)
    figure.suptitle(
        f"{subject}, {guarantee}" if len(subject) < LONG_SUBJECT else f"{subject}\n{guarantee}",
        color=WARNING if release.insecure else INK,
        parse_math=False,
        fontsize=13,
        fontweight="bold",
    )


def chosen_inputs(release: Release, *, vary: Sequence[str]) -> tuple[str, ...]:
    """Return the one or two inputs to draw over, or say that they must be chosen.

    Parameters
    ----------
    release : Release
    vary : sequence of str
        Empty for all.
    """
    names = input_names(release)
    chosen = tuple(vary) or names
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise ValueError(
            f"the release has no input {', '.join(unknown)}; its inputs are: {', '.join(names)}"
        )
    if len(chosen) > 2 or len(set(chosen)) < len(chosen):
        raise ValueError(
            f"a picture has room for one or two inputs of {', '.join(names)}: choose with --vary, "
            f"as in --vary {names[0]} or --vary {','.join(names[:2])} "
            "(the others are then held at their medians)"
        )
    return chosen


def figure_bytes(figure: Figure, *, suffix: str) -> bytes:
    """Return the file of a picture.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    suffix : str
        .png, .pdf or .svg.
    """
    content = io.BytesIO()
    figure.savefig(content, format=suffix.removeprefix("."), dpi=PIXELS_PER_INCH, facecolor="white")
    return content.getvalue()


def picture_suffix(path: str | Path) -> str:
    """Return the suffix that tells in which format to draw, or say which ones do.

    Examples
    --------
    >>> picture_suffix("heights.PNG")
    '.png'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: the name of a picture must end in {', '.join(SUFFIXES)}")
    return suffix
