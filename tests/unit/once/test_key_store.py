"""What every store owes."""

import threading
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path
from unittest.mock import ANY

import pytest

from rmqtools.once import MemoryStore, RedisStore, SqlStore
from tests.unit.once.listening import sqlite_engine


def test_keys_that_are_done_are_neither_new_nor_busy(store):
    with store.claim(["a", "b"], 60) as claim:
        assert (claim.new, claim.busy) == ({"a", "b"}, set())
        claim.done |= {"a"}

    with store.claim(["a", "b", "c"], 60) as claim:
        assert (claim.new, claim.busy) == ({"b", "c"}, set())


def test_a_block_that_raises_leaves_its_keys_new(store):
    with pytest.raises(ZeroDivisionError), store.claim(["a"], 60):
        raise ZeroDivisionError

    with store.claim(["a"], 60) as claim:
        assert claim.new == {"a"}


def test_of_members_that_claim_a_key_at_once_one_gets_it(store):
    wins, at_once = [], threading.Barrier(4)

    def member(_):
        at_once.wait(60)
        with store.claim(["a"], 60) as claim:
            wins.extend(claim.new)
            claim.done |= claim.new

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(member, range(4)))

    assert wins == ["a"]


def test_groups_do_not_see_each_others_keys(tmp_path):
    engine = sqlite_engine(tmp_path / "keys.db")
    stores = [SqlStore(engine, group=group) for group in ("billing", "shipping")]
    found = []
    stores[0].create_table()
    for store in stores:
        with store.claim(["a"], 60) as claim:
            found.append(set(claim.new))
            claim.done |= claim.new
    engine.dispose()

    assert found == [{"a"}, {"a"}]


def test_a_window_without_an_end_is_one(store):
    with store.claim(["a"], inf) as claim:
        claim.done |= claim.new

    with store.claim(["a"], inf) as claim:
        assert (claim.new, claim.busy) == (set(), set())


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: MemoryStore(max_keys=0), "max_keys=0: want 1 or more"),
        (lambda: RedisStore(ANY, group="g", lease=0), "lease=0: want a finite number of seconds above 0"),
        (lambda: RedisStore(ANY, group="g", lease=inf), "lease=inf: want a finite number of seconds above 0"),
        (lambda: RedisStore(ANY, group=""), "want the name of the consumer group"),
        (lambda: SqlStore(sqlite_engine(Path("x")), group=""), "want the name of the consumer group"),
    ],
)
def test_settings_that_cannot_work_are_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()
