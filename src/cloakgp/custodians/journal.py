"""Journal of a site, in a folder of its own: what it drew, and which masks it opened.

Nothing of it is an output, or made of one before its noise and masks; the private key is in a file
of its own beside it. It is on the disk before what it says is done. A copy from before a question
was answered must not take its place: two answers to one question have the same masks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from cloakgp.custodians.errors import CustodiansError
from cloakgp.custodians.plan import read_json
from cloakgp.privacy.spending import Cost
from cloakgp.utils.files import PERSONAL, reserve_file

JOURNAL, KEY = "journal.json", "site.key"


@dataclass(frozen=True)
class Drawn:
    """A question for which noise was drawn.

    Attributes
    ----------
    request : str
        Digest of the request.
    cost : Cost
    opened : bool
        Whether its mask was opened, so that it may be read.
    """

    request: str
    cost: Cost
    opened: bool = False


@dataclass(frozen=True)
class Journal:
    """What a site agreed to, and did.

    Attributes
    ----------
    plan, roster : str
        Digests; empty before it saw one.
    inputs : str
        Digest of its own public inputs.
    attempt : int
        The latest that it takes part in; of earlier ones it opens no mask any more.
    questions : mapping
        What was drawn, by "attempt/number".
    begun : str
        The last question whose charge was begun, which a ledger may know before ``questions`` does
        (`charge_name`).
    left : bool
        Whether the site takes part no more: it answers nothing and opens no mask from then on.
    ledger : str or None
        The id of the ledger that counts, as the site joined; empty if none does, None if that is
        not said: of a site that did not join yet, or did by an earlier version.
    account : str
        Of that ledger.
    """

    plan: str = ""
    roster: str = ""
    inputs: str = ""
    attempt: int = 0
    questions: Mapping[str, Drawn] = field(default_factory=dict)
    begun: str = ""
    left: bool = False
    ledger: str | None = None
    account: str = ""

    def spent(self, *, without: str) -> tuple[Cost, ...]:
        """Return the costs of all that was opened, or may be opened still.

        Parameters
        ----------
        without : str
            The key of a question that does not count.
        """
        return tuple(
            drawn.cost
            for key, drawn in self.questions.items()
            if key != without and (drawn.opened or attempt_of(key) == self.attempt)
        )

    @property
    def charges(self) -> dict[str, Drawn | None]:
        """What was drawn, by the names of its charges; None of one that was begun and not noted."""
        noted: dict[str, Drawn | None] = {
            charge_name(key, drawn.request): drawn for key, drawn in self.questions.items()
        }
        return noted if self.begun in ("", *noted) else {**noted, self.begun: None}

    def with_question(self, key: str, drawn: Drawn) -> Journal:
        """Return a journal with what was drawn for a question."""
        return replace(self, questions={**self.questions, key: drawn})


def question_key(attempt: int, number: int) -> str:
    """Return the key of a question in a journal."""
    return f"{attempt}/{number}"


def charge_name(key: str, request: str) -> str:
    """Return the name of the charge of a question, which is of its request too.

    Another question in the place of one that was charged has a charge of its own.

    Parameters
    ----------
    key : str
    request : str
        Digest of the request.
    """
    return f"{key}, {request}"


def numbers_of(key: str) -> tuple[int, int]:
    """Return the attempt of a key, or of the name of a charge, and the number of its question.

    Examples
    --------
    >>> numbers_of("1/2"), numbers_of(charge_name("1/2", "9f86d081"))
    ((1, 2), (1, 2))
    """
    attempt, number = key.partition(",")[0].split("/")
    return int(attempt), int(number)


def attempt_of(key: str) -> int:
    """Return the attempt of a key, or of the name of a charge."""
    return numbers_of(key)[0]


class SiteFolder:
    """The folder of a site, for its owner alone.

    Parameters
    ----------
    path : str or Path
        Made when it is first written to.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def load(self) -> Journal:
        """Return the journal; an empty one if there is none.

        Raises
        ------
        CustodiansError
            If it cannot be read.
        """
        try:
            content = (self.path / JOURNAL).read_bytes()
        except FileNotFoundError:
            return Journal()
        found = read_json(content, Journal, later={"ledger": None, "account": ""})
        try:
            questions = {
                key: Drawn(each["request"], Cost(**each["cost"]), each["opened"])
                for key, each in found["questions"].items()
            }
        except (TypeError, KeyError, AttributeError):
            raise CustodiansError(
                f"{JOURNAL} is damaged: the others go on without this site"
            ) from None
        return Journal(**{**found, "questions": questions})

    def save(self, journal: Journal) -> None:
        """Write the journal, to the disk, in one step."""
        self._write(JOURNAL, json.dumps(asdict(journal), indent=1).encode(), overwrite=True)

    def answer(self, key: str) -> bytes | None:
        """Return the hidden answer to a question, None if none was drawn."""
        try:
            return (self.path / _answer(key)).read_bytes()
        except FileNotFoundError:
            return None

    def keep_answer(self, key: str, content: bytes) -> None:
        """Write the hidden answer to a question."""
        self._write(_answer(key), content, overwrite=False)

    def _write(self, name: str, content: bytes, *, overwrite: bool) -> None:
        with reserve_file(self.path / name, overwrite=overwrite, mode=PERSONAL) as target:
            target.write(content)


def _answer(key: str) -> str:
    return f"answer-{key.replace('/', '-')}.json"
