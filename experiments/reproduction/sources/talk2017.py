"""The talk on the 2018 paper, and on what became the 2021 paper."""

from __future__ import annotations

from experiments.reproduction.items import Computed, Item, Missing, Row, Said, Source

FUNCTION = Item(
    place="Slides “Applied to Gaussian processes”",
    title="A whole function at ε = 100",
    settings="EQ kernel, ℓ = 25 years, Δ = 100 cm",
    unit="cm",
    rows=(
        Row(
            "noise sd at ε = 100",
            "picture",
            Computed("function-claims:sd at 100", ".1f"),
            Computed("functions:function, exact, rms", ".1f", label="exact, at ε = 1, rms"),
        ),
    ),
)

RESULTS = Item(
    place="Slide “Results”",
    title="!Kung heights with inducing inputs",
    leaves_open="Everything: lengthscale, number of inducing inputs, folds, draws, and what ± is "
    "of. Beside it stands what the 2021 paper's setting gives, the nearest that is written down.",
    unit="RMSE, cm",
    rows=tuple(
        Row(
            what,
            published,
            Computed(f"kung-{slug}:papers", ".1f", label="as the 2021 paper"),
            Computed(f"kung-{slug}:trace", ".1f", label="trace"),
        )
        for what, published, slug in (
            ("1d", "15.0 ± 2.0", "1d-standard"),
            ("1d, inducing inputs", "11.1 ± 0.8", "1d-sparse"),
            ("2d, weight and age", "22.8 ± 1.9", "2d-standard"),
            ("2d, inducing inputs", "8.8 ± 0.6", "2d-sparse"),
        )
    ),
)

CITI_BIKE = Item(
    place="Slides “Citibike” and “House prices”",
    title="Tables and maps of the 2018 paper",
    rows=(
        Row(
            "the table of trips and the map of prices",
            "pictures",
            Said("under the 2018 paper, table 1 and figure 3"),
            Said("likewise"),
        ),
        Row(
            "prices with inducing inputs",
            "picture",
            Missing("number and place of the inducing inputs are not on the slide"),
            Said(""),
        ),
    ),
)

SOURCE = Source(
    name="Talk",
    reference="Slides on differentially private Gaussian processes, 2017 to 2018",
    items=(FUNCTION, RESULTS, CITI_BIKE),
)
