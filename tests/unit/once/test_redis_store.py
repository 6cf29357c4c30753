"""Redis by fakeredis: its protocol's answers, in this process."""

import fakeredis
import pytest

from rmqtools.once import RedisStore


@pytest.fixture
def redis():
    return fakeredis.FakeRedis()


@pytest.mark.parametrize("decode", [False, True])
def test_texts_and_bytes_as_answers_are_the_same(decode):
    store = RedisStore(fakeredis.FakeRedis(decode_responses=decode), group="g")
    with store.claim(["a"], 60) as claim:
        claim.done |= claim.new
    with store.claim(["a", "b"], 60) as claim:
        assert (claim.new, claim.busy) == (frozenset("b"), frozenset())


def test_a_key_that_another_member_is_consuming_is_busy_and_stays_its_own(redis):
    one, two = (RedisStore(redis, group="g") for _ in range(2))
    with one.claim(["a"], 60) as first:
        with two.claim(["a"], 60) as second:
            assert (second.new, second.busy) == (frozenset(), frozenset("a"))
        first.done |= first.new

    with two.claim(["a"], 60) as third:
        assert (third.new, third.busy) == (frozenset(), frozenset())


def test_a_claim_ends_with_its_lease_and_a_key_with_its_window(redis):
    store = RedisStore(redis, group="g", lease=20, prefix="p")
    with store.claim(["a"], 600) as claim:
        assert 19_000 < redis.pttl("p:g:a") <= 20_000
        claim.done |= claim.new

    assert 599_000 < redis.pttl("p:g:a") <= 600_000
    assert redis.get("p:g:a") == b"done"


def test_a_failed_listener_does_not_free_a_key_that_another_member_has_claimed_since(redis):
    store = RedisStore(redis, group="g", prefix="p")
    with store.claim(["a"], 60):
        redis.set("p:g:a", "another")  # the lease ended, and another member came

    assert redis.get("p:g:a") == b"another"
