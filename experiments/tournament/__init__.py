"""A tournament on tables that no default was chosen on, by a protocol fixed beforehand."""

from experiments.tournament.command import Tournament

__all__ = ["Tournament"]
