"""A prior in words: what approximates it, and where its values come from."""

from __future__ import annotations

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.sections import Fact

# What a release says of hyperparameters that were looked for in its answers and left alone.
NOTHING_LEARNED = Fact(
    "learned",
    "nothing: the noisy answers make other values more probable by less than a nat (a factor of "
    "2.7), so those that were declared stay.",
)


def approximation(prior: ExactPrior | SparsePrior) -> Fact:
    """Say what stands for the exact process, if anything does."""
    if isinstance(prior, SparsePrior):
        kind = f"{prior.approximation.upper()}, with {len(prior.inducing)} inducing inputs."
    else:
        kind = "none: the exact Gaussian process."
    return Fact("approximation", kind)


def where_from(*, priors: int, unchanged: bool, what: str, declared: str) -> tuple[Fact, ...]:
    """Say where hyperparameters come from, if any were looked for in the answers.

    Parameters
    ----------
    priors : int
        How many priors predictions average over; 0 if nothing was looked for.
    unchanged : bool
        Whether the one of most weight is as it was declared.
    what : str
        Which values were fitted.
    declared : str
        Their declared values.

    Examples
    --------
    >>> where_from(priors=0, unchanged=True, what="these values", declared="mean 0")
    ()
    """
    if not priors:
        return ()
    if unchanged:
        return (NOTHING_LEARNED,)
    averaged = f" Predictions average over {priors} such priors."
    return (
        Fact(
            "learned",
            f"{what} were fitted to the noisy answers, which costs no privacy."
            + averaged * (priors > 1),
        ),
        Fact("declared", f"{declared}, without looking at any answer."),
    )
