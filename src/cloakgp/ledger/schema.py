"""Tables of the ledger: the chain of entries, and the state that follows from it.

`entries` is the ledger; no row of it is ever changed or removed. Other tables follow from it, and
`cloakgp.ledger.audit` builds them anew to compare. Three hold content whose digest or mark is in
the chain: `releases`, published files; `names` of persons, which can be erased; `notes` for
auditors.
"""

from __future__ import annotations

from cloakgp.utils.extras import extra

with extra("ledger"):
    from sqlalchemy import (
        BigInteger,
        Boolean,
        Column,
        ForeignKey,
        Integer,
        LargeBinary,
        MetaData,
        Table,
        UniqueConstraint,
    )
    from sqlalchemy import Text as LongText

# Format of entries; a ledger of another is refused.
FORMAT = 2

metadata = MetaData()

# One row: the name of the ledger, and the end of its chain. A writer holds it locked.
head = Table(
    "head",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("format", Integer, nullable=False),
    Column("ledger", LongText, nullable=False),
    # A digest that identifies the ledger's key, without telling it.
    Column("key_check", LongText, nullable=False),
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
    # Of the digest.
    Column("signature", LongText, nullable=False),
)

accounts = Table(
    "accounts",
    metadata,
    Column("name", LongText, primary_key=True),
    Column("unit", LongText, nullable=False),
    # Hexadecimal floats.
    Column("epsilon", LongText, nullable=False),
    Column("delta", LongText, nullable=False),
    # An amount as JSON, or one for each cohort; and the number of its charges.
    Column("spent", LongText, nullable=False),
    Column("spending", Integer, nullable=False),
)

charges = Table(
    "charges",
    metadata,
    # The number of the entry that opened it.
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("account", LongText, ForeignKey("accounts.name"), nullable=False),
    Column("state", LongText, nullable=False),
    # Amounts as JSON: the hold, and the drawn amount.
    Column("held", LongText, nullable=False),
    Column("drawn", LongText, nullable=False),
    Column("draws", Integer, nullable=False),
    # Whether it takes the whole limit: it then counts for its whole hold.
    Column("whole", Boolean, nullable=False),
    # The people it is about, of those of the account; empty for everybody.
    Column("cohort", LongText, nullable=False),
    Column("key", LongText),
    # Of the file that was published.
    Column("release", LongText),
    UniqueConstraint("account", "key"),
)

# Private columns that are recognised: see `cloakgp.ledger.marks`.
columns = Table(
    "columns",
    metadata,
    Column("mark", LongText, primary_key=True),
    Column("salt", LongText, nullable=False),
    # The check of the key.
    Column("key", LongText, nullable=False),
    Column("name", LongText, nullable=False),
    Column("account", LongText, ForeignKey("accounts.name"), nullable=False),
    # Whose column it is, of the people of the account; empty if nobody said so.
    Column("cohort", LongText, nullable=False),
)

# Recoveries of older copies of the database, by the numbers of their entries.
recoveries = Table(
    "recoveries",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("state", LongText, nullable=False),
)

# Counted noisy answers, by `cloakgp.privacy.spending.digest_of`; of those that several accounts
# count, by digest and account from the second on.
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

# Names of persons by their marks in entries.
names = Table(
    "names",
    metadata,
    Column("mark", LongText, primary_key=True),
    Column("salt", LongText, nullable=False),
    Column("name", LongText, nullable=False, unique=True),
)

# Notes for auditors alone; an entry has the mark of its note.
notes = Table(
    "notes",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("salt", LongText, nullable=False),
    Column("content", LongText, nullable=False),
)
