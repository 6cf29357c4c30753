"""Pull consumers on a real cluster."""

import asyncio
import random
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from rmqtools import (
    Admin,
    ClientConfig,
    ConsumeFromWhere,
    Message,
    MessageModel,
    MessageQueue,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    SendResult,
    aio,
)
from rmqtools.cluster import LocalCluster
from rmqtools.errors import BrokerError, DataLossError
from rmqtools.model.message import MessageExt
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE
from tests.support.reading import await_readable

pytestmark = pytest.mark.broker

MakeTopic = Callable[..., str]
Make = Callable[..., PullConsumer]


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def make(local_cluster: LocalCluster, group: str) -> Make:
    """``make(topic)``: a member of the group, not started; of no topic where none is given."""

    def make(topic: str | None = None, *, tags: str = "*", sql: str | None = None, **settings: Any):
        given: dict[str, Any] = {"consume_from": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET} | settings
        consumer = PullConsumer(
            PullConsumerConfig(name_server=local_cluster.name_server, group=group, **given)
        )
        if topic is not None:
            consumer.subscribe(topic, tags=tags, sql=sql)
        return consumer

    return make


@pytest.fixture
def fill(producer: Producer, admin: Admin) -> Callable[..., list[SendResult]]:
    """Send ``count`` messages "0", "1", ... to a topic, or to one of its queues, and see them readable."""

    def fill(topic: str, count: int, *, queue: MessageQueue | None = None, tags: str | None = None):
        messages = [Message(topic, b"%d" % number, tags=tags) for number in range(count)]
        if queue is None:
            results = producer.send_many(messages)
        else:
            results = [producer.send(message, queue=queue) for message in messages]
        await_readable(admin, results)
        return results

    return fill


def poll(consumer: PullConsumer, count: int) -> list[MessageExt]:
    got: list[MessageExt] = []
    while len(got) < count:
        messages = consumer.poll(20, count - len(got))
        assert messages, f"{len(got)} of {count} messages"
        got += messages
    return got


def offsets(messages: list[MessageExt]) -> list[int]:
    return [message.queue_offset for message in messages]


def bodies(messages: list[MessageExt]) -> list[int]:
    return sorted(int(message.body) for message in messages)


def test_every_message_comes_once_each_queue_in_its_order(make: Make, make_topic: MakeTopic, fill) -> None:
    topic = make_topic()
    fill(topic, 2000)

    with make(topic) as consumer:
        got = poll(consumer, 2000)
        assert consumer.poll(0) == []

    assert bodies(got) == list(range(2000))
    by_queue: dict[tuple[str, int], list[int]] = {}
    for message in got:
        by_queue.setdefault((message.broker_name, message.queue_id), []).append(message.queue_offset)
    assert all(found == list(range(len(found))) for found in by_queue.values())


def test_an_assigned_queue_is_read_from_its_begin_to_its_end(make: Make, make_topic: MakeTopic, fill) -> None:
    queue = MessageQueue(make_topic(queues=1), "broker-a", 0)
    fill(queue.topic, 150, queue=queue)

    with make() as consumer:
        consumer.assign([queue])
        consumer.seek_to_begin(queue)
        end, got = consumer.max_offset(queue), []
        while consumer.position(queue) < end:
            got += offsets(consumer.poll(1))

    assert got == list(range(150))


def test_a_restart_goes_on_exactly_after_what_was_handed_out(make: Make, make_topic: MakeTopic, fill) -> None:
    topic = make_topic()
    fill(topic, 1000)

    got = []
    for count in (1, 10, 333, 656):
        with make(topic) as consumer:
            got += poll(consumer, count)

    assert bodies(got) == list(range(1000))


def test_what_the_last_poll_handed_out_comes_again_after_an_error(
    make: Make, make_topic: MakeTopic, fill
) -> None:
    queue = MessageQueue(make_topic(queues=1), "broker-a", 0)
    fill(queue.topic, 30, queue=queue)

    def fail() -> None:
        with make(queue.topic) as consumer:
            for message in consumer:
                if message.queue_offset == 17:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with make(queue.topic) as consumer:
        assert offsets(poll(consumer, 13)) == list(range(17, 30))


