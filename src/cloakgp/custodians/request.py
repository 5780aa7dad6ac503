"""Request: a question to all sites, as a file from which nothing but its numbers can be read.

It has the rule by which rows get their columns, the question about their outputs, and the bound by
which all sites compute the same grid and noise; of all this each site verifies what its own rows
can break (`ask_share` of `cloakgp.privacy.ask`). The digest of the file is in every mask, so that
what is sent for different requests does not add up to anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cloakgp.custodians.errors import CustodiansError
from cloakgp.data.entries import AS_THEY_ARE, RowReading
from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.rules import Rule
from cloakgp.models import SparsePrior
from cloakgp.privacy.ask import StrategyBound
from cloakgp.privacy.noise import noise_named
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.gathered import CellQuestion
from cloakgp.release.bands import RowQuestion
from cloakgp.release.gathered_strategy import CellColumns
from cloakgp.release.io.bundle import ReleaseFileError, bundle_bytes, read_bundle
from cloakgp.release.io.codec import Reader, to_tree
from cloakgp.release.streamed_strategy import EqualShares, RuleColumns
from cloakgp.utils.arrays import Array

KIND = "a question to custodians"
# More numbers than any fit asks at once.
MOST_ANSWERS = 10**6


@dataclass(frozen=True, eq=False, kw_only=True)
class Request:
    """A question to all sites. All of it is public.

    Attributes
    ----------
    roster : str
        Digest of the roster.
    attempt, number : int
        Which question it is, from 1, of which attempt.
    members : tuple of str
        The sites that are asked.
    prior : SparsePrior or None
        By whose features the rule goes; None where it goes by the question's.
    rule : Rule or None
        None where all rows are asked alike, or by cells.
    strata : Partition or None
        In which rows are counted apart.
    cells : Partition or None
        By which rows are asked, all of a cell alike.
    matrix : array of shape (k, n) or None
        The column of each row of a cell.
    question : Question
        About rows; or about cells, if it has something of its own for each.
    answers, longest, chunk_rows, count
        As of `StrategyBound` of `cloakgp.privacy.ask`.
    group_rows, chunks, places, together
        The same, of what is protected together.
    noise : str
    epsilon, delta : float
    reading : RowReading
        How rows are read.
    output : int or None
        Of several, the one that is asked alone.
    """

    roster: str
    attempt: int
    number: int
    members: tuple[str, ...]
    prior: SparsePrior | None
    rule: Rule | None
    strata: Partition | None
    question: Question
    answers: int
    longest: float
    chunk_rows: int
    count: int
    noise: str
    epsilon: float
    delta: float
    group_rows: int | None = None
    chunks: int = 1
    places: int = 1
    together: int = 1
    reading: RowReading = AS_THEY_ARE
    output: int | None = None
    cells: Partition | None = None
    matrix: Array | None = None

    @classmethod
    def of(
        cls,
        columns: Callable[[Array], Array],
        *,
        bound: StrategyBound,
        question: Question,
        epsilon: float,
        delta: float,
        **place: Any,
    ) -> Request:
        """Return the request of a question.

        Parameters
        ----------
        columns, bound, question, epsilon, delta
            As for `ask_chunks` of `cloakgp.privacy.ask`.
        **place
            ``roster``, ``attempt``, ``number``, ``members`` and ``reading``.

        Raises
        ------
        CustodiansError
            If rows are asked in another way.
        """
        if not isinstance(columns, RuleColumns | EqualShares | CellColumns):
            raise CustodiansError("several custodians answer questions by rules over rows or cells")
        by_cells = columns if isinstance(columns, CellColumns) else None
        shares = None if isinstance(columns, CellColumns) else columns
        ruled = columns if isinstance(columns, RuleColumns) else None
        model = None if ruled is None else ruled.model
        return cls(
            prior=model if isinstance(model, SparsePrior) else None,
            rule=None if ruled is None else ruled.rule,
            strata=None if shares is None else shares.strata,
            cells=None if by_cells is None else by_cells.cells,
            matrix=None if by_cells is None else by_cells.matrix,
            question=question.of_cells if isinstance(question, CellQuestion) else question,
            answers=bound.answers,
            longest=float(bound.longest),
            chunk_rows=bound.chunk_rows,
            count=bound.count,
            group_rows=bound.group_rows,
            chunks=bound.chunks,
            places=bound.places,
            together=bound.together,
            output=None if shares is None else shares.output,
            noise=bound.noise.name,
            epsilon=float(epsilon),
            delta=float(delta),
            **place,
        )

    def validate(self) -> None:
        """Refuse a request that makes no sense.

        Raises
        ------
        ValueError
        """
        noise_named(self.noise)
        whole = (
            *(self.attempt, self.number, self.answers, self.chunk_rows, self.count),
            *(self.chunks, self.places, self.together, self.group_rows or 1),
        )
        if min(whole) < 1 or self.answers * self.question.channels > MOST_ANSWERS:
            raise ValueError("its numbers make no sense")
        # Written so that NaN fails.
        if not 0 < self.longest < float("inf"):
            raise ValueError("its columns have no length")
        ruled = self.rule is not None and self.prior is None
        if ruled and not isinstance(self.question, RowQuestion):
            raise ValueError("its rule goes by nothing")
        self._check_cells()
        self.bound.validate()
        together = self.reading.grouped, self.reading.together
        if together != (self.group_rows is not None, self.together):
            raise ValueError("rows are read otherwise than they are protected")

    def _check_cells(self) -> None:
        """Refuse columns that are not those of cells, and a question about others."""
        places = None if self.cells is None else len(self.cells.centres)
        if (self.matrix is None) != (places is None) or (
            self.matrix is not None and self.matrix.shape != (self.answers, places)
        ):
            raise ValueError("its cells make no sense")
        if self.question.rows not in (None, places):
            raise ValueError("its question is about other cells")

    @property
    def asked(self) -> Question:
        """The question about rows."""
        if self.cells is None or self.question.rows is None:
            return self.question
        return CellQuestion(self.question, self.cells)

    @property
    def numbers(self) -> int:
        """How many numbers are answered."""
        return self.answers * self.question.channels

    @property
    def bound(self) -> StrategyBound:
        """The bound of the rows of all sites."""
        return StrategyBound(
            answers=self.answers,
            longest=self.longest,
            chunk_rows=self.chunk_rows,
            count=self.count,
            group_rows=self.group_rows,
            chunks=self.chunks,
            noise=noise_named(self.noise),
            together=self.together,
            places=self.places,
        )

    @property
    def columns(self) -> RuleColumns | EqualShares | CellColumns:
        """The columns of rows, by their inputs."""
        grouped = self.reading.grouped
        if self.cells is not None and self.matrix is not None:
            return CellColumns(matrix=self.matrix, cells=self.cells, grouped=grouped)
        if self.rule is None:
            return EqualShares(grouped=grouped, output=self.output, strata=self.strata)
        model = self.question if self.prior is None else self.prior
        assert isinstance(model, SparsePrior | RowQuestion)
        return RuleColumns(
            model=model, rule=self.rule, grouped=grouped, output=self.output, strata=self.strata
        )

    def to_bytes(self) -> bytes:
        """Return the file; equal requests have equal files."""

        def tree(stored: Callable[[Array], Any]) -> dict[str, Any]:
            entries: dict[str, Any] = to_tree(self, stored=stored)
            return entries

        return bundle_bytes(kind=KIND, tree=tree)

    @classmethod
    def from_bytes(cls, content: bytes) -> Request:
        """Return the request of a file, and check it.

        Raises
        ------
        CustodiansError
            If it is none.
        """
        with TemporaryDirectory() as folder:
            path = Path(folder) / "request.cloak"
            path.write_bytes(content)
            try:
                return read_bundle(
                    path,
                    kind=KIND,
                    parse=lambda entries, loaded: Reader(loaded=loaded).read(entries, cls),
                )
            except ReleaseFileError as error:
                raise CustodiansError(f"a question cannot be read: {error}") from None
