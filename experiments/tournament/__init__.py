"""A tournament on tables that no default was chosen on, by a protocol fixed beforehand."""
