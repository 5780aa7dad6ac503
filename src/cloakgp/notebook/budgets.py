"""A plan with a slider for ε: what each budget is expected to give, and what it costs.

Nothing of the private column is read, and nothing spent.
"""

from __future__ import annotations

from cloakgp.fitting.release_plan import ReleasePlan
from cloakgp.utils.extras import extra
from cloakgp.utils.markup import html_table

with extra("notebook"):
    import ipywidgets as widgets


def choose_budget(plan: ReleasePlan) -> widgets.VBox:
    """Return a slider over the budgets that a plan forecast, with what each would give below it.

    Parameters
    ----------
    plan : ReleasePlan
        Of several budgets, as plans are by default.

    Returns
    -------
    ipywidgets.VBox
        The slider, whose value is ε, and what is said of it.

    Raises
    ------
    ValueError
        If the plan forecast nothing, or one budget alone.
    MissingExtraError
        Without the extra ``notebook``.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> plan = DPGPRegressor(bounds=(0, 1), epsilon=1.0).plan([[0.0], [1.0], [2.0]])
    >>> slider, told = choose_budget(plan).children
    >>> slider.value = 2.0
    >>> plan.budgets()[4][1] in told.value
    True
    """
    head, *budgets = plan.budgets()
    if not budgets:
        why = f" ({plan.unknown})" if plan.unknown else ""
        raise ValueError(f"this plan compares no budgets{why}: there is nothing to slide over")
    told = dict(zip([each.epsilon for each in plan.forecasts], budgets, strict=True))
    slider = widgets.SelectionSlider(
        options=[(f"{epsilon:.4g}", epsilon) for epsilon in told],
        value=plan.epsilon if plan.epsilon in told else next(iter(told)),
        description="ε",
    )
    shown = widgets.HTML()

    def tell() -> None:
        shown.value = html_table(plan.title, list(zip(head, told[slider.value], strict=True)))

    slider.observe(lambda _: tell(), names="value")
    tell()
    return widgets.VBox([slider, shown])
