"""What pictures there are of: objects that are drawn by their own method, once it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Pictured:
    """An object that `cloakgp.plots` has pictures of."""

    def plot(self, *, ax: Any = None, **chosen: Any) -> Any:
        """Draw it, as `cloakgp.plots.plot` does.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or a sequence of them, optional
            A new figure of pyplot if not given.
        **chosen
            As `cloakgp.plots.plot` takes it: ``kind``, ``vary`` and ``unit``, say.

        Returns
        -------
        cloakgp.plots.Display
            With the numbers of the picture: `to_frame`.

        Raises
        ------
        ValueError
            If an input or the kind is unknown.
        MissingExtraError
            Without the extra ``plots``.

        Examples
        --------
        >>> from cloakgp import DPGPRegressor
        >>> from matplotlib.figure import Figure
        >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
        >>> model.release_.plot(ax=Figure().add_subplot()).ax_.get_xlabel()
        'x1'
        """
        # Pictures lie above all that they are of, and are found by name when they are asked for: to
        # read a release takes nothing that draws.
        return import_module("cloakgp.plots.plotting").plot(self, ax=ax, **chosen)
