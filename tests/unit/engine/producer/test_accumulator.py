"""Single sends that share requests: with whom, each caller's own result, and the end of the producer."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rmqtools import Message, MessageQueue, Outcome, ProducerConfig, SendStatus
from rmqtools.aio import Producer
from rmqtools.engine.producer.send import ANY_QUEUE
from rmqtools.errors import (
    ClientStateError,
    MessageRejectedError,
    PermissionDeniedError,
    SendError,
    UnknownOutcomeError,
)
from rmqtools.observer import observe
from rmqtools.select import SelectMessageQueueByHash
from rmqtools.testing import FakeCluster, Reaction, RequestCode, ResponseCode
from tests.support.send_ways import Observed
from tests.support.trace_records import parse_pubs
from tests.unit.engine.producer.test_trace import TOPIC, traceable, traces_of

SINGLE, BATCH = RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE
QUEUE = MessageQueue("T", "a", 1)


@asynccontextmanager
async def lingering(*, brokers=("a",), **settings):
    """A producer on a cluster; ``linger`` is so long that only other reasons end it."""
    async with FakeCluster(brokers=brokers) as cluster:
        cluster.create_topic("T", queues=4)
        wanted: Any = {"name_server": cluster.name_server, "group": "g", "linger": 2.0} | settings
        async with Producer(ProducerConfig(**wanted)) as producer:
            await producer.fetch_publish_queues("T")
            yield producer, cluster


def plain(count: int, size: int = 4) -> list[Message]:
    return [Message("T", b"%0*d" % (size, number), properties={"n": str(number)}) for number in range(count)]


def send_all(producer, messages, **options) -> list[asyncio.Task[Any]]:
    """Calls that are all begun, in this order, before any of them continues."""
    return [asyncio.create_task(producer.send(message, **options)) for message in messages]


def codes(cluster) -> list[int]:
    return [request.code for request in cluster.requests() if request.code in (SINGLE, BATCH)]


def slow(cluster, seconds: float, times: int | None = 1, **where):
    """The broker stores at once and answers late."""
    return cluster.fault(delay=seconds, times=times, answer=Reaction.PASS, **where)


async def on_wire(cluster, count: int) -> None:
    async with asyncio.timeout(10):
        while len(codes(cluster)) < count:  # noqa: ASYNC110 - the broker tells nobody
            await asyncio.sleep(0.001)


async def held_up(producer, cluster, seconds: float = 0.5) -> list[asyncio.Task[Any]]:
    """A message whose request is on the wire for so long, so that those after it wait."""
    slow(cluster, seconds, code=SINGLE)
    first = send_all(producer, plain(1))
    await on_wire(cluster, 1)
    return first


async def test_messages_of_one_loop_iteration_share_a_request_and_each_gets_its_own_place():
    async with lingering() as (producer, cluster):
        results = await asyncio.gather(*send_all(producer, plain(50)))
        stored = {message.msg_id: message for message in cluster.messages("T")}
        assert len(stored) == 50
        assert codes(cluster) == [BATCH]
        for number, result in enumerate(results):
            message = stored[result.msg_id]
            assert message.body == b"%04d" % number
            assert message.properties["n"] == str(number)
            assert (message.queue_id, message.queue_offset) == (result.queue.queue_id, result.queue_offset)
            assert message.offset_msg_id == result.offset_msg_id
            assert result.status is SendStatus.SEND_OK
            assert [attempt.outcome for attempt in result.attempts] == [Outcome.STORED]


async def test_a_message_without_company_leaves_at_once_as_without_linger():
    async with lingering() as (producer, cluster):
        now = producer._client.clock.monotonic
        began = now()
        queues = [(await producer.send(message)).queue for message in plain(8)]
        assert now() - began < 1.0  # linger is 2 s
        assert codes(cluster) == [SINGLE] * 8
        assert Counter(queue.queue_id for queue in queues) == {0: 2, 1: 2, 2: 2, 3: 2}


async def test_messages_that_wait_leave_when_they_have_lingered():
    async with lingering(linger=0.05) as (producer, cluster):
        first = await held_up(producer, cluster, 1.0)
        await asyncio.gather(*send_all(producer, plain(10)))
        assert codes(cluster) == [SINGLE, BATCH]
        assert not first[0].done()
        await first[0]


async def test_full_batches_leave_at_once_one_for_each_queue():
    async with lingering(batch_bytes=4096) as (producer, cluster):
        slow(cluster, 0.5, None, code=BATCH)
        sends = send_all(producer, plain(100, size=400))  # about 8 in a batch
        await on_wire(cluster, 4)
        await asyncio.sleep(0.1)
        assert codes(cluster) == [BATCH] * 4
        on_queues = {request.ext_fields["e"] for request in cluster.requests(code=BATCH)}
        assert on_queues == {"0", "1", "2", "3"}
        assert all(len(request.body) <= 4096 for request in cluster.requests(code=BATCH))
        await asyncio.gather(*sends)


@pytest.mark.parametrize(
    "choice", [{"queue": QUEUE}, {"selector": lambda queues, message, arg: QUEUE}], ids=["queue", "selector"]
)
async def test_messages_for_a_chosen_queue_share_requests_in_order_and_with_nobody_else(choice):
    async with lingering() as (producer, cluster):
        messages = plain(60)
        messages[30] = Message("T", b"0030" + bytes(8000))  # compressed: a request of its own, in its place
        chosen = send_all(producer, messages, **choice)
        others = send_all(producer, plain(10))
        results = await asyncio.gather(*chosen)
        await asyncio.gather(*others)
        assert {result.queue for result in results} == {QUEUE}
        offsets = [result.queue_offset for result in results]
        assert offsets == sorted(offsets)
        assert Counter(codes(cluster)) == {BATCH: 3, SINGLE: 1}


async def test_orderly_sends_of_one_key_share_requests_in_order():
    async with lingering() as (producer, cluster):
        messages = [Message("T", b"%04d" % number, sharding_key="k") for number in range(40)]
        tasks = [asyncio.create_task(producer.send_orderly(message)) for message in messages]
        results = await asyncio.gather(*tasks)
        queue = SelectMessageQueueByHash()(await producer.fetch_publish_queues("T"), messages[0], "k")
        assert [result.queue_offset for result in results] == list(range(40))
        assert {result.queue for result in results} == {queue}
        assert len(codes(cluster)) < 5


@pytest.mark.parametrize(
    "alone",
    [Message("T", b"late", delay_level=1), Message("T", bytes(5000)), Message("%RETRY%c", b"again")],
    ids=["delayed", "compressed", "retry"],
)
async def test_a_message_that_cannot_share_goes_singly_and_at_once_beside_a_batch(alone):
    async with lingering() as (producer, cluster):
        cluster.create_topic("%RETRY%c")
        results = await asyncio.gather(*send_all(producer, [*plain(5), alone, alone, *plain(5)]))
        assert len({result.msg_id for result in results}) == 12
        assert sorted(codes(cluster)) == sorted([SINGLE, SINGLE, BATCH])
        assert {request.ext_fields["b"] for request in cluster.requests(code=SINGLE)} == {alone.topic}


async def test_two_topics_do_not_share_a_request():
    async with lingering() as (producer, cluster):
        cluster.create_topic("U")
        messages = [Message("TU"[number % 2], b"x") for number in range(20)]
        results = await asyncio.gather(*send_all(producer, messages))
        assert [result.queue.topic for result in results] == list("TU" * 10)
        assert codes(cluster) == [BATCH] * 2


async def test_messages_given_before_the_route_is_known_share_requests_too():
    async with lingering() as (producer, cluster):
        cluster.create_topic("U", queues=2)
        slow(cluster, 0.2, code=RequestCode.GET_ROUTEINFO_BY_TOPIC)
        first = send_all(producer, [Message("U", b"%04d" % number) for number in range(20)])
        await asyncio.sleep(0.1)
        by_key = send_all(
            producer,
            [Message("U", b"%04d" % number) for number in range(5)],
            selector=lambda queues, message, arg: queues[0],
        )
        results = await asyncio.gather(*first, *by_key)
        assert {result.status for result in results} == {SendStatus.SEND_OK}
        offsets = [result.queue_offset for result in results[-5:]]
        assert offsets == list(range(offsets[0], offsets[0] + 5))
        assert len(codes(cluster)) < 5


async def test_a_topics_first_request_has_its_queue_for_itself_although_its_queue_was_not_known():
    async with lingering(batch_bytes=1024) as (producer, cluster):
        cluster.create_topic("U", queues=2)
        slow(cluster, 0.5, code=SINGLE)
        sends = send_all(producer, [Message("U", b"first")])
        await on_wire(cluster, 1)
        sends += send_all(producer, [Message("U", bytes(900)) for _ in range(3)])
        await asyncio.sleep(0.1)
        assert codes(cluster) == [SINGLE]
        await asyncio.gather(*sends)


# refusals, silence, timeouts and cancelled callers


async def test_a_message_that_is_not_valid_is_refused_to_its_caller_alone():
    async with lingering(max_message_bytes=1999, batch_bytes=1999) as (producer, _):
        bad = [Message("T", b""), Message("T", b"x" * 2000), Message("T", b"x", tags="a||b")]
        results: list[Any] = await asyncio.gather(
            *send_all(producer, [*plain(5), *bad, *plain(5)]), return_exceptions=True
        )
        assert [type(result) for result in results[5:8]] == [MessageRejectedError] * 3
        assert {result.status for result in results[:5] + results[8:]} == {SendStatus.SEND_OK}


@pytest.mark.parametrize(
    ("answer", "kind", "outcomes", "text"),
    [
        pytest.param(
            ResponseCode.INVALID_PARAMETER, SendError, [Outcome.REFUSED], "INVALID_PARAMETER", id="refused"
        ),
        pytest.param(Reaction.SWALLOW, UnknownOutcomeError, [Outcome.UNKNOWN] * 3, "", id="silent"),
    ],
)
async def test_an_error_is_told_to_every_caller_as_an_object_of_its_own_with_the_attempts_made(
    answer, kind, outcomes, text
):
    async with lingering() as (producer, cluster):
        cluster.fault(code=BATCH, times=None, answer=answer)
        sends = send_all(producer, plain(5), timeout=1.0)
        errors: list[Any] = await asyncio.gather(*sends, return_exceptions=True)
        assert {type(error) for error in errors} == {kind}
        assert len({id(error) for error in errors}) == 5
        for error in errors:
            assert [attempt.outcome for attempt in error.attempts] == outcomes
            assert text in str(error)
            assert error.__cause__ is not None


async def test_a_topic_that_may_not_be_written_is_told_to_every_caller():
    async with lingering() as (producer, cluster):
        cluster.create_topic("R", perm=4)
        sends = send_all(producer, [Message("R", b"x")] * 3)
        errors: list[Any] = await asyncio.gather(*sends, return_exceptions=True)
        assert [type(error) for error in errors] == [PermissionDeniedError] * 3
        assert "'R' may not be written: perm by broker is {'a': 4}" in str(errors[0])
        assert codes(cluster) == []


async def test_a_batch_that_the_broker_refuses_for_its_content_is_sent_again_message_by_message():
    async with lingering() as (producer, cluster):

        def refuse(request):
            is_bad = request.code == BATCH or b"0002" in request.body
            return ResponseCode.MESSAGE_ILLEGAL if is_bad else Reaction.PASS

        cluster.fault(times=None, answer=lambda r: refuse(r) if r.code in (SINGLE, BATCH) else Reaction.PASS)
        results = await asyncio.gather(*send_all(producer, plain(5)), return_exceptions=True)
        assert [isinstance(result, SendError) for result in results] == [False, False, True, False, False]
        bodies = sorted(message.body for message in cluster.messages("T"))
        assert bodies == [b"0000", b"0001", b"0003", b"0004"]


async def test_messages_of_a_refused_batch_stay_in_the_order_of_their_queue():
    async with lingering() as (producer, cluster):
        cluster.fault(code=BATCH, times=None, answer=ResponseCode.MESSAGE_ILLEGAL)
        await asyncio.gather(*send_all(producer, plain(5), queue=QUEUE))
        assert [message.body for message in cluster.messages("T")] == [b"%04d" % n for n in range(5)]


async def test_every_caller_has_its_own_timeout_unknown_in_a_request_and_not_sent_before():
    async with lingering() as (producer, cluster):
        slow(cluster, 1.0, None, code=BATCH)
        now = producer._client.clock.monotonic
        began = now()
        hurried = send_all(producer, plain(1), timeout=0.3, queue=QUEUE)
        patient = send_all(producer, plain(2), timeout=2.5, queue=QUEUE)
        await on_wire(cluster, 1)
        waiting = send_all(producer, plain(2), timeout=0.4, queue=QUEUE)
        late = send_all(producer, plain(2), timeout=2.5, queue=QUEUE)
        with pytest.raises(UnknownOutcomeError, match="may or may not be stored"):
            await hurried[0]
        assert 0.3 <= now() - began < 0.6
        for send in waiting:
            with pytest.raises(SendError, match="nothing was sent") as caught:
                await send
            assert type(caught.value) is SendError
        assert now() - began < 0.7
        results = await asyncio.gather(*patient, *late)
        assert [result.queue_offset for result in results] == [1, 2, 3, 4]
        assert len(cluster.messages("T")) == 5


async def test_a_caller_whose_time_is_over_during_a_request_is_told_the_attempts_that_had_ended():
    async with lingering(brokers=("a", "b")) as (producer, cluster):
        cluster.fault(code=BATCH, answer=ResponseCode.SYSTEM_BUSY)
        cluster.fault(code=BATCH, answer=Reaction.SILENCE)
        hurried = send_all(producer, plain(1), timeout=0.3)
        patient = send_all(producer, plain(1), timeout=2.5)
        with pytest.raises(UnknownOutcomeError) as caught:
            await hurried[0]
        assert [attempt.outcome for attempt in caught.value.attempts] == [Outcome.REFUSED]
        assert len((await patient[0]).attempts) == 3


async def test_a_caller_that_gives_up_takes_its_waiting_message_along_and_no_other():
    async with lingering() as (producer, cluster):
        first = await held_up(producer, cluster)
        others = send_all(producer, plain(6))
        await asyncio.sleep(0)
        others[0].cancel()
        others[3].cancel()
        first[0].cancel()
        await asyncio.wait(others)
        assert [number for number, other in enumerate(others) if other.cancelled()] == [0, 3]
        bodies = sorted(message.body for message in cluster.messages("T"))
        assert bodies == [b"0000", b"0001", b"0002", b"0004", b"0005"]  # the first was in a request


async def test_a_caller_that_gives_up_during_a_request_does_not_disturb_the_others():
    async with lingering() as (producer, cluster):
        slow(cluster, 0.5, code=BATCH)
        sends = send_all(producer, plain(4))
        await on_wire(cluster, 1)
        sends[1].cancel()
        await asyncio.wait(sends)
        assert [send.result().queue_offset for send in sends if not send.cancelled()] == [0, 2, 3]


# closing, traces and observers


async def test_closing_sends_what_was_accepted_and_refuses_what_comes_later():
    async with lingering() as (producer, cluster):
        sends = await held_up(producer, cluster)
        sends += send_all(producer, plain(20))
        sends += send_all(producer, plain(20), queue=QUEUE)
        await asyncio.sleep(0)
        await producer.close()
        assert all(send.done() for send in sends)
        assert len({(await send).msg_id for send in sends}) == 41
        assert len(cluster.messages("T")) == 41
        with pytest.raises(ClientStateError):
            await producer.send(Message("T", b"late"))


async def test_closing_ends_within_the_send_timeout_and_tells_everybody_what_is_known():
    async with lingering() as (producer, cluster):
        cluster.fault(code=BATCH, times=None, answer=Reaction.SILENCE)
        now = asyncio.get_running_loop().time
        on_the_wire = send_all(producer, plain(3), timeout=60, queue=QUEUE)
        await on_wire(cluster, 1)
        waiting = send_all(producer, plain(3), timeout=60, queue=QUEUE)
        await asyncio.sleep(0)
        began = now()
        await producer.close()
        assert now() - began < 4.0  # send_timeout is 3 s
        errors = await asyncio.gather(*on_the_wire, *waiting, return_exceptions=True)
        assert [type(error) for error in errors] == [UnknownOutcomeError] * 3 + [SendError] * 3
        assert "the producer was closed: nothing was sent" in str(errors[-1])
        assert len(producer._accumulator._requests) == 0


async def test_a_request_that_closing_ends_before_it_began_was_not_sent():
    async with lingering() as (producer, cluster):
        sends = send_all(producer, plain(3))
        accumulator = producer._accumulator
        while not accumulator._requests.tasks:  # noqa: ASYNC110 - iteration by iteration
            await asyncio.sleep(0)
        await accumulator._requests.stop()
        for error in await asyncio.gather(*sends, return_exceptions=True):
            assert type(error) is SendError
            assert "the producer was closed: nothing was sent" in str(error)
        assert codes(cluster) == []


async def test_a_message_whose_selector_was_waiting_for_the_route_is_not_sent_after_closing():
    async with lingering() as (producer, cluster):
        await producer._accumulator._selecting.acquire()
        (send,) = send_all(producer, plain(1), selector=lambda queues, message, arg: queues[0])
        await asyncio.sleep(0)
        await producer.close()
        producer._accumulator._selecting.release()
        with pytest.raises(SendError, match="the producer was closed: nothing was sent"):
            await send
        assert codes(cluster) == []


def test_every_message_of_a_batch_is_traced_those_sent_by_closing_too():
    async def use(producer, broker):
        messages = [Message("T", b"body", keys=f"k{number}") for number in range(5)]
        sends = send_all(producer, messages)
        await asyncio.sleep(0)
        await producer.close()
        assert len({(await send).msg_id for send in sends}) == 5

    (message,) = traces_of(traceable, use, enable_trace=True, linger=2.0)
    keys = [record.keys for record in parse_pubs(message.body.decode())]
    assert keys == ["k0", "k1", "k2", "k3", "k4"]
    assert message.ext_fields["b"] == TOPIC


@pytest.fixture
def observer():
    observe(observer := Observed())
    yield observer
    observe(None)


async def test_an_observer_sees_every_send_by_itself(observer):
    async with lingering() as (producer, cluster):
        await asyncio.gather(*send_all(producer, plain(5)))
        assert (len(observer.results), observer.errors) == (5, [])
        assert {message.body for message in cluster.messages("T")} == {b"changed"}
        assert codes(cluster) == [BATCH]
        cluster.fault(code=BATCH, times=None, answer=Reaction.DISCONNECT)
        await asyncio.gather(*send_all(producer, plain(5)), return_exceptions=True)
        assert (len(observer.results), len(observer.errors)) == (5, 5)


async def test_a_traced_send_that_is_cancelled_before_it_begins_is_not_sent():
    async with lingering(enable_trace=True) as (producer, cluster):
        cancelled = asyncio.ensure_future(producer._begin(Message("T", b"never"), ANY_QUEUE, None))
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        await producer.send(Message("T", b"sent"))
        assert [message.body for message in cluster.messages("T")] == [b"sent"]
