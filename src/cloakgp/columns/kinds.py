"""Registry of the kinds of columns: a new kind is a module of this folder and a line here."""

from cloakgp.columns.base import Column
from cloakgp.columns.categories import Category, OrderedCategory
from cloakgp.columns.dates import Date
from cloakgp.columns.identifiers import Identifier
from cloakgp.columns.numbers import Boolean, Number
from cloakgp.columns.places import Place
from cloakgp.columns.vectors import Vector

COLUMN_KINDS: dict[str, type[Column]] = {
    each.kind: each
    for each in (Number, Category, OrderedCategory, Date, Boolean, Place, Vector, Identifier)
}
