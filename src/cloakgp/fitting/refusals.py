"""Refusals: combinations of a table and a question that no fit asks, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn


class WrongKindError(TypeError):
    """A release or rows of a kind with which something cannot be done."""


@dataclass(frozen=True)
class Refusal:
    """A combination that is refused.

    Attributes
    ----------
    what : str
        The wish, as the documents name it.
    of : str
        Of which releases or rows.
    why : str
        The reason, and what to do instead: the message of the error.
    error : type
        Of which type the error is.
    """

    what: str
    of: str
    why: str
    error: type[Exception] = ValueError

    def refuse(self) -> NoReturn:
        """Raise the error."""
        raise self.error(self.why)


REFUSALS: dict[str, Refusal] = {
    "bands of labels": Refusal(
        what="stages with bands",
        of="classes",
        why="a label has no place in a band: give the stages of classes widths of None",
    ),
    "bands of quantiles": Refusal(
        what="stages with bands",
        of="quantiles",
        why="outputs are compared with thresholds, and clipped to no band: give the stages of "
        "quantiles widths of None",
    ),
    "cells in passes again": Refusal(
        what="refine, extend by rows that are read in passes",
        of="quantiles, counts",
        why="rows that are read in passes are gathered in cells, which another reading would "
        "choose anew: fit other rows on their own (fit_rows), and combine, or extend by rows that "
        "are held",
        error=WrongKindError,
    ),
    "stages of labels in passes": Refusal(
        what="several stages, refine",
        of="classes of rows that are read in passes",
        why="labels are linearised at the latent values that the answers imply, later answers "
        "move these, and sums over rows that are not kept are of one linearisation: use one stage, "
        "or fit rows that are held",
    ),
    "labels in passes again": Refusal(
        what="refine, extend",
        of="classes of rows that are read in passes",
        why="this release cannot be measured again: labels were linearised at the latent "
        "values that its answers imply, later answers move these, and to linearise anew takes the "
        "first rows. Fit other rows on their own (fit_rows), and combine",
        error=WrongKindError,
    ),
    "counts in candidates": Refusal(
        what="DPGridSearchCV",
        of="counts",
        why="candidates are compared by predictions that are linear in outputs, and rates are not: "
        "leave the choice to learn='map'",
    ),
    "raw predictions of counts": Refusal(
        what="criteria other than 'bayes'",
        of="counts",
        why="raw predictions are linear in the asked values, and rates are not: questions about "
        "counts are for criterion='bayes'",
    ),
    "the papers' iteration again": Refusal(
        what="refine, extend",
        of="classes with criterion 'newton'",
        why="the papers' iteration reads its answers step by step, at the rows, and knows of no "
        "others: fit with criterion='bayes' to ask again",
        error=WrongKindError,
    ),
    "groups in passes again": Refusal(
        what="refine",
        of="groups of rows that are read in passes",
        why="groups of many rows cannot be asked again: guarantees can be summed if the groups are "
        "the same, and a release does not keep the groups of rows",
    ),
    "margins of other tables": Refusal(
        what="calibrate with a share of the rows",
        of="rows that are read in passes, several outputs",
        why="rows are kept out of the fit for margins of held tables with one output: fit rows "
        "that are held (fit), or give calibrate='auto'",
    ),
    "margins of groups": Refusal(
        what="calibrate with a share of the rows",
        of="groups of rows",
        why="margins hold for rows that are exchangeable, and rows of a person are not so with "
        "those of others: give calibrate='auto', or one row of each person",
    ),
    "margins of counts": Refusal(
        what="calibrate with a share of the rows",
        of="counts",
        why="counts scatter by their likelihood, and not in predictive sds: give calibrate='auto'",
    ),
    "margins in candidates": Refusal(
        what="calibrate with a share of the rows",
        of="DPGridSearchCV",
        why="the candidates are compared on all rows, those that would be kept out too: fit the "
        "chosen one on other rows, or give calibrate='auto'",
    ),
    "public predictions of transformed outputs": Refusal(
        what="a public prediction",
        of="transformed outputs, counts, quantiles, classes, several outputs",
        why="a public prediction is the mean of numbers as they are: transform outputs and their "
        "prediction beforehand, and give the bounds of these, or let the prediction be an input",
    ),
    "public models in passes": Refusal(
        what="a model as public prediction",
        of="rows that are read in passes",
        why="rows that are read in passes have their public prediction as a column: let the model "
        "predict them all, and name the column",
    ),
    "public predictions in candidates": Refusal(
        what="a public prediction",
        of="DPGridSearchCV",
        why="candidates are compared by predictions that are linear in outputs, without a mean "
        "function: give the prediction to the estimator that is fitted with what was chosen",
    ),
    "kept rows again": Refusal(
        what="refine",
        of="releases for which rows were kept out (calibrate with a share)",
        why="some rows of this table were kept out of the fit, and margins would not hold after "
        "another visit to the others: extend by other rows, or fit with calibrate='auto'",
    ),
    "exact prior in passes": Refusal(
        what="extend by rows that are read in passes",
        of="releases with an exact prior",
        why="rows that are read in passes need inducing inputs, and this release has an exact "
        "prior: give rows as arrays X and y",
        error=WrongKindError,
    ),
    "passes beside bands": Refusal(
        what="extend by rows that are read in passes",
        of="releases of held rows that were asked in bands",
        why="this release asked outputs in bands, and rows that are read in passes cannot be added "
        "to it: fit it with stages=None, or these rows on their own",
        error=WrongKindError,
    ),
    "bands beside passes": Refusal(
        what="extend by held rows, in bands",
        of="releases of rows that are read in passes",
        why="rows that are kept are not asked in bands beside others that are not: give band=None",
    ),
    "rows are not kept": Refusal(
        what="refine without the rows",
        of="releases of rows that are read in passes",
        why="this release keeps no row: to ask them again, give the rows with their outputs, as to "
        "fit_rows",
        error=WrongKindError,
    ),
    "rows are kept": Refusal(
        what="refine with rows that are read in passes",
        of="releases of held rows",
        why="the release keeps the rows that are to be asked again: give their outputs alone, in "
        "the order of its rows",
        error=WrongKindError,
    ),
    "other groups": Refusal(
        what="refine with groups",
        of="rows that were asked with others, or with none",
        why="the table was asked with other groups, so the guarantees cannot be summed: leave out "
        "groups",
    ),
    "persons without groups": Refusal(
        what="extend by rows without groups",
        of="releases that protect persons",
        why="the release protects all rows of a person together, and the persons of the new "
        "rows are unknown: give their groups, or by_rows=True to protect each row on its own",
    ),
}


def refuse(name: str) -> NoReturn:
    """Raise the error of a refusal.

    Parameters
    ----------
    name : str
        Its key in `REFUSALS`.

    Raises
    ------
    ValueError, TypeError

    Examples
    --------
    >>> refuse("other groups")
    Traceback (most recent call last):
    ...
    ValueError: the table was asked with other groups, so the guarantees cannot be summed: ...
    """
    REFUSALS[name].refuse()
