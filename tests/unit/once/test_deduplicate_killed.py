"""A member is killed at the worst moments: the effects that the stores leave."""

import os

import fakeredis
import pytest

from rmqtools.once import RedisStore, SqlStore, deduplicate
from tests.support.forked import in_child
from tests.unit.once.listening import EFFECTS, book, context, effects, message, sqlite_engine


def book_and_die(messages, context, connection):
    book(messages, context, connection)
    os._exit(9)


@pytest.mark.parametrize(("listener", "left"), [(book_and_die, []), (book, [b"1"])], ids=["before", "after"])
def test_with_sql_an_effect_is_there_once_whether_the_kill_came_before_or_after_the_commit(
    tmp_path, listener, left
):
    def killed() -> str:
        store = SqlStore(sqlite_engine(tmp_path / "db"), group="g")
        deduplicate(store, listener)([message(1)], context())
        os._exit(9)  # before the offset is committed: the message comes again

    engine = sqlite_engine(tmp_path / "db")
    EFFECTS.create(engine)
    SqlStore(engine, group="g").create_table()
    engine.dispose()

    assert in_child(killed) == ""
    assert effects(engine) == left
    deduplicate(SqlStore(engine, group="g"), book)([message(1)], context())
    assert effects(engine) == [b"1"]
    engine.dispose()


def test_with_redis_a_kill_between_effect_and_key_gives_the_effect_twice_after_the_lease():
    redis, done = fakeredis.FakeRedis(), list[bytes]()
    killed, next_one = (RedisStore(redis, group="g", prefix="p", lease=60) for _ in range(2))
    listener = deduplicate(next_one, lambda messages, _: done.extend(each.body for each in messages))
    claimed = []

    def never_ends(messages, context):
        done.extend(each.body for each in messages)
        claimed.extend(redis.keys())
        raise SystemExit  # and what it does after that is undone below, as a kill would not do it

    with pytest.raises(SystemExit):
        deduplicate(killed, never_ends)([message(1)], context())
    redis.set(claimed[0], b"killed", px=60_000)  # the claim of a member that could not release it

    listener([message(1)], waits := context())
    assert (done, waits.ack_index) == ([b"1"], -1)
    redis.pexpire(claimed[0], 0)  # the lease is over
    listener([message(1)], context())
    listener([message(1)], context())

    assert done == [b"1", b"1"]
