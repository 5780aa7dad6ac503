"""Items of one source."""

from experiments.reproduction.items import Source

SOURCE = Source(name="paper2021", reference="", items=())
