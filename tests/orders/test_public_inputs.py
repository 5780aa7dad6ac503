"""Public inputs in the forms in which they may have been attached as private columns."""

from __future__ import annotations

import pytest

from cloakgp.orders.options import SourceTable
from cloakgp.orders.public_inputs import inputs_named, public_inputs, read_forms
from cloakgp.privacy.fingerprints import fingerprint_column


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,visits,years,ill\n30,2,1,no\n40,,2,yes\n50,3,1,no\n")
    return SourceTable(path=path, output="ill", inputs=["age", "visits"])


def test_a_column_with_gaps_is_compared_without_them_and_filled(source):
    found = {fingerprint_column(form, key=b"k") for form in read_forms(source, "visits", ["0"])}
    for attached in (["2", "", "3"], [3.0, 2.0], [2.0, 0.0, 3.0]):
        assert fingerprint_column(attached, key=b"k") in found
    assert len(found) == 3
    (whole,) = read_forms(source, "age", ["0"])
    assert whole.tolist() == ["30", "40", "50"]


def test_the_public_columns_and_the_exposure_are_read(source):
    assert list(public_inputs(source, classes=("no", "yes"))) == ["age", "visits"]
    counted = SourceTable(path=source.path, output="visits", inputs=["age"], exposure="years")
    inputs = inputs_named(counted, ["age"])
    assert list(inputs) == ["age", "years"]
    assert inputs["years"]()[0].tolist() == ["1", "2", "1"]


def test_a_column_that_is_not_there_could_not_have_been_attached(source):
    assert read_forms(source, "weight") == []
