"""Single sends that share requests: who shares with whom, and each caller's own result."""

import asyncio
from collections import Counter

import pytest

from rmqtools import Message, SendStatus
from rmqtools.model.codes import RequestCode
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import Outcome
from rmqtools.select import SelectMessageQueueByHash
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


async def test_without_linger_every_message_is_a_request():
    async with lingering(linger=0.0) as (producer, cluster):
        assert producer._accumulator is None
        await asyncio.gather(*send_all(producer, plain(20)))
        assert codes(cluster) == [SINGLE] * 20


async def test_a_message_without_company_leaves_at_once_as_without_linger():
    async with lingering() as (producer, cluster):
        now = producer._client.clock.monotonic
        began = now()
        queues = [(await producer.send(message)).queue for message in plain(8)]
        assert now() - began < 1.0  # linger is 2 s
        assert codes(cluster) == [SINGLE] * 8
        assert Counter(queue.queue_id for queue in queues) == {0: 2, 1: 2, 2: 2, 3: 2}


async def test_messages_that_wait_leave_when_the_request_before_them_has_returned():
    async with lingering() as (producer, cluster):
        first = await held_up(producer, cluster)
        others = send_all(producer, plain(10))
        (result,) = await asyncio.gather(*first)
        assert codes(cluster) == [SINGLE]
        await asyncio.gather(*others)
        assert codes(cluster) == [SINGLE, BATCH]
        assert result.status is SendStatus.SEND_OK


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


async def test_a_queue_keeps_the_order_in_which_its_messages_were_given():
    async with lingering(queues=2, batch_bytes=4096) as (producer, cluster):
        await asyncio.gather(*send_all(producer, plain(500, size=100)))
        for queue_id in range(2):
            bodies = [message.body for message in cluster.messages("T", MessageQueue("T", "a", queue_id))]
            assert len(bodies) > 100
            assert bodies == sorted(bodies)


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
