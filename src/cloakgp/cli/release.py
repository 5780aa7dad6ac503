"""`cloakgp release`: the one command that touches private outputs, and spends."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from cloakgp.arrays import Array
from cloakgp.choices import choose_prior, choose_query
from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, say, warn
from cloakgp.cli.design_progress import design_progress
from cloakgp.cli.doubts import doubts
from cloakgp.cli.show import print_sections
from cloakgp.design.strategy import DEFAULT_GAP
from cloakgp.fitting import release_regression
from cloakgp.models import default_kernel
from cloakgp.models.defaults import SIGNAL_SD_SHARE
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.guarantee import check_budget
from cloakgp.release import MECHANISMS, Hyperprior, Mechanism, Query
from cloakgp.tables import check_target, read_inputs, read_rows
from cloakgp.words import describe

# Beyond, matrices of rows by rows grow too large for a usual machine.
MOST_EXACT_ROWS = 15_000
LEARNING = ("map", "average", "none")
# scikit-learn's own bounds of a hyperparameter that may be learned.
FREE = (1e-5, 1e5)
SHOWN_AFTERWARDS = ("Guarantee", "Noise")


@fails_plainly
def release(
    table: Annotated[Path, typer.Argument(help="Table of people: .csv, .csv.gz or .parquet.")],
    inputs: Annotated[str, typer.Option(help="Public columns, with commas: age,weight.")],
    output: Annotated[str, typer.Option(help="The private column.")],
    bounds: Annotated[
        tuple[float, float],
        typer.Option(
            help="Range of one output, known without the data. Outputs outside are clipped.",
            metavar="LO HI",
        ),
    ],
    epsilon: Annotated[float, typer.Option(help="Privacy budget; 1 is usual.")],
    delta: Annotated[float, typer.Option(help="Well below one over the number of people.")],
    to: Annotated[Path, typer.Option("--to", "-o", help="Release to write.")],
    queries: Annotated[
        Path | None,
        typer.Option(help="Table of inputs where predictions matter; the rows if not given."),
    ] = None,
    inducing: Annotated[
        int | None, typer.Option(help="Use a sparse model with so many inducing inputs.")
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            help="What the questions are chosen for: bayes (sharpest predictions), trace (least "
            "noise on raw predictions), or logdet (the papers' choice)."
        ),
    ] = "bayes",
    learn: Annotated[
        str,
        typer.Option(
            help="Fit the hyperparameters that no option gives to the noisy answers, at no cost: "
            "map, average or none."
        ),
    ] = "map",
    lengthscale: Annotated[
        str, typer.Option(help="Of the RBF kernel, in input units: one, or one per input: 15,20.")
    ] = "",
    signal_variance: Annotated[
        float | None, typer.Option(help="Of the RBF kernel, in squared output units.")
    ] = None,
    noise_variance: Annotated[
        float | None, typer.Option(help="Of one output about the curve, in squared units.")
    ] = None,
    mean: Annotated[
        float | None, typer.Option(help="Prior mean; the middle of the bounds if not given.")
    ] = None,
    gap: Annotated[
        float, typer.Option(help="Certified distance from the best design at which to stop.")
    ] = DEFAULT_GAP,
    overwrite: options.Overwrite = False,
) -> None:
    """Ask the private outputs once, and write what may be published.

    Every run spends the budget anew about the same people. Bounds, kernel and all other options are
    public: do not choose them by looking at the outputs.
    """
    chosen = _mechanism(mechanism)
    _check_learning(learn)
    limits = OutputBounds.checked(bounds)
    check_budget(epsilon, delta)
    if not gap > 0:
        raise ValueError(f"--gap must be positive, got {gap}")
    _check_release_target(to, table=table, overwrite=overwrite)
    names = options.names(inputs)
    X, y = read_rows(table, inputs=names, output=output)
    for doubt in doubts(epsilon=epsilon, delta=delta, bounds=bounds, rows=len(X)):
        warn(doubt)
    if mean is not None and not limits.lo <= mean <= limits.hi:
        warn(f"the prior mean {mean:g} lies outside the bounds.")
    if inducing is None and len(X) > MOST_EXACT_ROWS:
        warn(
            f"an exact Gaussian process of {len(X):,} rows takes some {24e-9 * len(X) ** 2:.0f} GB "
            "and long: a sparse one is quicker and often as good, --inducing 200"
        )
    _check_variation(X, names=names, lengthscale=lengthscale)
    with design_progress(gap=gap) as progress:
        prior = choose_prior(
            X,
            bounds=limits,
            kernel=_kernel(
                X, width=limits.width, lengthscale=lengthscale, signal_variance=signal_variance
            ),
            noise_variance=noise_variance,
            mean=mean,
            inducing=inducing,
        )
        query = (
            choose_query(X)
            if queries is None
            else Query(X=read_inputs(queries, names=names), weights=None)
        )
        made = release_regression(
            X,
            y,
            prior=prior,
            query=query,
            bounds=limits,
            epsilon=epsilon,
            delta=delta,
            mechanism=chosen,
            gap=gap,
            hyperprior=None
            if learn == "none"
            else Hyperprior(noise_variance=noise_variance is None, mean=mean is None),
            average=learn == "average",
            input_names=names,
            output_name=output,
            progress=progress,
        )
    made.save(to, overwrite=overwrite)
    say(f"Wrote {to}: predictions of {output}, from {len(X):,} rows.", style="green")
    print_sections([one for one in describe(made) if one.title in SHOWN_AFTERWARDS])
    explain(
        f"This spent ({epsilon:g}, {delta:g}) about these people. Running it again spends again, "
        "unless the first file is never seen by anybody. All that is protected, and what is not, "
        "in words:"
    )
    say(f"  cloakgp show {to}")


def _mechanism(name: str) -> Mechanism:
    for mechanism in MECHANISMS:
        if name == mechanism:
            return mechanism
    raise ValueError(f"--mechanism must be one of {', '.join(MECHANISMS)}, got {name!r}")


def _check_learning(learn: str) -> None:
    if learn not in LEARNING:
        raise ValueError(f"--learn must be one of {', '.join(LEARNING)}, got {learn!r}")


def _check_release_target(to: Path, *, table: Path, overwrite: bool) -> None:
    """Raise before anything is spent, if the result could not be written afterwards."""
    check_target(to, overwrite=overwrite)
    if to.exists() and table.exists() and to.samefile(table):
        raise ValueError(f"{to} is the private table itself: name another file with -o")


def _check_variation(X: Array, *, names: list[str], lengthscale: str) -> None:
    constant = [name for name, extent in zip(names, np.ptp(X, axis=0), strict=True) if extent == 0]
    if constant and not lengthscale:
        raise ValueError(
            f"input {', '.join(constant)} is the same in every row: leave it out of --inputs, or "
            "give a --lengthscale"
        )


def _kernel(
    X: Array, *, width: float, lengthscale: str, signal_variance: float | None
) -> Kernel | None:
    """Return the kernel that the options describe, or None if none do; what is given is fixed."""
    if not lengthscale and signal_variance is None:
        return None
    if signal_variance is not None and not 0 < signal_variance < float("inf"):
        raise ValueError(f"--signal-variance must be positive and finite, got {signal_variance}")
    if not lengthscale:
        return ConstantKernel(signal_variance, "fixed") * default_kernel(X, width=width).k2
    scales = options.positive_numbers(lengthscale, option="--lengthscale")
    if len(scales) not in (1, X.shape[1]):
        raise ValueError(
            f"--lengthscale has {len(scales)} numbers and --inputs {X.shape[1]} names: give one "
            "lengthscale for all, or one for each"
        )
    variance = (SIGNAL_SD_SHARE * width) ** 2 if signal_variance is None else signal_variance
    variance_bounds = FREE if signal_variance is None else "fixed"
    return ConstantKernel(variance, variance_bounds) * RBF(
        scales if len(scales) > 1 else scales[0], "fixed"
    )
