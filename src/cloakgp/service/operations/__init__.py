"""Operations: everything that somebody can do, as functions of a `Work` and messages."""
