"""Profiled runs of fits: what they enter, and the way of the private outputs through the functions.

``python traced.py NAME ...`` prints the figures of runs as JSON. :mod:`benchmarks.structure` starts
it in a process of its own, with the package of the checkout that it measures.

**Which functions hold y.** A fit runs four times, twice with the same outputs and twice with
others, and is given the same noisy answers each time. What follows from published answers is then
the same in all four, so that an argument or a returned value that outputs alone change follows from
the private outputs. A function *holds y* while it runs if one of its arguments does: an object, a
closure or an array counts by what it contains, six levels deep.

**The way.** A walk goes into each call of a function that holds y, and back to the caller that
holds it. A step from one function to another is counted once, however often a loop repeats it.
*Stays* are the files of this walk, those that follow each other in the same file taken as one;
*returns* are stays in a file that the walk has been in before; a *climb* is a step to a module of a
higher layer of the contract in ``pyproject.toml``.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, tzinfo
from itertools import count, pairwise
from pathlib import Path
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType
from typing import Any, Self
from unittest import mock

import numpy as np

ROWS = 60
MANY_ROWS = 3000
PACKAGE = "/cloakgp/"
# Levels of attributes and containers in which private values are looked for.
DEPTH = 6

# Stays, files, climbs and returns, by these names.
Way = dict[str, int]
# A file and the qualified name of a function in it.
Function = tuple[str, str]


def data(rows: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return public inputs, and the outputs of a seed that alone differ between seeds."""
    X = np.linspace(0.0, 10.0, rows)[:, None]
    scattered = np.random.default_rng(seed).uniform(-0.3, 0.3, rows)
    return X, np.round(0.5 * np.sin(X).ravel() + scattered, 6)


def _regressor(**settings: Any) -> Any:
    from cloakgp import DPGPRegressor

    return DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3, **settings)


def _fit(rows: int, **settings: Any) -> Callable[[int], Callable[[], object]]:
    def prepared(seed: int) -> Callable[[], object]:
        X, y = data(rows, seed=seed)
        model = _regressor(**settings)
        return lambda: model.fit(X, y)

    return prepared


def _fit_rows(rows: int) -> Callable[[int], Callable[[], object]]:
    def prepared(seed: int) -> Callable[[], object]:
        from cloakgp.data import ArrayRows

        X, y = data(rows, seed=seed)
        model = _regressor(inducing=10)
        return lambda: model.fit_rows(ArrayRows(X, y))

    return prepared


def _refine(rows: int) -> Callable[[int], Callable[[], object]]:
    import cloakgp

    release = _regressor().fit(*data(rows, seed=0)).release_

    def prepared(seed: int) -> Callable[[], object]:
        _, y = data(rows, seed=seed)
        return lambda: cloakgp.refine(release, y, epsilon=1.0, delta=1e-3)

    return prepared


# A run by name: prepared with outputs of a seed, then called.
RUNS: dict[str, Callable[[], Callable[[int], Callable[[], object]]]] = {
    "fit": lambda: _fit(ROWS),
    "plain fit": lambda: _fit(ROWS, stages=None, learn=None, interval=False, noise="gaussian"),
    "fit in passes": lambda: _fit_rows(ROWS),
    "refine": lambda: _refine(ROWS),
    "release_rows": lambda: _fit_rows(MANY_ROWS),
}

# The runs of which y's way is told.
WALKED = ("fit", "refine", "release_rows")


def function_of(frame: FrameType) -> Function | None:
    """Return the function of the package that a frame runs; None of others and comprehensions."""
    code = frame.f_code
    if PACKAGE not in code.co_filename or code.co_name.startswith("<"):
        return None
    return code.co_filename.rpartition(PACKAGE)[2], code.co_qualname


def entered(run: Callable[[], object]) -> set[Function]:
    """Return the functions of the package that a run enters."""
    functions: set[Function] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (function := function_of(frame)):
            functions.add(function)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return functions


class _OneMoment(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls(2026, 1, 1, tzinfo=tz)


@contextmanager
def given_answers(answers: list[Any]) -> Iterator[None]:
    """Return these noisy answers in order for each draw; draws beyond them are added to them.

    Releases are made at the same moment: two runs in one second and two in the next would differ
    as those with the same outputs and with others do.
    """
    from cloakgp.privacy import sampler
    from cloakgp.release import provenance

    spend = sampler.spend
    places = count()

    def spend_again(cost: Any, draw: Callable[[], Any]) -> Any:
        place = next(places)

        def drawn() -> Any:
            if place == len(answers):
                answers.append(draw())
            return answers[place]

        return spend(cost, drawn)

    with (
        mock.patch.object(sampler, "spend", spend_again),
        mock.patch.object(provenance, "datetime", _OneMoment),
    ):
        yield


def digest(value: object) -> str:
    """Return a short text that is the same of equal contents, wherever in memory they lie.

    Examples
    --------
    >>> digest([np.ones(3), {"a": 1}]) == digest([np.ones(3), {"a": 1}])
    True
    >>> digest(lambda: 1) == digest([np.ones(3), {"a": 2}])
    False
    """
    into = hashlib.blake2b(digest_size=8)
    for part in _contents(value, DEPTH, set()):
        into.update(part)
    return into.hexdigest()


def _contents(value: object, depth: int, seen: set[int]) -> Iterator[bytes]:
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, (int, float, complex, str, bytes, np.generic, type(None))):
        yield repr(value).encode()
    elif depth and id(value) not in seen:
        seen.add(id(value))
        yield type(value).__name__.encode()
        for each in _parts(value):
            yield from _contents(each, depth - 1, seen)


