"""Which rows share a request, and which queue it goes to."""

from datetime import UTC, datetime
from unittest.mock import ANY

import pyarrow as pa
import pytest

from rmqtools import MessageQueue
from rmqtools.arrow.queue_choice import RowQueues
from rmqtools.arrow.rows import rows_of
from rmqtools.arrow.rows_to_requests import encode_batches
from rmqtools.errors import MessageRejectedError
from rmqtools.select import (
    SelectMessageQueueByHash,
    SelectMessageQueueByMachineRoom,
    SelectMessageQueueByRandom,
)
from tests.unit.arrow.fake_producer import QUEUES, FakeProducer, bodies_of

NUMBERS = [b"%d" % number for number in range(6)]


def batches(columns, *, selector=None, topic="T", first_row=0, **settings):
    rows = rows_of(pa.record_batch(columns), topic=topic, first_row=first_row)
    return encode_batches(FakeProducer(**settings), rows, RowQueues(selector))


def by_queue(found) -> dict[MessageQueue | None, list[bytes]]:
    rows: dict[MessageQueue | None, list[bytes]] = {}
    for batch in found:
        rows.setdefault(batch.queue, []).extend(bodies_of(batch))
    return rows


def test_rows_for_any_queue_share_requests_up_to_their_limit():
    (first, *_, last) = found = batches({"body": pa.array([bytes(100)] * 50)}, max_batch_bytes=1000)

    assert [batch.queue for batch in found] == [None] * len(found)
    assert sum(map(len, found)) == 50
    assert len(first.body) <= 1000 < len(first.body) + len(first.body) // len(first)
    assert len(last.msg_ids) == len(bodies_of(last))


@pytest.mark.parametrize("limit", [2**31 - 1, 2**31, 2**100])
def test_a_limit_beyond_32_bits_is_a_limit_all_the_same(limit):
    columns = {"body": pa.array(NUMBERS), "delayLevel": pa.array([3, *[None] * 5], pa.int32())}

    found = batches(columns, max_batch_bytes=limit)

    assert [bodies_of(batch) for batch in found] == [NUMBERS[:1], NUMBERS[1:]]


def test_a_row_larger_than_a_request_is_alone_in_its_place():
    found = batches({"body": pa.array([b"a", b"b", bytes(2000), b"c"])}, max_batch_bytes=1000)

    assert [bodies_of(batch) for batch in found] == [[b"a", b"b"], [bytes(2000)], [b"c"]]
    assert [batch.message is None for batch in found] == [True, False, True]


def test_rows_with_a_delay_are_alone_and_bring_it():
    found = batches(
        {
            "body": pa.array([b"a", b"b", b"c", b"d"]),
            "delayLevel": pa.array([None, 3, 0, None], pa.int32()),
            "deliverTimestamp": pa.array(
                [None, None, None, datetime(2100, 1, 1, tzinfo=UTC)], pa.timestamp("us", tz="Asia/Tokyo")
            ),
        }
    )

    assert [bodies_of(batch) for batch in found] == [[b"a"], [b"b"], [b"c"], [b"d"]]
    assert found[1].message.delay_level == 3
    assert found[3].message.deliver_at_ms == 4_102_444_800_000


def test_each_topic_has_requests_of_its_own():
    columns = {"body": pa.array(NUMBERS), "topic": pa.array(["T", "U"] * 3)}

    found = batches(columns, topic=None)

    assert {batch.topic: bodies_of(batch) for batch in found} == {"T": NUMBERS[::2], "U": NUMBERS[1::2]}


def test_explicit_queues_get_their_rows_in_order_and_are_tried_once():
    columns = {
        "body": pa.array(NUMBERS),
        "brokerName": pa.array(["a", None, "b", "a", None, "b"]),
        "queueId": pa.array([0, None, 1, 0, None, 0], pa.int32()),
    }

    found = batches(columns)

    assert by_queue(found) == {
        None: [b"1", b"4"],
        QUEUES[0]: [b"0", b"3"],
        QUEUES[3]: [b"2"],
        QUEUES[2]: [b"5"],
    }
    assert [batch.may_move for batch in found] == [batch.queue is None for batch in found]


@pytest.mark.parametrize(
    ("brokers", "ids", "text"),
    [
        pytest.param(
            ["a", "z"], [0, 0], "row 11: .*brokerName=z, queueId=0.* is not among the 4", id="broker"
        ),
        pytest.param(["a", "a"], [0, -1], "row 11: .*queueId=-1.* is not among", id="queue"),
        pytest.param(["a", None], [0, 1], "row 11: queueId=1 and brokerName=None name a queue", id="half"),
        pytest.param([None, "z"], [None, 0], "row 11: .*brokerName=z", id="behind-a-row-without-one"),
    ],
)
def test_a_queue_that_is_not_there_is_refused_by_row(brokers, ids, text):
    columns = {
        "body": pa.array([b"a", b"b"]),
        "brokerName": pa.array(brokers),
        "queueId": pa.array(ids, pa.int32()),
    }

    with pytest.raises(MessageRejectedError, match=text):
        batches(columns, first_row=10)


