"""Base of plans: what will be asked, what it costs and what it is worth, before anything is asked.

Plans of releases, of whole rows, of later visits and of streams are facts in words, and some have a
table over budgets. The command line, notebooks and the service show any of them by this base.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from cloakgp.utils.markup import html_table


class Plan(ABC):
    """What is planned, in words; nothing was read of a private column, and nothing spent.

    Attributes
    ----------
    subject : str
        What it is a plan of.
    """

    subject: ClassVar[str]

    @abstractmethod
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return the plan in words: labels and texts."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, for JSON."""

    def budgets(self) -> tuple[tuple[str, ...], ...]:
        """Return a table over ε, its heads first; heads alone, or nothing, if there is none."""
        return ()

    def lead(self) -> str:
        """Return the sentence that comes first, if there is one."""
        return ""

    def _table(self) -> tuple[tuple[str, ...], ...]:
        """Return the table over ε if it has a line."""
        found = self.budgets()
        return found if len(found) > 1 else ()

    def __str__(self) -> str:
        told = [f"{label}: {text}" for label, text in self.facts()]
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for line in table:
            cells = zip(line, widths, strict=True)
            told.append("  ".join(cell.rjust(width) for cell, width in cells))
        return "\n".join(told)

    @property
    def title(self) -> str:
        """What it is of, and what it spends."""
        return f"Plan of {self.subject}: nothing was asked, and nothing spent"

    def _repr_html_(self) -> str:
        return html_table(
            self.title,
            self.facts(),
            lead=self.lead(),
            rows=self._table(),
        )
