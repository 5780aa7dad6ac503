"""Regression in the 2021 paper: sections 2, 3, 6.1 to 6.3, and appendix B."""

from __future__ import annotations

from experiments.reproduction.items import Computed, Item, Missing, Row, Said

KUNG = "287 women, kernel variance 10, noise variance 25, (1, 0.01), d = 100 cm, 14 folds"
NOTEBOOK = (
    "The window of the heights, their normalisation and the order of the folds. From the authors' "
    "notebook: ±50 cm of the middle of the heights' range, variances in squared sds of the "
    "heights; here the window is fixed, 58.27 to 158.27 cm, and the prior mean is 135 cm, so that "
    "nothing leaks."
)

HOSPITAL = Item(
    place="Section 2.2",
    title="A count of insulin-dependent inpatients by the Gaussian mechanism",
    settings="(1, 0.01), sensitivity 1, “variance σ² ≥ cΔ/ε with c² > 2 ln(1.25/δ)”",
    rows=(
        Row(
            "noise sd",
            "1.77",
            Computed("constants:classical", ".2f", label="the theorem, σ ≥ cΔ/ε"),
            Computed("constants:exact", ".2f", label="exact calibration"),
            remark="The theorem is about the sd; the paper takes the root of it as well.",
        ),
        Row(
            "δ of an sd of 1.77 at ε = 1",
            "0.01",
            Computed("constants:hospital_delta", ".4f"),
            Said("0.01"),
        ),
    ),
    remark="Against the paper: the noise that it prints is not (1, 0.01)-differentially private.",
)

BACKGROUND: tuple[Item, ...] = (HOSPITAL,)


def _table_1() -> tuple[Row, ...]:
    private = {
        "1d-standard": ("1d standard", "13.3 ± 3.2", "13.4"),
        "1d-sparse": ("1d sparse", "9.9 ± 1.7", "10.0"),
        "1d-nonstationary": ("1d non-stationary", "12.8 ± 2.0", ""),
        "2d-standard": ("2d standard", "17.2 ± 3.1", "18.0"),
        "2d-sparse": ("2d sparse", "10.2 ± 1.6", "10.2"),
        "2d-nonstationary": ("2d non-stationary", "16.3 ± 2.5", ""),
    }
    unnoised = {
        "1d-standard": ("1d standard", "7.1 ± 1.8", "7.2 ± 1.8"),
        "1d-sparse": ("1d sparse", "7.7 ± 1.9", "7.8 ± 2.1"),
        "1d-nonstationary": ("1d non-stationary", "8.6 ± 2.2", ""),
        "2d-standard": ("2d standard", "5.2 ± 1.5", "5.4 ± 1.6"),
        "2d-sparse": ("2d sparse", "7.7 ± 2.0", "7.8 ± 2.3"),
        "2d-nonstationary": ("2d non-stationary", "5.9 ± 1.7", ""),
    }
    rows = []
    for slug, (name, published, rerun) in private.items():
        ours: tuple[Computed, ...] = (Computed(f"kung-{slug}:trace", ".1f", label="trace"),)
        if slug.endswith("standard"):
            defaults = f"kung-{slug[:2]}-defaults:defaults"
            ours = (*ours, Computed(defaults, ".1f", label="untouched defaults"))
        reproduced = Computed(f"kung-{slug}:papers", ".1f")
        rows.append(Row(name, published, reproduced, ours, authors=rerun))
    for slug, (name, published, rerun) in unnoised.items():
        computed = Computed(f"kung-{slug}:no privacy", ".1f")
        rows.append(Row(f"{name}, no privacy", published, computed, Said(""), authors=rerun))
    return tuple(rows)


TABLE_1 = Item(
    place="Table 1",
    title="Heights of !Kung women by age (1d), and by weight and age (2d)",
    settings=f"{KUNG}; ± sd over folds; sparse: 5 inducing inputs by k-means",
    leaves_open=f"{NOTEBOOK} All constants of the non-stationary lengthscale: round numbers at "
    "which the errors come near the published ones, so that their agreement is by construction.",
    unit="RMSE, cm",
    rows=_table_1(),
    remark="Reproduced. The same predictions with the trace design and exact calibration need "
    "neither inducing inputs nor other lengthscales.",
)

