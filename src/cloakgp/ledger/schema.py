"""Tables of the ledger: a chain of entries, and what they add up to.

`entries` is the ledger; nothing in it is ever changed or removed. All other tables follow from it,
and `cloakgp.ledger.audit` builds them anew to compare; but for `releases`, which holds published
files by their digest.
"""

from __future__ import annotations

from cloakgp.utils.extras import extra

with extra("ledger"):
    from sqlalchemy import (
        BigInteger,
        Column,
        ForeignKey,
        Integer,
        LargeBinary,
        MetaData,
        Table,
        UniqueConstraint,
    )
    from sqlalchemy import Text as LongText

metadata = MetaData()

# One row: which ledger this is, and where its chain ends. Whoever writes holds it locked.
head = Table(
    "head",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("ledger", LongText, nullable=False),
    # Tells whether a key is the ledger's, without telling the key.
    Column("key_check", LongText, nullable=False),
    # Verifies receipts.
    Column("public_key", LongText, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("digest", LongText, nullable=False),
)

entries = Table(
    "entries",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    # Canonical JSON.
    Column("body", LongText, nullable=False),
    # Of the body and of the digest before it.
    Column("digest", LongText, nullable=False),
)

accounts = Table(
    "accounts",
    metadata,
    Column("name", LongText, primary_key=True),
    Column("unit", LongText, nullable=False),
    # Numbers as text are hexadecimal floats, or whole numbers longer than 64 bits.
    Column("epsilon", LongText, nullable=False),
    Column("delta", LongText, nullable=False),
    Column("gaussian", LongText, nullable=False),
    Column("pure", LongText, nullable=False),
    Column("pure_gaussian", LongText, nullable=False),
    Column("answers", LongText, nullable=False),
    Column("coarseness", LongText, nullable=False),
)

charges = Table(
    "charges",
    metadata,
    # The number of the entry that opened it.
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("account", LongText, ForeignKey("accounts.name"), nullable=False),
    Column("state", LongText, nullable=False),
    # Amounts as JSON: what is held, and what noise was drawn for.
    Column("held", LongText, nullable=False),
    Column("drawn", LongText, nullable=False),
    Column("key", LongText),
    # Of the file that was published.
    Column("release", LongText),
    UniqueConstraint("account", "key"),
)

columns = Table(
    "columns",
    metadata,
    Column("fingerprint", LongText, primary_key=True),
    Column("name", LongText, nullable=False),
    Column("account", LongText, ForeignKey("accounts.name"), nullable=False),
)

# Noisy answers that are counted, by `cloakgp.privacy.spending.digest_of`.
draws = Table(
    "draws",
    metadata,
    Column("digest", LongText, primary_key=True),
    Column("charge", BigInteger, ForeignKey("charges.number"), nullable=False),
)

releases = Table(
    "releases",
    metadata,
    Column("digest", LongText, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
