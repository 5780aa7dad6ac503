"""Migrations of the service's tables, each from the one before it."""
