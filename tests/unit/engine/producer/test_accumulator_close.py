"""Closing a producer whose messages share requests, and what counts its sends."""

import asyncio
import contextlib

import pytest

from rmqtools import Message
from rmqtools.engine.producer.send import ANY_QUEUE
from rmqtools.errors import ClientStateError, SendError, UnknownOutcomeError
from rmqtools.observer import observe
from rmqtools.testing import Reaction
from tests.support.fake import Fake
from tests.support.trace_records import parse_pubs
from tests.unit.engine.producer.accumulator_scene import (
    BATCH,
    QUEUE,
    codes,
    held_up,
    lingering,
    on_wire,
    plain,
    send_all,
)
from tests.unit.engine.producer.test_trace import TOPIC, traceable, traces_of


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
        core = producer
        await core._accumulator._selecting.acquire()
        (send,) = send_all(producer, plain(1), selector=lambda queues, message, arg: queues[0])
        await asyncio.sleep(0)
        await producer.close()
        core._accumulator._selecting.release()
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
    assert [record.keys for record in parse_pubs(message.body.decode())] == [
        f"k{number}" for number in range(5)
    ]
    assert message.ext_fields["b"] == TOPIC


class Counting(Fake):
    """Counts calls, results and errors, and adds a property to each message."""

    def __init__(self) -> None:
        self.calls = self.stored_count = self.errors = 0

    @contextlib.contextmanager
    def sending(self, messages, sender):
        self.calls += 1
        self.messages = [
            Message(one.topic, one.body, properties={"span": str(self.calls)}) for one in messages
        ]
        try:
            yield self
        except SendError:
            self.errors += 1
            raise

    def stored(self, results) -> None:
        self.stored_count += len(results)

    def loop_delay(self, seconds) -> None:
        pass


@pytest.fixture
def observer():
    observe(observer := Counting())
    yield observer
    observe(None)


async def test_an_observer_sees_every_send_by_itself(observer):
    async with lingering() as (producer, cluster):
        await asyncio.gather(*send_all(producer, plain(5)))
        assert (observer.calls, observer.stored_count, observer.errors) == (5, 5, 0)
        assert {message.properties["span"] for message in cluster.messages("T")} == set("12345")
        assert codes(cluster) == [BATCH]
        cluster.fault(code=BATCH, times=None, answer=Reaction.DISCONNECT)
        await asyncio.gather(*send_all(producer, plain(5)), return_exceptions=True)
        assert (observer.calls, observer.stored_count, observer.errors) == (10, 5, 5)


async def test_a_traced_send_that_is_cancelled_before_it_begins_is_not_sent():
    async with lingering(enable_trace=True) as (producer, cluster):
        cancelled = asyncio.ensure_future(producer._begin(Message("T", b"never"), ANY_QUEUE, None))
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        await producer.send(Message("T", b"sent"))
        assert [message.body for message in cluster.messages("T")] == [b"sent"]
