"""Counts of the structure, on code whose figures are plain to see; and what a real fit enters."""

from __future__ import annotations

import ast
import doctest
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import structure, traced
from cloakgp.release import provenance

PROJECT = Path(structure.__file__).resolve().parents[1]


@pytest.mark.parametrize("module", [structure, traced])
def test_examples(module):
    done = doctest.testmod(module)
    assert done.attempted
    assert not done.failed


@pytest.mark.parametrize(
    ("code", "counts"),
    [
        ("noise == 'laplace'", (1, 0)),
        ("'gaussian' != noise", (1, 0)),
        ("noise in ('gaussian', 'other')", (1, 0)),
        ("noise is LAPLACE", (1, 0)),
        ("NOISES['laplace']", (1, 0)),
        ("match noise:\n    case 'laplace': ...", (1, 0)),
        ("{'gaussian': 1, 'laplace': 2}", (0, 1)),
        ("{GAUSSIAN: 1}", (0, 1)),
        ("release.inference == 'laplace'", (0, 0)),
        ("noise == 'auto'", (0, 0)),
        ("f(noise='laplace')", (0, 0)),
        ("{**others}", (0, 0)),
    ],
)
def test_names_of_noises(code, counts):
    assert structure.noise_names(ast.parse(code)) == counts


def test_lines_of_code_leave_docstrings_out_and_other_texts_in():
    code = 'def f():\n    """One.\n\n    Two.\n    """\n    return """\n# no comment\n"""\n'
    assert structure.code_lines(code) == 4 - 1
    assert structure.code_lines("") == 0


def test_classes_of_others_are_no_type_tests():
    code = "class A: ...\nisinstance(x, float)\nisinstance(x, (int, module.A))\nassert x"
    assert structure.type_tests([ast.parse(code)]) == (1, 0)


def test_a_walk_goes_down_and_back_and_counts_a_loop_once():
    def run(y):
        inner = [("call", ("b.py", "g"), {"y": y}), ("return", ("b.py", "g"), {"": y})]
        return [
            ("call", ("a.py", "f"), {"y": y, "when": object()}),
            *inner,
            *inner,
            ("call", ("a.py", "near"), {"y": y}),
            ("return", ("a.py", "near"), {"": "public"}),
            ("return", ("a.py", "f"), {"": "noisy"}),
        ]

    assert traced.walk_of([run(y) for y in "1122"]) == ["a.py", "b.py", "a.py"]
    assert traced.walk_of([run(y) for y in "1111"]) == []
    with pytest.raises(ValueError, match="outputs decide"):
        traced.walk_of([run("1"), run("1"), run("2"), run("2")[::-1]])


def test_steps_to_a_higher_layer_are_climbs():
    layers = traced.layers_of(["cloakgp.fitting", "cloakgp.data | cloakgp.ledger", "cloakgp.utils"])
    walk = ["fitting/a.py", "utils/b.py", "data/c.py", "ledger/d.py", "fitting/a.py"]
    assert traced.way_of(walk, layers) == {"stays": 5, "files": 4, "climbs": 2, "returns": 1}


def test_the_way_of_a_real_refinement_ends_at_the_sampler():
    """Given the same noisy answers, posteriors and later designs do not differ: they hold no y."""
    prepared = traced.RUNS["refine"]()
    prepared(0)()

    def walk_again():
        answers, runs = [], []
        for seed in (0, 0, 1, 1):
            with traced.given_answers(answers):
                runs.append(traced.events_of(prepared(seed)))
        return traced.walk_of(runs)

    # Last bits depend on where arrays lie in memory, and with them, now and then, how many steps a
    # search takes. What outputs decide, they decide every time.
    try:
        walk = walk_again()
    except ValueError:
        walk = walk_again()
    assert walk[0].startswith("privacy/") or walk[0].startswith("fitting/")
    assert "privacy/sampler.py" in walk
    assert not any(file.startswith(("design/", "release/", "models/")) for file in walk)


def test_runs_that_are_compared_are_made_at_one_moment():
    """Outputs are not the only thing that differs between two seconds."""
    made = []
    for second in (1, 2):
        clock = SimpleNamespace(now=lambda _, second=second: datetime(2026, 1, 1, 0, 0, second))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(provenance, "datetime", clock)
            assert provenance.Provenance.of_values().made.endswith(f":0{second}")
            with traced.given_answers([]):
                made.append(provenance.Provenance.of_values().made)
            assert provenance.datetime is clock
    assert made[0] == made[1]


def test_figures_of_runs():
    runs = {
        "fit": {"entered": [["a", "f"], ["a", "g"]], "way": {"stays": 3, "climbs": 0}},
        "fit in passes": {"entered": [["a", "f"], ["b", "h"]]},
    }
    assert structure.runs_in_figures(runs) == {
        "modules, functions entered by a fit": "1, 2",
        "modules, functions entered by a fit in passes": "2, 2",
        "functions that a fit in passes shares with one of held rows": "1 of 2",
        "y's way in `fit`": "3 stays, 0 climbs",
    }


def test_products_are_all_folders():
    folders = {name for each in structure.PRODUCTS.values() for name in each.split()}
    assert folders == {
        path.parent.name for path in (PROJECT / "src" / "cloakgp").glob("*/__init__.py")
    }
