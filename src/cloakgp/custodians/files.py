"""Files of the exchange: their names, and what sites send."""

from __future__ import annotations

import io
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from cloakgp.custodians.errors import CustodiansError
from cloakgp.custodians.plan import read_json
from cloakgp.privacy.sampler import Integers
from cloakgp.utils.arrays import Array


def member_file(site: str) -> str:
    """Return the name of the file with which a site joins."""
    return f"sites/{site}.json"


def inputs_file(site: str) -> str:
    """Return the name of the file of public inputs of a site."""
    return f"sites/{site}.npy"


def attempt_file(attempt: int) -> str:
    """Return the name of the file that says who is asked in an attempt."""
    return f"attempt-{attempt}/members.json"


def question_file(attempt: int, number: int, what: str) -> str:
    """Return the name of a file about a question."""
    return f"attempt-{attempt}/question-{number}/{what}"


REQUEST, COMPLETE, TOTAL = "request.cloak", "complete.json", "total.json"


def answer_of(site: str) -> str:
    """Return what the hidden answer of a site is called."""
    return f"answers/{site}.json"


def opening_of(site: str) -> str:
    """Return what the opened mask of a site is called."""
    return f"openings/{site}.json"


@dataclass(frozen=True)
class Hidden:
    """Numbers for a question: hidden ones of a site, or the noisy sums of all.

    Attributes
    ----------
    request : str
        Digest of the request.
    site : str
        Empty of the sums of all.
    numbers : str
        Signed integers of 64 bits, least byte first, in base 64.
    """

    request: str
    site: str
    numbers: str

    @classmethod
    def of(cls, integers: Integers, *, request: str, site: str = "") -> Hidden:
        """Return the file of some integers."""
        content = b64encode(integers.astype("<i8").tobytes()).decode()
        return cls(request=request, site=site, numbers=content)

    def integers(self, *, count: int) -> Integers:
        """Return the integers.

        Raises
        ------
        CustodiansError
            If there are others than so many.
        """
        try:
            content = b64decode(self.numbers, validate=True)
        except (ValueError, TypeError):
            content = b""
        if len(content) != 8 * count:
            raise CustodiansError(f"{self.site or 'the sum'} has not {count} numbers")
        return np.frombuffer(content, dtype="<i8").astype(np.int64)

    def to_bytes(self) -> bytes:
        """Return the file."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Hidden:
        """Return the content of a file.

        Raises
        ------
        CustodiansError
            If it is damaged.
        """
        return cls(**read_json(content, cls))


@dataclass(frozen=True)
class Complete:
    """The coordinator's word that all have answered.

    Attributes
    ----------
    request : str
        Digest of the request.
    answers : mapping
        Digests of the files of answers, by names of sites.
    """

    request: str
    answers: Mapping[str, str]

    def to_bytes(self) -> bytes:
        """Return the file."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Complete:
        """Return the content of a file.

        Raises
        ------
        CustodiansError
            If it is damaged.
        """
        found = cls(**read_json(content, cls))
        if not isinstance(found.answers, dict):
            raise CustodiansError("the word that all have answered is damaged")
        return found


@dataclass(frozen=True)
class Opening:
    """The mask that a site opens.

    Attributes
    ----------
    request : str
        Digest of the request.
    site : str
    seed : str
        b_i, in hexadecimal.
    """

    request: str
    site: str
    seed: str

    def to_bytes(self) -> bytes:
        """Return the file."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Opening:
        """Return the content of a file.

        Raises
        ------
        CustodiansError
            If it is damaged.
        """
        found = cls(**read_json(content, cls))
        try:
            seed = bytes.fromhex(found.seed)
        except (ValueError, TypeError):
            seed = b""
        if len(seed) != 32:
            raise CustodiansError("an opened mask is damaged")
        return found


def read_answer(content: bytes, *, site: str, request: str, count: int) -> Integers:
    """Return the hidden answer of a site.

    Parameters
    ----------
    content : bytes
    site : str
        Whose it is to be.
    request : str
        Digest of the question that it is to be about.
    count : int
        How many numbers the question asks for.

    Raises
    ------
    CustodiansError
        If it is damaged, of another site or about another question, or has another size.
    """
    answer = Hidden.from_bytes(content)
    if answer.site != site or answer.request != request:
        raise CustodiansError(f"{site} answered another question")
    return answer.integers(count=count)


def read_opening(content: bytes, *, site: str, request: str) -> bytes:
    """Return the seed of the mask that a site opened.

    Raises
    ------
    CustodiansError
        If it is damaged, of another site or about another question.
    """
    opening = Opening.from_bytes(content)
    if opening.site != site or opening.request != request:
        raise CustodiansError(f"{site} opened the mask of another question")
    return bytes.fromhex(opening.seed)


def inputs_to_bytes(X: Array) -> bytes:
    """Return the file of public inputs."""
    content = io.BytesIO()
    np.save(content, np.ascontiguousarray(X, dtype="<f8"), allow_pickle=False)
    return content.getvalue()


def inputs_from_bytes(content: bytes, *, columns: int, rows: int | None = None) -> Array:
    """Return public inputs from their file.

    Parameters
    ----------
    content : bytes
    columns : int
    rows : int, optional
        If not given, there may be any number of them but none.

    Raises
    ------
    CustodiansError
        If they are not finite numbers of this shape.
    """
    file = io.BytesIO(content)
    shape: tuple[int, ...] = ()
    try:
        # What the header says of its size is compared before so much memory is taken.
        if npy_format.read_magic(file) == (1, 0):
            shape, by_columns, dtype = npy_format.read_array_header_1_0(file)
            if by_columns or dtype != np.dtype("<f8"):
                shape = ()
    except (ValueError, EOFError):
        pass
    expected = rows if rows is not None or not shape else shape[0]
    numbers = content[file.tell() :]
    if not expected or shape != (expected, columns) or len(numbers) != 8 * expected * columns:
        many = "some" if rows is None else str(rows)
        raise CustodiansError(
            f"public inputs of a site are not {many} rows of {columns} finite numbers"
        )
    X = np.frombuffer(numbers, dtype="<f8").reshape(shape).astype(np.float64)
    if not np.isfinite(X).all():
        raise CustodiansError("public inputs of a site are not all finite numbers")
    return X


def persons_of(X: Array) -> NDArray[np.intp]:
    """Return whose rows they are, from the last column of what a site sends.

    Parameters
    ----------
    X : array of shape (n, D + 1)

    Returns
    -------
    array of int, shape (n,)
        Numbers of persons at this site, from 0. Two persons may have one by chance.

    Raises
    ------
    CustodiansError
        If they are no such numbers.

    Examples
    --------
    >>> persons_of(np.array([[20.0, 0.0], [30.0, 0.0]]))
    array([0, 0])
    """
    numbers = X[:, -1]
    if not ((numbers >= 0) & (numbers < len(X)) & (numbers == np.floor(numbers))).all():
        raise CustodiansError("what a site sends does not say whose rows they are")
    return numbers.astype(np.intp)


def names_to_bytes(names: tuple[str, ...]) -> bytes:
    """Return the file of who is asked in an attempt."""
    return json.dumps(list(names)).encode()


def names_from_bytes(content: bytes) -> tuple[str, ...]:
    """Return who is asked in an attempt.

    Raises
    ------
    CustodiansError
        If the file is damaged.
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise CustodiansError("the list of sites that are asked is damaged")
    return tuple(found)