def _parts(value: object) -> Iterable[object]:
    """Return what an object is made of: entries, attributes, cells of a closure."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, FunctionType):
        return [each.cell_contents for each in value.__closure__ or () if _filled(each)]
    if isinstance(value, (MethodType, BuiltinFunctionType)):
        return [value.__self__]
    if type(value).__name__ == "partial":
        return [value.func, value.args, value.keywords]  # type: ignore[attr-defined]
    if type(value).__module__.startswith("cloakgp"):
        slots = [getattr(value, name, None) for name in getattr(value, "__slots__", ())]
        return [*getattr(value, "__dict__", {}).values(), *slots]
    return []


def _filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


# "call" or "return", a function, and digests of arguments by name, or of what is returned.
Event = tuple[str, Function, dict[str, str]]


def events_of(run: Callable[[], object]) -> list[Event]:
    """Return every call of a function of the package and every return from one, in order."""
    events: list[Event] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event not in ("call", "return") or not (function := function_of(frame)):
            return
        # Digests look at attributes, and some of these are functions of the package.
        sys.setprofile(None)
        held = dict(frame.f_locals) if event == "call" else {"": argument}
        events.append((event, function, {name: digest(each) for name, each in held.items()}))
        sys.setprofile(note)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return events


def walk_of(runs: Sequence[list[Event]]) -> list[str]:
    """Return the files of the walk, of two runs with the same outputs and two with others.

    Examples
    --------
    >>> def run(y):
    ...     return [("call", ("a.py", "f"), {"y": y}), ("call", ("b.py", "g"), {"X": "public"}),
    ...             ("return", ("b.py", "g"), {"": "public"}), ("call", ("c.py", "h"), {"y": y}),
    ...             ("return", ("c.py", "h"), {"": y}), ("return", ("a.py", "f"), {"": "noisy"})]
    >>> walk_of([run("1"), run("1"), run("2"), run("2")])
    ['a.py', 'c.py', 'a.py']
    """
    walk: list[Function] = []
    # The functions that run, and whether each holds y.
    running: list[tuple[Function, bool]] = []
    for events in zip(*runs, strict=True):
        event, function, _ = events[0]
        if any(each[:2] != (event, function) for each in events):
            raise ValueError(f"outputs decide what is called: {function}, {events[-1][1]}")
        holds = any(
            each[0] == each[1] != each[2] == each[3]
            for each in ([digests[name] for _, _, digests in events] for name in events[0][2])
        )
        if event == "call":
            running.append((function, holds))
            if holds:
                walk.append(function)
            continue
        _, held = running.pop()
        callers = [caller for caller, holding in running if holding]
        if (held or holds) and callers:
            walk.append(callers[-1])
    steps = dict.fromkeys(zip([None, *walk], walk, strict=False))
    files = [function[0] for _, function in steps]
    return [each for each, before in zip(files, [None, *files], strict=False) if each != before]


def layers_of(contract: Iterable[str]) -> dict[str, int]:
    """Return the height of each folder of the package, the lowest layer being 0.

    Examples
    --------
    >>> layers_of(["cloakgp.cli", "cloakgp.data | cloakgp.ledger"])
    {'cli': 1, 'data': 0, 'ledger': 0}
    """
    layers = list(contract)
    return {
        module.strip().removeprefix("cloakgp."): len(layers) - 1 - place
        for place, layer in enumerate(layers)
        for module in layer.split("|")
    }


def way_of(walk: list[str], layers: Mapping[str, int]) -> Way:
    """Return the stays, files, climbs and returns of a walk.

    Examples
    --------
    >>> way_of(["fitting/a.py", "privacy/b.py", "fitting/a.py"], {"fitting": 1, "privacy": 0})
    {'stays': 3, 'files': 2, 'climbs': 1, 'returns': 1}
    """
    heights = [layers.get(file.split("/")[0], -1) for file in walk]
    files = len(set(walk))
    climbs = sum(low < high for low, high in pairwise(heights))
    return {"stays": len(walk), "files": files, "climbs": climbs, "returns": len(walk) - files}


def way_in(prepared: Callable[[int], Callable[[], object]], layers: Mapping[str, int]) -> Way:
    """Return y's way through a run that is prepared with the outputs of a seed."""
    answers: list[Any] = []
    runs = []
    for run in map(prepared, (0, 0, 1, 1)):
        with given_answers(answers):
            runs.append(events_of(run))
    return way_of(walk_of(runs), layers)


def main(checkout: Path, names: list[str]) -> None:
    """Print, for each run, the functions that it enters and y's way, with a checkout's package."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = layers_of(next(each["layers"] for each in contracts if each["type"] == "layers"))
    figures: dict[str, dict[str, object]] = {}
    for name in names:
        prepared = RUNS[name]()
        # Once before: what is imported when it is first used is no part of a fit.
        prepared(0)()
        figures[name] = {"entered": sorted(entered(prepared(0)))}
        if name in WALKED:
            figures[name]["way"] = way_in(prepared, layers)
    print(json.dumps(figures))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(Path(sys.argv[1]), sys.argv[2:])
