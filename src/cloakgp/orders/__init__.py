"""Orders of releases, in options: their plans, their making, their predictions."""
