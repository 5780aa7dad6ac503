"""Operations of the service, as functions of a `Work` and messages."""