def test_offsets_are_committed_by_commit_alone_where_auto_commit_is_off(
    make: Make, make_topic: MakeTopic, fill
) -> None:
    queue = MessageQueue(make_topic(queues=1), "broker-b", 0)
    fill(queue.topic, 50, queue=queue)

    with make(queue.topic, auto_commit=False) as consumer:
        poll(consumer, 20)
        assert consumer.committed(queue) is None
        consumer.commit()
        assert (consumer.committed(queue), consumer.position(queue)) == (20, 20)
        poll(consumer, 20)
        consumer.commit({queue: 25})
    with make(queue.topic, auto_commit=False) as consumer:
        assert consumer.committed(queue) == 25
        assert offsets(poll(consumer, 1)) == [25]


def test_a_group_without_offset_keeps_the_place_where_it_began(
    make: Make, make_topic: MakeTopic, fill, admin: Admin
) -> None:
    queue = MessageQueue(make_topic(queues=1), "broker-a", 0)
    fill(queue.topic, 5, queue=queue)

    with make(queue.topic) as consumer:
        consumer.seek_to_end(queue)
        assert consumer.poll(0.1) == []
    fill(queue.topic, 5, queue=queue)
    with make(queue.topic, consume_from=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET) as consumer:
        assert offsets(poll(consumer, 5)) == [5, 6, 7, 8, 9]


def test_seeks_to_offsets_times_and_ends(make: Make, make_topic: MakeTopic, fill) -> None:
    queue = MessageQueue(make_topic(queues=1), "broker-a", 0)
    fill(queue.topic, 40, queue=queue)

    with make() as consumer:
        consumer.assign([queue])
        consumer.seek(queue, 39)
        (last,) = poll(consumer, 1)
        assert last.queue_offset == 39
        consumer.seek_to_timestamp(queue, last.store_timestamp_ms)
        assert poll(consumer, 1)[0].store_timestamp_ms == last.store_timestamp_ms
        assert consumer.search_offset(queue, last.store_timestamp_ms + 60_000) == 40
        consumer.seek_to_end(queue)
        assert (consumer.poll(0.1), consumer.position(queue)) == ([], 40)
        consumer.seek_to_begin(queue)
        assert offsets(poll(consumer, 1)) == [consumer.min_offset(queue)] == [0]
        with pytest.raises(DataLossError, match=r"offset 41 of .*: the broker has \[0, 40\)"):
            consumer.seek(queue, 41)


def test_nothing_stale_comes_out_of_a_storm_of_seeks(make: Make, make_topic: MakeTopic, fill) -> None:
    queue = MessageQueue(make_topic(queues=1), "broker-a", 0)
    fill(queue.topic, 300, queue=queue)
    chance = random.Random(11)

    with make() as consumer:
        consumer.assign([queue])
        for _ in range(60):
            start, count = chance.randrange(280), chance.randrange(1, 15)
            consumer.seek(queue, start)
            assert offsets(poll(consumer, count)) == list(range(start, start + count))


def test_a_paused_queue_gives_nothing_until_it_is_resumed(make: Make, make_topic: MakeTopic, fill) -> None:
    topic = make_topic(queues=1)
    fill(topic, 500)

    with make(topic) as consumer:
        first = poll(consumer, 1)
        first_queue = MessageQueue(topic, first[0].broker_name, first[0].queue_id)
        consumer.pause([first_queue])
        others = consumer.poll(0.2, 500)
        assert {message.broker_name for message in others} <= {"broker-a", "broker-b"} - {
            first_queue.broker_name
        }
        consumer.resume([first_queue])
        assert bodies(first + others + poll(consumer, 500 - len(others) - 1)) == list(range(500))


def test_two_members_share_the_queues_and_take_over_from_one_another(
    make: Make, make_topic: MakeTopic, fill
) -> None:
    topic = make_topic()

    with make(topic) as one:
        wait_until(lambda: len(one.queues) == 8)
        with make(topic) as two:
            wait_until(lambda: (len(one.queues), len(two.queues)) == (4, 4))
            assert not set(one.queues) & set(two.queues)
            fill(topic, 400)
            got: list[MessageExt] = []
            wait_until(lambda: got.extend(one.poll(0.1) + two.poll(0.1)) or len(got) >= 400)
            assert bodies(got) == list(range(400))
        wait_until(lambda: len(one.queues) == 8)
        assert one.poll(0.3) == []
        fill(topic, 100)
        assert bodies(poll(one, 100)) == list(range(100))