FIGURE_3 = Item(
    place="Figure 3",
    title="Heights by age: standard, non-stationary, sparse, and the lengthscale",
    settings="ε = 1, δ = 0.01, Δ = 100 cm",
    leaves_open="The query points; taken: 200 between −10 and 110 years. And figure 3D's "
    "constants.",
    unit="cm",
    rows=tuple(
        Row(
            f"{panel}: largest noise sd beyond the oldest woman",
            "picture",
            Computed(f"kung-figure-3:{panel[0]}, beyond the oldest", ".0f"),
            Said("drawn below each"),
        )
        for panel in ("A, standard", "B, non-stationary", "C, sparse")
    ),
    pictures=("kung-figure-3:figure-3", "kung-figure-3:figure-3d"),
)

RERUN_4 = {
    1: "23.2",
    2: "21.6",
    3: "16.7",
    4: "12.7",
    5: "10.04",
    6: "10.00",
    7: "10.7",
    8: "11.4",
    10: "12.0",
    12: "13.0",
    15: "14.3",
    20: "16.0",
}
FIGURE_4 = Item(
    place="Figure 4",
    title="Error by number of inducing inputs",
    settings=f"{KUNG}, ℓ = 15 years",
    leaves_open=NOTEBOOK,
    unit="RMSE, cm",
    rows=tuple(
        Row(
            f"{count} inducing",
            "least" if count in {5, 6} else "picture",
            Computed(f"kung-figure-4:{count}, papers", ".1f"),
            Computed(f"kung-figure-4:{count}, trace", ".1f", label="trace"),
            authors=rerun,
        )
        for count, rerun in RERUN_4.items()
    ),
    pictures=("kung-figure-4:figure-4",),
)

FIGURE_5 = Item(
    place="Section 6.2 and figure 5",
    title="Heights by weight and age: noise over the domain",
    settings="ε = 1, δ = 0.01, Δ = 100 cm; a disc is gone at a noise sd of 40 cm",
    leaves_open="The grid of query points, on which the noise at any one of them depends. Taken: "
    "16 × 16, 0 to 75 kg and 0 to 90 years.",
    unit="cm",
    rows=(
        Row(
            "A, standard: noise sd at 50 kg and 60 years",
            "40",
            Computed("kung-figure-5:A, papers", ".1f"),
            Computed("kung-figure-5:A, trace", ".1f", label="trace"),
        ),
        *(
            Row(
                f"{panel}: the same",
                "picture",
                Computed(f"kung-figure-5:{panel[0]}, papers", ".1f"),
                Computed(f"kung-figure-5:{panel[0]}, trace", ".1f", label="trace"),
            )
            for panel in ("B, sparse", "C, non-stationary")
        ),
    ),
    pictures=("kung-figure-5:figure-5",),
)

RESULTS: tuple[Item, ...] = (TABLE_1, FIGURE_3, FIGURE_4, FIGURE_5)

FIGURE_12 = Item(
    place="Appendix B, figure 12",
    title="A bias, a linear and a periodic kernel, extrapolated",
    settings="period 100 years, (1, 0.01), 5 inducing inputs",
    leaves_open="The kernels' variances, the periodic lengthscale, and how far.",
    unit="cm, rms noise sd",
    rows=tuple(
        Row(
            f"{model}, {words}",
            "picture",
            Computed(f"kung-figure-12:{model}, papers, {where}", ".0f"),
            Computed(f"kung-figure-12:{model}, trace, {where}", ".0f", label="trace"),
        )
        for model in ("standard", "5 inducing inputs")
        for where, words in (("within", "within the women's ages"), ("beyond", "beyond them"))
    ),
    pictures=("kung-figure-12:figure-12",),
)

NOT_MEASURED = Missing("future work in the paper: nothing was measured")
FUTURE = Item(
    place="Section 7",
    title="What the paper leaves to future work",
    rows=(
        Row(
            "privacy noise in class probabilities",
            "suggested",
            NOT_MEASURED,
            Said("integrated by default (tests/release/test_label_release.py)"),
        ),
        Row(
            "repeated queries that cost less, new rows",
            "suggested",
            NOT_MEASURED,
            Said("Release.predict is free; refine, extend and combine (docs/guide.md)"),
        ),
        Row(
            "choosing the number of inducing inputs privately",
            "suggested",
            NOT_MEASURED,
            Said("DPGridSearchCV over inducing"),
        ),
        Row(
            "hyperparameters by Bayesian optimisation or by gradients",
            "suggested",
            NOT_MEASURED,
            Said("learned from the noisy answers at no cost"),
        ),
    ),
)
