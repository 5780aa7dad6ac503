"""Plans on the command line: made of the options of a release, and shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from cloakgp.cli.console import plain, stdout
from cloakgp.cli.show import print_sections
from cloakgp.orders.options import Order

if TYPE_CHECKING:
    from cloakgp.fitting.release_plan import ReleasePlan


def plan_release(
    order: Order,
    *,
    epsilons: Sequence[float] | None,
) -> ReleasePlan:
    """Return the plan of a release; the private column is not read.

    Parameters
    ----------
    order : Order
    epsilons : sequence of float, optional
        Other budgets; some around the asked one if not given.

    Raises
    ------
    ValueError
        For what makes no sense.
    """
    from cloakgp.cli.console import showing_warnings
    from cloakgp.cli.progress import reporting
    from cloakgp.orders import estimators

    with reporting("looking at the public columns") as reporter, showing_warnings():
        return estimators.plan_release(order, epsilons=epsilons, reporter=reporter)


def print_plan(found: ReleasePlan, *, output: str, only: Sequence[str] = ()) -> None:
    """Write a plan to the terminal.

    Parameters
    ----------
    found : ReleasePlan
    output : str
        Name of the private column.
    only : sequence of str
        Labels of the facts to write, without a table over ε; by default all.
    """
    from cloakgp.report.facts import Fact, Section

    facts = [Fact(*told) for told in found.facts() if not only or told[0] in only]
    print_sections([Section(f"Plan of a release of {output}", tuple(facts))])
    head, *lines = found.budgets()
    if lines and not only:
        table = Table(box=box.SIMPLE_HEAD, title="Over budgets", title_justify="left")
        for name in head:
            table.add_column(plain(name), justify="right")
        for line in lines:
            chosen = float(line[0]) == float(f"{found.epsilon:.4g}")
            table.add_row(*map(plain, line), style="bold" if chosen else "")
        stdout.print(table)
