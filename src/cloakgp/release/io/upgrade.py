"""Manifests of format version 1, as the trees that are read today.

Version 1 had a kind of file for every kind of release, each with a form of its own. Plain
dictionaries go in and come out; what they hold is checked when it is read.
"""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]

NUMBERS: Tree = {"type": "numbers"}
# How strategies, answers and priors were written.
CARRIED = ("X", "X_query", "reconstruction", "query_weights", "table", "certificate")


def upgraded(manifest: Tree) -> Tree:
    """Return the tree of a release from a manifest of version 1.

    Parameters
    ----------
    manifest : dict
        Of kind "regression", "classification" or "regression of many rows", or of several outputs.

    Raises
    ------
    KeyError, TypeError, AttributeError
        If it is damaged.
    """
    kind = manifest.get("kind", "regression")
    if kind == "classification":
        return _classification(manifest)
    if kind == "regression of many rows":
        return _many_rows(manifest)
    if kind == "regression of several outputs":
        return {"entries": _regression(manifest), "columns": {"bounds": manifest["outputs"]}}
    return _regression(manifest)


def _regression(manifest: Tree) -> Tree:
    return {
        **_names(manifest),
        "prior": _prior(manifest["prior"]),
        "likelihood": NUMBERS,
        "measurements": [
            {"strategy": _strategy(one), "answers": _answers(one)}
            for one in manifest["measurements"]
        ],
        "learned": _learned(manifest),
        "hyperprior": manifest["hyperprior"],
        "average": manifest["average"],
        "choice": manifest["choice"],
    }


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
                "strategy": _strategy(one),
                "answers": {
                    "type": "classes answered",
                    "values": one["answers"],
                    "classes": {"labels": manifest["classes"]},
                    **{name: one[name] for name in ("noise_sd", "insecure", "guarantee")},
                },
            }
            for one in manifest["measurements"]
        ],
        "learned": [
            {
                "prior": _prior(one["prior"]["latent"]),
                "likelihood": _link(one["prior"]),
                "weight": one["weight"],
            }
            for one in manifest["learned"]
        ],
        "hyperprior": None if learning is None else hyperprior,
        "average": learning == "average",
        "inference": manifest["rule"],
    }


def _many_rows(manifest: Tree) -> Tree:
    learned = _learned(manifest)
    priors = [one["prior"] for one in learned] or [_prior(manifest["prior"])]
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


def _names(manifest: Tree) -> Tree:
    return {name: manifest[name] for name in ("input_names", "output_name")}


def _learned(manifest: Tree) -> list[Tree]:
    return [
        {"prior": _prior(one["prior"]), "likelihood": NUMBERS, "weight": one["weight"]}
        for one in manifest["learned"]
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