def test_an_iteration_goes_on_until_another_thread_closes_the_consumer(
    make: Make, make_topic: MakeTopic, fill
) -> None:
    topic = make_topic()
    fill(topic, 200)
    got: list[MessageExt] = []

    with make(topic) as consumer:
        reader = threading.Thread(target=lambda: got.extend(consumer))
        reader.start()
        wait_until(lambda: all(consumer.position(q) == consumer.max_offset(q) for q in consumer.queues))
        consumer.close()
        reader.join(PATIENCE)

    assert bodies(got) == list(range(200))


def test_the_asynchronous_face_reads_the_same(
    local_cluster: LocalCluster, group: str, make_topic: MakeTopic, fill
) -> None:
    topic = make_topic()
    fill(topic, 100)

    async def read() -> list[MessageExt]:
        config = PullConsumerConfig(
            name_server=local_cluster.name_server,
            group=group,
            consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        consumer, got = aio.PullConsumer(config), []
        consumer.subscribe(topic)
        async with consumer, asyncio.timeout(20):
            async for message in consumer:
                got.append(message)
                if len(got) == 100:
                    return got
        return got

    assert bodies(asyncio.run(read())) == list(range(100))


def test_tags_of_equal_hash_codes_are_told_apart(make: Make, make_topic: MakeTopic, fill) -> None:
    queue = MessageQueue(make_topic(queues=1), "broker-a", 0)
    for tags in ("Aa", "BB", "Aa", "other"):  # "Aa" and "BB" have equal hash codes
        fill(queue.topic, 5, queue=queue, tags=tags)

    with make(queue.topic, tags="Aa || unknown") as consumer:
        got = poll(consumer, 10)
        assert {message.tags for message in got} == {"Aa"}
        wait_until(lambda: consumer.poll(0.1) == [] and consumer.position(queue) == 20)
        consumer.commit()
        assert consumer.committed(queue) == 20


def test_conditions_on_properties_are_kept_by_the_broker(
    make: Make, make_topic: MakeTopic, producer: Producer, admin: Admin
) -> None:
    queue = MessageQueue(make_topic(queues=1), "broker-a", 0)
    results = [
        producer.send(Message(queue.topic, b"%d" % age, properties={"age": str(age)}), queue=queue)
        for age in range(20)
    ]
    await_readable(admin, results)

    with make(queue.topic, sql="age BETWEEN 5 AND 8") as consumer:
        assert bodies(poll(consumer, 4)) == [5, 6, 7, 8]
        wait_until(lambda: consumer.poll(0.1) == [] and consumer.position(queue) == 20)


def test_a_condition_that_is_none_is_refused_at_the_start(make: Make, make_topic: MakeTopic) -> None:
    with pytest.raises(BrokerError, match=r"(?i)subscription|filter|parse"):
        make(make_topic(queues=1), sql="age BETWEEN").start()


def test_broadcasting_members_get_everything_and_keep_their_own_offsets(
    make: Make, make_topic: MakeTopic, fill, tmp_path
) -> None:
    topic = make_topic()
    fill(topic, 100)

    for name in ("one", "two"):
        for count in (40, 60):  # a restart in between
            with make(
                topic,
                message_model=MessageModel.BROADCASTING,
                offset_store_path=str(tmp_path / name),
                instance_name=name,
            ) as consumer:
                assert len(poll(consumer, count)) == count
    with make(topic) as consumer:
        assert {consumer.committed(queue) for queue in consumer.fetch_queues(topic)} == {None}


def test_a_member_in_a_namespace_sees_names_without_it(
    local_cluster: LocalCluster, group: str, make_topic: MakeTopic
) -> None:
    inside: Any = {"name_server": local_cluster.name_server, "namespace": "NS1"}
    topic = f"test-{uuid.uuid4().hex[:12]}"
    with (
        Admin(ClientConfig(**inside)) as admin,
        Producer(ProducerConfig(group="tests", **inside)) as producer,
    ):
        admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
        results = producer.send_many([Message(topic, b"%d" % number) for number in range(20)])
        await_readable(admin, results)
        consumer = PullConsumer(
            PullConsumerConfig(group=group, consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, **inside)
        )
        consumer.subscribe(topic)
        with consumer:
            assert {message.topic for message in poll(consumer, 20)} == {topic}
            assert consumer.queues == consumer.fetch_queues(topic) == admin.fetch_subscribe_queues(topic)
            consumer.commit()
            assert sum(consumer.committed(queue) or 0 for queue in consumer.queues) == 20
