"""Graphs of tasks: what a partition needs, and the tree that merges parts.

Keys name tasks in logs and on dashboards. Those made here are numbers in turn, and never hashes of
what the tasks hold, as Dask's own are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloakgp.data.dask.tasks import (
    Failure,
    Parcel,
    Span,
    merged_parts,
    part_of_block,
    rows_of_block,
)

Graph = dict[Any, Any]
_turn = itertools.count()


@dataclass(frozen=True, eq=False, repr=False)
class Packed:
    """A block on its way to a worker.

    Attributes
    ----------
    block : Parcel
    others : tuple
        Keys of the tasks that it needs.
    """

    block: Parcel
    others: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Sealed:
    """What makes one partition.

    Attributes
    ----------
    own : mapping
        Tasks that only this partition needs.
    others : tuple
        Keys of the tasks that it shares with others, or that the cluster holds already.
    """

    own: Mapping[Any, Any]
    others: tuple[Any, ...]


_SHARED = -1


def sealed(graph: Mapping[Any, Any], wanted: Sequence[Sequence[Any]]) -> tuple[list[Sealed], Graph]:
    """Give every partition the tasks that it alone needs.

    Parameters
    ----------
    graph : mapping
        A collection's.
    wanted : sequence of sequences of keys
        What every partition consists of.

    Returns
    -------
    list of Sealed
        One for each partition.
    Graph
        Tasks that several partitions share: they stay tasks of their own.
    """
    from dask.task_spec import TaskRef

    # A future is a reference that would bring its client along.
    nodes = {
        key: TaskRef(node.key) if isinstance(node, TaskRef) else node for key, node in graph.items()
    }
    needed = {key: _needed(nodes, key) for key in nodes}
    # What stands for itself is on the cluster already.
    needed = {key: keys for key, keys in needed.items() if key not in keys}
    # What comes after the barrier of a shuffle between workers has to be where the scheduler wants
    # it, and finds that out by failing there with `Reschedule`.
    barriers = {key for key in needed if getattr(nodes[key], "block_fusion", False)}
    owner: dict[Any, int] = {}
    for number, keys in enumerate(wanted):
        stack = [(key, number) for key in keys]
        while stack:
            key, asking = stack.pop()
            if key not in needed or owner.get(key) in (asking, _SHARED):
                continue
            alone = key not in owner and barriers.isdisjoint(needed[key])
            owner[key] = asking if alone else _SHARED
            stack += [(one, owner[key]) for one in needed[key]]
    own: list[Graph] = [{} for _ in wanted]
    shared: Graph = {}
    for key, number in owner.items():
        (shared if number == _SHARED else own[number])[key] = nodes[key]
    return [
        Sealed(own=mine, others=_others(mine, keys, needed))
        for mine, keys in zip(own, wanted, strict=True)
    ], shared


def _needed(nodes: Graph, key: Any) -> frozenset[Any]:
    """Return the keys that a task asks for, those that are on the cluster alone among them."""
    from dask.core import get_dependencies
    from dask.task_spec import GraphNode, TaskRef

    node = nodes[key]
    if isinstance(node, GraphNode):
        return frozenset(node.dependencies)
    return frozenset([node.key] if isinstance(node, TaskRef) else get_dependencies(nodes, key))


def _others(
    own: Graph, keys: Sequence[Any], needed: Mapping[Any, frozenset[Any]]
) -> tuple[Any, ...]:
    asked = [*keys, *(one for key in own for one in needed[key])]
    return tuple(key for key in dict.fromkeys(asked) if key not in own)


def merging_graph(
    packed: Sequence[Packed],
    spans: Sequence[Span],
    *,
    work: Parcel,
    what: str,
    name: str,
) -> tuple[Graph, list[Any]]:
    """Return the tasks of a pass, and the keys of the parts of blocks with the merged one last.

    Neighbours are merged with neighbours, in an order that the table alone decides.

    Examples
    --------
    >>> block = Packed(block=Parcel.of(None))
    >>> spans = [Span(first_row=0, rows=1, first_chunk=0), Span(1, 1, 1), Span(2, 1, 2)]
    >>> graph, keys = merging_graph(
    ...     [block] * 3, spans, work=Parcel.of(len), what="counting", name="pass"
    ... )
    >>> keys
    [('pass', 0), ('pass', 1), ('pass', 2), ('pass-merge', 2, 0)]
    >>> sorted(graph["pass-merge", 2, 0].dependencies)
    [('pass', 2), ('pass-merge', 1, 0)]
    """
    from dask.task_spec import DataNode, Task, TaskRef

    given = (f"{name}-work",)
    # A task of its own: it is sent once, not with every block, and made anew if it is lost.
    graph: Graph = {given: DataNode(given, work)}
    level: list[Any] = []
    for number, (one, span) in enumerate(zip(packed, spans, strict=True)):
        key: Any = (name, number)
        others = (TaskRef(other) for other in one.others)
        graph[key] = Task(key, part_of_block, one.block, TaskRef(given), span, what, *others)
        level.append(key)
    keys = list(level)
    # Under another name: tasks of one name that need next to nothing are spread over all workers.
    depth = 0
    while len(level) > 1:
        depth += 1
        above: list[Any] = []
        for number, (left, right) in enumerate(zip(level[::2], level[1::2], strict=False)):
            key = (f"{name}-merge", depth, number)
            graph[key] = Task(key, merged_parts, TaskRef(left), TaskRef(right), what)
            above.append(key)
        if len(level) % 2:
            above.append(level[-1])
        level = above
    return graph, [*keys, level[0]]


def counting_graph(packed: Sequence[Packed], *, name: str) -> tuple[Graph, list[Any]]:
    """Return the tasks that count the rows of blocks, and their keys."""
    from dask.task_spec import Task, TaskRef

    graph: Graph = {}
    for number, one in enumerate(packed):
        key = (name, number)
        others = (TaskRef(other) for other in one.others)
        graph[key] = Task(key, rows_of_block, one.block, *others)
    return graph, list(graph)


def new_name(client: Any, stem: str) -> str:
    """Return a name for tasks that no others have: the client's own, and a number in turn."""
    return f"cloakgp-{stem}-{client.id}-{next(_turn)}"


def gathered(client: Any, graph: Graph, keys: Sequence[Any], *, what: str) -> list[Any]:
    """Do tasks and fetch what they return, or raise the first failure among it.

    Raises
    ------
    ValueError, FileNotFoundError, RuntimeError
        Without anything behind it.
    """
    futures = client.get(graph, list(keys), sync=False)
    return [or_raised(one) for one in or_raised(fetched(lambda: client.gather(futures), what=what))]


def fetched(fetch: Callable[[], Any], *, what: str) -> Any:
    """Return what is fetched from the cluster, or a Failure that says nothing of its own.

    Tasks of a collection's own may fail, and their errors quote what they like.
    """
    try:
        return fetch()
    except Exception as error:
        kind = type(error).__name__
    return Failure(
        error=RuntimeError,
        told=f"{what}: the cluster gave up with {kind}. Its message could hold private values, and "
        "is not shown; KilledWorker means that several workers died at the same rows",
    )


def or_raised(result: Any) -> Any:
    """Return a result, or raise the failure that it is.

    Examples
    --------
    >>> or_raised(3)
    3
    """
    if isinstance(result, Failure):
        raise result.error(result.told)
    return result
