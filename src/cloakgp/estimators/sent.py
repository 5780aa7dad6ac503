"""Estimators that are sent to other processes, and the account that is to count their fits there.

scikit-learn and joblib send estimators to workers by pickling them. The state that is pickled
within a block of an account has its ticket (`cloakgp.privacy.sent`), and no estimator keeps it in
the process that wrote it. Copies that scikit-learn makes in a worker (`clone`) have it too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, Self, TypeVar

from sklearn.base import BaseEstimator

from cloakgp.privacy.sent import Ticket, counted_as_sent, ticket_in_force
from cloakgp.privacy.spending import this_process

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

TICKET = "_ticket"


class SentMixin(BaseEstimator):
    """An estimator whose fits in another process count for the account that was in force here."""

    _ticket: Ticket | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Of an estimator, the instance's own dictionary is its state: it is not to be changed.
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop(TICKET, None)
        ticket = ticket_in_force(self._ticket)
        return state if ticket is None else state | {TICKET: ticket}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._ticket is not None and self._ticket.process == this_process():
            del self._ticket

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()
        if self._ticket is not None:
            made._ticket = self._ticket
        return made


def charged_as_sent(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make a method count for the account with which its estimator was sent to this process.

    For every method of an estimator that is given private outputs.

    Parameters
    ----------
    method : callable

    Examples
    --------
    >>> class Estimator(SentMixin):
    ...     @charged_as_sent
    ...     def fit(self, X, y):
    ...         return "fitted"
    >>> Estimator().fit([[0.0]], [1.0])
    'fitted'
    """

    @functools.wraps(method)
    def charged(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        # The estimator is the first argument of its own methods.
        estimator: Any = args[0]
        with counted_as_sent(estimator._ticket):
            return method(*args, **kwargs)

    return charged
