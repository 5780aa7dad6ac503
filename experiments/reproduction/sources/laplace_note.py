"""Items of one source."""

from experiments.reproduction.items import Source

SOURCE = Source(name="laplace_note", reference="", items=())
