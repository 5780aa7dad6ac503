"""In which order the gallery's examples are shown: as one would learn."""

from __future__ import annotations

ORDER = (
    "curve",
    "map",
    "guarantee",
    "plan",
    "classes",
    "three_classes",
    "categories",
    "long_tails",
    "quantiles",
    "adaptive_bounds",
    "fan",
    "calibration",
    "bands",
    "noises",
    "refine",
    "budget_over_years",
    "groups",
    "several_outputs",
    "many_rows",
    "dask",
    "digits",
    "linear_smoother",
    "private_inputs",
)


def by_teaching(filename: str) -> int:
    """Return the place of an example; one that has none is a mistake."""
    return ORDER.index(filename.removeprefix("plot_").removesuffix(".py"))
