"""Popping and group settings, request by request, on a real broker.

A broker of its own: 5.5.0 forbids popping where the timer wheel is off.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import pytest

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.cluster import LocalCluster
from rmqtools.engine.connection.client import ClientCore
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group_config import SetMessageRequestModeRequestBody, SubscriptionGroupConfig
from rmqtools.model.message import MessageExt
from rmqtools.protocol.headers.codec import RequestHeader, decode_header
from rmqtools.protocol.headers.group import (
    GetAllSubscriptionGroupRequestHeader,
    GetSubscriptionGroupConfigRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
    SetMessageRequestModeRequestHeader,
    UpdateSubscriptionGroupRequestHeader,
)
from rmqtools.protocol.headers.offset import UpdateConsumerOffsetRequestHeader
from rmqtools.protocol.headers.pop_extra_info import format_extra_info, parse_extra_info
from rmqtools.protocol.headers.pull import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    NotificationRequestHeader,
    NotificationResponseHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)
from rmqtools.protocol.messages.popped import with_extra_info
from rmqtools.protocol.messages.stored import decode_messages
from rmqtools.protocol.wire import bodies
from rmqtools.protocol.wire.command import RemotingCommand, request

pytestmark = pytest.mark.broker
T = TypeVar("T")
INVISIBLE_MS = 60_000
NOTHING_TO_POP = (ResponseCode.PULL_NOT_FOUND, ResponseCode.POLLING_TIMEOUT, ResponseCode.POLLING_FULL)


class Broker:
    """One broker, asked directly."""

    def __init__(self, core: ClientCore, addr: str) -> None:
        self._core, self._addr = core, addr

    async def ask(self, header: RequestHeader, body: bytes = b"") -> RemotingCommand:
        return await self._core.remoting.invoke_ok(self._addr, request(header, body))

    async def pop(self, topic: str, group: str) -> list[MessageExt]:
        """Messages of queue 0, in order of the queue."""
        header = PopMessageRequestHeader(
            consumer_group=group,
            topic=topic,
            queue_id=0,
            max_msg_nums=32,
            invisible_time=INVISIBLE_MS,
            poll_time=0,
            born_time=self._core.clock.now_ms(),
            init_mode=0,
        )
        answer = await self._core.remoting.invoke(self._addr, request(header))
        if answer.code in NOTHING_TO_POP:
            return []
        assert answer.code == ResponseCode.SUCCESS, (answer.code, answer.remark)
        answered = decode_header(PopMessageResponseHeader, answer.ext_fields)
        stored = decode_messages(answer.body)
        return with_extra_info(stored, answered, topic=topic, broker_name="broker-a", order=False)

    async def change(self, topic: str, group: str, extra_info: str, invisible_ms: int) -> str:
        """The extra info that a message has after its time was changed."""
        known = parse_extra_info(extra_info)
        asked = ChangeInvisibleTimeRequestHeader(
            consumer_group=group,
            topic=known.real_topic(topic, group),
            queue_id=known.queue_id,
            extra_info=extra_info,
            offset=known.queue_offset or 0,
            invisible_time=invisible_ms,
        )
        answer = await self.ask(asked)
        answered = decode_header(ChangeInvisibleTimeResponseHeader, answer.ext_fields)
        renewed = replace(
            known,
            start_offset=asked.offset,
            pop_time=answered.pop_time,
            invisible_time=answered.invisible_time,
            revive_qid=answered.revive_qid,
        )
        return format_extra_info(renewed)

    async def ack(self, topic: str, group: str, extra_info: str) -> None:
        known = parse_extra_info(extra_info)
        await self.ask(
            AckMessageRequestHeader(
                consumer_group=group,
                topic=known.real_topic(topic, group),
                queue_id=known.queue_id,
                extra_info=extra_info,
                offset=known.queue_offset or 0,
            )
        )


@pytest.fixture(scope="module")
def pop_cluster() -> Iterator[LocalCluster]:
    with LocalCluster(brokers=1, timer_wheel=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def pop_producer(pop_cluster: LocalCluster) -> Iterator[Producer]:
    with Producer(ProducerConfig(name_server=pop_cluster.name_server, group="tests")) as producer:
        yield producer


@pytest.fixture
def topic(pop_cluster: LocalCluster) -> str:
    """A topic with one queue."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    with Admin(ClientConfig(name_server=pop_cluster.name_server)) as admin:
        admin.create_topic(name, read_queue_nums=1, write_queue_nums=1)
    return name


@pytest.fixture
def on_broker(pop_cluster: LocalCluster) -> Callable[[Callable[[Broker], Awaitable[T]]], T]:
    """Run a coroutine with broker-a."""

    def run(work: Callable[[Broker], Awaitable[T]]) -> T:
        async def body() -> T:
            core = ClientCore(ClientConfig(name_server=pop_cluster.name_server))
            core.start()
            try:
                return await asyncio.wait_for(work(Broker(core, addr)), 60)
            finally:
                await core.close()

        addr = pop_cluster.broker_addrs["broker-a"]
        return asyncio.run(body())

    return run


