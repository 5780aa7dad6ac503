"""Tables for a terminal: the `bayes` design, learning and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from rich import box
from rich.table import Table

from cloakgp.arrays import Array
from cloakgp.experiments.coverage import Coverage
from cloakgp.experiments.crossvalidation import Errors
from cloakgp.experiments.kung2018 import Found
from cloakgp.experiments.learning import WAYS, Paired, mean_and_error
from cloakgp.experiments.priors import PriorShape
from cloakgp.experiments.published import TABLE_1_NO_PRIVACY, TABLE_1_PRIVATE


def posterior_report(found: Mapping[str, Mapping[str, Errors]], *, title: str) -> Table:
    """Lay out the errors of posterior means for the !Kung women.

    Parameters
    ----------
    found : mapping of setting to mapping of row to Errors
    title : str
    """
    table = _table(title)
    table.add_column("RMSE (cm)")
    for setting in found:
        table.add_column(setting, justify="right")
    best = [
        min(figure.mean for name, figure in TABLE_1_PRIVATE.items() if name[:2] == setting[:2])
        for setting in found
    ]
    table.add_row("published, best of the papers", *(f"{one:.1f}" for one in best), style="dim")
    for row in next(iter(found.values())):
        table.add_row(row, *(_errors(errors[row]) for errors in found.values()))
    unnoised = (f"{TABLE_1_NO_PRIVACY[setting].mean:.1f}" for setting in found)
    table.add_row("published, no privacy", *unnoised, style="dim")
    return table


def shapes_report(found: Mapping[str, Array], *, shapes: Sequence[PriorShape], title: str) -> Table:
    """Lay out relative errors by table and shape; the least of each table stands out.

    Parameters
    ----------
    found : mapping of table to array of shape (shapes, draws)
    shapes : sequence of PriorShape
    title : str
    """
    table = _table(title)
    table.add_column("prior")
    for number in range(1, len(found) + 1):
        table.add_column(str(number), justify="right")
    table.add_column("mean (se)", justify="right")
    means = np.array([errors.mean(axis=1) for errors in found.values()])
    for row, shape in enumerate(shapes):
        overall = mean_and_error(np.stack([errors[row] for errors in found.values()]))
        cells = [
            f"[bold]{mean:.3f}[/bold]" if mean == least else f"{mean:.3f}"
            for mean, least in zip(means[:, row], means.min(axis=1), strict=True)
        ]
        table.add_row(str(shape), *cells, f"{overall[0]:.4f} ({overall[1]:.4f})")
    table.caption = "; ".join(f"{number} {name}" for number, name in enumerate(found, start=1))
    return table


def learning_report(found: Mapping[float, Paired], *, title: str) -> Table:
    """Lay out what learning gains over the declared prior, by ε.

    Parameters
    ----------
    found : mapping of ε to Paired
    title : str
    """
    table = _table(title)
    for column in ("ε", "learn", "error (se)", "less None's (se)", "10 %", "90 %", "worse in"):
        table.add_column(column, justify="right")
    for epsilon, paired in found.items():
        for way, name in enumerate(WAYS):
            mean, error = mean_and_error(paired.errors[way])
            cells = [f"{epsilon:g}", name, f"{mean:.4f} ({error:.4f})"]
            if way:
                differences = paired.differences[way]
                gain, gain_error = mean_and_error(differences)
                low, high = np.quantile(differences, (0.1, 0.9))
                cells += [f"{gain:+.4f} ({gain_error:.4f})", f"{low:+.3f}", f"{high:+.3f}"]
                cells.append(f"{np.mean(differences > 0):.0%}")
            table.add_row(*cells)
        table.add_section()
    return table


def learning_by_table_report(found: Mapping[float, Paired], *, way: int, title: str) -> Table:
    """Lay out one way's mean difference to the declared prior, by table and ε.

    Parameters
    ----------
    found : mapping of ε to Paired
    way : int
        Position in `WAYS`.
    title : str
    """
    table = _table(title)
    table.add_column("table")
    for epsilon in found:
        table.add_column(f"ε = {epsilon:g}", justify="right")
    for number, name in enumerate(next(iter(found.values())).by_table):
        gains = (
            mean_and_error(paired.differences[way][number : number + 1])
            for paired in found.values()
        )
        table.add_row(name, *(f"{gain:+.3f} ({error:.3f})" for gain, error in gains))
    return table


def coverage_report(found: Mapping[str, Coverage], *, title: str) -> Table:
    """Lay out coverages by way to learn.

    Parameters
    ----------
    found : mapping of what is covered to Coverage
    title : str
    """
    table = _table(title)
    table.add_column("")
    for column in ("None", "map", "average", "clipped"):
        table.add_column(column, justify="right")
    for name, coverage in found.items():
        shares = zip(coverage.mean, coverage.standard_error, strict=True)
        table.add_row(
            name,
            *(f"{mean:.1%} ({error:.1%})" for mean, error in shares),
            "" if coverage.clipped is None else f"{coverage.clipped:.1%}",
        )
    return table


def kung2018_report(found: Mapping[int, Found], *, title: str) -> Table:
    """Lay out section 4 of the 2018 paper, by number of folds.

    Parameters
    ----------
    found : mapping of number of folds to Found
    title : str
    """
    table = _table(title)
    table.add_column("RMSE (cm)")
    for count in found:
        table.add_column(f"{count} folds", justify="right")
    first = next(iter(found.values()))
    every = list(found.values())
    rows = {"no privacy": [one.cloaked.no_privacy for one in every]}
    for name in first.cloaked.raw:
        rows[name] = [one.cloaked.raw[name] for one in every]
    for name in first.cloaked.posterior:
        rows[f"{name}:\n  posterior mean"] = [one.cloaked.posterior[name] for one in every]
    rows["bayes"] = [one.bayes for one in every]
    for name, errors in rows.items():
        table.add_row(name, *(f"{_errors(one)}\npooled {one.pooled:.2f}" for one in errors))
    return table


def _errors(errors: Errors) -> str:
    error = errors.standard_error
    return f"{errors.mean:.2f}" + ("" if error is None else f" (se {error:.2f})")


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, caption_justify="left")
