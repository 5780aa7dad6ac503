"""Which tables chose defaults, and which judged: what the model card and the paper say."""

from __future__ import annotations

from experiments import capacity, class_priors, r_tables, whole_row_classes, whole_rows
from experiments.commits import PROJECT
from experiments.tournament import tables as tournament
from experiments.tournament.command import KEPT


def said(page: str) -> str:
    return " ".join((PROJECT / "docs" / page).read_text(encoding="utf-8").split())


def test_the_card_counts_the_tables_of_experiments():
    card = said("model-card.md")
    for words in (
        f"| {len(class_priors.SOURCES)} tables of classes | choosing the [default of classes]",
        f"| {len(whole_rows.CHOSEN_ON)} tables of numbers | choosing defaults of [private inputs]",
        f"| {len(whole_rows.JUDGED)} other tables of numbers, {len(whole_row_classes.SOURCES)} of "
        "classes | judging private inputs",
        f"| {r_tables.COUNT} tables of numbers, picked by a rule | one half for choosing",
        f"| {len(tournament.NUMBERS)} tables of numbers, {len(tournament.CLASSES)} of classes | "
        "judging ([tournament]",
        f"| {len(capacity.SOURCES)} tables of some 15,000 rows and more | measuring errors of",
        f"| {len(tournament.WHOLE)} tables of more rows | meant for judging; not run yet |",
    ):
        assert words in card
    assert len(class_priors.SOURCES) == 15
    assert len(whole_rows.CHOSEN_ON) == 12
    assert r_tables.COUNT == 100
    paper = said("paper/paper.typ")
    assert "fifteen for classes, twelve for private inputs and half of a hundred for" in paper


def test_tables_of_many_rows_were_not_run():
    kept = "".join(path.read_text(encoding="utf-8") for path in KEPT.rglob("*.jsonl"))
    assert f'"{tournament.NUMBERS[0].name}"' in kept
    assert not [one.name for one in tournament.WHOLE if f'"{one.name}"' in kept]
