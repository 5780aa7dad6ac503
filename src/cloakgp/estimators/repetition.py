"""Repeated spending: scikit-learn's searches and validations fit again and again."""

from __future__ import annotations

import inspect

from cloakgp.privacy.checks import warn_caller

# Whoever fits from here fits several times, on parts of the same people.
REPEATING = "sklearn.model_selection"
# By way of which it fits.
PARTS = ("sklearn.", "joblib.")
# Lines that were warned of: files and numbers.
_warned: set[tuple[str, int]] = set()


class RepeatedSpendingWarning(UserWarning):
    """A private fit runs within scikit-learn's model selection, which spends with every fit.

    `GridSearchCV`, `cross_val_score` and their like fit an estimator once for every fold and
    candidate. Every fit spends its (ε, δ) about the people in it, and scores are computed from
    private outputs without noise: the guarantee of one release covers none of that. It is known
    by the call stack: a fit that is called from a module of `sklearn.model_selection`, in this
    process or in a worker. It is shown once for each line that calls such a function.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.model_selection import cross_val_score
    >>> from cloakgp import DPGPRegressor, RepeatedSpendingWarning
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, learn=None, stages=None)
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always", RepeatedSpendingWarning)
    ...     _ = cross_val_score(model, [[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0], cv=2)
    >>> [each.category.__name__ for each in found]
    ['RepeatedSpendingWarning']
    """


def warn_of_repetition() -> None:
    """Warn if this is called from within scikit-learn's model selection.

    Warns
    -----
    RepeatedSpendingWarning

    Examples
    --------
    >>> warn_of_repetition()
    """
    frame, within, repeats = inspect.currentframe(), False, None
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith(REPEATING):
            within, repeats = True, ("", 0)
        elif within and not name.startswith(PARTS):
            within, repeats = False, (frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    if repeats is None or repeats in _warned:
        return
    _warned.add(repeats)
    warn_caller(
        "this fit runs within scikit-learn's model selection, which fits again and again: every "
        "fit spends its budget anew about the same people, and scores are private. DPGridSearchCV "
        "chooses under one budget, and learn='map' learns at no cost",
        RepeatedSpendingWarning,
    )
