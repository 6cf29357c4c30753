"""A batch of the blocking face is sent on its caller's thread, with the outcomes of any send."""

import asyncio
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rmqtools import Message, Outcome, Producer, ProducerConfig
from rmqtools.errors import ClientStateError, SendError, UnknownOutcomeError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.testing import FakeCluster, Reaction
from tests.support.send_ways import pool_of, producing

SEND_BATCH = RequestCode.SEND_BATCH_MESSAGE
BATCH = [Message("T", f"body {number}".encode(), tags="t") for number in range(3)]
WARM = 8  # messages that `producing` has sent


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(brokers=("a", "b")) as cluster:
        cluster.create_topic("T", queues=2)
        yield cluster


def test_a_batch_is_stored_in_order(site, topic):
    batch = [Message(topic, f"body {number}".encode()) for number in range(40)]
    with Producer(ProducerConfig(name_server=site.name_server, group="batches")) as producer:
        producer.send(Message(topic, b"first"))  # a blocking connection is made beside one of the loop
        results = producer.send_batch(batch)
        bodies = [site.admin.view_message(result.offset_msg_id).body for result in results]

    assert bodies == [message.body for message in batch]
    assert [result.queue_offset - results[0].queue_offset for result in results] == [*range(40)]


@pytest.mark.parametrize("send", [Producer.send_batch, Producer.send_many])
def test_a_batch_above_the_brokers_limit_fails_with_the_remedy(site, topic, send):
    limit = 8 * 1024 * 1024
    batch = [Message(topic, bytes(1024 * 1024))] * 5
    config = ProducerConfig(
        name_server=site.name_server, group="batches", max_message_bytes=limit, max_batch_bytes=limit
    )
    with Producer(config) as producer, pytest.raises(SendError) as caught:
        send(producer, batch)

    assert "message body size exceeded" in str(caught.value)
    assert re.search(
        r"the batch has 52\d{5} bytes, more than the broker's maxMessageSize: send smaller ones",
        str(caught.value),
    )


def test_the_loop_has_no_part_in_it(cluster):
    with producing(cluster) as producer:
        held, go_on, went_on = threading.Event(), threading.Event(), list[bool]()

        async def hold() -> None:
            held.set()
            went_on.append(go_on.wait(10))  # nothing else runs on the loop

        holding = threading.Thread(target=producer._bridge.run, args=(hold,))
        holding.start()
        held.wait(10)
        results = producer.send_batch(BATCH)
        go_on.set()
        holding.join()

    assert (len(results), went_on) == (len(BATCH), [True])


def test_threads_that_send_batches_at_the_same_time_have_a_connection_each(cluster):
    with producing(cluster) as producer:
        asked = threading.Barrier(4)
        cluster.fault(code=SEND_BATCH, times=None, delay=0.05)

        def send() -> None:
            asked.wait(10)
            producer.send_batch(BATCH)

        with ThreadPoolExecutor(4) as threads:
            for sent in [threads.submit(send) for _ in range(4)]:
                sent.result()
        open_at_once = len(pool_of(producer))

    assert len(cluster.messages("T")) == WARM + 4 * len(BATCH)
    assert open_at_once >= 2


@pytest.mark.parametrize("answer", [ResponseCode.SYSTEM_BUSY, Reaction.DISCONNECT])
def test_a_batch_goes_to_another_broker_after_one_has_failed(cluster, answer):
    with producing(cluster) as producer:
        cluster.fault(code=SEND_BATCH, times=1, answer=answer)
        results = producer.send_batch(BATCH)

    one, other = results[0].attempts
    assert other.outcome is Outcome.STORED
    assert one.queue.broker_name != other.queue.broker_name
    assert len({result.queue for result in results}) == 1


@pytest.mark.process
def test_without_an_answer_in_time_the_outcome_is_unknown(cluster):
    with producing(cluster) as producer:
        cluster.fault(code=SEND_BATCH, times=None, answer=Reaction.SILENCE)
        with pytest.raises(UnknownOutcomeError):
            producer.send_batch(BATCH, timeout=0.5)


def test_after_close_a_batch_is_refused(cluster):
    with producing(cluster) as producer:
        pass

    with pytest.raises(ClientStateError):
        producer.send_batch(BATCH)


def test_on_the_loop_thread_it_would_block_and_is_refused(cluster):
    async def send(producer: Producer) -> None:
        await asyncio.sleep(0)
        producer.send_batch(BATCH)

    with producing(cluster) as producer, pytest.raises(ClientStateError):
        producer._bridge.run(lambda: send(producer))
