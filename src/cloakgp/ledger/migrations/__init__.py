"""Migrations of the ledger's tables, each from the one before it."""
