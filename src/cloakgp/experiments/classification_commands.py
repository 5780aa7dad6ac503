"""Commands: stripes, home-equity, digits and breast-cancer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from matplotlib.figure import Figure

from cloakgp.datasets import load_hmeq, load_mnist_subset
from cloakgp.experiments import breast_cancer, digits, figures, home_equity, stripes
from cloakgp.experiments import classification_figures as drawn
from cloakgp.experiments import classification_report as report
from cloakgp.experiments.classes import compare
from cloakgp.experiments.terminal import console, progress

FAST_DRAWS, FAST_RELEASES = 2, 4
RELEASES, VIOLIN_RELEASES = 25, 100
STEPS = 8
LENGTHSCALES, FAST_LENGTHSCALES = (60.0, 168.0, 380.0, 860.0), (380.0,)
COUNTS, FAST_COUNTS = (4, 8, 16, 40, 100, 204), (4, 16)
ACCURACIES = (
    "± standard error over draws. ECE: expected calibration error, ten bins, with privacy noise "
    "integrated and left out."
)

Draws = Annotated[int, typer.Option(min=2, help="Draws of rows, each with a draw of the noise.")]
OutputDir = Annotated[Path, typer.Option(help="Where pictures are written.")]
Fast = Annotated[bool, typer.Option("--fast", help="Fewer draws; rougher figures.")]


def run_stripes(
    draws: Draws = 25, output_dir: OutputDir = Path("output"), fast: Fast = False
) -> None:
    """Section 6.5 and figure 7 of the 2021 paper: diagonal stripes in two dimensions."""
    draws = FAST_DRAWS if fast else draws
    with _timed():
        with progress("stripes", steps=draws) as tick:
            found = compare(stripes.tasks(draws), stripes.METHODS, tick=tick)
        judged = {name: stripes.with_noisy_labels(one) for name, one in found.items()}
        table = report.accuracy_report(
            found,
            title=f"Stripes, {stripes.ROWS} rows, (1, 0.01)-DP, {draws} draws of rows and noise. "
            f"{ACCURACIES} Accuracy by clean labels, ECE by labels as noisy as the rows'. The "
            "paper: one set of rows, 25 draws of the noise",
            published=stripes.PUBLISHED,
            against=stripes.PAPERS_ONE,
            calibration=judged,
        )
        console.print(table)
        rows = stripes.task(0)
        shown = (stripes.PAPERS_ONE, stripes.SAME_KERNEL, stripes.DEFAULTS)
        releases = FAST_RELEASES if fast else RELEASES
        blocks = {
            name: stripes.repeated(
                stripes.METHODS[name],
                rows,
                releases=releases,
                privacy_noise=name != stripes.PAPERS_ONE,
            )
            for name in shown
        }
        pictures = {
            "stripes-figure-7.png": drawn.hinton_figure(
                blocks,
                drawn=rows,
                title=f"{releases} releases at every grid point, (1, 0.01)-DP (2021 paper, figure "
                "7). White: positive. Disc area: confidence",
            ),
            "stripes-calibration.png": drawn.reliability_figure(
                {name: judged[name] for name in shown},
                title="Stripes, (1, 0.01)-DP: calibration, by labels as noisy as the rows'",
            ),
        }
        _write(pictures, output_dir)


def run_home_equity(
    draws: Draws = 25, output_dir: OutputDir = Path("output"), fast: Fast = False
) -> None:
    """Section 6.4 and figure 6 of the 2021 paper: delinquent credit lines and default."""
    draws = FAST_DRAWS if fast else draws
    loans = load_hmeq()
    rows = home_equity.known(loans)
    missing = loans[loans["DELINQ"].isna()]
    console.print(
        f"DELINQ is missing in {len(missing)} of {len(loans)} loans, which are left out: "
        f"{missing['BAD'].mean():.1%} of them defaulted, and {rows['BAD'].mean():.1%} of the rest."
    )
    with _timed():
        with progress("home equity", steps=draws) as tick:
            found = compare(home_equity.tasks(loans, draws), home_equity.METHODS, tick=tick)
        table = report.accuracy_report(
            found,
            title=f"Default by DELINQ, {home_equity.ROWS} rows about balanced, judged by as many "
            f"others, (1, 0.01)-DP, {draws} draws of rows and noise. {ACCURACIES} The paper gives "
            "a figure only",
            against=home_equity.PAPERS,
        )
        console.print(table)
        releases = FAST_RELEASES if fast else VIOLIN_RELEASES
        with progress("figure 6", steps=len(home_equity.METHODS)) as tick:
            curves = home_equity.curves(loans, releases=releases, tick=tick)
        table = report.curves_report(
            curves,
            title=f"P(default) in {releases} releases about one draw of rows, %: root mean square "
            "distance to the curve without privacy over 0 to 14 lines, ± standard error; and mean "
            "± sd over releases",
        )
        console.print(table)
        picture = drawn.default_figure(
            curves, title="Default by delinquent lines, (1, 0.01)-DP (2021 paper, figure 6)"
        )
        _write({"home-equity-figure-6.png": picture}, output_dir)


def run_digits(
    draws: Draws = 25, output_dir: OutputDir = Path("output"), fast: Fast = False
) -> None:
    """Section 6.6, figures 8 and 9 of the 2021 paper: low against high digits, and all ten."""
    draws = FAST_DRAWS if fast else draws
    images = load_mnist_subset()
    lengthscales, counts = (FAST_LENGTHSCALES, FAST_COUNTS) if fast else (LENGTHSCALES, COUNTS)
    what = (
        f"{digits.LEARNED} images to learn from, {digits.JUDGED} to judge, (1, 0.01)-DP, {draws} "
        f"draws of images and noise"
    )
    with _timed():
        with progress("low or high", steps=draws) as tick:
            found = compare(digits.tasks(images, draws), digits.METHODS, tick=tick)
        table = report.accuracy_report(
            found,
            title=f"Digits, low or high: {what}. {ACCURACIES}",
            published=digits.PUBLISHED,
            against=digits.PAPERS,
        )
        console.print(table)
        with progress("ten digits", steps=draws) as tick:
            ten = compare(
                digits.tasks(images, draws, classes=digits.TEN), digits.TEN_METHODS, tick=tick
            )
        console.print(report.accuracy_report(ten, title=f"All ten digits: {what}. {ACCURACIES}"))
        with progress("figure 8", steps=draws * len(lengthscales) * len(counts)) as tick:
            by_count = digits.figure_8(
                images, lengthscales=lengthscales, counts=counts, draws=draws, tick=tick
            )
        console.print(
            report.inducing_report(by_count, title=f"Figure 8 of the 2021 paper, accuracy: {what}")
        )
        convergence = digits.figure_9(images, steps=STEPS, insecure_seed=0)
        console.print(
            f"Figure 9: without privacy, {convergence.first_share:.1%} of the way of f̂ lies in the "
            "first step (the paper: 97.8%)"
        )
        shown = (digits.PAPERS, digits.DECLARED, digits.DEFAULTS)
        pictures = {
            "digits-figure-8.png": drawn.inducing_figure(
                by_count, title="Low or high digits, (1, 0.01)-DP (2021 paper, figure 8)"
            ),
            "digits-figure-9.png": drawn.convergence_figure(
                convergence, title="Newton's iteration, l = 380, 16 inducing (2021 paper, figure 9)"
            ),
            "digits-calibration.png": drawn.reliability_figure(
                {name: found[name] for name in shown},
                title="Low or high digits, (1, 0.01)-DP: calibration",
            ),
        }
        _write(pictures, output_dir)


def run_breast_cancer(draws: Draws = 25, fast: Fast = False) -> None:
    """Scikit-learn's breast-cancer table by epsilon: not in the papers."""
    draws = FAST_DRAWS if fast else draws
    with _timed():
        with progress("breast cancer", steps=draws * len(breast_cancer.EPSILONS)) as tick:
            found = breast_cancer.by_epsilon(draws=draws, tick=tick)
        table = report.budgets_report(
            found,
            title=f"Malignant or not, {breast_cancer.LEARNED} rows to learn from, 169 to judge, "
            f"δ = {breast_cancer.DELTA:g}, {draws} splits and draws of the noise, ± standard error",
        )
        console.print(table)


def _write(pictures: Mapping[str, Figure], output_dir: Path) -> None:
    output_dir.mkdir(parents=True, exist_ok=True)
    for name, figure in pictures.items():
        figure.savefig(output_dir / name, dpi=figures.DPI)
        console.print(f"wrote {output_dir / name}")


@contextmanager
def _timed() -> Iterator[None]:
    started = time.monotonic()
    yield
    console.print(f"{time.monotonic() - started:.0f} s")
