"""The paper: docs/paper/paper.typ, typeset with the figures of kept results."""

from __future__ import annotations

from pathlib import Path

from experiments.commits import PROJECT

SOURCE = PROJECT / "docs" / "paper" / "paper.typ"


def typeset(folder: Path, *, source: Path = SOURCE, root: Path = PROJECT) -> Path:
    """Typeset the paper; return its PDF.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    source : Path
    root : Path
        What the paper's paths begin at.

    Raises
    ------
    ModuleNotFoundError
        If `typst` is not installed.
    """
    import typst

    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "paper.pdf"
    made.write_bytes(typst.compile(str(source), root=str(root)))
    return made
