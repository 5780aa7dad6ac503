"""Public choices of an order as text, by which a ledger tells calls with one key apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from cloakgp.orders.options import Order, SourceTable
from cloakgp.orders.origin import Origin


def state_choices(**choices: object) -> str:
    """Return public choices as text, the same for the same choices.

    Tables of people are named by their places, and never read; of query points the content counts.
    What has its default is left out, so that a later version of this package with a further option
    states the same. Purpose, maker and licence are no choices of what is asked, and are left out,
    too.

    Parameters
    ----------
    **choices
        Numbers, texts, paths, lists of them, and dataclasses of orders.

    Raises
    ------
    TypeError
        For what has no such text, a kernel say.

    Examples
    --------
    >>> state_choices(table=Path("/people.csv"), epsilon=1)
    '{"epsilon":1.0,"table":"/people.csv"}'
    """
    return json.dumps(_plain(choices), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a public file, of query points or of a release."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, Path):
        return str(value.resolve())
    if isinstance(value, SourceTable):
        # The schema may lie beside the table.
        return _stated(value) | {"schema": _plain(value.declared)}
    if isinstance(value, Order) and value.queries is not None:
        return _stated(value) | {"queries": digest_file(value.queries)}
    if is_dataclass(value) and not isinstance(value, type):
        return _stated(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    raise TypeError(f"a {type(value).__name__} has no text that states it")


def _stated(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that have no default, or another value than it."""
    stated: dict[str, Any] = {"kind": type(value).__name__}
    for each in fields(value):
        given = getattr(value, each.name)
        default = each.default
        if each.default_factory is not MISSING:
            default = each.default_factory()
        if isinstance(given, Origin) or given == default:
            continue
        stated[each.name] = _plain(given)
    return stated
