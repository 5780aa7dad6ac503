"""Upgrade of manifests of earlier format versions to the trees that are read today.

Version 1 had a kind of file for every kind of release, each with a form of its own; version 2 still
had such forms for statistics and histograms; version 3 had a type for guarantees without δ. Plain
dictionaries go in and come out; what they hold is checked when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cloakgp.utils.arrays import Array

Tree = dict[str, Any]

# What every manifest says beside what its release holds.
ENVELOPE = ("format", "version", "kind", "sha256")

NUMBERS: Tree = {"type": "numbers"}
# What guarantees were called up to version 3.
LAST_WITH_TYPES = 3
GAUSSIAN, PURE = "Gaussian differential privacy", "pure differential privacy"
BASES = {"eigen": "eigenfunctions", "bins": "bins"}
# What a file without this entry holds: files are older than there being kinds.
FIRST_KIND = "regression"
# How strategies, answers and priors were written.
CARRIED = ("X", "X_query", "reconstruction", "query_weights", "table", "certificate")


def current_tree(manifest: Tree) -> Tree:
    """Return the tree of a release, as it is written today, from a manifest of any version.

    Parameters
    ----------
    manifest : dict

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError
        If it is of an earlier version and damaged.

    Examples
    --------
    >>> current_tree({"format": "cloakgp release", "version": 3, "kind": "one output", "a": 1})
    {'a': 1}
    """
    last, change = EARLIER_FORMS.get(manifest.get("kind", FIRST_KIND), (0, _inner))
    tree = change(manifest) if manifest["version"] <= last else _inner(manifest)
    return _without_types_of_guarantees(tree) if manifest["version"] <= LAST_WITH_TYPES else tree


def tree_of_text(tree: Tree) -> tuple[Tree, dict[str, Array]]:
    """Return the tree of a histogram, and its arrays by name, from a file of text.

    Parameters
    ----------
    tree : dict
        In which lists stand for arrays, and bins are numbered.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is damaged.
    """
    edges = {f"edges {place}": each for place, each in enumerate(tree["edges"])}
    shape = tuple(len(each) - 1 for each in tree["edges"])
    places = np.column_stack(np.unravel_index(np.array(tree["cells"], dtype=np.intp), shape))
    listed = {**edges, "places": places, "counts": tree["counts"], "sums": tree["sums"]}
    arrays = {name: np.array(values, dtype=np.float64) for name, values in listed.items()}
    names = {"edges": list(edges), "places": "places", "counts": "counts", "sums": "sums"}
    entries = {name: entry for name, entry in tree.items() if name != "cells"}
    return _without_types_of_guarantees(_histogram({**entries, **names})), arrays


def _inner(manifest: Tree) -> Tree:
    return {name: entry for name, entry in manifest.items() if name not in ENVELOPE}


def _regression(manifest: Tree) -> Tree:
    return {
        **_names(manifest),
        "prior": _prior(manifest["prior"]),
        "likelihood": NUMBERS,
        "measurements": [
            {"strategy": _strategy(measurement), "answers": _answers(measurement)}
            for measurement in manifest["measurements"]
        ],
        "learned": _learned(manifest),
        "hyperprior": manifest["hyperprior"],
        "average": manifest["average"],
        "choice": manifest["choice"],
    }


def _several_outputs(manifest: Tree) -> Tree:
    return {"entries": _regression(manifest), "columns": {"bounds": manifest["outputs"]}}


def _classification(manifest: Tree) -> Tree:
    learning = manifest["learning"]
    if learning not in ("map", "average", None):
        raise ValueError("how its answers are read is damaged")
    hyperprior = {"noise_variance": False, "mean": manifest["learn_means"]}
    return {
        **_names(manifest),
        "prior": _prior(manifest["prior"]["latent"]),
        "likelihood": _link(manifest["prior"]),
        "measurements": [
            {
                "strategy": _strategy(measurement),
                "answers": {
                    "type": "classes answered",
                    "values": measurement["answers"],
                    "classes": {"labels": manifest["classes"]},
                    **{name: measurement[name] for name in ("noise_sd", "insecure", "guarantee")},
                },
            }
            for measurement in manifest["measurements"]
        ],
        "learned": [
            {
                "prior": _prior(weighted["prior"]["latent"]),
                "likelihood": _link(weighted["prior"]),
                "weight": weighted["weight"],
            }
            for weighted in manifest["learned"]
        ],
        "hyperprior": None if learning is None else hyperprior,
        "average": learning == "average",
        "inference": manifest["rule"],
    }


def _many_rows(manifest: Tree) -> Tree:
    learned = _learned(manifest)
    priors = [weighted["prior"] for weighted in learned] or [_prior(manifest["prior"])]
    rule = dict(manifest["rule"])
    strategy = {
        "type": "streamed",
        **{name: manifest[name] for name in ("X_query", "query_weights", "reconstruction")},
        "certificate": manifest["certificate"],
        "prior": _prior(manifest["prior"]),
        "rule": {"type": f"{rule.pop('kind')} rule", **rule},
        "sums": [
            {"prior": prior, "likelihood": NUMBERS, "channels": [sums]}
            for prior, sums in zip(priors, manifest["sums"], strict=True)
        ],
        "row_totals": manifest["totals"],
        "rows": manifest["count"],
        "chunk_rows": manifest["chunk_rows"],
        "longest": manifest["longest"],
        "input_ranges": manifest["ranges"],
    }
    return {
        **_names(manifest),
        "prior": _prior(manifest["prior"]),
        "likelihood": NUMBERS,
        "measurements": [{"strategy": strategy, "answers": _answers(manifest)}],
        "learned": learned,
    }


def _statistics(manifest: Tree) -> Tree:
    """Return a release of statistics. The first files have no names of inputs."""
    basis = dict(manifest["basis"])
    form = basis.pop("kind")
    if form not in BASES:
        raise ValueError("unknown basis")
    lower, upper = zip(*basis.pop("box"), strict=True)
    return {
        **_inner(manifest),
        "basis": {**basis, "type": BASES[form], "box": {"lo": list(lower), "hi": list(upper)}},
    }


def _histogram(manifest: Tree) -> Tree:
    tree = _inner(manifest)
    tree["bins"] = {"edges": tree.pop("edges")}
    if tree["noise"] == "laplace":
        tree["guarantee"] = {"type": PURE, **tree["guarantee"]}
    return tree


def _without_types_of_guarantees(tree: Any) -> Any:
    """Return a tree in which guarantees without δ have the form of all others."""
    if isinstance(tree, list):
        return [_without_types_of_guarantees(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    entries = {name: _without_types_of_guarantees(entry) for name, entry in tree.items()}
    if entries.get("type") == PURE:
        entries |= {"delta": 0.0, "mu": 0.0, "laplace": [entries["epsilon"]]}
    if entries.get("type") in (GAUSSIAN, PURE):
        del entries["type"]
    return entries


def _names(manifest: Tree) -> Tree:
    return {name: manifest[name] for name in ("input_names", "output_name")}


def _learned(manifest: Tree) -> list[Tree]:
    return [
        {
            "prior": _prior(weighted["prior"]),
            "likelihood": NUMBERS,
            "weight": weighted["weight"],
        }
        for weighted in manifest["learned"]
    ]


def _prior(tree: Tree) -> Tree:
    prior = dict(tree)
    if prior["approximation"] == "exact":
        del prior["approximation"]
        return {"type": "exact", **prior}
    return {"type": "sparse", **prior}


def _link(tree: Tree) -> Tree:
    return {"type": "classes", "link_name": tree["link"], "latent_means": tree["means"]}


def _strategy(tree: Tree) -> Tree:
    """Return a dense strategy. Files from before whole functions and groups have neither."""
    return {
        "type": "dense",
        **{name: tree[name] for name in CARRIED},
        "matrix": tree["strategy"],
        "representers": tree.get("representers"),
        "row_groups": tree.get("groups"),
    }


def _answers(tree: Tree) -> Tree:
    """Return answers about numbers. Files from before Laplace noise do not say which it is."""
    return {
        "type": "numbers answered",
        "values": tree["answers"],
        **{name: tree[name] for name in ("noise_sd", "centre", "bounds", "insecure", "guarantee")},
        "noise": tree.get("noise", "gaussian"),
    }


# Of each kind, the last version that wrote it in another form than today's, and what to make of it.
EARLIER_FORMS: dict[str, tuple[int, Callable[[Tree], Tree]]] = {
    FIRST_KIND: (1, _regression),
    "classification": (1, _classification),
    "regression of many rows": (1, _many_rows),
    "regression of several outputs": (1, _several_outputs),
    "statistics": (2, _statistics),
    "histogram": (2, _histogram),
}
