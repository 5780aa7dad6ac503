"""Tables of the experiments on classification."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from cloakgp.experiments import breast_cancer, home_equity
from cloakgp.experiments.classes import Mean, Outcome
from cloakgp.experiments.terminal import table_titled


def accuracy_report(
    found: Mapping[str, Outcome],
    *,
    title: str,
    published: Mapping[str, float] | None = None,
    against: str | None = None,
    calibration: Mapping[str, Outcome] | None = None,
) -> Table:
    """Lay out accuracies and calibration errors, published figures beside ours.

    Parameters
    ----------
    found : mapping of method to Outcome
    title : str
    published : mapping of method to float, optional
        Accuracies in the paper.
    against : str, optional
        The papers' method, which others are compared with, draw by draw.
    calibration : mapping of method to Outcome, optional
        To judge the probabilities by, if not by what accuracies are judged by.
    """
    table = table_titled(title)
    table.add_column("method")
    columns = ["published"] if published else []
    columns += ["accuracy, %"]
    columns += ["less papers'"] if against else []
    for column in [*columns, "ECE, %", "left out, %"]:
        table.add_column(column, justify="right")
    for name, outcome in found.items():
        cells = []
        if published:
            cells.append(f"{100 * published[name]:.0f}" if name in published else "")
        cells.append(percent(Mean.of(outcome.hits)))
        if against:
            ahead = Mean.of(outcome.hits - found[against].hits)
            cells.append("" if name == against else percent(ahead, sign="+"))
        cells += [
            f"{100 * (calibration or found)[name].reliability(privacy_noise=integrated).error:.1f}"
            for integrated in (True, False)
        ]
        table.add_row(name, *cells)
    return table


def curves_report(found: home_equity.Curves, *, title: str) -> Table:
    """Lay out how far private probabilities of default lie from those without privacy.

    Parameters
    ----------
    found : Curves
    title : str
    """
    table = table_titled(title)
    table.add_column("method")
    table.add_column("distance, %", justify="right")
    for count in (0, 2, 4, 6, 10, 14):
        table.add_column(f"{count} lines", justify="right")
    reference = found.reference
    for name in found.releases:
        probabilities = found.probabilities(name)
        distance = "" if name == home_equity.NO_PRIVACY else percent(found.distance(name))
        cells = [
            f"{100 * reference[count]:.0f}"
            if len(probabilities) == 1
            else f"{100 * probabilities[:, count].mean():.0f} ± "
            f"{100 * probabilities[:, count].std(ddof=1):.0f}"
            for count in (0, 2, 4, 6, 10, 14)
        ]
        table.add_row(name, distance, *cells)
    return table


def inducing_report(
    found: Mapping[str, Mapping[float, Mapping[int, Outcome]]], *, title: str
) -> Table:
    """Lay figure 8 out: accuracy by lengthscale and number of inducing inputs.

    Parameters
    ----------
    found : mapping of method to mapping of lengthscale to mapping of count to Outcome
    title : str
    """
    table = table_titled(title)
    for column in ("method", "lengthscale"):
        table.add_column(column)
    counts = list(next(iter(next(iter(found.values())).values())))
    for count in counts:
        table.add_column(f"{count} inducing", justify="right")
    for name, by_length in found.items():
        for length, by_count in by_length.items():
            cells = (percent(Mean.of(by_count[count].hits)) for count in counts)
            table.add_row(name, f"{length:g}", *cells)
    return table


def budgets_report(found: Mapping[float, Mapping[str, Outcome]], *, title: str) -> Table:
    """Lay out accuracy by ε.

    Parameters
    ----------
    found : mapping of ε to mapping of method to Outcome
    title : str
    """
    table = table_titled(title)
    table.add_column("accuracy, %")
    for epsilon in found:
        table.add_column(f"ε = {epsilon:g}", justify="right")
    names = (
        breast_cancer.PAPERS,
        breast_cancer.DECLARED,
        breast_cancer.DEFAULTS,
        breast_cancer.NO_PRIVACY,
    )
    for name in names:
        cells = (
            percent(Mean.of(outcomes[name].hits)) if name in outcomes else ""
            for outcomes in found.values()
        )
        table.add_row(name, *cells)
    return table


def percent(mean: Mean, *, sign: str = "") -> str:
    """Return a share in per cent, with its standard error.

    Parameters
    ----------
    mean : Mean
    sign : {"", "+"}
        Whether a plus is shown.

    Examples
    --------
    >>> percent(Mean(value=0.5, error=0.01))
    '50.0 ± 1.0'
    """
    return f"{100 * mean.value:{sign}.1f} ± {100 * mean.error:.1f}"
