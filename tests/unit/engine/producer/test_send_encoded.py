"""Batches that are encoded elsewhere: order on a queue, and the end at a failure."""

import asyncio
from typing import Any

import pytest

from rmqtools import Message, MessageQueue, SendStatus
from rmqtools.errors import MessageRejectedError, PermissionDeniedError, SendError, UnknownOutcomeError
from rmqtools.model.encoded_batch import EncodedBatch, MsgIds, StoredBatch
from rmqtools.protocol.messages.batch import encode_batch
from rmqtools.testing import Reaction, RequestCode, ResponseCode
from tests.support.scripted_cluster import says, silent, stored
from tests.unit.engine.producer.test_send import producing

QUEUE = MessageQueue("T", "a", 0)


def batch(*bodies: bytes, **more) -> EncodedBatch:
    body = b"".join(encode_batch([(0, one, b"")]) for one in bodies)
    return EncodedBatch(topic="T", body=memoryview(body), msg_ids=MsgIds("0", 0, len(bodies)), **more)


def send(producer: Any, batches: list[EncodedBatch], series: Any = None) -> Any:
    return producer._many.send_encoded(batches, series=series)


def bodies_on(cluster, queue_id: int) -> list[bytes]:
    return [request.body for _, request in cluster.sends if request.ext_fields["e"] == str(queue_id)]


async def test_a_batch_is_one_batch_request_and_one_result():
    async with producing({"a": stored}) as (producer, cluster):
        (result,) = await send(producer, [batch(b"a", b"b", b"c")])
        assert (result.status, result.queue_offset, result.count) == (SendStatus.SEND_OK, 5, 3)
        assert not result.may_be_duplicated
        assert len(result.attempts) == 1

    ((_, request),) = cluster.sends
    assert request.code == RequestCode.SEND_BATCH_MESSAGE
    assert request.body == bytes(batch(b"a", b"b", b"c").body)


async def test_a_single_message_goes_as_one_and_is_compressed():
    async with producing({"a": stored}) as (producer, cluster):
        message = Message("T", bytes(10_000), delay_level=3)
        (result,) = await send(producer, [EncodedBatch(topic="T", message=message)])
        assert result.count == 1

    ((_, request),) = cluster.sends
    assert request.code == RequestCode.SEND_MESSAGE_V2
    assert len(request.body) < 100


async def test_a_refused_batch_goes_to_another_broker():
    async with producing({"a": says(ResponseCode.SYSTEM_BUSY), "b": stored}) as (producer, _):
        results = await send(producer, [batch(b"x")] * 4)
        assert {result.queue.broker_name for result in results} == {"b"}
        assert {len(result.attempts) for result in results} <= {1, 2}


@pytest.mark.parametrize(("may_move", "brokers"), [(False, ["a"]), (True, ["a", "b"])])
async def test_a_queue_of_ones_own_is_tried_once_unless_it_may_move(may_move, brokers):
    async with producing({"a": says(ResponseCode.SYSTEM_BUSY), "b": stored}) as (producer, cluster):
        queue = MessageQueue("T", "a", 1)
        (result,) = await send(producer, [batch(b"x", queue=queue, may_move=may_move)])
        assert isinstance(result, StoredBatch) == may_move

    assert [name for name, _ in cluster.sends] == brokers


async def test_after_a_failure_no_more_are_begun():
    async with producing({"a": says(ResponseCode.NO_PERMISSION)}) as (producer, cluster):
        results = await send(producer, [batch(b"x", b"y", queue=QUEUE) for _ in range(40)])
        assert all(isinstance(result, SendError) for result in results)
        assert "not tried" in str(results[-1])
        assert results[-1].attempts == ()

    assert len(cluster.sends) == 1


async def test_calls_of_one_line_are_under_way_together():
    calls, seen = list[Any](), list[Any]()

    def answer(request):
        if request.ext_fields["e"] == "0":
            return silent(request)
        seen.append([call.done() for call in calls])
        return stored(request)

    async with producing({"a": answer}) as (producer, cluster):
        series = producer._many.new_series()
        for number in (0, 1):
            batches = [batch(b"x", queue=MessageQueue("T", "a", number))]
            calls.append(asyncio.ensure_future(send(producer, batches, series=series)))
        (second,) = await calls[1]
        cluster.disconnect("a")
        (first,) = await calls[0]
        assert isinstance(first, UnknownOutcomeError)
        assert isinstance(second, StoredBatch)

    assert seen == [[False, False]]


async def test_calls_of_one_line_are_stored_in_their_order():
    async with producing({"a": stored}) as (producer, cluster):
        queues, series = [MessageQueue("T", "a", n) for n in (0, 1)], producer._many.new_series()
        calls = [[batch(b"%d" % n, queue=queues[n % 2]) for n in range(begin, begin + 9)] for begin in (0, 9)]
        await asyncio.gather(*(send(producer, batches, series=series) for batches in calls))

    for queue_id in (0, 1):
        assert bodies_on(cluster, queue_id) == [bytes(batch(b"%d" % n).body) for n in range(queue_id, 18, 2)]


