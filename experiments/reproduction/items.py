"""What a paper reports, in its order: items of rows, and what fills their cells.

A row has what was published, what the papers' mechanism gives here with the papers' settings, what
the authors' code gives where that is known, and what this package gives at the same (ε, δ). A cell
names quantities that a job computed, or says in words what is there, or why nothing is. Nothing
here computes: pages are made of this and of kept results alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Computed:
    """A quantity of the results.

    Attributes
    ----------
    key : str
        ``job:quantity``.
    form : str
        How the mean is printed; what stands after ± likewise.
    label : str
        Which way of several in one cell.
    scale : float
        What it is multiplied by: 100 for shares in per cent.
    """

    key: str
    form: str = ".1f"
    label: str = ""
    scale: float = 1.0

    @property
    def job(self) -> str:
        """The job that computes it."""
        return self.key.partition(":")[0]

    @property
    def quantity(self) -> str:
        """Its name in what the job found."""
        return self.key.partition(":")[2]


@dataclass(frozen=True)
class Said:
    """Words in the place of a figure: what was done, and what came of it."""

    text: str


@dataclass(frozen=True)
class Missing:
    """Why there is nothing: data or a recipe that is not to be had."""

    why: str


Cell = Computed | Said | Missing | tuple[Computed, ...]


@dataclass(frozen=True)
class Row:
    """One published figure, or a statement.

    Attributes
    ----------
    what : str
    published : str
        As printed, with what stands after ±. Empty where the paper prints none.
    reproduced : Cell
        By the papers' mechanism, with the papers' settings.
    ours : Cell
        By this package at the same (ε, δ).
    authors : str
        What the authors' code gives, where known.
    remark : str
    """

    what: str
    published: str
    reproduced: Cell
    ours: Cell
    authors: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Item:
    """A table, a figure, or figures quoted in the text.

    Attributes
    ----------
    place : str
        In the paper: "Table 1".
    title : str
    rows : tuple of Row
    settings : str
        The paper's, in words.
    leaves_open : str
        What the paper does not say, and what is taken here.
    unit : str
        Of all figures that do not name theirs.
    pictures : tuple of str
        ``job:picture``.
    remark : str
        Where the evidence turns against the paper, or against this package.
    """

    place: str
    title: str
    rows: tuple[Row, ...]
    settings: str = ""
    leaves_open: str = ""
    unit: str = ""
    pictures: tuple[str, ...] = ()
    remark: str = ""


@dataclass(frozen=True)
class Source:
    """A paper with its items, in their order.

    Attributes
    ----------
    name : str
        Short.
    reference : str
    items : tuple of Item
    """

    name: str
    reference: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Unsound:
    """Something in a paper that does not hold.

    Attributes
    ----------
    place : str
    claim : str
        What the paper says.
    finding : str
        What is the case.
    tests : tuple of str
        ``tests/file.py::test_name``: those that show it.
    measured : tuple of Computed
    """

    place: str
    claim: str
    finding: str
    tests: tuple[str, ...]
    measured: tuple[Computed, ...] = field(default=())


def cells_of(cell: Cell) -> tuple[Computed, ...]:
    """Return the quantities that a cell names.

    Examples
    --------
    >>> [one.job for one in cells_of(Computed("kung:papers"))], cells_of(Missing("no data"))
    (['kung'], ())
    """
    if isinstance(cell, Computed):
        return (cell,)
    return cell if isinstance(cell, tuple) else ()
