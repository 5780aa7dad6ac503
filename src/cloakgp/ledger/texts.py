"""Texts of entries: names of accounts and cohorts, and words that stand in the chain for ever."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

from cloakgp.ledger.errors import LedgerError

# Of what has no shape: line breaks may stand in a purpose, and surrogates are half a character.
_SPACES, _UNREADABLE = frozenset("\t\n\r"), frozenset({"Cc", "Cs"})


def checked_text(text: object, *, what: str, empty: bool = False) -> str:
    """Return a text that can stand in an entry.

    Parameters
    ----------
    text : object
    what : str
        Of what it is the text, for the error.
    empty : bool
        Whether there may be none.

    Raises
    ------
    LedgerError
        If it is no text, has nothing to read, or characters that cannot be written down.

    Examples
    --------
    >>> checked_text("figure 3", what="a purpose")
    'figure 3'
    >>> checked_text(2024, what="a column")
    Traceback (most recent call last):
    cloakgp.ledger.errors.LedgerError: a column must be text that can be printed: write it as "..."
    """
    if not is_text(text) or not (empty or str(text).strip()):
        raise LedgerError(f'{what} must be text that can be printed: write it as "..."')
    return str(text)


def is_text(text: object) -> bool:
    r"""Return whether an object is text that can be written down and read.

    Examples
    --------
    >>> is_text("Zoë"), is_text("a\0b"), is_text(2024)
    (True, False, False)
    """
    return isinstance(text, str) and all(
        each in _SPACES or unicodedata.category(each) not in _UNREADABLE for each in text
    )


def checked_name(name: object, *, what: str) -> str:
    r"""Return the name of a new account or cohort, as names of persons are compared.

    Composed (NFC), and without blanks at its ends: two names that look alike are one.

    Parameters
    ----------
    name : object
    what : str
        Of what it is the name, for the error.

    Raises
    ------
    LedgerError
        If it cannot be printed, on one line.

    Examples
    --------
    >>> checked_name(" Zoe\u0308 ", what="an account") == "Zoë"
    True
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise LedgerError(f"{what} needs a name that can be printed, as text")
    return _alike(name)


def known_name(name: str, known: Collection[str]) -> str:
    """Return which of some names is meant by one, or that of a new one.

    Older ledgers have names that are not composed, or have blanks at their ends. Such a name is
    meant by itself; by one that looks alike, where no other does.

    Parameters
    ----------
    name : str
    known : collection of str

    Examples
    --------
    >>> known_name("May ", ["May", "June"]), known_name("May", [" May"]), known_name(" July", [])
    ('May', ' May', 'July')
    """
    if name in known:
        return name
    alike = [each for each in known if _alike(each) == _alike(name)]
    return alike[0] if len(alike) == 1 else _alike(name)


def _alike(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()
