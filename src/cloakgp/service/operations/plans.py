"""Plans: everything about a release before it is asked for, from public columns alone."""

from __future__ import annotations

from cloakgp.fitting.release_plan import ReleasePlan
from cloakgp.ledger.amounts import Amount, releases_left
from cloakgp.plots.figures import figure_bytes
from cloakgp.plots.plans import PlanDisplay
from cloakgp.service.access import operation
from cloakgp.service.asking import order_of, plain_words
from cloakgp.service.budgets import (
    held,
    needs_approval,
    requests_of,
    share_of,
    standing,
    total,
)
from cloakgp.service.context import Work
from cloakgp.service.errors import InvalidError, TooManyError
from cloakgp.service.messages import FactView, PlanRequest, PlanView
from cloakgp.service.models import Rules, Table
from cloakgp.service.operations.tables import found_table

# Seconds that somebody waits for others' plans.
PATIENCE = 30.0


@operation
def make_plan(work: Work, asked: PlanRequest) -> PlanView:
    """Plan a release; nothing private is read, and nothing spent.

    Raises
    ------
    InvalidError
        If the choices make no sense.
    NotFoundError
    TooManyError
        If too many plans are being made.
    """
    table, found = _planned(work, asked)
    budget = asked.choices.epsilon, asked.choices.delta
    each = Amount.held([budget])
    with work.database.reading() as session:
        account = standing(session, table.account)
        spent = account.spent + held(session, table.account)
        rules = session.get(Rules, table.account)
        assert rules is not None
        share = share_of(session, rules, work.actor.id)
        mine = total(session, requests_of(session, table.account, work.actor.id))
        asks = needs_approval(session, rules, work.actor.id, budget)
    return PlanView(
        facts=[FactView(label=label, text=text) for label, text in found.facts()],
        budgets=[list(line) for line in found.budgets()],
        plan=found.to_dict(),
        releases_left=releases_left(spent, each, limit=account.limit),
        mine_left=None if share is None else releases_left(mine, each, limit=share),
        needs_approval=asks,
    )


@operation
def plot_plan(work: Work, asked: PlanRequest, *, vary: list[str], suffix: str) -> bytes:
    """Draw the expected error over one input, or over two.

    Parameters
    ----------
    work : Work
    asked : PlanRequest
    vary : list of str
        The first if empty.
    suffix : {".png", ".svg"}

    Raises
    ------
    InvalidError
        If there is no forecast to draw, or no such input.
    """
    table, found = _planned(work, asked)
    try:
        return figure_bytes(
            PlanDisplay.of(found, vary=vary, output=table.output).draw(), suffix=suffix
        )
    except ValueError as error:
        raise InvalidError(plain_words(error, table)) from None


def _planned(work: Work, asked: PlanRequest) -> tuple[Table, ReleasePlan]:
    with work.database.reading() as session:
        table = found_table(session, asked.table, usable=True)
    order = order_of(table, asked.choices, memory=work.service.settings.memory)

    def make() -> ReleasePlan:
        if not work.service.planning.acquire(timeout=PATIENCE):
            raise TooManyError(int(PATIENCE))
        try:
            return order.plan(list(asked.epsilons))
        except (ValueError, OSError) as error:
            raise InvalidError(plain_words(error, table)) from None
        except MemoryError:
            raise InvalidError("this takes more memory than there is: take inducing") from None
        finally:
            work.service.planning.release()

    return table, work.service.plans.get(asked.model_dump_json(), make)
