"""Schemas as files beside a table: JSON after the Table Schema standard of Frictionless Data.

What the standard has no word for stands in properties of its own, which it allows: ``kind``,
``missing``, ``unit``, ``fill``, ``other``, ``linear``, ``cycles``, and ``places`` and ``vectors``,
each of several fields, with ``latitudes``, ``longitudes`` and ``range``. Ranges of numbers and
dates are its constraints ``minimum`` and ``maximum``. A field without ``kind`` is taken by its
``categories``, or else by its ``type``, so that schemas that others wrote can be read. The
standard's own library guesses types from all columns, private ones too, and is not used.
"""

from __future__ import annotations

import json
from typing import Any

from cloakgp.columns.base import Column, Field
from cloakgp.columns.categories import values_of
from cloakgp.columns.kinds import COLUMN_KINDS
from cloakgp.columns.schema import Schema
from cloakgp.privacy.entries import EMPTY

PROFILE = "https://datapackage.org/profiles/2.0/tableschema.json"
BY_TYPE = {
    "number": "number",
    "integer": "number",
    "year": "number",
    "boolean": "boolean",
    "string": "category",
    "date": "date",
    "datetime": "date",
    "any": "category",
}
PARTS = tuple(kind.part_of for kind in COLUMN_KINDS.values() if kind.part_of)
# A file beside a table is read whole.
LARGEST_FILE = 2**24


def schema_to_text(schema: Schema) -> str:
    """Return the file of a schema.

    Examples
    --------
    >>> from cloakgp.columns import Number
    >>> print(schema_to_text(Schema((Number("age", unit="years", fill=30.0),), ("",))))
    {
      "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
      "missingValues": [
        ""
      ],
      "fields": [
        {
          "name": "age",
          "type": "number",
          "kind": "number",
          "unit": "years",
          "missing": "refuse",
          "fill": 30.0
        }
      ]
    }
    <BLANKLINE>
    """
    fields: list[Field] = []
    gathered: dict[str, list[Field]] = {}
    for column in schema.columns:
        part = column.part_of
        if part:
            gathered.setdefault(f"{part}s", []).append(_field(column))
            fields += [
                {"name": source, "type": "number", part: column.name} for source in column.sources
            ]
        else:
            fields.append(_field(column))
    tree: dict[str, Any] = {
        "$schema": PROFILE,
        "missingValues": list(schema.missing_values),
        "fields": fields,
        **gathered,
    }
    return json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _field(column: Column) -> Field:
    named = {"title": column.title, "unit": column.unit}
    return {
        "name": column.name,
        "type": column.field_type,
        "kind": column.kind,
        **{key: text for key, text in named.items() if text},
        "missing": column.missing,
        **column.to_field(),
    }


def schema_from_text(text: str) -> Schema:
    """Read the file of a schema; its open parts are to be taken from public columns.

    Parameters
    ----------
    text : str

    Raises
    ------
    ValueError
        If it is no Table Schema.

    Examples
    --------
    >>> schema_from_text('{"fields": [{"name": "age", "type": "integer"}]}').columns[0].kind
    'number'
    """
    try:
        tree = json.loads(text)
        fields = list(tree["fields"])
        gathered = {
            part: {each["name"]: each for each in tree.get(f"{part}s", [])} for part in PARTS
        }
        codes = values_of(tree.get("missingValues", sorted(EMPTY)))
        columns: dict[str, Column] = {}
        for field in fields:
            _check_codes(field, codes)
            part = next((each for each in PARTS if field.get(each) is not None), None)
            described = field
            if part is not None:
                name = field[part]
                own = [each["name"] for each in fields if each.get(part) == name]
                described = {"kind": part, "columns": own, **gathered[part][name]}
            columns.setdefault(described["name"], _column(described))
        return Schema(columns=tuple(columns.values()), missing_values=codes)
    except (KeyError, TypeError, AttributeError, RecursionError, json.JSONDecodeError):
        pass
    raise ValueError("this is no Table Schema: it needs fields, each with a name and a type")


def _check_codes(field: Field, codes: tuple[str, ...]) -> None:
    """Refuse codes for missing cells of one field alone: they would be read as if they said it."""
    own = field.get("missingValues")
    if own is not None and set(values_of(own)) != set(codes):
        raise ValueError(
            f"column {field['name']!r}: missingValues of one field are not read. Give those of all "
            "fields together, beside fields, or recode this column"
        )


def _column(field: Field) -> Column:
    kind = field.get("kind")
    if kind is None:
        # Numbers are then but codes of levels.
        kind = "category" if field.get("categories") else BY_TYPE.get(field.get("type", "any"))
        if kind == "category" and field.get("categoriesOrdered"):
            kind = "ordered category"
    if kind not in COLUMN_KINDS:
        known = ", ".join(COLUMN_KINDS)
        raise ValueError(f"column {field['name']!r}: its kind must be one of {known}")
    required = field.get("constraints", {}).get("required", False)
    chosen = COLUMN_KINDS[kind]
    usual = "refuse" if required or "impute" not in chosen.policies else "impute"
    if "category" in chosen.policies and not required:
        usual = "category"
    common = {
        "name": str(field["name"]),
        "title": str(field.get("title", "")),
        "unit": str(field.get("unit", "")),
        "missing": field.get("missing", usual),
    }
    return chosen.from_field(field, common)
