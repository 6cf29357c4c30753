"""What a test can do with the fake cluster; how it answers requests is in ``tests/behaviour``."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from time import perf_counter
from typing import Any

import pytest

from rmqtools import (
    Admin,
    ClientConfig,
    Message,
    MessageQueue,
    ProducerConfig,
    PullConsumerConfig,
    TransactionProducer,
    aio,
)
from rmqtools.errors import (
    BrokerError,
    ClientStateError,
    SendError,
    TopicNotFoundError,
)
from rmqtools.model.running_info import ConsumerRunningInfo, ProcessQueueInfo
from rmqtools.protocol.headers.group import LockBatchMqRequestHeader
from rmqtools.protocol.messages.stored import decode_messages
from rmqtools.protocol.wire.bodies import format_lock
from rmqtools.testing import (
    NAME_SERVER,
    FakeCluster,
    Reaction,
    RequestCode,
    ResponseCode,
)
from tests.behaviour.site import pull_header
from tests.behaviour.wire import Wire
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE
from tests.support.transactions import COMMIT, Listener

SEND = RequestCode.SEND_MESSAGE_V2
Q0 = MessageQueue("T", "broker-a", 0)


def producer_of(cluster: FakeCluster, **settings) -> aio.Producer:
    given = {"send_timeout": 0.5, "retry_times_when_send_failed": 0} | settings
    return aio.Producer(ProducerConfig(name_server=cluster.name_server, group="p", **given))


@asynccontextmanager
async def scene(**settings) -> AsyncIterator[tuple[FakeCluster, aio.Producer]]:
    """A cluster with topic T of two queues, and a producer."""
    async with FakeCluster(**settings) as cluster:
        cluster.create_topic("T", queues=2)
        async with producer_of(cluster) as producer:
            yield cluster, producer


def test_it_is_ready_in_50_ms_and_leaves_no_thread() -> None:
    threads = set(threading.enumerate())
    seconds = []
    for _ in range(10):
        begin = perf_counter()
        with FakeCluster(brokers=("broker-a", "broker-b")):
            seconds.append(perf_counter() - begin)

    assert min(seconds) < 0.05  # of ten: other programs share the machine
    assert set(threading.enumerate()) == threads


async def test_on_the_callers_loop_it_needs_no_thread() -> None:
    threads = set(threading.enumerate())
    async with scene() as (_, producer):
        await producer.send(Message("T", b"body"))
        assert set(threading.enumerate()) == threads


def test_it_cannot_be_started_twice() -> None:
    with FakeCluster() as cluster, pytest.raises(ClientStateError, match="make another one"):
        asyncio.run(cluster.start())


def test_a_second_block_is_refused_and_the_first_one_works_and_ends() -> None:
    threads = set(threading.enumerate())
    with FakeCluster() as cluster:
        with pytest.raises(ClientStateError, match="make another one"), cluster:
            pass
        cluster.create_topic("T")

    assert set(threading.enumerate()) == threads


def test_messages_of_a_topic_that_is_not_there_are_not_stored() -> None:
    with FakeCluster() as cluster, pytest.raises(TopicNotFoundError, match="create_topic first"):
        cluster.store("T", b"one")


def test_messages_are_stored_in_the_first_queue_of_a_topic_that_the_first_broker_does_not_have() -> None:
    with FakeCluster(("broker-a", "broker-b")) as cluster:
        cluster.create_topic("T", broker_names=["broker-b"])
        (message,) = cluster.store("T", b"one")

    assert (message.broker_name, message.queue_id) == ("broker-b", 0)


async def test_without_a_fault_requests_are_only_remembered() -> None:
    async with scene() as (cluster, producer):
        await producer.send(Message("T", b"body"))

        assert [request.body for request in cluster.requests(SEND)] == [b"body"]
        assert cluster.requests(SEND, broker=NAME_SERVER) == cluster.requests(SEND, topic="U") == []
        assert cluster.requests(broker=NAME_SERVER, topic="T")[0].code == RequestCode.GET_ROUTEINFO_BY_TOPIC


async def test_a_fault_strikes_as_often_as_its_budget_says() -> None:
    async with scene() as (cluster, producer):
        fault = cluster.fault(code=SEND, times=2, answer=ResponseCode.NO_PERMISSION)
        for _ in range(2):
            with pytest.raises(SendError):
                await producer.send(Message("T", b"no"))
        await producer.send(Message("T", b"yes"))

        assert (fault.fired(), [request.body for request in fault.requests]) == (2, [b"no", b"no"])
        assert [message.body for message in cluster.messages("T")] == [b"yes"]


@pytest.mark.parametrize(
    "matcher",
    [
        pytest.param({"code": RequestCode.SEND_MESSAGE}, id="code"),
        pytest.param({"broker": "broker-b"}, id="broker"),
        pytest.param({"topic": "U"}, id="topic"),
        pytest.param({"queue_id": 1}, id="queue"),
        pytest.param({"group": "q"}, id="group"),
    ],
)
async def test_a_fault_strikes_only_what_it_matches(matcher) -> None:
    async with scene() as (cluster, producer):
        given: dict[str, Any] = {
            "code": SEND,
            "broker": "broker-a",
            "topic": "T",
            "queue_id": 0,
            "group": "p",
        }
        missing = cluster.fault(**(given | matcher), answer=ResponseCode.NO_PERMISSION)
        matching = cluster.fault(**given, answer=Reaction.PASS)
        await producer.send(Message("T", b"body"), queue=Q0)

        assert (missing.fired(), matching.fired()) == (0, 1)


async def test_of_two_faults_the_first_strikes_until_its_budget_is_spent() -> None:
    async with scene() as (cluster, producer):
        first = cluster.fault(code=SEND, answer=ResponseCode.NO_PERMISSION)
        second = cluster.fault(code=SEND, answer=ResponseCode.MESSAGE_ILLEGAL)
        codes = []
        for _ in range(2):
            with pytest.raises(SendError) as error:
                await producer.send(Message("T", b"no"))
            codes.append((first.fired(), second.fired(), "MESSAGE_ILLEGAL" in str(error.value)))

        assert codes == [(1, 0, False), (1, 1, True)]


async def test_a_fault_that_lets_requests_pass_leaves_them_to_the_next() -> None:
    async with scene() as (cluster, producer):
        first = cluster.fault(code=SEND, times=None)
        second = cluster.fault(code=SEND, answer=ResponseCode.NO_PERMISSION)
        with pytest.raises(SendError):
            await producer.send(Message("T", b"no"))
        await producer.send(Message("T", b"yes"))

        assert (first.fired(), second.fired()) == (2, 1)


async def test_a_queue_that_lost_its_end_behind_expired_messages_begins_there() -> None:
    async with FakeCluster() as cluster, aio.Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        cluster.create_topic("T")
        cluster.store("T", b"0", b"1", b"2", queue=Q0)
        cluster.begin_at(Q0, 3)
        cluster.end_at(Q0, 1)
        cluster.store("T", b"new", queue=Q0)

        assert (await admin.min_offset(Q0), await admin.max_offset(Q0)) == (1, 2)


def test_a_queue_loses_messages_at_its_front_and_in_between() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        cluster.store("T", b"0", b"1", b"2", b"3")
        cluster.begin_at(Q0, 1)
        cluster.erase(Q0, 2)

        assert [message.queue_offset for message in cluster.messages("T", Q0)] == [1, 3]


def test_a_new_queue_begins_where_a_test_says() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        cluster.begin_at(Q0, 1 << 40)

        assert cluster.store("T", b"far")[0].queue_offset == 1 << 40


async def test_a_delay_passes_at_its_time_where_it_is_kept() -> None:
    async with scene(delay_scale=1.0) as (cluster, producer):
        await producer.send(Message("T", b"later", delay_level=2))
        cluster.advance(4.9)
        assert cluster.messages("T") == []

        cluster.advance(0.2)
        assert [message.body for message in cluster.messages("T")] == [b"later"]


async def test_a_broker_that_is_full_takes_no_messages() -> None:
    async with scene(max_bytes=500) as (_, producer):
        await producer.send(Message("T", bytes(1000)))
        with pytest.raises(SendError, match="max_bytes"):
            await producer.send(Message("T", b"more"))


async def test_a_topic_that_may_not_be_made_is_not_there() -> None:
    async with scene(auto_create_topics=False) as (_, producer):
        with pytest.raises(TopicNotFoundError):
            await producer.send(Message("new", b"body"))


def test_a_transaction_that_is_decided_while_its_half_message_is_hidden_is_not_open() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        config = ProducerConfig(name_server=cluster.name_server, group="g")
        with TransactionProducer(config, Listener(lambda *_: COMMIT)) as producer:
            cluster.hide_new()
            producer.send_message_in_transaction(Message("T", b"body"))
            wait_until(lambda: cluster.requests(RequestCode.END_TRANSACTION))
            cluster.show_all()

        assert cluster.half_messages() == []
        assert [message.body for message in cluster.messages("T")] == [b"body"]


def test_a_member_that_does_nothing_answers_operators_with_its_report() -> None:
    report = ConsumerRunningInfo(mq_table={Q0: ProcessQueueInfo()})
    with FakeCluster() as cluster, Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        cluster.add_member("g", "silent")
        cluster.add_member("g", "one", report)

        assert admin.fetch_running_info("g", "one").queues == (Q0,)
        with pytest.raises(BrokerError, match="<silent> not online"):
            admin.fetch_running_info("g", "silent")


async def test_a_condition_is_refused_as_by_a_broker_with_its_defaults() -> None:
    async with scene() as (cluster, _):
        config = PullConsumerConfig(name_server=cluster.name_server, group="g")
        consumer = aio.PullConsumer(config)
        consumer.subscribe("T", sql="a > 1")
        with pytest.raises(BrokerError, match="filter message by SQL92"):
            await consumer.start()
        await consumer.close()


def test_a_server_that_stands_still_answers_no_pull_that_it_holds_before_it_goes_on() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        wire = Wire(cluster.addr())
        held = wire.send(pull_header("T", 0, suspend=PATIENCE))
        wait_until(lambda: cluster.requests(RequestCode.PULL_MESSAGE))
        cluster.freeze("broker-a")
        cluster.store("T", b"meanwhile")
        was_answered = wire.is_answered(held, within=0.1)
        cluster.thaw("broker-a")

        assert not was_answered
        assert [message.body for message in decode_messages(wire.answer(held).body)] == [b"meanwhile"]
        wire.close()


def test_a_server_that_stood_still_when_it_stopped_works_after_its_restart() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        cluster.freeze("broker-a")
        cluster.stop("broker-a")
        cluster.restart("broker-a")

        with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            assert admin.max_offset(Q0) == 0


def test_a_broker_that_was_started_again_has_no_locks() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        with closing(Wire(cluster.addr())) as wire:
            wire.ask(LockBatchMqRequestHeader(), format_lock("g", "one", [Q0]))
        before = cluster.lock_owner("g", Q0)
        cluster.stop("broker-a")
        cluster.restart("broker-a")

        assert (before, cluster.lock_owner("g", Q0)) == ("one", None)
