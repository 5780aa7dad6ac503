"""Points at which to predict: raw columns or numbers, and which rows lack an input."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.problems import FROM_ZERO
from cloakgp.columns.schema import Encoded, Schema
from cloakgp.utils.arrays import Array, append_column, as_inputs, column_names
from cloakgp.utils.names import PUBLIC_PREDICTION
from cloakgp.utils.warned import CloakWarning


class UnseenLevelWarning(CloakWarning):
    """A category is new to the release: its predictions are less certain."""


class NoPredictionWarning(CloakWarning):
    """Rows lack an input that no row of the table lacked: there is no prediction for them."""


@dataclass(frozen=True, eq=False)
class Points:
    """Where to predict.

    Attributes
    ----------
    X : array of shape (n, D)
        Of those rows that lack nothing.
    known : array of bool, shape (P,)
        Which these are.
    """

    X: Array
    known: NDArray[np.bool_]

    def spread(self, values: Array, *, square: bool = False) -> Array:
        """Return values of all rows, NaN for those that lack something.

        Parameters
        ----------
        values : array of shape (n, ...)
        square : bool
            Whether they are of pairs of rows, shape (n, n).
        """
        if self.known.all():
            return values
        shape = (len(self.known),) * 2 if square else (len(self.known), *values.shape[1:])
        full = np.full(shape, np.nan)
        full[np.ix_(self.known, self.known) if square else self.known] = values
        return full


def complete_points(release: Encoding, X: Any, *, name: str = "X") -> Array:
    """Return inputs as the release takes them, where no row may lack one.

    Parameters
    ----------
    release : Encoding
    X
        As for `points_of`.
    name : str
        What errors call X.

    Raises
    ------
    ValueError
        As `points_of`, and if a row lacks an input.
    """
    points = points_of(release, X, name=name)
    if not points.known.all():
        raise ValueError(f"{name} has rows that lack an input: leave these out")
    return points.X


def without_prediction(column: str, count: int) -> str:
    """Return in a sentence that rows have no prediction, as they lack a public column.

    Parameters
    ----------
    column : str
    count : int

    Examples
    --------
    >>> without_prediction("age", 1)
    '1 row lacks age: there is no prediction for it'
    """
    if count == 1:
        return f"1 row lacks {column}: there is no prediction for it"
    return f"{count:,} rows lack {column}: there is no prediction for them"


def without_any_prediction(columns: Iterable[str]) -> str:
    """Return in a sentence that no row has a prediction.

    Parameters
    ----------
    columns : iterable of str
        Public columns that rows lack.

    Examples
    --------
    >>> without_any_prediction(["age", "job"])
    'every row lacks an input without which there is no prediction: age, job'
    """
    return f"every row lacks an input without which there is no prediction: {', '.join(columns)}"


class Encoding(Protocol):
    """The encoding of inputs."""

    @property
    def schema(self) -> Schema | None:
        """The schema of the raw public columns."""

    @property
    def input_names(self) -> Sequence[str]:
        """Names of the inputs."""

    @property
    def n_inputs(self) -> int:
        """D, the number of inputs."""


def points_of(release: Encoding, X: Any, *, name: str = "X") -> Points:
    """Return inputs as the release takes them; raw columns are encoded by its schema.

    Parameters
    ----------
    release : Release or MultiOutputRelease
    X : array-like or table of shape (P, D), or raw columns
    name : str
        What errors call X.

    Raises
    ------
    ValueError
        If X lacks an input, or has another number of columns. All cells at fault are named.
    """
    points, remarks = _points(release, X, name=name)
    for remark, category in remarks:
        warnings.warn(remark, category, stacklevel=4)
    return points


def remarked_points(release: Encoding, X: Any) -> tuple[Points, list[str]]:
    """Return what `points_of` returns, and what it warns of.

    It is for callers in several threads, where a warning has none.

    Parameters
    ----------
    release : Release or MultiOutputRelease
    X
        As for `points_of`.

    Raises
    ------
    ValueError
        As `points_of`.
    """
    points, remarks = _points(release, X, name="X")
    return points, [remark for remark, _ in remarks]


def _points(
    release: Encoding, X: Any, *, name: str
) -> tuple[Points, list[tuple[str, type[Warning]]]]:
    """Return points, and remarks on them with their kinds."""
    X = _completed(release, X, name=name)
    schema = release.schema
    present = column_names(X)
    named = any(isinstance(name, str) for name in present)
    if (
        schema is None
        or not named
        or set(release.input_names) <= set(present) - set(schema.sources)
    ):
        points = as_inputs(X, input_names=release.input_names, n_inputs=release.n_inputs, name=name)
        return Points(X=points, known=np.ones(len(points), dtype=bool)), []
    encoded = schema.encode(X, row=FROM_ZERO, one_by_one=True)
    known = np.asarray(np.isfinite(encoded.X).all(axis=1), dtype=bool)
    if not len(known):
        raise ValueError(f"{name} has column names but no rows")
    if not known.any():
        raise ValueError(without_any_prediction(encoded.lacking))
    return Points(X=encoded.X[known], known=known), list(_remarks(schema, encoded))


def _completed(release: Encoding, X: Any, *, name: str) -> Any:
    """Return inputs with what is publicly predicted of them, if a release in the release does so.

    Raises
    ------
    ValueError
        If a model predicted it that is not kept, and its predictions are not there.
    """
    predictor = getattr(release, "predictor", None) or getattr(release, "public_rows", None)
    predicted = PUBLIC_PREDICTION in release.input_names or predictor is not None
    present = column_names(X)
    named = any(isinstance(column, str) for column in present)
    if named:
        lacking = predicted and PUBLIC_PREDICTION not in present
    else:
        shape = np.shape(X)
        lacking = predicted and len(shape) == 2 and shape[1] == release.n_inputs - 1
    if not lacking:
        return X
    if predictor is None:
        raise ValueError(
            f"{name} lacks its public predictions, by a model that is no part of the release: let "
            f"it predict, and add them as the column {PUBLIC_PREDICTION!r}, the last"
        )
    return append_column(X, predictor.predict(X), name=PUBLIC_PREDICTION)


def _remarks(schema: Schema, encoded: Encoded) -> Iterator[tuple[str, type[Warning]]]:
    """Yield what whoever predicts should know of encoded points, and its kind."""
    for unseen in encoded.unseen:
        yield str(unseen), UnseenLevelWarning
    refused = {column.name for column in schema.columns if column.missing == "refuse"}
    for column, count in encoded.lacking.items():
        if column in refused:
            yield without_prediction(column, count), NoPredictionWarning
