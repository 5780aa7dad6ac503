"""`cloakgp release` of a private number in every row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sklearn.gaussian_process.kernels import Kernel

from cloakgp.arrays import Array
from cloakgp.choices import choose_prior
from cloakgp.cli.console import warn
from cloakgp.cli.design_progress import design_progress
from cloakgp.cli.doubts import budget_doubts, exact_bounds
from cloakgp.cli.pass_progress import pass_progress
from cloakgp.cli.plan import Plan
from cloakgp.fitting import release_regression
from cloakgp.models import default_kernel
from cloakgp.models.defaults import SIGNAL_SD_SHARE
from cloakgp.models.summary import summarise
from cloakgp.privacy import OutputBounds
from cloakgp.regression import MANY_ROWS
from cloakgp.release import MECHANISMS, Hyperprior, ManyRowsRelease, Mechanism, Release
from cloakgp.row_fitting import INDUCING, RowSettings, release_rows
from cloakgp.rows import FileRows, open_rows
from cloakgp.tables import read_rows


@dataclass(frozen=True)
class NumberOptions:
    """Options that go with --bounds only."""

    bounds: tuple[float, float]
    noise_variance: float | None
    mean: float | None


def release_numbers(plan: Plan, given: NumberOptions) -> Release | ManyRowsRelease:
    """Ask a private column of numbers once.

    A large table is read in passes where inducing inputs allow it.

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
    for doubt in exact_bounds(given.bounds):
        warn(doubt)
    if given.mean is not None and not limits.lo <= given.mean <= limits.hi:
        warn(f"the prior mean {given.mean:g} lies outside the bounds.")
    if plan.inducing is not None and chosen != "functional":
        rows = open_rows(plan.table, inputs=plan.inputs, output=plan.output)
        count = _row_count(rows)
        if count > MANY_ROWS:
            for doubt in budget_doubts(epsilon=plan.epsilon, delta=plan.delta, rows=count):
                warn(doubt)
            return _release_many(plan, given, rows, mechanism=chosen, limits=limits)
    X, y = read_rows(plan.table, inputs=plan.inputs, output=plan.output)
    for doubt in budget_doubts(epsilon=plan.epsilon, delta=plan.delta, rows=len(X)):
        warn(doubt)
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
            hyperprior=_hyperprior(plan, given),
            average=plan.learn == "average",
            input_names=plan.inputs,
            output_name=plan.output,
            progress=progress,
        )


def _row_count(rows: FileRows) -> int:
    """Return how many rows a table has, if need be by reading its inputs."""
    return summarise(rows, size=1).count if rows.count is None else rows.count


def _release_many(
    plan: Plan,
    given: NumberOptions,
    rows: FileRows,
    *,
    mechanism: Mechanism,
    limits: OutputBounds,
) -> ManyRowsRelease:
    def kernel(ranges: Array) -> Kernel | None:
        plan.check_rows(ranges)
        return plan.kernel(
            ranges,
            variance=(SIGNAL_SD_SHARE * limits.width) ** 2,
            default=partial(default_kernel, width=limits.width),
        )

    with pass_progress() as shown:
        return release_rows(
            rows.watched(shown.watch),
            bounds=limits,
            epsilon=plan.epsilon,
            delta=plan.delta,
            query=plan.given_query(),
            settings=RowSettings(
                kernel=kernel,
                noise_variance=given.noise_variance,
                mean=given.mean,
                inducing=INDUCING if plan.inducing is None else plan.inducing,
                mechanism=mechanism,
                gap=plan.gap,
                hyperprior=_hyperprior(plan, given),
                average=plan.learn == "average",
            ),
            progress=shown.gap,
        )


def _hyperprior(plan: Plan, given: NumberOptions) -> Hyperprior | None:
    if plan.learn == "none":
        return None
    return Hyperprior(noise_variance=given.noise_variance is None, mean=given.mean is None)


def _mechanism(name: str) -> Mechanism:
    for mechanism in MECHANISMS:
        if name == mechanism:
            return mechanism
    raise ValueError(f"--mechanism must be one of {', '.join(MECHANISMS)}, got {name!r}")
