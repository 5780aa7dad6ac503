"""The experiments' tables, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table

from cloakgp.experiments.cloaked import PAPERS_NOISE, TRACE_NOISE
from cloakgp.experiments.crossvalidation import CrossValidation, Errors
from cloakgp.experiments.london import NoiseSummary
from cloakgp.experiments.published import (
    RERUN_FIGURE_4,
    RERUN_NO_PRIVACY,
    RERUN_PRIVATE,
    RERUN_SINGLE_DRAW_SD,
    TABLE_1_NO_PRIVACY,
    TABLE_1_PRIVATE,
    Published,
)


def table_1_report(found: Mapping[str, CrossValidation], *, title: str) -> Table:
    """Lay table 1 of the 2021 paper out, ours below what others computed.

    Parameters
    ----------
    found : mapping of setting to CrossValidation
    title : str
    """
    table = _table(title)
    table.add_column("RMSE (cm)")
    for setting in found:
        table.add_column(setting, justify="right")
    first = next(iter(found.values()))

    def others(name: str, figures: Mapping[str, Published]) -> None:
        table.add_row(name, *(_published(figures[setting]) for setting in found), style="dim")

    def ours(name: str, errors: Sequence[Errors]) -> None:
        table.add_row(name, *(_errors(one) for one in errors))

    others("published", TABLE_1_PRIVATE)
    others("authors' code re-run", RERUN_PRIVATE)
    for noise in first.raw:
        ours(noise, [one.raw[noise] for one in found.values()])
    for noise in first.posterior:
        ours(f"{noise}:\n  posterior mean", [one.posterior[noise] for one in found.values()])
    table.add_section()
    others("published", TABLE_1_NO_PRIVACY)
    others("authors' code re-run", RERUN_NO_PRIVACY)
    ours("no privacy", [one.no_privacy for one in found.values()])
    return table


def spread_report(found: Mapping[str, CrossValidation]) -> Table:
    """Lay out the sd over folds of single draws of the noise.

    Parameters
    ----------
    found : mapping of setting to CrossValidation
    """
    table = _table("The same, sd over folds of single draws of the noise")
    table.add_column("sd (cm)")
    for setting in found:
        table.add_column(setting, justify="right")
    rerun = (f"{RERUN_SINGLE_DRAW_SD[setting]:.1f}" for setting in found)
    table.add_row("authors' code re-run", *rerun, style="dim")
    for noise in next(iter(found.values())).raw:
        table.add_row(noise, *(f"{one.raw[noise].single_draw_sd:.1f}" for one in found.values()))
    return table


def prior_mean_report(found: Mapping[float, Mapping[str, Errors]]) -> Table:
    """Lay out how the prior mean matters to the errors without privacy.

    Parameters
    ----------
    found : mapping of prior mean in cm to mapping of setting to Errors
    """
    table = _table("RMSE (cm) without privacy, by prior mean")
    table.add_column("prior mean (cm)")
    for setting in next(iter(found.values())):
        table.add_column(setting, justify="right")
    for mean, errors in found.items():
        table.add_row(f"{mean:g}", *(_mean(one) for one in errors.values()))
    return table


def figure_4_report(found: Mapping[int, CrossValidation]) -> Table:
    """Lay out figure 4 of the 2021 paper.

    Parameters
    ----------
    found : mapping of number of inducing inputs to CrossValidation
    """
    table = _table(
        "Figure 4 of the 2021 paper: RMSE (cm) by number of inducing inputs, re-run with the "
        "authors' code, and here (se over draws)"
    )
    columns = ("inducing", "no privacy", "re-run", PAPERS_NOISE.name, "re-run", TRACE_NOISE.name)
    for column in columns:
        table.add_column(column, justify="right")
    for count, one in found.items():
        rerun = RERUN_FIGURE_4.get(count)
        table.add_row(
            str(count),
            _mean(one.no_privacy),
            "" if rerun is None else f"{rerun[0]:.2f}",
            _mean(one.raw[PAPERS_NOISE.name]),
            "" if rerun is None else f"{rerun[1]:.2f}",
            _mean(one.raw[TRACE_NOISE.name]),
        )
    return table


def london_report(found: Mapping[str, Mapping[str, NoiseSummary]]) -> Table:
    """Lay out how much noise the prices got.

    Parameters
    ----------
    found : mapping of set of sales to mapping of noise to NoiseSummary
    """
    table = _table("Noise sd over the grid, as a share of the sensitivity")
    table.add_column("sales")
    table.add_column("noise")
    for column in ("rms", "largest", "below 40 %", "gap"):
        table.add_column(column, justify="right")
    for sales, by_noise in found.items():
        for noise, one in by_noise.items():
            table.add_row(
                sales,
                noise,
                f"{one.rms:.1%}",
                f"{one.largest:.1%}",
                f"{one.visible:.0%}",
                f"{one.gap:.1e}",
            )
    return table


def _published(figure: Published) -> str:
    return f"{figure.mean:.1f}" + ("" if figure.sd is None else f" ± {figure.sd:.1f}")


def _errors(errors: Errors) -> str:
    """Mean ± sd of the fold means, and below it the standard error over draws if there is one."""
    error = errors.standard_error
    spread = f"{errors.mean:.2f} ± {errors.fold_sd:.1f}"
    return spread if error is None else f"{spread}\nse {error:.2f}"


def _mean(errors: Errors) -> str:
    error = errors.standard_error
    return f"{errors.mean:.2f}" + ("" if error is None else f" (se {error:.2f})")


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
