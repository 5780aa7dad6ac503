"""Items of one source."""

from experiments.reproduction.items import Source

SOURCE = Source(name="supplement2018", reference="", items=())
