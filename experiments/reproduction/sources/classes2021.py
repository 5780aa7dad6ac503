"""Classification in the 2021 paper: sections 6.4 to 6.6."""

from __future__ import annotations

from experiments.digits import FIGURE_8_COUNTS, FIGURE_8_LENGTHSCALES
from experiments.reproduction.items import Computed, Item, Row, Said

HOME_EQUITY = Item(
    place="Section 6.4 and figure 6",
    title="Default by delinquent credit lines",
    settings="200 loans “about balanced” by lines and by default, ℓ = 4 lines, (1, 0.01)",
    leaves_open="How the 200 are sampled, and the kernel's variance. Taken: counts evenly, labels "
    "as they are; even labels within every count would erase the trend. The counts of 580 loans "
    "are missing, and left out.",
    unit="%",
    rows=(
        *(
            Row(
                f"P(default) at {count} lines",
                words,
                (
                    Computed(
                        f"home-equity:P at {count}, no privacy",
                        ".0f",
                        label="no privacy",
                        scale=100.0,
                    ),
                    Computed(
                        f"home-equity:P at {count}, papers",
                        ".0f",
                        label="papers' mechanism",
                        scale=100.0,
                    ),
                ),
                Computed(f"home-equity:P at {count}, defaults", ".0f", scale=100.0),
            )
            for count, words in (
                (0, "low"),
                (2, "low, increasing"),
                (4, "increasing"),
                (6, "above 70"),
                (10, "above 70"),
            )
        ),
        Row(
            "accuracy on as many other loans",
            "",
            (
                Computed("home-equity:no privacy", ".1f", label="no privacy", scale=100.0),
                Computed("home-equity:papers", ".1f", label="papers' mechanism", scale=100.0),
            ),
            Computed("home-equity:defaults", ".1f", scale=100.0),
        ),
    ),
    pictures=("home-equity:figure-6",),
    remark="As the paper says: the risk rises with the lines, and where loans are few releases "
    "differ.",
)

STRIPES = Item(
    place="Section 6.5 and figure 7",
    title="Diagonal stripes in two dimensions",
    settings="200 simulated rows, denser below, ℓ = 3.5, (1, 0.01), 25 draws of the noise",
    leaves_open="How the rows were simulated: stripes, noise and gradient are ours, chosen so that "
    "accuracy without privacy comes near 81 %.",
    unit="accuracy, %",
    rows=(
        Row(
            "no privacy",
            "81",
            Computed("stripes:no privacy", ".1f", scale=100.0),
            Said(""),
        ),
        Row(
            "one step",
            "69",
            Computed("stripes:one step", ".1f", scale=100.0),
            (
                Computed("stripes:bayes", ".1f", label="bayes, this kernel", scale=100.0),
                Computed("stripes:defaults", ".1f", label="untouched defaults", scale=100.0),
            ),
        ),
        Row(
            "two steps",
            "51",
            Computed("stripes:two steps", ".1f", scale=100.0),
            Said("needs no steps: all answers are given at once"),
        ),
    ),
    pictures=("stripes:figure-7",),
    remark="As published within two standard errors; but the rows are invented, as the paper's "
    "are not to be had.",
)

DIGITS = Item(
    place="Section 6.6",
    title="Low or high digits",
    settings="15 × 15 pixels, 256 images to learn from, 100 to test, ℓ = 380, 16 inducing inputs",
    leaves_open="Which images, how they were reduced. Taken: drawn anew from 1000 of MNIST's test "
    "set, averaged over area.",
    unit="accuracy, %",
    rows=(
        Row(
            "(1, 0.01), one step",
            "68",
            Computed("digits:papers", ".1f", scale=100.0),
            (
                Computed("digits:bayes", ".1f", label="bayes, ℓ = 380, sd 2", scale=100.0),
                Computed("digits:defaults", ".1f", label="untouched defaults", scale=100.0),
            ),
        ),
        Row("no privacy", "", Computed("digits:no privacy", ".1f", scale=100.0), Said("")),
    ),
)


def _figure_8() -> tuple[Row, ...]:
    return tuple(
        Row(
            f"ℓ = {length:g}, {count} inducing",
            "picture",
            (
                Computed(
                    f"digits-figure-8-{length:g}:no privacy, {count}",
                    ".0f",
                    label="no privacy",
                    scale=100.0,
                ),
                Computed(
                    f"digits-figure-8-{length:g}:papers, {count}",
                    ".0f",
                    label="papers' mechanism",
                    scale=100.0,
                ),
            ),
            Computed(f"digits-figure-8-{length:g}:bayes, {count}", ".0f", scale=100.0),
        )
        for length in FIGURE_8_LENGTHSCALES
        for count in FIGURE_8_COUNTS
    )


FIGURE_8 = Item(
    place="Figure 8",
    title="Digits by number of inducing inputs and lengthscale",
    settings="16 numbers between 4 and 204, 25 draws",
    leaves_open="The lengthscales, but for the best without privacy: 168. Taken: 60, 168, 380, "
    "860; and 4 · 1.3^k, rounded down.",
    unit="accuracy, %",
    rows=(
        *_figure_8(),
        Row("chance", "52", Computed("digits-figure-8-380:chance", ".0f", scale=100.0), Said("")),
    ),
    pictures=tuple(f"digits-figure-8-{length}:figure-8" for length in (60, 168, 380, 860)),
    remark="The paper: private accuracy peaks near 21 inducing inputs, falls beyond 40, and "
    "prefers longer lengthscales. So does the papers' mechanism here, at 380 and 860: it is best "
    "between 11 and 19 inducing inputs, and about as far below that at 204 as at 4. At 168 no peak "
    "can be told, and 60 is chance throughout. With questions chosen for the release's own "
    "predictions (bayes) accuracy does not fall with more inducing inputs.",
)

FIGURE_9 = Item(
    place="Figure 9",
    title="How fast Newton's iteration converges",
    settings="ℓ = 380, 16 inducing inputs",
    leaves_open="Which images.",
    unit="%",
    rows=(
        Row(
            "of the way in the first step, no privacy",
            "97.8",
            Computed("digits-figure-9:first", ".1f", scale=100.0),
            Said(""),
        ),
    ),
    pictures=("digits-figure-9:figure-9",),
)

ITEMS: tuple[Item, ...] = (HOME_EQUITY, STRIPES, DIGITS, FIGURE_8, FIGURE_9)
