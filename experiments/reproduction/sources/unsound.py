"""What in the papers does not hold."""

from experiments.reproduction.items import Unsound

UNSOUND: tuple[Unsound, ...] = ()
