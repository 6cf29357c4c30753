"""Single sends that share requests (``linger``), from futures, threads and asyncio."""

import asyncio
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rmqtools import Message, Producer, ProducerConfig, SendStatus, aio
from rmqtools.errors import MessageRejectedError
from rmqtools.model.codes import RequestCode
from rmqtools.select import SelectMessageQueueByHash

BATCH, SINGLE = RequestCode.SEND_BATCH_MESSAGE, RequestCode.SEND_MESSAGE_V2


def config(site, **settings) -> ProducerConfig:
    return ProducerConfig(
        **{"name_server": site.name_server, "group": "linger", "linger": 0.02, "send_timeout": 15.0}
        | settings
    )


def check(site, results, bodies) -> None:
    """Every result is the place of its own message."""
    for result, body in zip(results, bodies, strict=True):
        stored = site.admin.view_message(result.offset_msg_id)
        assert (stored.msg_id, stored.body) == (result.msg_id, body)
        assert (stored.queue_id, stored.queue_offset) == (result.queue.queue_id, result.queue_offset)
        assert (stored.tags, stored.keys, stored.flag) == ("t", "k", 7)


def message(topic: str, body: bytes, **more) -> Message:
    return Message(topic, body, tags="t", keys="k", flag=7, properties={"p": "v"}, **more)


def test_futures_share_requests_and_each_has_its_own_place(site, topic):
    bodies = [b"%04d\0\xff" % number for number in range(300)]
    with Producer(config(site)) as producer:
        producer.send(message(topic, b"first"))
        futures = [producer.send_async(message(topic, body)) for body in bodies]
        results = [future.result(20) for future in futures]

    assert len({(result.queue, result.queue_offset) for result in results}) == 300
    assert len({result.msg_id for result in results}) == 300
    assert {result.status for result in results} == {SendStatus.SEND_OK}
    check(site, results[::10], bodies[::10])
    if site.fake is not None:
        assert len(site.fake.requests(code=BATCH, topic=topic)) < 100
        assert len(site.fake.requests(code=SINGLE, topic=topic)) < 100


def test_blocking_sends_of_threads_share_requests(site, topic):
    results = defaultdict(list)

    def work(number: int) -> None:
        for count in range(20):
            results[number].append(producer.send(message(topic, b"%d/%d" % (number, count))))

    with Producer(config(site)) as producer, ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))

    places = {(result.queue, result.queue_offset) for some in results.values() for result in some}
    assert len(places) == 160
    check(site, results[3], [b"3/%d" % count for count in range(20)])


def test_messages_of_a_key_stay_in_order_without_waiting_for_one_another(site, topic):
    async def send() -> list[Any]:
        async with aio.Producer(config(site, batch_bytes=4096)) as producer:
            calls = [
                producer.send(
                    message(topic, b"%04d" % number, sharding_key=str(number % 3)),
                    selector=SelectMessageQueueByHash(),
                    arg=str(number % 3),
                )
                for number in range(300)
            ]
            return await asyncio.gather(*calls)

    results = asyncio.run(send())
    for key in range(3):
        mine = results[key::3]
        assert len({result.queue for result in mine}) == 1
        offsets = [result.queue_offset for result in mine]
        assert offsets == sorted(offsets)
    check(site, results[::20], [b"%04d" % number for number in range(0, 300, 20)])


def test_what_cannot_share_a_request_is_sent_or_refused_by_itself(site, topic):
    with Producer(config(site, max_message_bytes=100_000)) as producer:
        plain = [producer.send_async(message(topic, b"%d" % number)) for number in range(20)]
        delayed = producer.send_async(message(topic, b"later", delay_level=1))
        large = producer.send_async(message(topic, bytes(50_000)))
        refused = producer.send_async(message(topic, bytes(100_001)))
        more = [producer.send_async(message(topic, b"%d" % number)) for number in range(20)]
        results = [future.result(20) for future in [*plain, *more, large]]
        assert delayed.result(20).status is SendStatus.SEND_OK
        with pytest.raises(MessageRejectedError, match="more than max_message_bytes=100000"):
            refused.result(20)

    check(site, results, [*[b"%d" % number for number in range(20)] * 2, bytes(50_000)])


def test_closing_sends_what_futures_wait_for(site, topic):
    with Producer(config(site, linger=1.0)) as producer:
        producer.send(message(topic, b"first"))
        futures = [producer.send_async(message(topic, b"%d" % number)) for number in range(50)]

    results = [future.result(0) for future in futures]
    assert len({(result.queue, result.queue_offset) for result in results}) == 50
