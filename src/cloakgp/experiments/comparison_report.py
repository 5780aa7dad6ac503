"""Tables for a terminal: the `bayes` design, learning and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from rich.table import Table

from cloakgp.arrays import Array
from cloakgp.experiments import selection2018
from cloakgp.experiments.coverage import Coverage
from cloakgp.experiments.crossvalidation import Errors
from cloakgp.experiments.kung2018 import Found
from cloakgp.experiments.learning import WAYS, Paired, mean_and_error
from cloakgp.experiments.learning_or_selection import MAP, against_map, best_choice, ways
from cloakgp.experiments.priors import PriorShape
from cloakgp.experiments.published import TABLE_1_NO_PRIVACY, TABLE_1_PRIVATE
from cloakgp.experiments.terminal import table_titled


def posterior_report(found: Mapping[str, Mapping[str, Errors]], *, title: str) -> Table:
    """Lay out the errors of posterior means for the !Kung women.

    Parameters
    ----------
    found : mapping of setting to mapping of row to Errors
    title : str
    """
    table = table_titled(title)
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
    table = table_titled(title)
    table.add_column("table")
    for number in range(1, len(shapes) + 1):
        table.add_column(str(number), justify="right")
    for name, errors in found.items():
        means = errors.mean(axis=1)
        cells = [
            f"[bold]{mean:.3f}[/bold]" if mean == means.min() else f"{mean:.3f}" for mean in means
        ]
        table.add_row(name, *cells)
    table.add_section()
    by_shape = np.stack(list(found.values()), axis=1)
    overall = [mean_and_error(errors) for errors in by_shape]
    table.add_row("mean", *(f"{mean:.3f}" for mean, _ in overall))
    table.add_row("se", *(f"{error:.3f}" for _, error in overall))
    medians = np.median(by_shape.mean(axis=2), axis=1)
    table.add_row("median", *(f"{median:.3f}" for median in medians))
    table.caption = "\n".join(f"{number} {shape}" for number, shape in enumerate(shapes, start=1))
    return table


def learning_report(found: Mapping[float, Paired], *, title: str) -> Table:
    """Lay out what learning gains over the declared prior, by ε.

    Parameters
    ----------
    found : mapping of ε to Paired
    title : str
    """
    table = table_titled(title)
    for column in ("ε", "learn", "error (se)", "less None's (se)", "25 %", "50 %", "75 %"):
        table.add_column(column, justify="right")
    for column in ("worst", "worse in"):
        table.add_column(column, justify="right")
    for epsilon, paired in found.items():
        for way, name in enumerate(WAYS):
            mean, error = mean_and_error(paired.errors[way])
            cells = [f"{epsilon:g}", name, f"{mean:.4f} ({error:.4f})"]
            if way:
                differences = paired.differences[way]
                gain, gain_error = mean_and_error(differences)
                cells.append(f"{gain:+.4f} ({gain_error:.4f})")
                quantiles = np.quantile(differences, (0.25, 0.5, 0.75, 1.0))
                cells += [f"{one:+.3f}" for one in quantiles]
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
    table = table_titled(title)
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
    table = table_titled(title)
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
    table = table_titled(title)
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


def learning_or_selection_report(
    found: Mapping[float, Mapping[str, Array]],
    *,
    name: str,
    shares: Sequence[float],
    title: str,
) -> Table:
    """Lay out one table's errors by way and ε; the differences to learn=map are paired.

    Parameters
    ----------
    found : mapping of ε to mapping of table to array of shape (ways, draws)
    name : str
        Of the table.
    shares : sequence of float
        Of ε that went to the choice.
    title : str
    """
    by_epsilon = [by_table[name] for by_table in found.values()]
    table = _by_epsilon(found, title=title)
    for way, label in enumerate(ways(shares)):
        table.add_row(label, *(_figure(errors[way]) for errors in by_epsilon))
    table.add_section()
    for label, then_map in (("best share less map", False), ("the same, then map", True)):
        differences = (best_choice(one, then_map=then_map) - one[MAP] for one in by_epsilon)
        table.add_row(label, *(_figure(one, sign="+") for one in differences))
    return table


def against_map_report(found: Mapping[float, Mapping[str, Array]], *, title: str) -> Table:
    """Lay out how much larger errors are than those of learn=map, over all tables, by ε.

    Parameters
    ----------
    found : mapping of ε to mapping of table to array of shape (ways, draws)
    title : str
    """
    table = _by_epsilon(found, title=title)
    every = [against_map(by_table) for by_table in found.values()]
    for label in every[0]:
        larger = (one[label] for one in every)
        table.add_row(label, *(f"{mean:+.1%} ({error:.1%})" for mean, error in larger))
    return table


def selection2018_report(errors: Array, *, title: str) -> Table:
    """Lay out the 2018 paper's choice for the !Kung women, what it published first.

    Parameters
    ----------
    errors : array of shape (ways, splits)
    title : str
    """
    table = table_titled(title)
    table.add_column("way of choosing")
    table.add_column("RMSE (cm), se over splits", justify="right")
    for label, published in selection2018.PUBLISHED.items():
        table.add_row(label, f"{published:.1f}", style="dim")
    for row, (label, one) in enumerate(zip(selection2018.WAYS, errors, strict=True)):
        if row % 3 == 0:
            table.add_section()
        table.add_row(label, _figure(one))
    return table


def _by_epsilon(found: Mapping[float, object], *, title: str) -> Table:
    table = table_titled(title)
    table.add_column("way")
    for epsilon in found:
        table.add_column(f"ε = {epsilon:g}", justify="right")
    return table


def _figure(draws: Array, *, sign: str = "") -> str:
    """Mean over draws, and its standard error."""
    error = draws.std(ddof=1) / np.sqrt(len(draws))
    decimals = 2 if error >= 0.1 else 3
    return f"{draws.mean():{sign}.{decimals}f} ({error:.{decimals}f})"
