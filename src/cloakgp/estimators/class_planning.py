"""Plans of a fit of classes: its cost and public parts, from public inputs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from sklearn.base import clone

from cloakgp.estimators.base import TableLike
from cloakgp.estimators.planning import Beforehand, PlanMixin
from cloakgp.fitting.passes import Rows
from cloakgp.fitting.release_plan import NOT_OF_CLASSES, ReleasePlan, most_questions
from cloakgp.fitting.schedule import whole_guarantee
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy.noise_choice import check_noise, noises_for
from cloakgp.privacy.questions.classes import Classes


class ClassPlanMixin(PlanMixin):
    """Plans of an estimator of classes; nothing is read or spent."""

    classes: object
    steps: int | None

    def plan(
        self,
        X: TableLike | Rows,
        X_query: TableLike | None = None,
        *,
        groups: Iterable[Hashable] | None = None,
    ) -> ReleasePlan:
        """Plan a release from public inputs: cost, protection and public parts; nothing is spent.

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
        expected error: cannot be forecast: ...
        """
        model = clone(self)
        check_noise(self.noise, epsilon=self.epsilon, delta=self.delta)
        classes = Classes.checked(self.classes)
        known: Beforehand = model._beforehand(X, X_query, groups=groups, channels=classes.channels)
        criterion = self._criterion()
        balls = criterion.balls_of_rules if known.how.by_passes else criterion.balls
        possible = noises_for(self.noise, epsilon=self.epsilon, delta=self.delta, balls=balls)
        chooses = len(possible) > 1
        budget = Budget(self.epsilon, self.delta, noise=possible[0])
        return known.plan_of(
            most_questions(known.table, known.how, queries=known.queries),
            declared=", ".join(map(str, classes.labels)),
            epsilon=self.epsilon,
            delta=self.delta,
            noise=None if chooses else budget.noise,
            stages=1 if self.steps is None else self.steps,
            unknown=NOT_OF_CLASSES,
            guarantee=None if chooses else whole_guarantee(budget),
        )