async def test_a_call_of_a_line_waits_for_the_one_before_it_while_that_looks_for_its_topics():
    async with producing({"a": stored}) as (producer, cluster):
        series = producer._many.new_series()
        await producer.fetch_publish_queues("T")
        elsewhere = EncodedBatch(topic="U", body=batch(b"u").body, msg_ids=MsgIds("0", 0, 1))  # no route yet
        calls = [[elsewhere, batch(b"first", queue=QUEUE)], [batch(b"second", queue=QUEUE)]]
        await asyncio.gather(*(send(producer, batches, series=series) for batches in calls))

    assert [body for body in bodies_on(cluster, 0) if body != bytes(batch(b"u").body)] == [
        bytes(batch(b"first").body),
        bytes(batch(b"second").body),
    ]


@pytest.mark.parametrize(
    ("series_of", "sends"),
    [(lambda producer: producer._many.new_series(), 1), (lambda producer: None, 3)],
)
async def test_after_a_failure_no_more_are_begun_of_later_calls_of_the_series(series_of, sends):
    async with producing({"a": says(ResponseCode.NO_PERMISSION)}) as (producer, cluster):
        series = series_of(producer)
        for _ in range(3):
            (result,) = await send(producer, [batch(b"x", queue=QUEUE)], series=series)
            assert isinstance(result, SendError)

    assert len(cluster.sends) == sends


@pytest.mark.parametrize("count", [1, 3], ids=["all-begun", "some-begun"])
async def test_behind_a_call_that_was_cancelled_none_of_the_series_is_begun(count):
    arrived = asyncio.Event()
    async with producing({"a": lambda request: arrived.set()}) as (producer, cluster):
        series, batches = producer._many.new_series(), [batch(b"x", queue=QUEUE)] * count
        calls = [asyncio.ensure_future(send(producer, batches, series=series)) for _ in range(2)]
        await arrived.wait()
        calls[0].cancel()
        results = await calls[1]
        assert {str(result) for result in results} == {"not tried: a request before it failed"}
        assert calls[0].cancelled()

    assert len(cluster.sends) == 1


class Taken(asyncio.Semaphore):
    """Acts as if requests of earlier calls were on the wire; reports when a caller waits for their end."""

    def __init__(self) -> None:
        super().__init__(0)
        self.asked = asyncio.Event()

    async def acquire(self):
        self.asked.set()
        return await super().acquire()


async def test_behind_a_call_that_was_cancelled_before_it_began_none_of_the_series_is_begun():
    async with producing({"a": stored}) as (producer, cluster):
        series = producer._many.new_series()
        series.free = Taken()
        calls = [asyncio.ensure_future(send(producer, [batch(b"x")], series=series)) for _ in range(2)]
        await series.free.asked.wait()
        calls[0].cancel()
        await asyncio.wait({calls[0]})
        series.free.release()
        (result,) = await calls[1]
        assert str(result) == "not tried: a request before it failed"

    assert cluster.sends == []


async def test_behind_a_batch_that_cannot_be_encoded_none_of_its_queue_is_begun():
    async with producing({"a": stored}) as (producer, cluster):
        await send(producer, [batch(b"before", queue=QUEUE)])
        nothing: Any = None
        unfit = EncodedBatch(topic="T", body=nothing, msg_ids=MsgIds("0", 0, 1), queue=QUEUE)
        with pytest.raises(ExceptionGroup):
            await send(producer, [unfit, batch(b"x", queue=QUEUE), batch(b"y", queue=QUEUE)])

    assert len(cluster.sends) == 1


async def test_nothing_is_begun_behind_a_call_that_was_refused():
    async with producing({"a": stored}) as (producer, cluster):
        series = producer._many.new_series()
        await producer.fetch_publish_queues("T")
        cluster.forbid_writes()
        with pytest.raises(PermissionDeniedError):
            await send(producer, [EncodedBatch(topic="U", body=b"u")], series=series)
        (result,) = await send(producer, [batch(b"x")], series=series)
        assert "not tried" in str(result)

    assert cluster.sends == []


async def test_a_series_bounds_what_is_in_flight_over_all_its_calls():
    arrived = []

    def answer(request):
        """Silence until all three are here, then the end of their connection."""
        arrived.append(request)
        return Reaction.DISCONNECT if len(arrived) == 3 else None

    settings = {"retry_times_when_send_failed": 0, "max_in_flight": 3}
    async with producing({"a": answer}, **settings) as (producer, cluster):
        series = producer._many.new_series()
        queues = [MessageQueue("T", "a", number) for number in range(4)]
        calls = [
            send(producer, [batch(b"x", queue=queue) for queue in share], series=series)
            for share in (queues[:2], queues[2:])
        ]
        results = [result for call in await asyncio.gather(*calls) for result in call]
        assert [len(result.attempts) for result in results] == [1, 1, 1, 0]

    assert len(cluster.sends) == 3


async def test_batches_are_refused_where_traces_are_wanted():
    async with producing({"a": stored}, enable_trace=True) as (producer, _):
        with pytest.raises(MessageRejectedError, match="enable_trace=False"):
            await send(producer, [batch(b"x")])


async def test_ids_are_unique_and_the_queues_are_told():
    async with producing({"a": stored}) as (producer, _):
        first, second = await asyncio.gather(
            producer._many.reserve_msg_ids(3), producer._many.reserve_msg_ids(2)
        )
        assert len({*first, *second}) == 5
        assert await producer.fetch_publish_queues("T") == [MessageQueue("T", "a", n) for n in range(4)]
        assert producer.config.group == "g"
