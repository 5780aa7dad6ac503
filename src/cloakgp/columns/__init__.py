"""Public columns: their kinds, and their encoding as numbers. One registry of kinds.

A schema says of every public column of a table whether it holds numbers, categories, dates, places,
vectors or something else, and what missing cells mean; `Schema.encode` turns raw columns into a
matrix. It is plain data, and a release holds it, so that whoever receives a release passes raw
columns.
"""

from cloakgp.columns.base import Column
from cloakgp.columns.categories import Category, OrderedCategory
from cloakgp.columns.dates import Date
from cloakgp.columns.identifiers import Identifier
from cloakgp.columns.inference import infer_schema
from cloakgp.columns.kinds import COLUMN_KINDS
from cloakgp.columns.numbers import Boolean, Number
from cloakgp.columns.places import Place
from cloakgp.columns.schema import Encoded, Schema
from cloakgp.columns.table_schema import schema_from_text, schema_to_text
from cloakgp.columns.vectors import Vector

__all__ = [
    "COLUMN_KINDS",
    "Boolean",
    "Category",
    "Column",
    "Date",
    "Encoded",
    "Identifier",
    "Number",
    "OrderedCategory",
    "Place",
    "Schema",
    "Vector",
    "infer_schema",
    "schema_from_text",
    "schema_to_text",
]
