"""Items of one source."""

from experiments.reproduction.items import Source

SOURCE = Source(name="talk2017", reference="", items=())
