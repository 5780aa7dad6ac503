"""The display that suits an object: of a release, a guarantee or a plan."""

from __future__ import annotations

from typing import Any

from cloakgp.fitting.release_plan import ReleasePlan
from cloakgp.plots.calibration import CalibrationDisplay
from cloakgp.plots.classification import ClassificationDisplay
from cloakgp.plots.display import Display
from cloakgp.plots.fan import FanDisplay
from cloakgp.plots.guarantee import GuaranteeDisplay
from cloakgp.plots.plans import PlanDisplay
from cloakgp.plots.prediction import PredictionDisplay
from cloakgp.plots.quantiles import QuantileDisplay
from cloakgp.privacy import Guarantee
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.release import OneOutputRelease, Release
from cloakgp.utils.names import PICTURE_KINDS, PictureKind


def display_of(drawn: Any, *, kind: PictureKind = "prediction", **chosen: Any) -> Display:
    """Return the display of an object, with its numbers, without drawing it.

    Parameters
    ----------
    drawn : OneOutputRelease, ReleasePlan, Guarantee or MixedGuarantee
    kind : {"prediction", "fan", "calibration"}
        Of a release: predictions, predicted quantiles, or probabilities of classes; quantiles of
        new outputs; or the curve by which these are calibrated.
    **chosen
        As the display's own ``of`` takes it: ``vary`` and ``unit``, say.

    Raises
    ------
    TypeError
        If there is no picture of such objects.
    ValueError
        If an input or the kind is unknown, or a release is not calibrated.

    Examples
    --------
    >>> from cloakgp import Guarantee
    >>> type(display_of(Guarantee(epsilon=1.0, delta=0.01, mu=0.5))).__name__
    'GuaranteeDisplay'
    """
    if kind not in PICTURE_KINDS:
        raise ValueError(f"kind must be one of {', '.join(PICTURE_KINDS)}, got {kind!r}")
    if kind == "fan":
        return FanDisplay.of(drawn, **chosen)
    if kind == "calibration":
        return CalibrationDisplay.of(drawn, **chosen)
    if isinstance(drawn, ReleasePlan):
        return PlanDisplay.of(drawn, **chosen)
    if isinstance(drawn, Guarantee | MixedGuarantee):
        return GuaranteeDisplay.of(drawn, **chosen)
    if isinstance(drawn, OneOutputRelease) and drawn.class_labels:
        return ClassificationDisplay.of(drawn, **chosen)
    if isinstance(drawn, Release) and drawn.of_quantiles:
        return QuantileDisplay.of(drawn, **chosen)
    return PredictionDisplay.of(drawn, **chosen)


def plot(drawn: Any, *, kind: PictureKind = "prediction", ax: Any = None, **chosen: Any) -> Display:
    """Draw a release, a guarantee or a plan, in the display that suits it.

    The same as their method ``plot``, which needs what draws when it is called, and not before.

    Parameters
    ----------
    drawn : OneOutputRelease, ReleasePlan, Guarantee or MixedGuarantee
    kind : {"prediction", "fan", "calibration"}
        As for `display_of`.
    ax : matplotlib.axes.Axes or a sequence of them, optional
        A new figure of pyplot if not given.
    **chosen
        As the display's own ``of`` takes it: ``vary`` and ``unit``, say.

    Returns
    -------
    Display

    Raises
    ------
    TypeError
        If there is no picture of such objects.
    ValueError
        If an input or the kind is unknown, or a release is not calibrated.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> from matplotlib.figure import Figure
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> plot(model.release_, unit="m", ax=Figure().add_subplot()).ax_.get_ylabel()
    'y (m)'
    """
    return display_of(drawn, kind=kind, **chosen).plot(ax)
