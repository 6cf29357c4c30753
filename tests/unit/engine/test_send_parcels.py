"""Parcels: encoded elsewhere, placed as batches are; order on a queue, and the end at a failure."""

import asyncio

import pytest

from rmqtools import Message, MessageQueue, SendStatus
from rmqtools.errors import MessageRejectedError, PermissionDeniedError, SendError, UnknownOutcomeError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.parcel import MsgIds, Parcel, ParcelResult
from rmqtools.protocol.message_batch import encode_batch_message
from tests.support.scripted_cluster import says, silent, stored
from tests.unit.engine.test_send import with_producer


def parcel(*bodies: bytes, **more) -> Parcel:
    body = b"".join(encode_batch_message(0, one, b"") for one in bodies)
    return Parcel(topic="T", body=memoryview(body), msg_ids=MsgIds("0", 0, len(bodies)), **more)


def test_a_parcel_is_one_batch_request_and_one_result():
    async def use(producer, cluster):
        (result,) = await producer.send_parcels([parcel(b"a", b"b", b"c")])
        assert (result.status, result.queue_offset, result.count) == (SendStatus.SEND_OK, 5, 3)
        assert not result.may_be_duplicated
        assert len(result.attempts) == 1

    ((_, request),) = with_producer({"a": stored}, use).sends
    assert request.code == RequestCode.SEND_BATCH_MESSAGE
    assert request.body == bytes(parcel(b"a", b"b", b"c").body)


def test_a_single_message_goes_as_one_and_is_compressed():
    async def use(producer, cluster):
        message = Message("T", bytes(10_000), delay_level=3)
        (result,) = await producer.send_parcels([Parcel(topic="T", message=message)])
        assert result.count == 1

    ((_, request),) = with_producer({"a": stored}, use).sends
    assert request.code == RequestCode.SEND_MESSAGE_V2
    assert len(request.body) < 100


def test_a_refused_parcel_goes_to_another_broker():
    async def use(producer, cluster):
        results = await producer.send_parcels([parcel(b"x")] * 4)
        assert {result.queue.broker_name for result in results} == {"b"}
        assert {len(result.attempts) for result in results} <= {1, 2}

    with_producer({"a": says(ResponseCode.SYSTEM_BUSY), "b": stored}, use)


@pytest.mark.parametrize(("may_move", "brokers"), [(False, ["a"]), (True, ["a", "b"])])
def test_a_queue_of_ones_own_is_tried_once_unless_it_may_move(may_move, brokers):
    async def use(producer, cluster):
        queue = MessageQueue("T", "a", 1)
        (result,) = await producer.send_parcels([parcel(b"x", queue=queue, may_move=may_move)])
        assert isinstance(result, ParcelResult) == may_move

    cluster = with_producer({"a": says(ResponseCode.SYSTEM_BUSY), "b": stored}, use)
    assert [name for name, _ in cluster.sends] == brokers


def test_after_a_failure_no_more_are_begun():
    async def use(producer, cluster):
        queue = MessageQueue("T", "a", 0)
        results = await producer.send_parcels([parcel(b"x", b"y", queue=queue) for _ in range(40)])
        assert all(isinstance(result, SendError) for result in results)
        assert "not tried" in str(results[-1])
        assert results[-1].attempts == ()

    assert len(with_producer({"a": says(ResponseCode.NO_PERMISSION)}, use).sends) == 1


def test_parcels_of_one_queue_are_stored_in_their_order():
    async def use(producer, cluster):
        queues = [MessageQueue("T", "a", number) for number in (0, 1)]
        await producer.send_parcels([parcel(b"%d" % n, queue=queues[n % 2]) for n in range(20)])

    cluster = with_producer({"a": stored}, use)
    for queue_id in ("0", "1"):
        bodies = [r.body for _, r in cluster.sends if r.ext_fields["e"] == queue_id]
        assert bodies == [bytes(parcel(b"%d" % n).body) for n in range(int(queue_id), 20, 2)]


def test_without_an_answer_its_fate_is_unknown():
    async def use(producer, cluster):
        (result,) = await producer.send_parcels([parcel(b"x")], timeout=0.05)
        assert isinstance(result, UnknownOutcomeError)

    with_producer({"a": silent}, use, retry_times_when_send_failed=0)


def test_what_speaks_against_a_topic_is_raised():
    async def use(producer, cluster):
        cluster.addrs.clear()
        with pytest.raises(PermissionDeniedError, match="topic 'T' may not be written"):
            await producer.send_parcels([parcel(b"x")])

    with_producer({"a": stored}, use)


def test_parcels_are_refused_where_traces_are_wanted():
    async def use(producer, cluster):
        with pytest.raises(MessageRejectedError, match="enable_trace=False"):
            await producer.send_parcels([parcel(b"x")])

    with_producer({"a": stored}, use, enable_trace=True)


def test_ids_are_unique_and_the_queues_are_told():
    async def use(producer, cluster):
        first, second = await asyncio.gather(producer.reserve_msg_ids(3), producer.reserve_msg_ids(2))
        assert len({*first, *second}) == 5
        assert await producer.fetch_publish_queues("T") == [MessageQueue("T", "a", n) for n in range(4)]
        assert producer.config.group == "g"

    with_producer({"a": stored}, use)
