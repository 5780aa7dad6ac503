"""Plans of a fit of quantiles, from public inputs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from cloakgp.estimators.base import TableLike
from cloakgp.estimators.planning import Beforehand, PlanMixin
from cloakgp.fitting.bands import Stages, stages_for
from cloakgp.fitting.passes import Rows
from cloakgp.fitting.release_plan import NOT_OF_QUANTILES, ReleasePlan, most_questions
from cloakgp.fitting.request import FitRequest, QuantileRegression
from cloakgp.fitting.schedule import schedule_release
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy.noise_choice import noises_for
from cloakgp.utils.formatting import amount


class QuantilePlanMixin(PlanMixin):
    """Plans of an estimator of quantiles; no output is read, and nothing is spent."""

    stages: Stages
    _holds_groups = True
    # Cells of rows are coarser than rows.
    _holds_in_room = True

    if TYPE_CHECKING:
        # What the estimator itself brings.
        def _request(self) -> FitRequest: ...

    def _quantiles(self) -> QuantileRegression:
        """Return the task that the parameters describe."""
        task = self._request().task
        assert isinstance(task, QuantileRegression)
        return task

    def plan(
        self,
        X: TableLike | Rows,
        X_query: TableLike | None = None,
        *,
        groups: Iterable[Hashable] | None = None,
    ) -> ReleasePlan:
        """Plan a release from public inputs; nothing is spent.

        Errors of quantiles are not forecast: these depend on the scatter of outputs.

        Parameters
        ----------
        X : array-like or table of shape (N, D), or rows in chunks
            Public inputs. Of rows in chunks (`cloakgp.data`), no private entry is read.
        X_query, groups
            As for `fit`.

        Returns
        -------
        ReleasePlan
            Print it.

        Raises
        ------
        ValueError
            For arguments that `fit` refuses before it reads outputs.

        Examples
        --------
        >>> import numpy as np
        >>> from cloakgp import DPGPQuantileRegressor
        >>> model = DPGPQuantileRegressor(bounds=(1, 1e6), epsilon=1.0)
        >>> print(model.plan(np.linspace(0, 10, 300)[:, None]))  # doctest: +ELLIPSIS
        expected error: cannot be forecast: ...
        """
        model: Any = clone(self)
        request = self._request()
        request.validate()
        task, criterion = self._quantiles(), request.chosen_criterion()
        count = len(task.levels)
        channels = 1 if count == 1 else count + 1
        known: Beforehand = model._beforehand(X, X_query, groups=groups, channels=channels)
        possible = noises_for(self.noise, epsilon=self.epsilon, delta=self.delta)
        stages = stages_for(self.stages, criterion=criterion, noise=possible[0])
        schedule = schedule_release(
            Budget(self.epsilon, self.delta, noise=possible[0]),
            bounds=task.limits,
            stages=stages,
            rows=known.table.rows,
            most_rows=known.table.most_rows,
            ask_spread=False,
            searched=bool(task.bounds_to_search(criterion)),
        )
        chooses = len(possible) > 1
        return known.plan_of(
            most_questions(known.table, known.how, queries=known.queries) * len(stages),
            declared=f"{amount(task.declared.lo, 12)} to {amount(task.declared.hi, 12)}",
            transform=None if task.transform is None else task.transform.name,
            epsilon=self.epsilon,
            delta=self.delta,
            noise=None if chooses else possible[0],
            stages=len(stages),
            unknown=NOT_OF_QUANTILES,
            guarantee=None if chooses else schedule.guarantee,
        )
