"""The exact appender on the fake cluster: one test for each rule, which fails without it."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rmqtools import ClientConfig, Message, MessageQueue, ProducerConfig
from rmqtools.aio import Admin, ExactAppender, Producer
from rmqtools.engine.exact import queue_writer
from rmqtools.errors import BrokerError, ClientStateError, ConfigError, ExactAppendError
from rmqtools.model.append_mark import APPEND_MARK, FENCE_TOPIC, AppendMark, parse_mark
from rmqtools.policy.exact_append import LOCK_SECONDS
from rmqtools.testing import FakeCluster, Reaction, RequestCode, ResponseCode
from tests.support.relay import Relay
from tests.support.scripted_transactions import until

TOPIC = "target"
QUEUE = MessageQueue(TOPIC, "broker-a", 0)
WRITER = "w"
BATCH = RequestCode.SEND_BATCH_MESSAGE


@asynccontextmanager
async def scene(**settings: Any) -> AsyncIterator[tuple[FakeCluster, Producer]]:
    """A cluster whose brokers make no topics by themselves, and a producer."""
    async with FakeCluster(auto_create_topics=False) as cluster:
        cluster.create_topic(TOPIC, queues=2)
        async with Producer(ProducerConfig(name_server=cluster.name_server, **settings)) as producer:
            yield cluster, producer


def appender(producer: Producer, **settings: Any) -> ExactAppender:
    given: dict[str, Any] = {"writer": WRITER, "settle_seconds": 2.0} | settings
    return ExactAppender(producer, QUEUE, **given)


def cut(writer: ExactAppender) -> None:
    """Break the connection of a writer."""
    writer._writer._broker.abort()


def messages(positions: Sequence[int]) -> list[Message]:
    return [Message(TOPIC, str(position).encode()) for position in positions]


async def append(to: ExactAppender, *positions: int) -> None:
    await to.append(messages(positions), positions)


def store_marked(cluster: FakeCluster, position: int) -> None:
    """Store a message as the writer would have it."""
    mark = str(AppendMark(position, WRITER))
    cluster.store(TOPIC, str(position).encode(), queue=QUEUE, properties={APPEND_MARK: mark})


def stored(cluster: FakeCluster) -> list[int]:
    """The positions in the queue, in its order."""
    marks = [parse_mark(message.properties.get(APPEND_MARK)) for message in cluster.messages(TOPIC, QUEUE)]
    return [mark.position for mark in marks if mark is not None]


def administration(cluster: FakeCluster) -> Admin:
    return Admin(ClientConfig(name_server=cluster.name_server))


async def test_a_dead_writer_without_a_hint_is_found_behind_foreign_messages():
    async with scene() as (cluster, producer):
        writer = appender(producer)
        await writer.start()
        await append(writer, 3, 7)
        cluster.store(TOPIC, *[b"foreign"] * 500, queue=QUEUE)
        await writer._writer.abandon()  # as the end of its process does; its lock stays for a minute
        await writer.close()
        cluster.advance(61.0)

        async with appender(producer) as second:
            assert second.last_position == 7


@pytest.mark.parametrize("behind", [3, 300], ids=["few messages behind", "many messages behind"])
async def test_copies_that_another_program_sent_into_the_queue_with_their_marks_do_not_count(behind):
    async with scene() as (cluster, producer):
        async with appender(producer) as writer:
            await append(writer, *range(6))
        cluster.store(TOPIC, *[b"foreign"] * behind, queue=QUEUE)
        store_marked(cluster, 1)
        store_marked(cluster, 4)

        async with appender(producer) as writer:
            assert writer.last_position == 5
            await append(writer, 6)

        assert stored(cluster) == [0, 1, 2, 3, 4, 5, 1, 4, 6]


async def test_rule_1_a_late_answer_settles_its_request():
    async with scene() as (cluster, producer), appender(producer) as writer:
        cluster.fault(code=BATCH, answer=Reaction.PASS, delay=10.0)  # the default timeout is 3 s
        arrived = asyncio.get_running_loop().time() + 10.5
        await append(writer, 0, 1)
        await asyncio.sleep(max(0.0, arrived - asyncio.get_running_loop().time()))

        assert stored(cluster) == [0, 1]


async def test_rule_1_an_interrupted_append_is_settled_by_its_own_answer():
    async with scene() as (cluster, producer), appender(producer) as writer:
        cluster.fault(code=BATCH, answer=Reaction.PASS, delay=5.0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await append(writer, 0, 1)
        with pytest.raises(ClientStateError, match="call resume"):
            await append(writer, 0, 1)

        assert await writer.resume() == 1
        assert stored(cluster) == [0, 1]


async def test_rule_2_what_a_frozen_broker_stores_when_it_continues_is_waited_for():
    async with scene() as (cluster, producer), appender(producer) as writer:
        cluster.fault(code=BATCH, answer=Reaction.PASS, delay=1.5)  # it lies in a buffer for so long
        arrived = asyncio.get_running_loop().time() + 2.0
        appending = asyncio.create_task(append(writer, 0, 1))
        await until(lambda: writer._writer._broker.has_request)
        cut(writer)  # lost, with the request at the broker
        await appending
        await asyncio.sleep(max(0.0, arrived - asyncio.get_running_loop().time()))

        assert stored(cluster) == [0, 1]


async def test_rule_3_what_is_stored_and_not_visible_counts_as_stored():
    async with scene() as (cluster, producer), appender(producer) as writer:
        await append(writer, 0)
        cluster.hide_new()
        cluster.fault(code=BATCH, answer=Reaction.SWALLOW)
        appending = asyncio.create_task(append(writer, 1, 2))
        await until(lambda: len(cluster.requests(BATCH)) == 2)
        cluster.disconnect("broker-a")
        await until(lambda: len(cluster.requests(topic=FENCE_TOPIC)) > 4)  # of the start, and of now
        await asyncio.sleep(3.0)
        cluster.show_all()
        await appending

        assert stored(cluster) == [0, 1, 2]


async def test_rule_4_the_connection_is_reset_when_its_process_ends():
    async with scene() as (_, producer), appender(producer) as writer:
        connection: Any = writer._writer._broker._connection
        own = connection._transport.get_extra_info("socket")
        linger = own.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)

    assert struct.unpack("ii", linger) == (1, 0)


async def test_rule_5_a_batch_of_which_the_first_messages_were_stored_is_completed():
    async with scene() as (cluster, producer), appender(producer) as writer:

        def store_two(request):
            store_marked(cluster, 0)
            store_marked(cluster, 1)
            return Reaction.DISCONNECT

        cluster.fault(code=BATCH, answer=store_two)
        await append(writer, 0, 1, 2, 3)

        assert stored(cluster) == [0, 1, 2, 3]


async def test_rule_5_a_second_writer_is_noticed_by_the_place_of_the_next_messages():
    async with scene() as (cluster, producer), appender(producer) as writer:
        await append(writer, 0)
        store_marked(cluster, 1)

        with pytest.raises(ExactAppendError, match="another process has stored position 1"):
            await append(writer, 1)


async def test_rule_5_a_second_writer_is_noticed_behind_a_lost_connection():
    async with scene() as (cluster, producer), appender(producer) as writer:
        await append(writer, 0)
        store_marked(cluster, 1)

        def swallow_and_disconnect(_: object) -> Reaction:
            asyncio.get_running_loop().call_soon(cluster.disconnect, "broker-a")
            return Reaction.SWALLOW

        cluster.fault(code=BATCH, answer=swallow_and_disconnect)
        with pytest.raises(ExactAppendError, match="another process has stored position 2"):
            await append(writer, 1, 2)


@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize("is_cut", [False, True])
async def test_rule_5_a_lost_end_is_noticed_though_others_have_written(is_cut, kept):
    async with scene() as (cluster, producer), appender(producer) as writer:
        await append(writer, 0, 1)
        cluster.end_at(QUEUE, kept)
        cluster.store(TOPIC, b"foreign", b"foreign", b"foreign", queue=QUEUE)
        if is_cut:
            cut(writer)

        with pytest.raises(ExactAppendError, match=r"the message at offset 1 .* is not the one"):
            await append(writer, 2)


async def test_positions_of_another_origin_are_refused():
    async with scene() as (_, producer):
        async with appender(producer, origin="east/orders/broker-a/0") as writer:
            await append(writer, 3)

        with pytest.raises(ExactAppendError, match="positions of two origins cannot be compared"):
            await appender(producer, origin="east/orders/broker-a/1").start()


async def test_rule_5_foreign_messages_in_between_are_allowed():
    async with scene() as (cluster, producer), appender(producer) as writer:
        await append(writer, 0)
        cluster.store(TOPIC, b"foreign", queue=QUEUE)
        await append(writer, 1)

        assert stored(cluster) == [0, 1]


async def test_rule_6_a_writer_that_was_paused_looks_before_it_sends():
    async with scene() as (cluster, producer), appender(producer) as writer:
        await append(writer, 0)
        cluster.advance(61.0)  # brokers keep a lock for a minute
        second = appender(producer)
        writer._writer._age.renewed(asyncio.get_running_loop().time() - 61.0)
        await second.start()
        await append(second, 1)
        sent = len(cluster.requests(BATCH))

        with pytest.raises(ExactAppendError, match="another writer has the lock"):
            await append(writer, 1)
        assert len(cluster.requests(BATCH)) == sent
        assert stored(cluster) == [0, 1]
        await second.close()


async def test_rule_6_a_lock_that_grew_old_is_not_renewed_in_passing():
    async with scene() as (cluster, producer), appender(producer) as writer:
        await append(writer, 0)
        writer._writer._age.renewed(asyncio.get_running_loop().time() - 61.0)
        cluster.advance(61.0)
        async with appender(producer) as second:
            await append(second, 1)
        await writer._writer.keep()  # the timer of the one that was paused, before it sends

        await append(writer, 1, 2)
        assert stored(cluster) == [0, 1, 2]


@pytest.mark.parametrize("setting", [{"linger": 0.005}, {"enable_trace": True}])
async def test_a_producer_that_shares_or_traces_requests_is_refused(setting):
    async with scene(**setting) as (_, producer):
        with pytest.raises(ConfigError, match=next(iter(setting))):
            appender(producer)


@pytest.mark.parametrize(
    ("name", "value"), [("enableBuildConsumeQueueConcurrently", "true"), ("storeType", "defaultRocksDB")]
)
async def test_a_broker_that_shows_messages_in_another_order_is_refused(name, value):
    async with scene() as (cluster, producer), administration(cluster) as admin:
        await admin.update_broker_config(cluster.addr(), {name: value})
        with pytest.raises(ConfigError, match=f"{name}={value}"):
            await appender(producer).start()


@pytest.mark.parametrize(("name", "value"), [("queue.type", "BatchCQ"), ("cleanup.policy", "COMPACTION")])
async def test_topics_whose_ends_say_nothing_are_refused(name, value):
    async with scene() as (cluster, producer), administration(cluster) as admin:
        await admin.create_topic(TOPIC, attributes={name: value})
        with pytest.raises(ConfigError, match=value):
            await appender(producer).start()


async def test_a_queue_that_the_topic_has_no_longer_is_refused():
    async with scene() as (_, producer):
        beyond = MessageQueue(TOPIC, "broker-a", 2)
        with pytest.raises(ConfigError, match="fewer queues than before"):
            await ExactAppender(producer, beyond, writer="w").start()


def expire_five(cluster: FakeCluster) -> None:
    """Store ten messages, of which the first five have expired."""
    cluster.store(TOPIC, *[b"x"] * 10, queue=QUEUE)
    cluster.begin_at(QUEUE, 5)


def hint_at_three(cluster: FakeCluster) -> None:
    cluster.commit("RMQTOOLS_EXACT-w", QUEUE, 3)


@pytest.mark.parametrize(
    ("before", "is_new", "text"),
    [
        pytest.param([expire_five], False, "set is_new", id="tail-taken-by-retention-without-a-hint"),
        pytest.param([hint_at_three], False, "the topic was made anew", id="hint-above-the-tail"),
        pytest.param([expire_five, hint_at_three], True, "has expired", id="hint-at-an-expired-message"),
    ],
)
async def test_a_queue_whose_end_cannot_be_the_writers_is_refused(before, is_new, text):
    async with scene() as (cluster, producer):
        for happen in before:
            happen(cluster)
        with pytest.raises(ExactAppendError, match=text):
            await appender(producer, is_new=is_new).start()


async def test_a_new_writer_may_begin_in_a_queue_whose_first_messages_expired():
    async with scene() as (cluster, producer):
        expire_five(cluster)
        async with appender(producer, is_new=True) as writer:
            await append(writer, 0)

        assert stored(cluster) == [0]


async def test_a_start_reads_no_further_back_than_the_hint():
    async with scene() as (cluster, producer):
        async with appender(producer) as writer:
            await append(writer, *range(400))
        cluster.store(TOPIC, *[b"foreign"] * 3, queue=QUEUE)
        async with appender(producer) as writer:
            assert writer.last_position == 399
            pulls = cluster.requests(RequestCode.PULL_MESSAGE, topic=TOPIC)

        assert cluster.committed("RMQTOOLS_EXACT-w", QUEUE) == 399
        assert min(int(pull.ext_fields["queueOffset"] or 0) for pull in pulls) >= 399


async def test_an_answer_of_a_broker_that_is_too_busy_is_no_outcome():
    async with scene() as (cluster, producer), appender(producer) as writer:
        cluster.fault(code=BATCH, times=3, answer=ResponseCode.SYSTEM_BUSY)
        await append(writer, 0, 1)

        assert stored(cluster) == [0, 1]


@pytest.mark.parametrize("code", [ResponseCode.SYSTEM_BUSY, ResponseCode.SYSTEM_ERROR])
async def test_a_broker_that_cannot_answer_a_writers_start_yet_is_asked_again(code):
    async with scene() as (cluster, producer):
        busy = cluster.fault(code=RequestCode.GET_MAX_OFFSET, times=2, answer=code)
        async with appender(producer) as writer:
            await append(writer, 0)

        assert (busy.fired(), stored(cluster)) == (2, [0])


async def test_a_broker_that_refuses_a_writers_start_is_not_asked_again():
    async with scene() as (cluster, producer):
        code = RequestCode.GET_MAX_OFFSET
        refusing = cluster.fault(code=code, times=None, answer=ResponseCode.NO_PERMISSION)
        with pytest.raises(BrokerError, match="NO_PERMISSION"):
            await appender(producer).start()

        assert refusing.fired() == 1


async def test_an_internal_error_of_a_broker_that_has_stored_the_messages_counts_as_stored():
    async with scene() as (cluster, producer), appender(producer) as writer:
        await append(writer, 0)
        cluster.fault(code=BATCH, answer=Reaction.PASS)

        def store_and_fail(request):
            store_marked(cluster, 1)
            return ResponseCode.SYSTEM_ERROR

        cluster.fault(code=BATCH, answer=store_and_fail)
        await append(writer, 1)

        assert stored(cluster) == [0, 1]


@pytest.mark.parametrize("positions", [(1, 1), (2, 1), (-1, 0), (0,)])
async def test_positions_that_do_not_rise_are_refused(positions):
    async with scene() as (_, producer), appender(producer) as writer:
        with pytest.raises(ValueError, match="position"):
            await writer.append(messages((0, 1)), positions)


async def test_rule_6_a_writer_that_is_cut_off_resets_its_connection_when_its_lock_is_old():
    async with scene() as (cluster, producer), Relay(cluster.addr()) as relay:
        name_server, addresses = cluster.name_server, {cluster.addr(): relay.addr}
        config = ProducerConfig(name_server=name_server, broker_address_map=addresses, request_timeout=1.0)
        async with Producer(config) as own:
            writer = appender(own)
            writer._writer._age.seconds = 4.0  # of a lock's life
            await writer.start()
            await append(writer, 0)
            relay.cut()
            appending = asyncio.create_task(append(writer, 1))
            await asyncio.sleep(3.0)
            cluster.advance(61.0)
            async with appender(producer) as second:  # on the other side of the network
                await append(second, 1)
                relay.heal()
                with pytest.raises(ExactAppendError, match="another writer has the lock"):
                    await appending
            await writer.close()

        assert stored(cluster) == [0, 1]


async def test_a_writer_goes_on_at_another_master_when_the_former_one_stores_no_more():
    async with scene() as (cluster, producer), Relay(cluster.addr()) as relay, appender(producer) as writer:
        await append(writer, 0)

        def answer(request):  # the former master never takes messages again; requests and messages go apart
            return Reaction.PASS if relay.accepted > 1 else ResponseCode.SERVICE_NOT_AVAILABLE

        cluster.fault(code=BATCH, times=None, answer=answer)
        cluster.announce("broker-a", relay.addr)
        await append(writer, 1)

        assert stored(cluster) == [0, 1]


async def test_a_writer_that_is_closed_while_it_waits_for_its_lock_takes_it_no_more(monkeypatch):
    monkeypatch.setattr(queue_writer, "_PAUSE", 0.05)
    async with scene() as (cluster, producer):
        dead = appender(producer)
        await dead.start()
        await dead._writer.abandon()  # as the end of its process does; its lock stays for a minute
        await dead.close()
        late = appender(producer)
        starting = asyncio.create_task(late.start())
        await until(lambda: len(cluster.requests(RequestCode.LOCK_BATCH_MQ)) >= 3)
        await late.close()
        cluster.advance(LOCK_SECONDS)

        with pytest.raises(ClientStateError, match="the appender is closed"):
            await starting
        assert cluster.lock_owner(late._writer.memory.group, QUEUE) is None
