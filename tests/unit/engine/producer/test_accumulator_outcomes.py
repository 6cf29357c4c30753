"""Refusals, silence, timeouts and cancelled callers of messages that share requests."""

import asyncio
from typing import Any

import pytest

from rmqtools import Message, SendStatus
from rmqtools.errors import MessageRejectedError, PermissionDeniedError, SendError, UnknownOutcomeError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.result import Outcome
from rmqtools.testing import Reaction
from tests.unit.engine.producer.accumulator_scene import (
    BATCH,
    QUEUE,
    SINGLE,
    codes,
    held_up,
    lingering,
    on_wire,
    plain,
    send_all,
    slow,
)


async def test_a_message_that_is_not_valid_is_refused_to_its_caller_alone():
    async with lingering(max_message_bytes=1999, batch_bytes=1999) as (producer, _):
        bad = [Message("T", b""), Message("T", b"x" * 2000), Message("T", b"x", tags="a||b")]
        results: list[Any] = await asyncio.gather(
            *send_all(producer, [*plain(5), *bad, *plain(5)]), return_exceptions=True
        )
        assert [type(result) for result in results[5:8]] == [MessageRejectedError] * 3
        assert {result.status for result in results[:5] + results[8:]} == {SendStatus.SEND_OK}


async def test_an_error_is_told_to_every_caller_of_the_request_as_an_object_of_its_own():
    async with lingering() as (producer, cluster):
        cluster.fault(code=BATCH, times=None, answer=ResponseCode.INVALID_PARAMETER)
        errors: list[Any] = await asyncio.gather(*send_all(producer, plain(5)), return_exceptions=True)
        assert {type(error) for error in errors} == {SendError}
        assert len({id(error) for error in errors}) == 5
        for error in errors:
            assert [attempt.outcome for attempt in error.attempts] == [Outcome.REFUSED]
            assert "INVALID_PARAMETER" in str(error)
            assert error.__cause__ is not None


async def test_a_topic_that_may_not_be_written_is_told_to_every_caller():
    async with lingering() as (producer, cluster):
        cluster.create_topic("R", perm=4)
        sends = send_all(producer, [Message("R", b"x")] * 3)
        errors: list[Any] = await asyncio.gather(*sends, return_exceptions=True)
        assert [type(error) for error in errors] == [PermissionDeniedError] * 3
        assert codes(cluster) == []


async def test_a_batch_that_the_broker_refuses_for_its_content_is_sent_again_message_by_message():
    async with lingering() as (producer, cluster):

        def refuse(request):
            is_bad = request.code == BATCH or b"0002" in request.body
            return ResponseCode.MESSAGE_ILLEGAL if is_bad else Reaction.PASS

        cluster.fault(times=None, answer=lambda r: refuse(r) if r.code in (SINGLE, BATCH) else Reaction.PASS)
        results = await asyncio.gather(*send_all(producer, plain(5)), return_exceptions=True)
        assert [isinstance(result, SendError) for result in results] == [False, False, True, False, False]
        assert sorted(message.body for message in cluster.messages("T")) == [
            b"%04d" % n for n in (0, 1, 3, 4)
        ]


async def test_messages_of_a_refused_batch_stay_in_the_order_of_their_queue():
    async with lingering() as (producer, cluster):
        cluster.fault(code=BATCH, times=None, answer=ResponseCode.MESSAGE_ILLEGAL)
        await asyncio.gather(*send_all(producer, plain(5), queue=QUEUE))
        assert [message.body for message in cluster.messages("T")] == [b"%04d" % n for n in range(5)]


async def test_a_broker_that_refuses_is_avoided_and_the_results_say_so():
    async with lingering(brokers=("a", "b")) as (producer, cluster):
        cluster.fault(broker="a", code=BATCH, times=None, answer=ResponseCode.SYSTEM_BUSY)
        for _ in range(4):
            for result in await asyncio.gather(*send_all(producer, plain(5))):
                assert result.queue.broker_name == "b"
                assert [attempt.outcome for attempt in result.attempts][-1] is Outcome.STORED
        assert len(cluster.messages("T")) == 20


async def test_silence_is_an_unknown_outcome_for_every_caller_with_the_attempts_made():
    async with lingering() as (producer, cluster):
        cluster.fault(code=BATCH, times=None, answer=Reaction.SWALLOW)
        errors: list[Any] = await asyncio.gather(
            *send_all(producer, plain(5), timeout=1.0), return_exceptions=True
        )
        assert {type(error) for error in errors} == {UnknownOutcomeError}
        for error in errors:
            assert [attempt.outcome for attempt in error.attempts] == [Outcome.UNKNOWN] * 3


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
        results = await asyncio.gather(*others, return_exceptions=True)
        assert [isinstance(result, asyncio.CancelledError) for result in results] == [
            True, False, False, True, False, False,
        ]  # fmt: skip
        bodies = sorted(message.body for message in cluster.messages("T"))
        assert bodies == [b"0000", b"0001", b"0002", b"0004", b"0005"]  # the first was in a request


async def test_a_caller_that_gives_up_during_a_request_does_not_disturb_the_others():
    async with lingering() as (producer, cluster):
        slow(cluster, 0.5, code=BATCH)
        sends = send_all(producer, plain(4))
        await on_wire(cluster, 1)
        sends[1].cancel()
        results = await asyncio.gather(*sends, return_exceptions=True)
        assert [result.queue_offset for result in results if not isinstance(result, BaseException)] == [
            0,
            2,
            3,
        ]
