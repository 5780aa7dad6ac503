"""Calls that spend, without a fit."""

from __future__ import annotations

from cloakgp.privacy.spending import Cost, Spender


def spender(*, unit="row", fingerprint=None):
    return Spender(
        call="test", unit=unit, epsilon=None, delta=None, fingerprint=lambda _: fingerprint
    )


def gaussian(mu):
    return Cost(mechanism="gaussian", mu=mu, answers=1, coarseness=2.0**-80)


def charge(account, *costs, failed=False, close=True, draws=()):
    """One charge of some draws; return it."""
    opened = account.open_charge(spender())
    for cost in costs:
        opened.reserve(cost)
    for digest in draws:
        opened.drawn(digest)
    if close:
        opened.close(failed=failed)
    return opened