def new_group() -> str:
    return f"group-{uuid.uuid4().hex[:12]}"


async def until(ask: Callable[[], Awaitable[T]], good: Callable[[T], object]) -> T:
    """Ask again until the answer is good; the caller has the deadline."""
    while not good(answer := await ask()):  # noqa: ASYNC110 # the broker tells nobody when it is
        await asyncio.sleep(0.1)
    return answer


def test_what_is_popped_can_be_hidden_longer_and_acknowledged(pop_producer, topic, on_broker):
    group = new_group()
    sent = [pop_producer.send(Message(topic, b"%d" % n)) for n in range(3)]

    async def work(broker: Broker) -> tuple[list[MessageExt], str]:
        popped: list[MessageExt] = []
        while len(popped) < 3:
            popped += await until(lambda: broker.pop(topic, group), bool)
        renewed = await broker.change(topic, group, popped[0].properties["POP_CK"], INVISIBLE_MS * 2)
        for text in (renewed, *(message.properties["POP_CK"] for message in popped[1:])):
            await broker.ack(topic, group, text)
        return popped, renewed

    popped, renewed = on_broker(work)

    assert {message.msg_id for message in popped} == {result.msg_id for result in sent}
    assert {message.body for message in popped} == {b"0", b"1", b"2"}
    known = [parse_extra_info(message.properties["POP_CK"]) for message in popped]
    assert [info.queue_offset for info in known] == [message.queue_offset for message in popped]
    assert {(info.broker_name, info.queue_id, info.invisible_time) for info in known} == {
        ("broker-a", 0, INVISIBLE_MS)
    }
    assert parse_extra_info(renewed).invisible_time == INVISIBLE_MS * 2


def test_a_message_whose_time_ran_out_comes_again_from_the_retry_topic(pop_producer, topic, on_broker):
    group = new_group()
    pop_producer.send(Message(topic, b"again"))

    async def work(broker: Broker) -> MessageExt:
        (first,) = await until(lambda: broker.pop(topic, group), bool)
        await broker.change(topic, group, first.properties["POP_CK"], 1000)
        (again,) = await until(lambda: broker.pop(topic, group), bool)
        await broker.ack(topic, group, again.properties["POP_CK"])
        return again

    again = on_broker(work)

    assert (again.topic, again.body, again.reconsume_times) == (topic, b"again", 1)
    assert parse_extra_info(again.properties["POP_CK"]).topic_type in "12"


def test_a_notification_tells_that_there_is_something_to_pop(pop_producer, topic, on_broker):
    def question(group: str) -> NotificationRequestHeader:
        return NotificationRequestHeader(
            consumer_group=group, topic=topic, queue_id=0, poll_time=0, born_time=0
        )

    async def work(broker: Broker) -> list[bool]:
        async def has_message() -> bool:
            answer = await broker.ask(question(new_group()))
            return decode_header(NotificationResponseHeader, answer.ext_fields).has_msg

        before = await has_message()
        await asyncio.to_thread(pop_producer.send, Message(topic, b"x"))
        return [before, await until(has_message, bool)]

    assert on_broker(work) == [False, True]


def test_group_settings_are_stored_and_read_back(on_broker):
    config = SubscriptionGroupConfig(
        group_name=new_group(), retry_max_times=3, consume_message_orderly=True, retry_queue_nums=2
    )

    async def work(broker: Broker) -> tuple[SubscriptionGroupConfig, dict[str, SubscriptionGroupConfig]]:
        await broker.ask(UpdateSubscriptionGroupRequestHeader(), bodies.format_body(config))
        one = await broker.ask(GetSubscriptionGroupConfigRequestHeader(group=config.group_name))
        many = await broker.ask(GetAllSubscriptionGroupRequestHeader(group_seq=0))
        return bodies.parse_subscription_group(one.body), bodies.parse_subscription_groups(many.body)

    one, many = on_broker(work)

    assert (one, many[config.group_name]) == (config, config)


def test_a_topic_can_be_set_to_be_popped_and_its_groups_are_known(pop_producer, topic, on_broker):
    group = new_group()
    pop_producer.send(Message(topic, b"x"))
    mode = SetMessageRequestModeRequestBody(topic=topic, consumer_group=group, mode="POP")
    commit = UpdateConsumerOffsetRequestHeader(consumer_group=group, topic=topic, queue_id=0, commit_offset=0)

    async def work(broker: Broker) -> tuple[str, ...]:
        await broker.pop(topic, group)
        await broker.ask(SetMessageRequestModeRequestHeader(), bodies.format_body(mode))
        await broker.ask(commit)
        answer = await broker.ask(QueryTopicConsumeByWhoRequestHeader(topic=topic))
        return bodies.parse_group_list(answer.body)

    assert on_broker(work) == (group,)
