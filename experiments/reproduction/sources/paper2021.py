"""The 2021 paper, in its order."""

from __future__ import annotations

from experiments.reproduction.items import Source
from experiments.reproduction.sources import classes2021, regression2021, selection2021

SOURCE = Source(
    name="2021 paper",
    reference="M. T. Smith, M. A. Álvarez and N. D. Lawrence, Differentially private regression "
    "and classification with sparse Gaussian processes, JMLR 22, 2021",
    items=(
        *regression2021.BACKGROUND,
        selection2021.FOUR_POINTS,
        *regression2021.RESULTS,
        *classes2021.ITEMS,
        *selection2021.RESULTS,
        selection2021.TABLE_2,
        regression2021.FIGURE_12,
        regression2021.FUTURE,
    ),
)
