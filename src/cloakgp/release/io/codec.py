"""Codec: releases as trees of plain values, by the fields of their dataclasses.

A dataclass becomes a dictionary of its fields, an array the name under which it is kept, a kernel a
tree of its own (`cloakgp.release.io.kernel_tree`); everything else is plain already. Reading back
goes by the annotations of the fields and is strict: what has another type, or a field too many, is
refused, and every object that says what it may hold (``validate``) is asked, innermost first. So a
new field is written and read without a line here; files from before it need its default.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.columns.kinds import COLUMN_KINDS
from cloakgp.design.streaming.rules import BallRule, EqualRule, LinearRule, PartitionRule
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.axes import Circle, Levels, Line
from cloakgp.models.cosines import CosineBasis
from cloakgp.models.features import BinBasis, EigenBasis
from cloakgp.models.likelihoods import LIKELIHOODS
from cloakgp.privacy.questions import QUESTIONS
from cloakgp.release.bands import ROW_QUESTIONS
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.io.kernel_tree import kernel_from_tree, kernel_to_tree
from cloakgp.release.strategy import DenseStrategy
from cloakgp.release.streamed_strategy import StreamedStrategy
from cloakgp.utils.arrays import Array

# What stands in a file for a class, where an annotation leaves a choice of classes; of questions,
# likelihoods and columns, which may be registered later, their own names.
TYPES: dict[str, type] = {
    "exact": ExactPrior,
    "sparse": SparsePrior,
    "dense": DenseStrategy,
    "streamed": StreamedStrategy,
    "gathered": GatheredStrategy,
    "linear rule": LinearRule,
    "ball rule": BallRule,
    "partition rule": PartitionRule,
    "equal rule": EqualRule,
    "eigenfunctions": EigenBasis,
    "bins": BinBasis,
    "cosines": CosineBasis,
    **{axis.kind: axis for axis in (Line, Circle, Levels)},
}
TYPE = "type"

Read = TypeVar("Read")


def to_tree(value: Any, *, stored: Callable[[Array], Any] = np.ndarray.tolist) -> Any:
    """Return a JSON-ready tree of a dataclass, or of a value of its fields.

    Parameters
    ----------
    value : object
    stored : callable
        What stands for an array; by default its numbers.

    Raises
    ------
    ValueError
        If a kernel has parameters that cannot be written.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> tree = to_tree(ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.0))
    >>> tree["type"], tree["noise_variance"]
    ('exact', 1.0)
    """
    if isinstance(value, Kernel):
        return kernel_to_tree(value)
    if is_dataclass(value) and not isinstance(value, type):
        named = {kind: name for name, kind in _types().items()}.get(type(value))
        inner = {
            field.name: to_tree(getattr(value, field.name), stored=stored)
            for field in fields(value)
        }
        return inner if named is None else {TYPE: named, **inner}
    if isinstance(value, np.ndarray):
        return stored(np.asarray(value, dtype=np.float64))
    if isinstance(value, tuple):
        return [to_tree(entry, stored=stored) for entry in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"a {type(value).__name__} cannot be written to a file")


@dataclass(frozen=True)
class Reader:
    """Rebuilds objects from trees.

    Attributes
    ----------
    loaded : callable
        Returns the array of a name.
    kernels : tuple of kernel classes
        Beyond scikit-learn's and this package's.
    """

    loaded: Callable[[str], Array]
    kernels: tuple[type[Kernel], ...] = ()

    def read(self, tree: Any, kind: type[Read]) -> Read:
        """Rebuild a dataclass from `to_tree`, and check it.

        Parameters
        ----------
        tree : dict
        kind : type

        Raises
        ------
        ValueError
            If the tree is not of that form, or the object finds fault with itself.
        """
        read: Read = self._value(tree, kind, place="the file")
        return read

    def _value(self, tree: Any, hint: Any, *, place: str) -> Any:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            return self._one_of(tree, arguments, place=place)
        if origin is Literal:
            if not any(tree is each or (type(tree) is str and tree == each) for each in arguments):
                raise ValueError(f"{place} is damaged")
            return tree
        if origin is tuple:
            return self._entries(tree, arguments, place=place)
        if origin is np.ndarray:
            return self._array(tree, integers="int" in str(arguments[-1]), place=place)
        if isinstance(hint, type) and issubclass(hint, Kernel):
            return kernel_from_tree(tree, classes=self.kernels)
        if hint in (bool, int, float, str, type(None)):
            return _plain(tree, hint, place=place)
        return self._dataclass(tree, hint, place=place)

    def _one_of(self, tree: Any, hints: tuple[Any, ...], *, place: str) -> Any:
        """Read a value of a union annotation."""
        if tree is None and type(None) in hints:
            return None
        plain = [hint for hint in hints if hint in (bool, int, float, str)]
        if isinstance(tree, bool | int | float) or (isinstance(tree, str) and str in plain):
            if type(tree) in plain:
                return tree
            if type(tree) is int and float in plain:
                return float(tree)
            raise ValueError(f"{place} is damaged")
        left = [hint for hint in hints if hint not in plain and hint is not type(None)]
        if len(left) == 1:
            return self._value(tree, left[0], place=place)
        named = _types().get(str(tree.get(TYPE))) if isinstance(tree, dict) else None
        for hint in left:
            if named is not None and isinstance(hint, type) and issubclass(named, hint):
                return self._dataclass(tree, named, place=place)
        raise ValueError(f"{place} is of an unknown kind")

    def _entries(self, tree: Any, hints: tuple[Any, ...], *, place: str) -> tuple[Any, ...]:
        if not isinstance(tree, list):
            raise ValueError(f"{place} is damaged")
        if hints[-1] is Ellipsis:
            hints = (hints[0],) * len(tree)
        if len(hints) != len(tree):
            raise ValueError(f"{place} is damaged")
        return tuple(
            self._value(entry, hint, place=place) for entry, hint in zip(tree, hints, strict=True)
        )

    def _array(self, tree: Any, *, integers: bool, place: str) -> Any:
        if not isinstance(tree, str):
            raise ValueError(f"{place} is damaged")
        array = self.loaded(tree)
        if not integers:
            return array
        whole = array.astype(np.intp)
        if not np.array_equal(whole, array):
            raise ValueError(f"{place} is damaged")
        return whole

    def _dataclass(self, tree: Any, kind: type, *, place: str) -> Any:
        if not isinstance(tree, dict):
            raise ValueError(f"{place} is damaged")
        if TYPE in tree:
            named = _types().get(tree[TYPE]) if isinstance(tree[TYPE], str) else None
            if named is None or not issubclass(named, kind):
                raise ValueError(f"{place} is of an unknown kind: {tree[TYPE]!r}")
            kind = named
        if not is_dataclass(kind):
            raise ValueError(f"{place} does not say of what kind it is")
        hints, known = _hints(kind), {field.name: field for field in fields(kind)}
        for name in set(tree) - {TYPE} - set(known):
            raise ValueError(f"{place} holds something unknown: {name!r}")
        values = {}
        for name, field in known.items():
            if name in tree:
                values[name] = self._value(tree[name], hints[name], place=f"the entry {name!r}")
            elif field.default is MISSING and field.default_factory is MISSING:
                raise ValueError(f"the entry {name!r} is missing")
        made = kind(**values)
        if hasattr(made, "validate"):
            made.validate()
        return made


def _plain(tree: Any, hint: type, *, place: str) -> Any:
    """Return a plain value of the type that is wanted: a whole number is a number, too."""
    if hint is float and type(tree) is int:
        try:
            return float(tree)
        except OverflowError:
            raise ValueError(f"{place} is damaged") from None
    if type(tree) is not hint:
        raise ValueError(f"{place} is damaged")
    return tree


def _types() -> dict[str, type]:
    registries: tuple[Mapping[str, type], ...] = (
        TYPES,
        QUESTIONS,
        ROW_QUESTIONS,
        LIKELIHOODS,
        COLUMN_KINDS,
    )
    types = {name: kind for registry in registries for name, kind in registry.items()}
    if len(types) < sum(map(len, registries)):
        raise RuntimeError("two classes have one name in files")
    return types


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
