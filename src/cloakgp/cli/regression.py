"""`cloakgp release` of a private number in every row."""

from __future__ import annotations

from functools import partial

from cloakgp.cli.plan import NumberOptions, Plan, as_table
from cloakgp.cli.progress import reporting
from cloakgp.cli.warnings import showing_warnings
from cloakgp.models import default_kernel
from cloakgp.models.defaults import SIGNAL_SD_SHARE
from cloakgp.models.summary import summarise
from cloakgp.privacy import OutputBounds
from cloakgp.regression import DPGPRegressor
from cloakgp.release import ManyRowsRelease, Release
from cloakgp.rows import FileRows
from cloakgp.tables import read_rows


def release_numbers(plan: Plan, given: NumberOptions) -> Release | ManyRowsRelease:
    """Ask a private column of numbers once, as `DPGPRegressor` does.

    Parameters
    ----------
    plan : Plan
    given : NumberOptions

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a private value.
    """
    criterion, limits = plan.criterion_for("numbers").name, OutputBounds.checked(given.bounds)
    rows = FileRows(plan.table, inputs=plan.inputs, output=plan.output)
    with reporting("opening the table", gap=plan.gap) as reporter, showing_warnings():
        rows = rows.watched(reporter.rows)
        looked = summarise(rows, size=1)
        plan.check_ranges(looked.ranges)
        model = DPGPRegressor(
            plan.kernel(
                looked.ranges,
                variance=(SIGNAL_SD_SHARE * limits.width) ** 2,
                default=partial(default_kernel, width=limits.width),
            ),
            given.noise_variance,
            bounds=given.bounds,
            epsilon=plan.epsilon,
            delta=plan.delta,
            criterion=criterion,
            inducing=plan.inducing,
            mean=given.mean,
            learn=plan.learning,
            gap=plan.gap,
            memory=plan.memory,
        )
        query = plan.query_table()
        how = model.plan(
            (looked.count, len(plan.inputs)), queries=None if query is None else len(query)
        )
        if how.by_passes:
            how.announce()
            model.fit_rows(rows, query, progress=reporter.gap, tell=reporter.step)
        else:
            X, y = read_rows(plan.table, inputs=plan.inputs, output=plan.output)
            table, outputs = as_table(X, y, inputs=plan.inputs, output=plan.output)
            model.fit(table, outputs, query, progress=reporter.gap, tell=reporter.step)
        return model.release_
