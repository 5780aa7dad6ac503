"""The talk on the 2018 paper, and on what became the 2021 paper."""

from __future__ import annotations

from experiments.reproduction.items import Computed, Item, Missing, Row, Source

FUNCTION = Item(
    place="Slides “Applied to Gaussian processes” and “Inducing inputs”",
    title="A whole function at ε = 100, and what inducing inputs do to its sensitivity",
    settings="EQ kernel, ℓ = 25 years, Δ = 100 cm",
    leaves_open="How many inducing inputs, and where. Taken: by k-means.",
    unit="cm",
    rows=(
        Row(
            "noise sd at ε = 100",
            "picture",
            Computed("function-claims:sd at 100", ".1f"),
            Computed("functions:function, exact, rms", ".1f", label="exact, at ε = 1, rms"),
        ),
        *(
            Row(
                f"noise sd at (1, 0.01), {words}",
                "reduced “a little”" if count == "5" else "",
                Missing("the paper's bound b(K⁻¹) is for kernels without inducing inputs"),
                Computed(f"talk:function, {count}", ".1f", label="exact"),
            )
            for count, words in (
                ("none", "no inducing inputs"),
                ("3", "3 inducing inputs"),
                ("5", "5 inducing inputs"),
                ("8", "8 inducing inputs"),
                ("20", "20 inducing inputs"),
            )
        ),
    ),
    pictures=("functions:figure-1",),
    remark="Three inducing inputs lower the noise of a whole function seventeen times, five to "
    "less than half, eight hardly: more than “a little”, where they are few.",
)

RESULTS = Item(
    place="Slide “Results”",
    title="!Kung heights with inducing inputs",
    leaves_open="Number of inducing inputs, folds, draws, variances, and what ± is of. Here: five, "
    "14 folds, expected over the noise, with the settings of the 2018 paper, whose lengthscale is "
    "on the slides, and with those of the 2021 paper.",
    unit="RMSE, cm",
    rows=tuple(
        Row(
            what,
            published,
            (
                Computed(f"talk:2018, {name}", label="2018 paper's settings"),
                Computed(f"talk:2021, {name}", label="2021 paper's settings"),
            ),
            Computed(f"talk:2018, {name.replace('papers', 'trace')}", label="trace"),
        )
        for what, published, name in (
            ("1d", "15.0 ± 2.0", "1d, papers, none"),
            ("1d, inducing inputs", "11.1 ± 0.8", "1d, papers, inducing"),
            ("2d, weight and age", "22.8 ± 1.9", "2d, papers, none"),
            ("2d, inducing inputs", "8.8 ± 0.6", "2d, papers, inducing"),
        )
    ),
    pictures=("talk:errors",),
    remark="Reproduced with the 2018 paper's settings within what is left open; inducing inputs "
    "help less in two dimensions than the slide says.",
)

PRICES = Item(
    place="Slides “House prices” and “Citibike”",
    title="Prices around London without and with inducing inputs, and the table of trips",
    leaves_open="Number and place of the inducing inputs. Taken: 20 by k-means. Trips: under the "
    "2018 paper, table 1.",
    unit="rms noise, % of Δ",
    rows=tuple(
        Row(
            words,
            "picture",
            Computed(f"london-inducing:{count}, papers, rms", ".1f", scale=100.0),
            Computed(f"london-inducing:{count}, trace, rms", ".1f", "trace", 100.0),
        )
        for count, words in (("none", "no inducing inputs"), ("20", "20 inducing inputs"))
    ),
    pictures=("london-inducing:prices",),
)

SOURCE = Source(
    name="Talk",
    reference="Slides on differentially private Gaussian processes, 2017 to 2018",
    items=(FUNCTION, RESULTS, PRICES),
)
