"""Masks cancel in the sum of all, and nothing less tells anything."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from cloakgp.custodians.errors import CustodiansError
from cloakgp.custodians.masks import SiteKey, mask, open_sum

NAMES = ("a", "b", "c", "d")
QUESTION = "5" * 64


def hidden_of(keys, values, *, question=QUESTION):
    public = {name: key.public for name, key in keys.items()}
    return {
        name: key.hide(values[name], site=name, keys=public, question=question)
        for name, key in keys.items()
    }


def seeds_of(keys, *, question=QUESTION):
    return {name: key.own_seed(question) for name, key in keys.items()}


@pytest.fixture
def keys():
    return {name: SiteKey.draw() for name in NAMES}


@pytest.fixture
def values():
    numbers = [[1, -2, 2**62], [5, 5, 2**62], [-(2**63), 0, 1], [7, 2**63 - 1, -1]]
    return {name: np.array(one, dtype=np.int64) for name, one in zip(NAMES, numbers, strict=True)}


def test_masks_cancel_modulo_64_bits(keys, values):
    total = open_sum(hidden_of(keys, values), seeds_of(keys))
    exact = [sum(int(values[name][place]) for name in NAMES) for place in range(3)]
    assert [int(each) % 2**64 for each in total] == [each % 2**64 for each in exact]


def test_pairs_have_one_seed(keys):
    for one, other in combinations(keys.values(), 2):
        assert one.pair_seed(other.public, "q") == other.pair_seed(one.public, "q")
        assert one.pair_seed(other.public, "q") != one.pair_seed(other.public, "r")


def test_no_fewer_than_all_add_up_to_anything(keys, values):
    hidden, seeds = hidden_of(keys, values), seeds_of(keys)
    for count in (1, 2, 3):
        for names in combinations(NAMES, count):
            found = open_sum({name: hidden[name] for name in names}, seeds)
            exact = sum(values[name].view(np.uint64) for name in names).view(np.int64)
            assert not (found == exact).any()


def test_an_unopened_mask_hides_the_sum(keys, values):
    """All others are opened, and the masks of pairs cancel: what is left is uniform."""
    hidden, seeds = hidden_of(keys, values), seeds_of(keys)
    found = open_sum(hidden, {**seeds, "c": bytes(32)})
    exact = sum(values[name].view(np.uint64) for name in NAMES).view(np.int64)
    assert not (found == exact).any()


def test_different_questions_do_not_add_up(keys, values):
    public = {name: key.public for name, key in keys.items()}
    hidden = hidden_of(keys, values)
    hidden["b"] = keys["b"].hide(values["b"], site="b", keys=public, question="6" * 64)
    seeds = {**seeds_of(keys), "b": keys["b"].own_seed("6" * 64)}
    exact = sum(values[name].view(np.uint64) for name in NAMES).view(np.int64)
    assert not (open_sum(hidden, seeds) == exact).any()


def test_what_colluding_sites_see_of_others_is_uniform():
    """Two sites take their pairs' masks off the answers of two others, whose own are open."""
    keys = {name: SiteKey.draw() for name in NAMES}
    count = 20_000
    same = {name: np.zeros(count, dtype=np.int64) for name in NAMES}
    hidden, seeds = hidden_of(keys, same), seeds_of(keys)
    seen = hidden["a"].view(np.uint64) - mask(seeds["a"], count)
    for other in ("c", "d"):
        shared = mask(keys[other].pair_seed(keys["a"].public, QUESTION), count)
        seen = seen - shared
    # What is left is the mask of a and b alone: uniform, and the same less of b.
    assert stats.kstest(seen / 2.0**64, "uniform").pvalue > 1e-8
    bits = np.unpackbits(seen.view(np.uint8)).mean()
    assert abs(bits - 0.5) < 6 * 0.5 / np.sqrt(64 * count)


def test_answers_of_one_value_and_another_look_alike():
    """The coordinator's view of one site: the same law, whatever its numbers are."""
    count = 20_000
    for value in (0, 2**40):
        keys = {name: SiteKey.draw() for name in NAMES}
        view = hidden_of(keys, {name: np.full(count, value) for name in NAMES})["a"]
        assert stats.kstest(view.view(np.uint64) / 2.0**64, "uniform").pvalue > 1e-8


def test_the_key_is_kept_for_its_owner(tmp_path):
    first = SiteKey.kept(tmp_path / "site.key")
    assert SiteKey.kept(tmp_path / "site.key") == first
    assert (tmp_path / "site.key").stat().st_mode & 0o077 == 0
    assert first.private.hex() not in repr(first)
    (tmp_path / "site.key").write_bytes(b"short")
    with pytest.raises(CustodiansError, match="damaged"):
        SiteKey.kept(tmp_path / "site.key")


@pytest.mark.parametrize("key", ["", "zz", "00" * 31, "00" * 32])
def test_what_is_no_key_is_refused(key):
    with pytest.raises(CustodiansError, match="public key"):
        SiteKey.draw().pair_seed(key, QUESTION)
