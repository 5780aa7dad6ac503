"""What a partition needs is split from the graph of a collection, and what it shares is not."""

from __future__ import annotations

import builtins

from dask.task_spec import Task, TaskRef

from cloakgp.data.dask.partitions import split_graph


def test_partitions_get_the_tasks_that_they_alone_need():
    graph = {
        "all": 1,
        "a": (builtins.sum, ["all"]),
        "b": (builtins.sum, ["all"]),
        "end a": (builtins.sum, ["a"]),
        "end b": (builtins.sum, ["b", "end a"]),
    }
    (first, second), shared = split_graph(graph, [("end a",), ("end b",)])
    assert (set(first.own), first.others) == (set(), ("end a",))
    assert (set(second.own), set(second.others)) == ({"end b", "b"}, {"end a", "all"})
    assert set(shared) == {"end a", "a", "all"}


class BoundRef(TaskRef):
    """Like a future, a reference that knows its client."""


def test_what_the_cluster_has_is_asked_for_by_its_key():
    graph = {
        "held": BoundRef("held"),
        "renamed": BoundRef("elsewhere"),
        "end": Task("end", builtins.max, TaskRef("held"), TaskRef("renamed"), TaskRef("alone")),
    }
    (only,), shared = split_graph(graph, [("end",)])
    assert set(only.own) == {"end", "renamed"}
    assert type(only.own["renamed"]) is TaskRef
    assert set(only.others) == {"held", "elsewhere", "alone"}
    assert shared == {}
