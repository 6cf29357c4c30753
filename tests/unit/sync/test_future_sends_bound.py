"""``send_async`` with ``enable_backpressure_for_async_mode``: the call itself waits, and not for ever."""

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, wait

import pytest

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.errors import (
    BackPressureError,
    ClientStateError,
    MessageRejectedError,
    SendError,
    UnknownOutcomeError,
)
from rmqtools.model.codes import RequestCode
from rmqtools.model.result import SendResult
from rmqtools.testing import FakeCluster, Reaction
from tests.behaviour.site import until

MESSAGE = Message("T", b"x")
SENDS = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
BOUND = 3


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(brokers=("a",)) as cluster:
        cluster.create_topic("T", queues=2)
        yield cluster


def bounded(cluster: FakeCluster, **settings) -> Producer:
    wanted = {
        "send_timeout": 0.3,  # closing waits for silent sends so long
        "enable_backpressure_for_async_mode": True,
        "back_pressure_for_async_send_num": BOUND,
    }
    return Producer(ProducerConfig(name_server=cluster.name_server, **wanted | settings))


@pytest.fixture(params=[0.0, 0.01], ids=["single", "linger"])
def producer(request, cluster) -> Iterator[Producer]:
    with bounded(cluster, linger=request.param) as producer:
        producer.fetch_publish_queues("T")
        yield producer


def silent(cluster) -> None:
    for code in SENDS:
        cluster.fault(code=code, times=None, answer=Reaction.SILENCE)


def full(producer: Producer, timeout: float = 60.0) -> list[Future[SendResult]]:
    return [producer.send_async(MESSAGE, timeout=timeout) for _ in range(BOUND)]


def waiting(producer: Producer) -> int:
    return producer.sends_in_flight().waiting


def begun(function) -> Future[Future[SendResult]]:
    """A call on a thread of its own."""
    result: Future[Future[SendResult]] = Future()

    def call() -> None:
        try:
            result.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised where the test asks
            result.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return result


def test_more_messages_than_the_bound_are_all_stored_and_never_more_in_flight(producer, cluster):
    for code in SENDS:
        cluster.fault(code=code, times=None, delay=0.01, answer=Reaction.PASS)
    most, futures = 0, []
    for _ in range(5 * BOUND):
        futures.append(producer.send_async(MESSAGE))
        most = max(most, sum(not future.done() for future in futures))
    wait(futures, 30)

    assert most <= BOUND
    assert (len(cluster.messages("T")), len({future.result().msg_id for future in futures})) == (15, 15)


@pytest.mark.process
def test_a_call_waits_until_another_send_ends(producer, cluster):
    silent(cluster)
    futures = full(producer)
    call = begun(lambda: producer.send_async(MESSAGE, timeout=60.0))
    until(lambda: waiting(producer) == 1)
    assert not call.done()
    futures[0].cancel()

    assert not call.result(10).done()
    call.result().cancel()


@pytest.mark.process
def test_a_call_that_finds_no_room_in_its_time_fails_by_its_future(producer, cluster):
    silent(cluster)
    full(producer)
    future = producer.send_async(Message("T", b"late"), timeout=0.1)

    with pytest.raises(BackPressureError, match=r"3 messages and 3 bytes are in flight: nothing was sent"):
        future.result(0)
    assert waiting(producer) == 0
    assert not any(b"late" in (request.body or b"") for request in cluster.requests())


@pytest.mark.process
def test_waiting_takes_from_the_time_of_the_send(producer, cluster, monkeypatch):
    silent(cluster)
    futures = full(producer)
    until(lambda: not producer._future_sends._given)
    monkeypatch.setattr(producer._bridge, "call_soon", lambda take: None)
    call = begun(lambda: producer.send_async(MESSAGE, timeout=60.0))
    until(lambda: waiting(producer) == 1)
    futures[0].cancel()
    call.result(10)
    (given,) = producer._future_sends._given
    monkeypatch.undo()

    assert 0 < given.timeout < 60


def test_where_waiting_is_not_wanted_a_call_above_the_bound_fails_at_once(cluster):
    silent(cluster)
    with bounded(cluster, back_pressure_waits=False) as producer:
        full(producer)
        with pytest.raises(BackPressureError):
            producer.send_async(MESSAGE, timeout=60.0).result(0)


@pytest.mark.process
def test_room_is_given_back_by_every_end_of_a_send(producer, cluster):
    for future in full(producer):
        future.result(10)
    for wrong in (Message("T", b""), "text", None):
        with pytest.raises(MessageRejectedError):
            producer.send_async(wrong).result(10)
    silent(cluster)
    for future in full(producer, timeout=0.1):
        with pytest.raises(UnknownOutcomeError):
            future.result(10)
    for future in full(producer):
        future.cancel()
        with pytest.raises(CancelledError):
            future.result(0)

    assert len(full(producer)) == BOUND  # each would wait for a minute


@pytest.mark.process  # closing waits for the silent requests
def test_closing_ends_the_waiting_of_other_threads(producer, cluster):
    silent(cluster)
    full(producer, timeout=5.0)
    calls = [begun(lambda: producer.send_async(MESSAGE, timeout=60.0)) for _ in range(2)]
    until(lambda: waiting(producer) == 2)
    producer.close()

    for call in calls:
        with pytest.raises(ClientStateError, match="is closed"):
            call.result(10).result(10)


def test_a_closed_or_unstarted_producer_says_so_and_nothing_waits(cluster):
    producer = bounded(cluster)
    for _ in range(2 * BOUND):
        with pytest.raises(ClientStateError, match="is new"):
            producer.send_async(MESSAGE).result(10)
    producer.start()
    producer.close()
    for _ in range(2 * BOUND):
        with pytest.raises(ClientStateError, match="is closed"):
            producer.send_async(MESSAGE).result(10)


@pytest.mark.process
def test_an_interrupt_ends_the_waiting_and_takes_no_room(producer, cluster):
    silent(cluster)
    futures, main = full(producer), threading.get_ident()

    def interrupt_when_it_waits() -> None:
        until(lambda: waiting(producer) == 1)
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt_when_it_waits).start()
    with pytest.raises(KeyboardInterrupt):
        producer.send_async(MESSAGE, timeout=60.0)
    assert waiting(producer) == 0
    futures[0].cancel()
    producer.send_async(MESSAGE, timeout=60.0).cancel()


@pytest.mark.process
def test_a_blocking_send_is_not_counted(producer, cluster):
    silent(cluster)
    full(producer)
    with pytest.raises(SendError) as refused:  # unknown; or with linger behind a silent batch, not sent
        producer.send(MESSAGE, timeout=1.0)  # a busy machine sends nothing in less
    assert not isinstance(refused.value, BackPressureError)
