"""The papers' tables: found, checked, and missed with words that help."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pooch
import pytest

from experiments import datasets
from experiments.datasets import (
    DatasetChecksumError,
    DatasetUnavailableError,
    load_citibike,
    load_hmeq,
    load_kung,
    load_london,
    load_mnist_subset,
)

LOADERS = {
    "howell1.csv": load_kung,
    "hmeq.csv": load_hmeq,
    "london_prices.csv.gz": load_london,
    "citibike.csv.gz": load_citibike,
    "mnist_subset.npz": load_mnist_subset,
}


def table(name):
    try:
        return LOADERS[name]()
    except DatasetUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", LOADERS)
def test_a_file_missing_from_the_folder_is_named_with_the_way_out(name, tmp_path, monkeypatch):
    monkeypatch.setenv("CLOAKGP_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailableError) as caught:
        LOADERS[name]()
    message = str(caught.value)
    assert name in message
    assert str(tmp_path) in message
    assert "put it there, or unset CLOAKGP_DATA" in message


@pytest.mark.parametrize("name", LOADERS)
def test_another_file_of_the_same_name_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setenv("CLOAKGP_DATA", str(tmp_path))
    (tmp_path / name).write_bytes(b"height;weight;age;male\n1;2;3;0\n")
    with pytest.raises(DatasetChecksumError, match=datasets.FILE_SHA256[name]):
        LOADERS[name]()


@pytest.mark.parametrize("name", LOADERS)
def test_without_folder_and_network_the_error_says_what_to_do(name, monkeypatch):
    def offline(*_, **__):
        raise ConnectionError("no route")

    monkeypatch.delenv("CLOAKGP_DATA", raising=False)
    monkeypatch.setattr(pooch, "retrieve", offline)
    with pytest.raises(DatasetUnavailableError) as caught:
        LOADERS[name]()
    message = str(caught.value)
    assert "https://raw.githubusercontent.com/" in message
    assert f"set CLOAKGP_DATA to a folder with {name}" in message
    assert datasets.FILE_SHA256[name] in message
    assert caught.value.__suppress_context__


def test_every_download_is_pinned_to_a_commit_and_a_hash(monkeypatch):
    asked = []

    def record(url, *, known_hash, **_):
        asked.append((url, known_hash))
        raise ConnectionError

    monkeypatch.delenv("CLOAKGP_DATA", raising=False)
    monkeypatch.setattr(pooch, "retrieve", record)
    for load in LOADERS.values():
        with pytest.raises(DatasetUnavailableError):
            load()
    assert len(asked) == len(LOADERS)
    for url, known_hash in asked:
        assert len(url.split("/")[5]) == 40
        assert known_hash.startswith("sha256:")
        assert len(known_hash) == len("sha256:") + 64


def test_a_download_with_another_hash_is_refused(monkeypatch):
    def tampered(*_, **__):
        raise ValueError("SHA256 hash of downloaded file does not match the known hash")

    monkeypatch.delenv("CLOAKGP_DATA", raising=False)
    monkeypatch.setattr(pooch, "retrieve", tampered)
    with pytest.raises(DatasetChecksumError, match="is not the file that is meant"):
        load_kung()


def serve_upstream_prices(prices, monkeypatch, tmp_path):
    """Pose as the origin of the London prices: more columns, and years as floats."""
    upstream = prices.assign(years=prices["years"].astype(float))
    upstream.insert(0, "postcode", "AB1 2CD")
    path = tmp_path / "upstream.csv"
    upstream.to_csv(path)
    monkeypatch.delenv("CLOAKGP_DATA", raising=False)
    monkeypatch.setattr(pooch, "retrieve", lambda *_, **__: str(path))


@pytest.mark.data
def test_london_from_its_origin_is_the_table_of_the_folder(monkeypatch, tmp_path):
    prices = table("london_prices.csv.gz")
    serve_upstream_prices(prices, monkeypatch, tmp_path)
    pd.testing.assert_frame_equal(load_london(), prices)


@pytest.mark.data
def test_one_wrong_price_at_the_origin_is_noticed(monkeypatch, tmp_path):
    prices = table("london_prices.csv.gz")
    serve_upstream_prices(prices.replace({"price": {312500: 312501}}), monkeypatch, tmp_path)
    with pytest.raises(DatasetChecksumError, match=r"made for london_prices\.csv\.gz"):
        load_london()


def test_select_sex_keeps_the_rows_asked_for():
    both = pd.DataFrame({"height": [1.0, 2.0, 3.0], "male": [1, 0, 1]})
    assert datasets.select_sex(both, male=True)["height"].tolist() == [1.0, 3.0]
    assert datasets.select_sex(both, male=False).index.tolist() == [0]
    assert len(datasets.select_sex(both, male=None)) == 3


@pytest.mark.data
def test_kung():
    everybody = table("howell1.csv")
    women = load_kung(male=False)
    assert everybody.shape == (544, 4)
    assert list(everybody.columns) == ["height", "weight", "age", "male"]
    assert len(women) == 287
    assert (women["height"].min(), women["height"].max()) == (53.975, 162.56)
    assert women["age"].min() == 0
    assert women["age"].max() == pytest.approx(85.6)
    assert len(load_kung(male=True)) == 544 - 287


@pytest.mark.data
def test_hmeq():
    loans = table("hmeq.csv")
    assert loans.shape == (5960, 13)
    assert round(100 * loans["BAD"].mean(), 2) == 19.95
    assert loans["DEBTINC"].isna().sum() == 1267
    assert len(loans.dropna()) == 3364


@pytest.mark.data
def test_london():
    prices = table("london_prices.csv.gz")
    assert prices.shape == (10_000, 4)
    assert prices["easting"].between(480e3, 580e3).all()
    assert prices["northing"].between(130e3, 230e3).all()
    assert (prices["price"].min(), prices["price"].max()) == (1_000, 20_500_000)
    assert set(prices.dtypes) == {np.dtype(np.int64)}


@pytest.mark.data
def test_citibike():
    trips = table("citibike.csv.gz")
    assert trips.shape == (60_000, 6)
    assert trips["tripduration"].min() == 61
    assert set(trips["usertype"]) == {"Subscriber", "Customer"}
    assert not trips.isna().any(axis=None)


@pytest.mark.data
def test_mnist_subset():
    digits = table("mnist_subset.npz")
    assert digits.images.shape == (1000, 28, 28)
    assert np.bincount(digits.labels).tolist() == [100] * 10
    assert len(np.unique(digits.index)) == 1000


@pytest.mark.data
@pytest.mark.parametrize("name", ["london_prices.csv.gz", "citibike.csv.gz"])
def test_what_the_folder_holds_is_what_the_origin_must_give(name):
    found = table(name)
    text = found.to_csv(index=False, lineterminator="\n")
    assert pd.read_csv(io.BytesIO(text.encode()), engine="pyarrow").equals(found)
    datasets._check(text.encode(), datasets.CONTENT_SHA256[name], what=name)


@pytest.mark.data
def test_what_the_folder_holds_of_mnist_is_what_the_origin_must_give():
    digits = table("mnist_subset.npz")
    content = datasets._digit_bytes(digits)
    datasets._check(content, datasets.CONTENT_SHA256["mnist_subset.npz"], what="digits")
