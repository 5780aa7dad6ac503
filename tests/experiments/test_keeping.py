"""What is kept comes back, whatever keeps it, and interruptions leave no half file."""

from __future__ import annotations

import pytest

from experiments.keeping import JsonFile, JsonLines, write_whole


@pytest.mark.parametrize(
    ("kind", "key", "value", "other"),
    [
        (JsonLines, ("a", 1), 2.5, 9.0),
        (JsonFile, "a", {"b": [1.5, None]}, {"b": []}),
    ],
)
def test_what_is_kept_is_not_computed_again(kind, key, value, other, tmp_path):
    path = tmp_path / "kept.json"
    assert kind(path).find(key) is None
    assert kind(path).get(key, lambda: value) == value
    assert kind(path).get(key, lambda: other) == value
    again = kind(path)
    again.put(key, other)
    assert kind(path).find(key) == other


@pytest.mark.parametrize("kind", [JsonLines, JsonFile])
def test_without_a_file_nothing_outlives_the_process(kind):
    kept = kind(None)
    assert kept.get(("a",), lambda: 1.0) == kept.get(("a",), lambda: 2.0) == 1.0
    assert kind(None).find(("a",)) is None


def test_a_file_is_there_as_a_whole_or_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "kept.json"
    write_whole(path, "one")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(path), "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "two")
    assert path.read_text() == "one"


def test_names_are_kept_in_order_a_line_each(tmp_path):
    """So that what a commit changes can be read."""
    kept = JsonFile(tmp_path / "kept.json")
    for name in ("b", "a"):
        kept.put(name, "ε")
    assert kept.path.read_text(encoding="utf-8") == '{\n"a": "ε",\n"b": "ε"\n}\n'
