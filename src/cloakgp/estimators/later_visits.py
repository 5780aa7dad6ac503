"""Later visits: questions to the same rows, or to new ones, given a release."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self, Unpack

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from cloakgp.estimators.sent import charged_as_sent
from cloakgp.fitting.passes import Rows
from cloakgp.fitting.visits import Settings, extend, refine
from cloakgp.privacy.cohorts import OVERLAPPING, People
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Release


class LaterVisitsMixin:
    """An estimator of numbers whose outputs can be asked again, at a further price.

    Attributes
    ----------
    release_ : Release
    """

    release_: Release

    @forget_on_failure
    @charged_as_sent
    def refine(
        self,
        y: ArrayLike | Rows,
        X_query: ArrayLike | None = None,
        **settings: Unpack[Settings],
    ) -> Self:
        """Ask the outputs again, where predictions are uncertain; see `cloakgp.refine`.

        Parameters
        ----------
        y : array-like of shape (N,), or ArrayRows, FileRows or DaskRows
            Private: the outputs that `fit` was given, in the same order, or the rows that
            `fit_rows` was given.
        X_query : array-like or table of shape (P, D), optional
        **settings
            ``epsilon`` and ``delta``, on top of what was spent, and others of `cloakgp.refine`.

        Returns
        -------
        self
            With a `release_` that knows both measurements.
        """
        check_is_fitted(self)
        queried = None if X_query is None else self._with_prediction(X_query)
        self.release_ = refine(self.release_, y, queried, **settings)
        return self

    @forget_on_failure
    @charged_as_sent
    def extend(
        self,
        X: ArrayLike | Rows,
        y: ArrayLike | None = None,
        X_query: ArrayLike | None = None,
        *,
        by_rows: bool = False,
        people: People = OVERLAPPING,
        ids: Sequence[Iterable[Hashable]] | None = None,
        **settings: Unpack[Settings],
    ) -> Self:
        """Ask new rows, given the release; see `cloakgp.extend`.

        Parameters
        ----------
        X : array-like or table of shape (N, D), or ArrayRows, FileRows or DaskRows
            Public inputs of the new rows, or new rows with their outputs.
        y : array-like of shape (N,), optional
            Their private outputs, unless X has them.
        X_query : array-like or table of shape (P, D), optional
        by_rows, people, ids
            As for `cloakgp.extend`.
        **settings
            ``epsilon`` and ``delta``, on top of what was spent, and others of `cloakgp.extend`.

        Returns
        -------
        self
            With a `release_` that knows both tables.
        """
        check_is_fitted(self)
        inputs = X if isinstance(X, Rows) else self._with_prediction(X)
        queried = None if X_query is None else self._with_prediction(X_query)
        self.release_ = extend(
            self.release_, inputs, y, queried, by_rows=by_rows, people=people, ids=ids, **settings
        )
        return self

    def _with_prediction(self, X: Any) -> Any:
        """Return public inputs with what a public model predicts there, if there is one."""
        return X
