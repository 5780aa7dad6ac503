"""Table and figure of the non-stationary kernels, and of the row noises."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from cloakgp.arrays import Array
from cloakgp.experiments import kung
from cloakgp.experiments.crossvalidation import CrossValidation, Errors
from cloakgp.experiments.figures import BLACK, BLUE, GREY, RED
from cloakgp.experiments.nonstationary import (
    PUBLISHED_NO_PRIVACY,
    PUBLISHED_PRIVATE,
    Lengthscales,
    RowNoises,
)
from cloakgp.experiments.published import Published


def third_column_report(
    found: Mapping[str, CrossValidation],
    posterior: Mapping[str, Mapping[str, Errors]],
    *,
    title: str,
) -> Table:
    """Lay the third column of table 1 out, ours below the published.

    Parameters
    ----------
    found : mapping of inputs to CrossValidation
    posterior : mapping of inputs to mapping of name to Errors
        Of posterior means under the `bayes` design.
    title : str
    """
    table = _table(title, found)

    def published(figures: Mapping[str, Published]) -> None:
        cells = (f"{figures[inputs].mean:.1f} ± {figures[inputs].sd:.1f}" for inputs in found)
        table.add_row("published", *cells, style="dim")

    first = next(iter(found.values()))
    published(PUBLISHED_PRIVATE)
    for noise in first.raw:
        table.add_row(noise, *(_cell(one.raw[noise]) for one in found.values()))
    for noise in first.posterior:
        cells = (_cell(one.posterior[noise]) for one in found.values())
        table.add_row(f"{noise}: posterior mean", *cells)
    for name in next(iter(posterior.values())):
        table.add_row(name, *(_cell(posterior[inputs][name]) for inputs in found))
    table.add_section()
    published(PUBLISHED_NO_PRIVACY)
    table.add_row("no privacy", *(_cell(one.no_privacy) for one in found.values()))
    return table


def row_noise_report(found: Mapping[str, RowNoises], *, title: str) -> Table:
    """Lay out what believing rows less is worth.

    Parameters
    ----------
    found : mapping of inputs to RowNoises
    title : str
    """
    table = _table(title, found)
    ways = list(next(iter(found.values())).raw)
    for way in ways:
        table.add_row(way, *(_cell(one.raw[way]) for one in found.values()))
    table.add_section()
    for way in ways:
        cells = (f"{one.expected[way]:.2f}" for one in found.values())
        table.add_row(f"expected by the prior, {way}", *cells)
    table.add_row("largest factor of a row", *(f"{one.largest:.2f}" for one in found.values()))
    return table


def lengthscale_figure(lengthscales: Lengthscales, *, X: Array, title: str) -> Figure:
    """Draw figure 3D of the 2021 paper: the lengthscale along age.

    Parameters
    ----------
    lengthscales : Lengthscales
    X : array of shape (N,)
        Ages of the women.
    title : str
    """
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.subplots()
    ages = lengthscales.ages
    axes.plot(ages, lengthscales.amended, color=BLUE, linewidth=2.0, label="smallest density near")
    axes.plot(ages, lengthscales.plain, "--", color=RED, linewidth=1.3, label="density itself")
    axes.axhline(kung.LENGTHSCALE, color=GREY, linestyle=":", label="standard and sparse: constant")
    axes.plot(
        X, [1.0] * len(X), "|", color=BLACK, markersize=8, alpha=0.35, label="ages of the women"
    )
    axes.set_xlim(ages[0], ages[-1])
    axes.set_ylim(0.0, 1.12 * float(lengthscales.amended.max()))
    axes.set_xlabel("age (years)")
    axes.set_ylabel("lengthscale (years)")
    axes.grid(alpha=0.25)
    axes.set_title(title, fontsize=11)
    figure.legend(loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    return figure


def _cell(errors: Errors) -> str:
    error = errors.standard_error
    spread = f"{errors.mean:.2f} ± {errors.fold_sd:.1f}"
    return spread if error is None else f"{spread} (se {error:.2f})"


def _table(title: str, found: Mapping[str, object]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("RMSE (cm)")
    for inputs in found:
        table.add_column({"1d": "1d: age", "2d": "2d: weight and age"}[inputs], justify="right")
    return table
