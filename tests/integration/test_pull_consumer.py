"""Pull consumers on a real cluster."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from rmqtools import (
    Admin,
    ConsumeFromWhere,
    Message,
    MessageModel,
    MessageQueue,
    Producer,
    PullConsumer,
    PullConsumerConfig,
    SendResult,
)
from rmqtools.cluster import LocalCluster
from rmqtools.errors import DataLossError
from rmqtools.model.message import MessageExt
from tests.support.cluster_scene import wait_until
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


def test_a_restart_goes_on_exactly_after_what_was_handed_out(make: Make, make_topic: MakeTopic, fill) -> None:
    topic = make_topic()
    fill(topic, 1000)

    got = []
    for count in (1, 10, 333, 656):
        with make(topic) as consumer:
            got += poll(consumer, count)

    assert bodies(got) == list(range(1000))


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
    with make(topic, auto_commit=False) as consumer:  # a start would commit where it begins
        assert {consumer.committed(queue) for queue in consumer.fetch_queues(topic)} == {None}
