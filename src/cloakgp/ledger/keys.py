"""Secret keys of a ledger, in a file outside of its database.

The newest signs entries and receipts, and marks columns: the database alone is not enough to add an
entry, forge a receipt, or guess a column. A rotation puts another in its place; older keys stay in
the file, since they alone recognise the columns that they marked, and verification demands that
the chain's keys are this file's.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cloakgp.ledger.errors import LedgerError
from cloakgp.utils.extras import extra
from cloakgp.utils.files import PERSONAL, reserve_file

with extra("ledger"):
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SECRET_BYTES, NAME_BYTES, SALT_BYTES = 32, 16, 32


def new_name() -> str:
    """Return a random name for a ledger."""
    return secrets.token_hex(NAME_BYTES)


def new_salt() -> str:
    """Return a random salt for one commitment."""
    return secrets.token_hex(SALT_BYTES)


@dataclass(frozen=True, repr=False)
class Key:
    """A secret of a ledger, without a representation.

    Attributes
    ----------
    secret : bytes
    """

    secret: bytes

    @functools.cached_property
    def check(self) -> str:
        """A digest that identifies a key without revealing it."""
        return self._derived(b"check").hex()

    @property
    def columns(self) -> bytes:
        """The key of fingerprints."""
        return self._derived(b"columns")

    @functools.cached_property
    def public(self) -> str:
        """The public key that verifies `sign`, in hexadecimal."""
        return self._signing.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()

    def sign(self, content: bytes) -> str:
        """Return an Ed25519 signature (RFC 8032), in base 64."""
        return base64.b64encode(self._signing.sign(content)).decode()

    @functools.cached_property
    def _signing(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self._derived(b"signatures"))

    def _derived(self, use: bytes) -> bytes:
        return hmac.new(self.secret, b"cloakgp ledger 1 " + use, hashlib.sha256).digest()


class KeyFile:
    """The file of a ledger's keys, oldest first: one in hexadecimal a line, for its owner alone.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._keys: Mapping[str, Key] = {}

    def create(self) -> Key:
        """Write a file with a first key.

        Raises
        ------
        FileExistsError
            If there is a file: a key is never replaced.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        made = Key(secret=secrets.token_bytes(SECRET_BYTES))
        self._write([made], overwrite=False)
        return made

    def add(self) -> Key:
        """Append a key; the ledger goes on with the older one."""
        made = Key(secret=secrets.token_bytes(SECRET_BYTES))
        self._write([*self._read().values(), made], overwrite=True)
        return made

    def key(self, check: str) -> Key:
        """Return a key of the ledger.

        Parameters
        ----------
        check : str
            Its `Key.check`.

        Raises
        ------
        LedgerError
            If the file lacks it.
        """
        if check not in self._keys:
            # Another process may have rotated it.
            self._keys = self._read()
        if check not in self._keys:
            raise LedgerError(
                f"{self.path} is the key of another ledger, or from before a rotation: copy it "
                "from where the keys were rotated"
            )
        return self._keys[check]

    def _read(self) -> dict[str, Key]:
        try:
            keys = [Key(secret=bytes.fromhex(line)) for line in self.path.read_text().split()]
        except (OSError, ValueError):
            raise LedgerError(
                f"the ledger's key is not to be read at {self.path}: copy it there from where the "
                "ledger was made, or name its folder in CLOAKGP_LEDGER_KEYS"
            ) from None
        return {key.check: key for key in keys}

    def _write(self, keys: list[Key], *, overwrite: bool) -> None:
        content = "".join(key.secret.hex() + "\n" for key in keys)
        with reserve_file(self.path, overwrite=overwrite, mode=PERSONAL) as target:
            target.write(content.encode())


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
        _verifier(public).verify(base64.b64decode(signature, validate=True), content)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


@functools.lru_cache(maxsize=64)
def _verifier(public: str) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
