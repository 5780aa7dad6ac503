"""Plans of a fit of classes: what it will take and make public, from public inputs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from cloakgp.criteria import Criterion
from cloakgp.estimators.base import TableLike, count_queries
from cloakgp.estimators.planning import look_at
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY
from cloakgp.fitting.planning import FitPlan, plan_fit
from cloakgp.fitting.release_plan import (
    NOT_OF_CLASSES,
    ReleasePlan,
    cost_of,
    file_size,
    most_questions,
)
from cloakgp.fitting.streaming_measuring import INDUCING, Rows
from cloakgp.privacy.labels import Classes
from cloakgp.privacy.noise import noises_for
from cloakgp.utils.names import NoiseChoice


class ClassPlanMixin:
    """What an estimator of classes says of a fit beforehand; nothing is read or spent."""

    classes: object
    epsilon: float
    delta: float
    noise: NoiseChoice
    steps: int | None
    inducing: Any
    memory: float | None

    if TYPE_CHECKING:
        # What the estimator itself brings.
        def _criterion(self) -> Criterion: ...

    def plan_fit(self, shape: tuple[int, int], *, queries: int | None = None) -> FitPlan:
        """Say beforehand how a table of a size is best fitted; nothing is read or spent.

        Parameters
        ----------
        shape : (int, int)
            N and D, of X.
        queries : int, optional
            How many query points will be given.

        Returns
        -------
        FitPlan
            With ``by_passes``, by `fit_rows`: `fit` holds all rows at once, and so does its
            release.

        Raises
        ------
        ValueError
            If there is no room for a sparse process either.

        Examples
        --------
        >>> from cloakgp import DPGPClassifier
        >>> model = DPGPClassifier(classes=[0, 1], epsilon=1.0, delta=1e-6, inducing=50)
        >>> model.plan_fit((40_000, 2)).by_passes
        True
        """
        return self._plan(shape, queries=queries, passes="many rows" in self._criterion().uses)

    def plan(
        self,
        X: TableLike | Rows,
        X_query: TableLike | None = None,
        *,
        groups: Iterable[Hashable] | None = None,
    ) -> ReleasePlan:
        """Say about a release, before it is made, what public inputs tell; nothing is spent.

        How well classes will be told apart is not among that: it depends on the labels.

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
            For anything that `fit` would refuse without looking at labels.

        Examples
        --------
        >>> import numpy as np
        >>> from cloakgp import DPGPClassifier
        >>> model = DPGPClassifier(classes=["no", "yes"], epsilon=1.0)
        >>> print(model.plan(np.linspace(0, 10, 300)[:, None]))  # doctest: +ELLIPSIS
        expected error: cannot be told beforehand: ...
        """
        model = clone(self)
        possible = noises_for(self.noise, epsilon=self.epsilon, delta=self.delta)
        classes = Classes.checked(self.classes)
        table, given = look_at(model, X, groups=groups)
        queries = count_queries(X_query)
        how = model.plan_fit((table.rows, table.n_inputs), queries=queries)
        if given is None:
            how = replace(how, inducing=how.inducing or INDUCING, by_passes=True)
        # Of tables that are held, `fit` takes the better by forecast.
        chooses = len(possible) > 1 and "stages" in self._criterion().uses and not how.by_passes
        count = queries or min(table.rows, LARGEST_DEFAULT_QUERY)
        questions = most_questions(table, how, queries=count)
        cost = cost_of(table, how, queries=count, channels=classes.channels)
        return ReleasePlan(
            table=table,
            declared=", ".join(map(str, classes.labels)),
            epsilon=self.epsilon,
            delta=self.delta,
            noise=None if chooses else possible[0],
            how=how,
            stages=1 if self.steps is None else self.steps,
            questions=questions * classes.channels,
            memory=cost.memory,
            seconds=cost.seconds,
            file_bytes=file_size(
                table, how, queries=count, questions=questions, channels=classes.channels
            ),
            unknown=NOT_OF_CLASSES,
        )

    def _plan(self, shape: tuple[int, int], *, queries: int | None, passes: bool) -> FitPlan:
        return plan_fit(
            shape[0],
            n_inputs=shape[1],
            queries=queries,
            inducing=self.inducing,
            memory=self.memory,
            passes=passes,
            at_rows=self._criterion().at_rows,
        )
