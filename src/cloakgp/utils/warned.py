"""Warnings of this package, by one kind: sentences for whoever called, with nothing private."""

from __future__ import annotations


class CloakWarning(UserWarning):
    """A sentence of this package for whoever called it.

    Examples
    --------
    >>> from cloakgp import PrivacyParameterWarning
    >>> issubclass(PrivacyParameterWarning, CloakWarning)
    True
    """
