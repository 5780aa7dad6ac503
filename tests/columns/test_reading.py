"""How public columns are read is told, and that text of the private one is read alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from cloakgp.columns.numbers import Number
from cloakgp.columns.reading import PublicColumns


class Watched(Mapping[str, list[str]]):
    """A table that refuses to show its private column."""

    def __init__(self, **columns: list[str]) -> None:
        self.columns = columns

    def __getitem__(self, name: str) -> list[str]:
        assert name != "pay"
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


def test_how_private_text_is_read_follows_from_public_columns() -> None:
    german = Watched(age=["30,5", "40"], area=["1.234,5", "2"], pay=["1.5"])
    told = PublicColumns.of(german, ["age", "area"]).remarks(private=["pay"])
    assert told[-1].startswith("pay: text in it is read with decimal commas, and '.' between")
    assert PublicColumns.of(german, ["age", "area"]).remarks() == told[:-1]
    plain = Watched(age=["30.5", "40"], pay=["1,5"])
    assert PublicColumns.of(plain, ["age"]).remarks(private=["pay"]) == []
    doubtful = Watched(age=["30.125", "40.250"], pay=["1,5"])
    assert PublicColumns.of(doubtful, ["age"]).remarks(private=["pay"])[1] == (
        "pay: text in it is read with decimal points: 1.5 is one and a half"
    )
    undecided = Watched(age=["30,125", "40,250"], pay=["1,5"])
    (told_of_age,) = PublicColumns.of(undecided, ["age"]).remarks(private=["pay"])
    assert "it is refused" in told_of_age


def test_exposures_are_read_and_told_as_inputs_are() -> None:
    table = {"age": ["30,5", "40"], "days": ["4.706", "956"]}
    read = PublicColumns.of(table, ["age"], exposure="days")
    read.validate(private_numbers=True)
    assert read.exposure is not None
    assert (read.exposure.decimal, read.exposure.thousands) == (",", ".")
    assert [each.partition(":")[0] for each in read.remarks()] == ["age", "days"]
    declared = Number("days")
    assert PublicColumns.of(table, ["age"], exposure=declared).exposure is declared
    undecided = {"age": ["30", "40"], "days": ["4,706", "5,123"]}
    with pytest.raises(ValueError, match="column 'days': nothing tells whether 1,234"):
        PublicColumns.of(undecided, ["age"], exposure="days").validate(private_numbers=True)


def test_contradictory_columns_are_refused_where_numbers_depend_on_them() -> None:
    table = {"age": ["30,5", "40"], "area": ["1.5", "2"]}
    PublicColumns.of(table, ["age", "area"]).validate(private_numbers=False)
    for inputs, beside in ((["age", "area"], []), (["age"], ["area"])):
        with pytest.raises(ValueError, match="decimal commas"):
            PublicColumns.of(table, inputs, beside=beside).validate(private_numbers=True)
