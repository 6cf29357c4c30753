"""Mirrors between two fake clusters."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import Any

import pytest

from rmqtools import ClientConfig, Message, MessageQueue, MirrorConfig, ProducerConfig
from rmqtools.aio import Mirror, Producer
from rmqtools.engine.exact import queue_writer
from rmqtools.errors import ConfigError, ExactAppendError, SendError
from rmqtools.model.append_mark import APPEND_MARK
from rmqtools.model.mirror import MIRROR_WAY
from rmqtools.testing import FakeCluster, RequestCode, ResponseCode
from tests.support.scripted_transactions import until

TOPIC = "orders"


@asynccontextmanager
async def clusters(*, queues: int = 2) -> AsyncIterator[tuple[FakeCluster, FakeCluster]]:
    async with FakeCluster(cluster="east") as east, FakeCluster(cluster="west") as west:
        for cluster in (east, west):
            cluster.create_topic(TOPIC, queues=queues)
        yield east, west


def mirror(source: FakeCluster, target: FakeCluster, /, **settings: Any) -> Mirror:
    given: dict[str, Any] = {
        "source": ClientConfig(name_server=source.name_server),
        "target": ProducerConfig(name_server=target.name_server),
        "topics": {TOPIC: TOPIC},
        "settle_seconds": 0.5,
    }
    return Mirror(MirrorConfig(**(given | settings)))


async def copy(source: FakeCluster, target: FakeCluster, **settings: Any) -> int:
    """Copy what is there; return how many messages were copied."""
    async with mirror(source, target, **settings) as copying:
        return sum(each.copied for each in await copying.run())


@asynccontextmanager
async def following(copying: Mirror) -> AsyncIterator[asyncio.Task[Any]]:
    """The run of a mirror that follows its source; it is cancelled at the end of the block."""
    running = asyncio.create_task(copying.run(follow=True))
    yield running
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def queue(number: int = 0) -> MessageQueue:
    return MessageQueue(TOPIC, "broker-a", number)


def bodies(cluster: FakeCluster, number: int = 0) -> list[bytes]:
    return [message.body for message in cluster.messages(TOPIC, queue(number))]


def is_copied(cluster: FakeCluster, body: bytes) -> bool:
    return body in bodies(cluster, 1)


async def test_everything_that_users_gave_a_message_is_copied_in_its_order():
    async with clusters() as (east, west):
        config = ProducerConfig(name_server=east.name_server, compress_over_bytes=1000)
        async with Producer(config) as producer:
            for number in range(5):
                message = Message(
                    TOPIC,
                    b"%d" % number * 2000,
                    tags="new",
                    keys=["a", "b"],
                    properties={"colour": "rot", "länge": "größer"},
                    flag=7,
                    sharding_key="key",
                )
                await producer.send(message, queue=queue(number % 2))
        assert await copy(east, west) == 5

        for number in (0, 1):
            sent, copied = east.messages(TOPIC, queue(number)), west.messages(TOPIC, queue(number))
            assert [each.body for each in copied] == [each.body for each in sent]
            for one, other in zip(sent, copied, strict=True):
                ours = {APPEND_MARK, MIRROR_WAY, "CLUSTER"}
                assert {k: v for k, v in other.properties.items() if k not in ours} == {
                    k: v
                    for k, v in one.properties.items()
                    if k not in {"CLUSTER", "WAIT", "MSG_REGION", "TRACE_ON"}
                }
                assert (other.flag, other.msg_id) == (7, one.msg_id)


async def test_a_target_that_refuses_messages_ends_the_run_however_much_was_read_already():
    async with clusters() as (east, west):
        for number in range(20):
            east.store(TOPIC, b"%d" % number * 50_000, queue=queue())
        west.fault(code=RequestCode.SEND_BATCH_MESSAGE, answer=ResponseCode.MESSAGE_ILLEGAL)

        async with mirror(east, west, request_bytes=60_000) as copying, asyncio.timeout(60):
            with pytest.raises(SendError, match="did not take"):
                await copying.run()


async def test_a_message_with_a_delay_is_copied_when_it_is_delivered_and_not_delayed_again():
    async with clusters() as (east, west):
        async with Producer(ProducerConfig(name_server=east.name_server)) as producer:
            await producer.send(Message(TOPIC, b"late", delay_level=3), queue=queue())
        await until(lambda: bodies(east))
        await copy(east, west)

        assert "DELAY" in east.messages(TOPIC, queue())[0].properties
        assert "DELAY" not in west.messages(TOPIC, queue())[0].properties
        assert bodies(west) == [b"late"]


async def test_a_copy_is_copied_on_to_a_third_cluster():
    async with clusters() as (east, west), FakeCluster(cluster="north") as north:
        north.create_topic(TOPIC, queues=2)
        east.store(TOPIC, b"1", queue=queue())
        await copy(east, west)
        assert await copy(west, north) == 1
        assert await copy(north, east) == 0

        (message,) = north.messages(TOPIC)
        assert message.properties[MIRROR_WAY] == f"east/{TOPIC} west/{TOPIC}"


async def test_a_topic_is_copied_to_another_topic_of_the_same_cluster():
    async with clusters() as (east, _):
        east.create_topic("archive", queues=2)
        east.store(TOPIC, b"1", queue=queue())

        assert await copy(east, east, topics={TOPIC: "archive"}) == 1
        assert await copy(east, east, topics={"archive": TOPIC}) == 0


async def test_a_share_has_all_messages_of_a_key_or_none():
    async with clusters() as (east, west):
        for number in range(200):
            east.store(TOPIC, b"%d" % (number % 50), queue=queue(), properties={"KEYS": f"key-{number % 50}"})
        copied = await copy(east, west, share=0.5)

        counts = {body: bodies(west).count(body) for body in bodies(west)}
        assert set(counts.values()) == {4}
        assert copied == 4 * len(counts)
        assert 10 < len(counts) < 40


async def test_a_limit_of_the_rate_is_kept():
    async with clusters() as (east, west):
        east.store(TOPIC, *[b"x"] * 400, queue=queue())
        loop = asyncio.get_running_loop()
        async with mirror(east, west, max_messages_per_second=100) as copying:
            began = loop.time()
            await copying.run()

            assert loop.time() - began > 3.0


async def test_an_endless_rate_is_no_limit():
    async with clusters() as (east, west):
        east.store(TOPIC, b"a", b"b", queue=queue())

        assert await copy(east, west, max_messages_per_second=inf) == 2


async def test_a_second_mirror_of_the_same_name_is_refused(monkeypatch):
    monkeypatch.setattr(queue_writer, "_PATIENCE", 1.0)
    async with clusters() as (east, west), mirror(east, west) as first, mirror(east, west) as second:
        await first.run()

        with pytest.raises(ExactAppendError, match="another writer has the lock"):
            await second.run()


async def test_another_source_topic_gets_no_queue_that_has_copies_of_the_first_one():
    async with clusters() as (east, west):
        east.store(TOPIC, b"1", queue=queue())
        await copy(east, west)
        east.create_topic("other", queues=2)
        east.store("other", b"2", queue=MessageQueue("other", "broker-a", 0))

        with pytest.raises(ConfigError, match="name the mirror otherwise"):
            await copy(east, west, topics={"other": TOPIC})


async def test_a_group_goes_on_at_the_same_message():
    async with clusters() as (east, west):
        east.store(TOPIC, *[b"%d" % number for number in range(100)], queue=queue())
        for number in range(5):
            west.store(TOPIC, b"foreign", queue=queue())
            await copy(east, west) if number == 2 else None
        west.store(TOPIC, b"foreign", queue=queue())
        east.commit("readers", queue(), 42)
        async with mirror(east, west) as copying:
            (planned,) = await copying.move_group("readers", dry_run=True)
            assert west.committed("readers", queue()) is None
            await copying.move_group("readers")

        assert bodies(west)[planned.target_offset] == b"42"
        assert west.committed("readers", queue()) == planned.target_offset


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"topics": {TOPIC: "narrow"}}, "give them as many"),
        ({"topics": {"SCHEDULE_TOPIC_XXXX": TOPIC}}, "RocketMQ's own"),
        ({"source_name": "same", "target_name": "same"}, "give source_name and target_name"),
    ],
)
async def test_what_cannot_be_copied_is_refused_before_anything_is_written(settings, text):
    async with clusters() as (east, west):
        west.create_topic("narrow", queues=1)
        with pytest.raises(ConfigError, match=text):
            async with mirror(east, west, **settings):
                pass


async def test_a_topic_is_not_copied_to_itself():
    async with clusters() as (east, _):
        with pytest.raises(ConfigError, match="copied to itself"):
            async with mirror(east, east):
                pass


async def test_a_source_that_is_away_for_a_while_is_waited_for():
    async with clusters() as (east, west), mirror(east, west) as copying, following(copying) as running:
        east.store(TOPIC, b"1", queue=queue(1))
        await until(partial(is_copied, west, b"1"))
        east.stop("broker-a")
        await asyncio.sleep(5.0)
        assert not running.done()
        east.restart("broker-a")
        east.store(TOPIC, b"2", queue=queue(1))
        await until(partial(is_copied, west, b"2"))

        assert bodies(west, 1) == [b"1", b"2"]


async def test_retry_topics_are_copied_if_named_and_singly_as_brokers_take_no_batches_there():
    retry = "%RETRY%billing"
    async with clusters() as (east, west):
        for cluster in (east, west):
            cluster.create_topic(retry, queues=1)
        source = MessageQueue(retry, "broker-a", 0)
        east.store(retry, b"1", b"2", queue=source, tags="a", properties={"RETRY_TOPIC": TOPIC, "KEYS": "k"})
        assert await copy(east, west, topics={retry: retry}) == 2

        copied = west.messages(retry)
        assert [message.body for message in copied] == [b"1", b"2"]
        assert {(m.tags, m.keys, m.properties["RETRY_TOPIC"]) for m in copied} == {("a", "k", TOPIC)}
        assert not west.requests(RequestCode.SEND_BATCH_MESSAGE)


async def test_a_message_that_fits_into_no_batch_is_copied():
    largest = bytes(4 * 1024 * 1024)
    async with clusters() as (east, west):
        east.store(TOPIC, b"1", largest, b"2", queue=queue(), tags="a")

        assert await copy(east, west) == 3
        assert bodies(west) == [b"1", largest, b"2"]


async def test_progress_counts_what_was_copied_and_left_out():
    async with clusters() as (east, west), mirror(east, west, tags=("a",)) as copying:
        east.store(TOPIC, b"1", b"2", queue=queue(), tags="a")
        east.store(TOPIC, b"3", b"4", b"5", queue=queue(), tags="b")
        first, _ = await copying.run()

        assert (first.copied, first.left_out, first.position, first.lag) == (2, 3, 5, 0)
        assert bodies(west) == [b"1", b"2"]
        assert copying.progress()[0] == first


@pytest.mark.parametrize(("begin", "copied"), [("earliest", 5), ("latest", 0), (3_000, 2)])
async def test_a_first_run_begins_where_it_is_told_and_a_second_one_goes_on(begin, copied):
    async with clusters() as (east, west):
        for number in range(5):
            east.store(TOPIC, b"%d" % number, queue=queue(), store_timestamp_ms=1_000 * number)
        async with mirror(east, west, begin=begin) as copying:
            assert sum(each.copied for each in await copying.run()) == copied
            east.store(TOPIC, b"5", queue=queue())
            running = await copying.run()
        assert sum(each.copied for each in running) == copied + 1


async def test_a_stored_batch_at_the_source_is_refused_by_name():
    async with clusters() as (east, west):
        east.store(TOPIC, b"x", queue=queue(), sys_flag=128, properties={"INNER_NUM": "1", "INNER_BASE": "0"})

        with pytest.raises(ConfigError, match="queue type BatchCQ"):
            await copy(east, west)
