"""Guarantees as a table of HTML, for notebooks."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from cloakgp.utils.formatting import ceiling, odds_factor, percent
from cloakgp.utils.markup import html_table
from cloakgp.utils.pictures import Pictured


class ShownAsTable(Pictured):
    """A guarantee that notebooks show as a table.

    Attributes
    ----------
    epsilon, delta : float
    """

    epsilon: Any
    delta: Any

    @abstractmethod
    def delta_at(self, epsilon: float) -> float:
        """Return the achieved δ at an ε."""

    def _repr_html_(self) -> str:
        pure = self.delta_at(self.epsilon) == 0
        delta = "none is needed" if pure else ceiling(self.delta, digits=4)
        right = percent((1.0 + self.delta_at(0.0)) / 2.0)
        guess = f"is right at most {right} of the time"
        return html_table(
            str(self),
            [
                ("ε", f"{ceiling(self.epsilon)} (e^ε = {odds_factor(self.epsilon)})"),
                ("δ", delta),
                ("a guess between two cases", guess),
            ],
            lead=(
                "Who knows everything but what is protected of one person, and guesses between two "
                f"cases that seem equally likely, {guess}. The cases are two values; where a row's "
                "presence is protected, that it is there and that it is not."
            ),
        )
