"""Secret key of a ledger and its anchor, in files outside of its database.

The key makes the fingerprints of columns and signs receipts; of the database alone, nobody can
guess a column or forge a receipt. The anchor says how far the chain of entries went when this
machine last saw it: a database that was put back to an earlier state does not reach it.

SQLite's files lie beside the database, those of a server's in the user's folder; the environment
variable ``CLOAKGP_LEDGER_HOME`` names another folder for both. An anchor says most on another disk,
and a backup of the database should not have the key with it.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cloakgp.ledger.errors import DamagedLedgerError, LedgerError
from cloakgp.utils.extras import extra

with extra("ledger"):
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from sqlalchemy.engine import URL

HOME = "CLOAKGP_LEDGER_HOME"
SECRET_BYTES, NAME_BYTES = 32, 16
# An anchor has always so many bytes, so that it is overwritten at once.
ANCHOR_BYTES = 256


def files_of(url: URL) -> Path:
    """Return the path of a ledger's files, but for their suffixes.

    Parameters
    ----------
    url : sqlalchemy.URL
    """
    home = os.environ.get(HOME)
    if url.get_backend_name() == "sqlite":
        database = Path(url.database or "")
        return Path(home) / database.name if home else database
    folder = Path(home) if home else Path.home() / ".local" / "share" / "cloakgp"
    place = (url.host or "localhost", str(url.port or 5432), url.database or "")
    schema = str(url.query.get("options", ""))
    marked = hashlib.sha256(schema.encode()).hexdigest()[:8] if schema else ""
    return folder / "-".join(part.replace("/", "_") for part in (*place, marked) if part)


def new_name() -> str:
    """Return a name that no other ledger has."""
    return secrets.token_hex(NAME_BYTES)


def suffixed(path: Path, suffix: str) -> Path:
    """Return a path with a suffix after all that it has.

    Examples
    --------
    >>> suffixed(Path("a.db"), ".key").name
    'a.db.key'
    """
    return path.with_name(path.name + suffix)


@dataclass(frozen=True, repr=False)
class Key:
    """The secret of a ledger; shown by nothing.

    Attributes
    ----------
    secret : bytes
    """

    secret: bytes

    @classmethod
    def create(cls, path: Path) -> Key:
        """Write a new key to a file that only its owner can read.

        Raises
        ------
        FileExistsError
            If there is a file: a key is never replaced.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        made = cls(secret=secrets.token_bytes(SECRET_BYTES))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(made.secret.hex() + "\n")
            file.flush()
            os.fsync(file.fileno())
        return made

    @classmethod
    def read(cls, path: Path, *, check: str) -> Key:
        """Read the key of a ledger.

        Parameters
        ----------
        path : Path
        check : str
            What its `check` must be.

        Raises
        ------
        LedgerError
            If it is not there, or that of another ledger.
        """
        try:
            key = cls(secret=bytes.fromhex(path.read_text().strip()))
        except (OSError, ValueError):
            raise LedgerError(
                f"the ledger's key is not to be read at {path}: copy it there from where the "
                f"ledger was made, or name its folder in {HOME}"
            ) from None
        if not hmac.compare_digest(key.check, check):
            raise LedgerError(f"{path} is the key of another ledger")
        return key

    @property
    def check(self) -> str:
        """Tells keys apart, without telling the key."""
        return self._derived(b"check").hex()

    @property
    def columns(self) -> bytes:
        """The key of fingerprints."""
        return self._derived(b"columns")

    @property
    def public(self) -> str:
        """What verifies `sign`, in hexadecimal."""
        return self._signing.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()

    def sign(self, content: bytes) -> str:
        """Return an Ed25519 signature (RFC 8032), in base 64."""
        return base64.b64encode(self._signing.sign(content)).decode()

    @property
    def _signing(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self._derived(b"receipts"))

    def _derived(self, use: bytes) -> bytes:
        return hmac.new(self.secret, b"cloakgp ledger 1 " + use, hashlib.sha256).digest()


def is_signed(content: bytes, signature: str, *, public: str) -> bool:
    """Return whether content was signed with the key of a ledger.

    Parameters
    ----------
    content : bytes
    signature : str
        In base 64.
    public : str
        The ledger's `Key.public`.

    Examples
    --------
    >>> key = Key(secret=bytes(32))
    >>> is_signed(b"a", key.sign(b"a"), public=key.public)
    True
    >>> is_signed(b"b", key.sign(b"a"), public=key.public)
    False
    """
    try:
        verifier = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        verifier.verify(base64.b64decode(signature, validate=True), content)
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True)
class Anchor:
    """How far the chain went when this machine last saw it.

    Attributes
    ----------
    path : Path
    """

    path: Path

    def read(self) -> tuple[int, str] | None:
        """Return the number and digest of an entry, or None if there is no anchor yet.

        Raises
        ------
        DamagedLedgerError
            If it cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                return self._parsed(file)
        except FileNotFoundError:
            return None

    def advance(self, number: int, digest: str) -> None:
        """Note an entry, unless a later one is noted."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked() as file:
            noted = self._parsed(file)
            if noted is None or noted[0] < number:
                content = json.dumps({"number": number, "digest": digest})
                os.pwrite(file.fileno(), content.ljust(ANCHOR_BYTES).encode(), 0)

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file

    def _parsed(self, file: IO[bytes]) -> tuple[int, str] | None:
        content = file.read(ANCHOR_BYTES)
        if not content:
            return None
        try:
            noted: Mapping[str, object] = json.loads(content)
            number, digest = noted["number"], noted["digest"]
        except (ValueError, KeyError, TypeError):
            number, digest = None, None
        if isinstance(number, int) and isinstance(digest, str):
            return number, digest
        raise DamagedLedgerError(f"the anchor {self.path} is damaged")
