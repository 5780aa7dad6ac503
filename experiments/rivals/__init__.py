"""Rivals of the default estimator for a private numeric column, compared on twelve tables."""

from experiments.rivals.command import Rivals

__all__ = ["Rivals"]
