"""First revision: the tables of `cloakgp.service.models`, which a new database gets whole."""

revision = "s1"
down_revision = None


def upgrade() -> None:
    """Do nothing: `cloakgp.ledger.engines` makes the tables of a new database."""
