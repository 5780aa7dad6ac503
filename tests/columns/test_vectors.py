"""Vectors: what stands for their numbers, where they are found, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from cloakgp import DPGPClassifier
from cloakgp.columns import Number, Schema, Vector, infer_schema, schema_from_text, schema_to_text
from cloakgp.columns.cells import cells_of
from cloakgp.release.io.codec import Reader, to_tree
from cloakgp.report.controls import controls_of, raw_rows


def embeddings(*, count=50, width=40, stem="emb_"):
    rng = np.random.default_rng(2)
    values = rng.normal(size=(count, 5)) @ rng.normal(size=(5, width))
    values += 0.1 * rng.normal(size=(count, width))
    return pd.DataFrame(values, columns=[f"{stem}{place}" for place in range(width)])


def only_vector(table):
    [column] = infer_schema(table, list(table)).columns
    assert isinstance(column, Vector)
    return column


def test_many_numbers_are_their_principal_components():
    table = embeddings()
    schema = infer_schema(table, list(table))
    X = schema.encode(table).X
    oracle = PCA(32, svd_solver="full").fit(table.to_numpy())
    np.testing.assert_allclose(X, oracle.transform(table.to_numpy()), atol=1e-5)
    assert schema.groups == (0,) * 32
    assert schema.columns[0].describe() == "a vector of 40 numbers, as 32 principal components"
    np.testing.assert_allclose(
        schema.columns[0].restore(X),
        oracle.inverse_transform(oracle.transform(table.to_numpy())),
        atol=1e-5,
    )


def test_few_numbers_stand_for_themselves():
    table = embeddings(width=20)
    schema = infer_schema(table, list(table))
    np.testing.assert_array_equal(schema.encode(table).X, table.to_numpy())
    np.testing.assert_array_equal(schema.columns[0].restore(table.to_numpy()), table.to_numpy())


def test_a_schema_holds_all_that_predictions_need():
    table = embeddings()
    schema = infer_schema(table, list(table))
    assert schema_from_text(schema_to_text(schema)) == schema
    assert Reader(loaded=lambda _: np.zeros(0)).read(to_tree(schema), Schema) == schema


def test_a_schema_by_hand_names_the_encoder():
    text = """{"fields": [{"name": "a", "type": "number", "vector": "v"},
                          {"name": "age", "type": "integer"},
                          {"name": "b", "type": "number", "vector": "v"}],
               "vectors": [{"name": "v", "encoder": "all-MiniLM-L6-v2", "missing": "drop"}]}"""
    table = {"a": [1.0, 3.0, None], "b": [0.0, 4.0, 1.0], "age": [3, 4, 5]}
    schema = schema_from_text(text).complete(table)
    vector = schema.columns[0]
    assert (vector.columns, vector.centre) == (("a", "b"), (2.0, 2.0))
    assert vector.describe() == "a vector of 2 numbers made by all-MiniLM-L6-v2"
    encoded = schema.encode(table)
    np.testing.assert_array_equal(encoded.X, [[1, 0, 3, 0], [3, 4, 4, 0]])
    assert encoded.kept.tolist() == [True, True, False]


def test_a_gap_in_one_number_is_one_in_all():
    cells = {"v1": [1.0, None, 5.0], "v2": [2.0, 7.0, 4.0]}
    schema = Schema((Vector("v", columns=("v1", "v2"), missing="impute"),)).complete(cells)
    np.testing.assert_array_equal(schema.encode(cells).X, [[1, 2, 0], [3, 3, 1], [5, 4, 0]])


def test_cells_at_fault_are_named_but_not_quoted():
    schema = Schema((Vector("v", columns=("v1", "v2", "v3"), centre=(0.0,) * 3),))
    with pytest.raises(ValueError, match="column 'v' is not a vector of finite numbers in row 2"):
        schema.encode({"v1": ["1", "secret"], "v2": ["1", "2"], "v3": ["0", "1"]})


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.drop(columns="emb_7"),
        lambda table: table.iloc[:, :15],
        lambda table: table.assign(emb_3=1000.0 * table["emb_3"]),
        lambda table: table.assign(emb_3="a word"),
        lambda table: table.assign(emb_3=np.nan),
    ],
    ids=["one is lacking", "too few", "of another unit", "text", "gaps"],
)
def test_other_numbered_columns_are_no_vector(change):
    table = change(embeddings())
    assert not any(
        isinstance(column, Vector) for column in infer_schema(table, list(table)).columns
    )


def test_a_vector_lies_where_its_first_column_does_and_in_the_order_of_its_numbers():
    table = embeddings(width=17, stem="px")
    table.insert(0, "age", np.arange(50.0) ** 2)
    mixed = table[["age", *np.random.default_rng(0).permutation(table.columns[1:])]]
    number, vector = infer_schema(mixed, list(mixed)).columns
    assert isinstance(number, Number)
    assert vector.columns == tuple(f"px{place}" for place in range(17))
    assert vector.name == "px"


def test_columns_that_are_numbers_alone_have_a_name_together():
    table = embeddings(width=16, stem="")
    assert only_vector(table).name == "vector"
    table["16"] = table["0"]
    named = table.rename(columns={name: f"v{name}" for name in table}).assign(v=1.0)
    assert [column.name for column in infer_schema(named, list(named)).columns] == ["v vector", "v"]


@pytest.mark.parametrize(
    "damaged",
    [
        {"columns": ("a",)},
        {"columns": ("a", "a")},
        {"columns": ("a", "b"), "centre": (1.0,)},
        {"columns": ("a", "b"), "centre": (1.0, np.inf)},
        {"columns": ("a", "b"), "centre": (0.0, 0.0), "axes": ((1.0,),)},
        {"columns": ("a", "b"), "centre": (0.0, 0.0), "axes": ((1.0, np.nan),)},
        {"columns": ("a", "b"), "axes": ((1.0, 0.0),) * 3},
        {"columns": ("a", "b"), "encoder": "x" * 2000},
    ],
)
def test_what_does_not_fit_is_refused(damaged):
    with pytest.raises(ValueError, match="'v'"):
        Vector("v", **damaged).validate()


def test_a_part_of_a_vector_is_no_column():
    schema = infer_schema(embeddings(), list(embeddings()))
    assert schema.select(["emb"]) == schema
    with pytest.raises(ValueError, match="needs all of its 40 columns, emb_0 to emb_39"):
        schema.select(["emb_1", "emb_2"])


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_few_rows_have_axes_too(rows):
    table = embeddings(count=rows)
    vector = Vector("v", columns=tuple(table)).fill_from(
        [cells_of(table[name]) for name in table], codes=frozenset()
    )
    vector.validate()
    assert vector.complete


def test_whoever_predicts_gives_the_numbers_in_any_order():
    digits = load_digits()
    chosen = digits.target < 2
    table = pd.DataFrame(digits.data[chosen]).rename(columns=lambda place: f"pixel {place}")
    labels = digits.target[chosen]
    model = DPGPClassifier(
        classes=[0, 1], epsilon=3.0, insecure_seed=0, schema=infer_schema(table, list(table))
    ).fit(table, labels)
    assert len(model.release_.schema.names) == 32
    assert np.mean(model.predict(table) == labels) > 0.9
    np.testing.assert_array_equal(
        model.release_.predict(table.iloc[:, ::-1]), model.release_.predict(table)
    )
    # What is shown of a release varies the numbers of the table.
    controls = controls_of(model.release_)
    assert [each.name for each in controls] == list(table)
    rows = raw_rows(model.release_, controls, {}, count=2)
    assert len(model.release_.predict(rows)) == 2


def test_axes_of_very_many_numbers_are_nearly_the_exact_ones(monkeypatch):
    table = embeddings(width=60)
    exact = only_vector(table).axes
    monkeypatch.setattr("cloakgp.columns.vectors.MOST_EXACT", 50)
    found = only_vector(table).axes
    products = np.array(found[:5]) @ np.array(exact[:5]).T
    np.testing.assert_allclose(np.abs(np.diag(products)), 1.0, atol=1e-3)
