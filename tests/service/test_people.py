"""People of disjoint tables: found in another table however their ids are held."""

from __future__ import annotations

import pandas as pd
import pytest

from cloakgp.data.limits import ReadingLimits
from cloakgp.service.people import NamedPeople, are_apart


def named(path, ids):
    pd.DataFrame({"who": ids, "x": 1.0}).to_parquet(path)
    return NamedPeople(path, "who")


def test_tables_are_apart_if_nobody_is_in_both(tmp_path):
    own = named(tmp_path / "own.parquet", ["a", "b"])
    other, third = (
        named(tmp_path / f"{number}.parquet", ids)
        for number, ids in enumerate((["c", "d"], ["e", "b"]))
    )
    limits = ReadingLimits()
    assert are_apart(own, [other], limits=limits)
    assert not are_apart(own, [other, third], limits=limits)


def test_a_person_who_is_a_number_in_another_table_is_not_taken_for_two(tmp_path):
    january = named(tmp_path / "january.parquet", [1, 2, 3])
    february = named(tmp_path / "february.parquet", ["001", "002", "A7"])
    for own, other in ((january, february), (february, january)):
        with pytest.raises(ValueError, match="one person could be 001 here and 1 there"):
            are_apart(own, [other], limits=ReadingLimits())
    march = named(tmp_path / "march.parquet", ["3", "4"])
    assert not are_apart(march, [january], limits=ReadingLimits())