MIXED_TOPICS = {"body": pa.array([b"x"] * 8), "topic": pa.array(list("UTUUTUUT"))}  # row 7: the third of T


def test_a_queue_that_is_not_there_is_refused_by_row_also_among_several_topics():
    columns = MIXED_TOPICS | {
        "brokerName": pa.array([None] * 7 + ["z"]),
        "queueId": pa.array([None] * 7 + [0], pa.int32()),
    }

    with pytest.raises(MessageRejectedError, match=r"row 17: .*topic=T, brokerName=z, queueId=0"):
        batches(columns, topic=None, first_row=10)


def test_a_queue_that_is_chosen_but_not_there_is_refused_by_row_also_among_several_topics():
    columns = MIXED_TOPICS | {"keys": pa.array(["good"] * 7 + ["bad"])}

    def select(queues, message, arg):
        return MessageQueue("T", "z", 0) if arg == "bad" else queues[0]

    with pytest.raises(MessageRejectedError, match=r"row 17: .*brokerName=z, queueId=0"):
        batches(columns, topic=None, first_row=10, selector=select)


def test_rows_of_a_sharding_key_go_where_javas_hash_falls():
    columns = {"body": pa.array(NUMBERS), "shardingKey": pa.array(["k", "order-1", None, "k", "", "k"])}
    queue_of = {key: SelectMessageQueueByHash()(QUEUES, ANY, key) for key in ("k", "order-1")}

    assert by_queue(batches(columns)) == {
        None: [b"2", b"4"],
        queue_of["k"]: [b"0", b"3", b"5"],
        queue_of["order-1"]: [b"1"],
    }


def test_hash_takes_the_sharding_key_else_the_keys():
    columns = {
        "body": pa.array([b"0", b"1", b"2"]),
        "shardingKey": pa.array(["k", None, None]),
        "keys": pa.array(["order-1", "order-1", None]),
    }
    select = SelectMessageQueueByHash()

    found = by_queue(batches(columns, selector=select))

    assert found == {select(QUEUES, ANY, "k"): [b"0"], select(QUEUES, ANY, "order-1"): [b"1"], None: [b"2"]}


def test_requests_without_a_key_go_round_the_machine_room():
    rows = rows_of(pa.record_batch({"body": pa.array([bytes(300)] * 4)}), topic="T")
    producer = FakeProducer(max_batch_bytes=400)
    room = [MessageQueue("T", "b-1", number) for number in range(2)]
    producer.queues = [MessageQueue("T", "a-1", 0), *room]

    found = encode_batches(producer, rows, RowQueues(SelectMessageQueueByMachineRoom("b")))

    assert [batch.queue for batch in found] == [room[1], room[0]] * 2
    assert not any(batch.may_move for batch in found)
    with pytest.raises(MessageRejectedError, match="machine room 'z'"):
        encode_batches(producer, rows, RowQueues(SelectMessageQueueByMachineRoom("z")))


def test_random_chooses_for_each_request_and_lets_it_move():
    columns = {"body": pa.array([bytes(300)] * 40)}

    found = batches(columns, selector=SelectMessageQueueByRandom(), max_batch_bytes=400)

    assert {batch.queue for batch in found} == set(QUEUES)
    assert all(batch.may_move for batch in found)


def test_a_selector_of_ones_own_sees_every_row_and_its_key():
    seen = []

    def select(queues, message, arg):
        seen.append((message.body, arg))
        return queues[int(message.body) % 4]

    columns = {"body": pa.array(NUMBERS[:5]), "keys": pa.array(["k", None, None, None, None])}

    found = by_queue(batches(columns, selector=select))

    assert found == {queue: NUMBERS[n:5:4] for n, queue in enumerate(QUEUES)}
    assert seen == [(b"0", "k"), *((number, None) for number in NUMBERS[1:5])]


def test_requests_of_several_queues_take_turns():
    columns = {"body": pa.array([bytes(300)] * 6), "shardingKey": pa.array(["k"] * 3 + ["order-1"] * 3)}

    queues = [batch.queue for batch in batches(columns, max_batch_bytes=400)]

    assert queues == [*queues[:2]] * 3
    assert len(set(queues)) == 2
