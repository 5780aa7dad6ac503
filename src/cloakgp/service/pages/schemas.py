"""Schemas by forms: a custodian's changes of the inferred schema of the public columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cloakgp.columns import schema_from_text
from cloakgp.columns.base import Column
from cloakgp.columns.kinds import COLUMN_KINDS
from cloakgp.columns.numbers import Number
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import ColumnPreview
from cloakgp.service.pages.fields import Fields, number_of, text_of

# Labels of the kinds. Places take two columns, and are inferred, not chosen.
KINDS = {
    "number": "number",
    "category": "category",
    "ordered category": "category with an order",
    "date": "date or time",
    "boolean": "yes or no",
    "identifier": "not used",
}
MISSING = {
    "refuse": "are a mistake: refuse the table",
    "drop": "leave the row out",
    "impute": "fill in a typical value, and mark it",
    "category": "are a level of their own",
}


@dataclass(frozen=True)
class ColumnFields:
    """The fields of one public column.

    Attributes
    ----------
    number : int
        Number of the column in the names of its fields.
    name, title, unit, kind, missing, fill, levels, notation : str
        Values in the form.
    sign : str
        Of which nothing tells whether it stands before decimals or between thousands; mostly empty.
    described : str
        Description of the inferred column.
    kinds, policies : dict of str to str
        Choices, each with its label.
    seen : ColumnPreview
    """

    number: int
    name: str
    title: str
    unit: str
    kind: str
    missing: str
    fill: str
    levels: str
    notation: str
    sign: str
    described: str
    kinds: Mapping[str, str]
    policies: Mapping[str, str]
    seen: ColumnPreview


def columns_of(
    columns: Iterable[tuple[int, Column]],
    earlier: Mapping[str, Any],
    previews: Mapping[str, ColumnPreview],
) -> list[ColumnFields]:
    """Return the fields of columns, with the values of an earlier form or of the inferred schema.

    Parameters
    ----------
    columns : iterable of (int, Column)
    earlier : mapping of str to str
    previews : mapping of str to ColumnPreview
    """
    fields = []
    for number, column in columns:
        levels = getattr(column, "levels", ())
        fill = getattr(column, "fill", None) if column.kind == "number" else None
        seen = {
            "title": column.title,
            "unit": column.unit,
            "kind": column.kind,
            "missing": column.missing,
            "fill": "" if fill is None else f"{fill:g}",
            "levels": "\n".join(levels),
            "notation": "",
        }
        values = {name: str(earlier.get(f"{name}_{number}", value)) for name, value in seen.items()}
        fields.append(
            ColumnFields(
                number=number,
                name=column.name,
                sign=_undecided_sign(column),
                described=column.describe(),
                kinds=KINDS if column.kind in KINDS else {column.kind: column.kind},
                # The server refuses a policy that does not go with the chosen kind.
                policies=MISSING,
                seen=previews[column.name],
                **values,
            )
        )
    return fields


def schema_text_of(seen: str, form: Fields) -> str:
    """Return the schema of a form, as the text of a file.

    Parameters
    ----------
    seen : str
        The inferred schema.
    form : fields
        Kind, title, unit, missing, fill, levels and notation of each column, by its number.

    Raises
    ------
    InvalidError
        If the fields of a column contradict each other.

    Examples
    --------
    >>> from starlette.datastructures import QueryParams
    >>> seen = '{"fields": [{"name": "age", "kind": "number", "missing": "refuse", "fill": 3}]}'
    >>> made = schema_text_of(seen, QueryParams("kind_0=category&levels_0=1%0A2&missing_0=drop"))
    >>> json.loads(made)["fields"]
    [{'name': 'age', 'missing': 'drop', 'kind': 'category', 'categories': ['1', '2']}]
    """
    tree: dict[str, Any] = json.loads(seen)
    fields = {field["name"]: field for field in (*tree["fields"], *tree.get("places", []))}
    for number, column in enumerate(schema_from_text(seen).columns):
        field = fields[column.name]
        kind = text_of(form, f"kind_{number}") or column.kind
        if kind not in COLUMN_KINDS:
            raise InvalidError(
                f"column {column.name}: choose one of the kinds",
                fields={f"kind_{number}": "choose one of the kinds"},
            )
        if kind != column.kind:
            # The parameters of the other kind are inferred again from the column.
            for key in [key for key in field if key not in ("name", "title", "unit", "missing")]:
                del field[key]
            field["kind"] = kind
        for name in ("title", "unit"):
            field.pop(name, None)
            if text := text_of(form, f"{name}_{number}"):
                field[name] = text
        missing = text_of(form, f"missing_{number}") or column.missing
        if kind == "identifier":
            missing = "refuse"
        policies = COLUMN_KINDS[kind].policies
        if missing not in policies:
            words = ", or ".join(MISSING[each] for each in policies)
            raise InvalidError(
                f"column {column.name}: empty cells of this kind {words}",
                fields={f"missing_{number}": f"of this kind they {words}"},
            )
        field["missing"] = missing
        _fill(field, column.name, kind, form, number)
        if kind == "number" and (sign := _undecided_sign(column)):
            _decide(field, column.name, sign, form, number)
    return json.dumps(tree)


def _undecided_sign(column: Column) -> str:
    return column.decimal if isinstance(column, Number) and column.undecided else ""


def _decide(field: dict[str, Any], name: str, sign: str, form: Fields, number: int) -> None:
    """Set what a sign between digits means, as the form says."""
    field.pop("groupChar", None)
    said = text_of(form, f"notation_{number}")
    if said == "decimals":
        field["decimalChar"] = sign
    elif said == "thousands":
        field |= {"decimalChar": "." if sign == "," else ",", "groupChar": sign}
    else:
        raise InvalidError(
            f"column {name}: say what 1{sign}234 is",
            fields={f"notation_{number}": "choose what it is"},
        )


def _fill(field: dict[str, Any], name: str, kind: str, form: Fields, number: int) -> None:
    fill = text_of(form, f"fill_{number}")
    # The inferred value has more digits than the shown one.
    if kind == "number" and fill and fill != f"{field.get('fill', 0.0):g}":
        field["fill"] = number_of(
            fill,
            called=f"column {name}: what empty cells are filled with",
            field=f"fill_{number}",
        )
    if kind in ("category", "ordered category"):
        lines = text_of(form, f"levels_{number}").splitlines()
        if levels := [line.strip() for line in lines if line.strip()]:
            field["categories"] = levels
