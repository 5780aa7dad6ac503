"""All papers of the report, in their order, and what in them does not hold."""

from __future__ import annotations

from experiments.reproduction.items import Source
from experiments.reproduction.sources import (
    laplace_note,
    paper2018,
    paper2021,
    supplement2018,
    talk2017,
)
from experiments.reproduction.sources.unsound import UNSOUND

__all__ = ["SOURCES", "UNSOUND"]

SOURCES: tuple[Source, ...] = (
    paper2018.SOURCE,
    supplement2018.SOURCE,
    paper2021.SOURCE,
    talk2017.SOURCE,
    laplace_note.SOURCE,
)
