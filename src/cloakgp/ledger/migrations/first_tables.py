"""First revision: the tables of `cloakgp.ledger.schema`, which a new database gets whole."""

revision = "1"
down_revision = None


def upgrade() -> None:
    """Do nothing: `cloakgp.ledger.engines` makes the tables of a new database."""
