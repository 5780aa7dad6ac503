"""`cloakgp release` of a private number in every row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from cloakgp.choices import choose_prior
from cloakgp.cli.console import warn
from cloakgp.cli.design_progress import design_progress
from cloakgp.cli.doubts import budget_doubts, exact_bounds
from cloakgp.cli.plan import Plan
from cloakgp.fitting import release_regression
from cloakgp.models import default_kernel
from cloakgp.models.defaults import SIGNAL_SD_SHARE
from cloakgp.privacy import OutputBounds
from cloakgp.release import MECHANISMS, Hyperprior, Mechanism, Release
from cloakgp.tables import read_rows


@dataclass(frozen=True)
class NumberOptions:
    """Options that go with --bounds only."""

    bounds: tuple[float, float]
    noise_variance: float | None
    mean: float | None


def release_numbers(plan: Plan, given: NumberOptions) -> Release:
    """Ask a private column of numbers once.

    Parameters
    ----------
    plan : Plan
    given : NumberOptions

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a private value.
    """
    chosen, limits = _mechanism(plan.mechanism), OutputBounds.checked(given.bounds)
    X, y = read_rows(plan.table, inputs=plan.inputs, output=plan.output)
    for doubt in (
        *budget_doubts(epsilon=plan.epsilon, delta=plan.delta, rows=len(X)),
        *exact_bounds(given.bounds),
    ):
        warn(doubt)
    if given.mean is not None and not limits.lo <= given.mean <= limits.hi:
        warn(f"the prior mean {given.mean:g} lies outside the bounds.")
    plan.check_rows(X)
    with design_progress(gap=plan.gap) as progress:
        prior = choose_prior(
            X,
            bounds=limits,
            kernel=plan.kernel(
                X,
                variance=(SIGNAL_SD_SHARE * limits.width) ** 2,
                default=partial(default_kernel, width=limits.width),
            ),
            noise_variance=given.noise_variance,
            mean=given.mean,
            inducing=plan.inducing,
        )
        return release_regression(
            X,
            y,
            prior=prior,
            query=plan.query(X),
            bounds=limits,
            epsilon=plan.epsilon,
            delta=plan.delta,
            mechanism=chosen,
            gap=plan.gap,
            hyperprior=None
            if plan.learn == "none"
            else Hyperprior(noise_variance=given.noise_variance is None, mean=given.mean is None),
            average=plan.learn == "average",
            input_names=plan.inputs,
            output_name=plan.output,
            progress=progress,
        )


def _mechanism(name: str) -> Mechanism:
    for mechanism in MECHANISMS:
        if name == mechanism:
            return mechanism
    raise ValueError(f"--mechanism must be one of {', '.join(MECHANISMS)}, got {name!r}")
