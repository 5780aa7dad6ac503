"""First tables of the ledger."""

from __future__ import annotations

from cloakgp.utils.extras import extra

with extra("ledger"):
    import sqlalchemy as sa
    from alembic import op

revision = "1"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "head",
        sa.Column("id", sa.Integer, primary_key=True),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("ledger", "key_check", "public_key")
        ),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
    )
    op.create_table(
        "entries",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
    )
    amounts = ("gaussian", "pure", "pure_gaussian", "answers", "coarseness")
    op.create_table(
        "accounts",
        sa.Column("name", sa.Text, primary_key=True),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("unit", "epsilon", "delta", *amounts)
        ),
    )
    op.create_table(
        "charges",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("account", sa.Text, sa.ForeignKey("accounts.name"), nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("state", "held", "drawn")),
        sa.Column("key", sa.Text),
        sa.Column("release", sa.Text),
        sa.UniqueConstraint("account", "key"),
    )
    op.create_table(
        "columns",
        sa.Column("fingerprint", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("account", sa.Text, sa.ForeignKey("accounts.name"), nullable=False),
    )
    op.create_table(
        "draws",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("charge", sa.BigInteger, sa.ForeignKey("charges.number"), nullable=False),
    )
    op.create_table(
        "releases",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
