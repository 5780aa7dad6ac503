"""Registry of criteria: the aims of questions. Sees public arrays only.

A new criterion is a module of this folder, and a line below: parameters, options, files and words
follow. What a criterion computes with is imported when it chooses: the command line lists criteria
before numpy is loaded.
"""

from __future__ import annotations

from cloakgp.criteria.base import Criterion, Problem, StreamedProblem, Use
from cloakgp.criteria.bayes import BAYES
from cloakgp.criteria.cloaking import LOGDET, TRACE
from cloakgp.criteria.functional import FUNCTIONAL
from cloakgp.criteria.given import GIVEN
from cloakgp.criteria.newton import NEWTON

CRITERIA: dict[str, Criterion] = {
    each.name: each
    for each in (
        BAYES,
        TRACE,
        LOGDET,
        FUNCTIONAL,
        NEWTON,
        GIVEN,
    )
}

__all__ = [
    "CRITERIA",
    "Criterion",
    "Problem",
    "StreamedProblem",
    "Use",
    "criteria_for",
    "criterion_named",
]


def criteria_for(use: Use) -> tuple[Criterion, ...]:
    """Return the criteria that may be chosen for a use, in the order of the registry.

    Parameters
    ----------
    use : {"numbers", "classes", "many rows", "held-out rows", "stages"}

    Examples
    --------
    >>> [each.name for each in criteria_for("classes")]
    ['bayes', 'trace', 'logdet', 'newton']
    """
    return tuple(criterion for criterion in CRITERIA.values() if use in criterion.uses)


def criterion_named(name: object, *, use: Use, parameter: str = "criterion") -> Criterion:
    """Return the criterion of a name, or raise an error that lists all.

    Parameters
    ----------
    name : str
    use : {"numbers", "classes", "many rows", "held-out rows", "stages"}
    parameter : str
        What errors call it.

    Raises
    ------
    ValueError
        If there is no such criterion for this use.

    Examples
    --------
    >>> criterion_named("trace", use="numbers").option
    'least noise on raw predictions'
    """
    choices = {criterion.name: criterion for criterion in criteria_for(use)}
    if not isinstance(name, str) or name not in choices:
        raise ValueError(f"{parameter} must be one of {', '.join(choices)} for {use}, got {name!r}")
    return choices[name]
