"""Producers while brokers die, stand still and come back: three masters in Docker, 8 queues each."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    Message,
    Outcome,
    Producer,
    ProducerConfig,
    SendResult,
)
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import SendError, UnknownOutcomeError
from tests.support.memory import forget_peak_memory, peak_memory_bytes
from tests.support.patience import PATIENCE
from tests.support.reading import await_readable, read_all

pytestmark = pytest.mark.docker

THREADS = 4


def send_all(
    producer: Producer, topic: str, count: int, at: dict[int, Callable[[], None]] | None = None
) -> list[SendResult]:
    """Send numbered messages from four threads; ``at`` calls a function when so many are acknowledged."""
    results: list[SendResult] = []
    lock = threading.Lock()
    events = dict(at or {})

    def work(thread: int) -> None:
        for number in range(thread, count, THREADS):
            result = producer.send(Message(topic, b"%d" % number))
            with lock:
                results.append(result)
                event = events.pop(len(results), None)
            if event is not None:
                event()

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    return results


def stored_numbers(name_server: str, topic: str, results: list[SendResult]) -> Counter[int]:
    """How often each message is in the topic."""
    config = ClientConfig(name_server=name_server, request_timeout=10.0)
    with Client(config) as client, Admin(client) as admin:
        await_readable(admin, results)
        return Counter(int(message.body) for message in read_all(client, admin, topic))


def tries_on(results: list[SendResult], broker_name: str) -> list[Outcome]:
    """The outcomes of the attempts on a broker."""
    return [a.outcome for r in results for a in r.attempts if a.queue.broker_name == broker_name]


@pytest.mark.slow  # tests/behaviour loses none either, and Spark writes through a killed broker
def test_a_killed_master_costs_no_message_and_is_used_again_when_it_is_back(faulty_cluster, new_topic):
    topic = new_topic()
    back_at: list[float] = []

    def start() -> None:
        faulty_cluster.start("broker-b")
        back_at.append(SYSTEM_CLOCK.monotonic())

    config = ProducerConfig(name_server=faulty_cluster.name_server, send_timeout=10.0)
    with Producer(config) as producer:
        producer.send(Message(topic, b"0"))
        results = send_all(
            producer, topic, 24_000, {8_000: lambda: faulty_cluster.kill("broker-b"), 16_000: start}
        )
        failed = [outcome for outcome in tries_on(results, "broker-b") if outcome is not Outcome.STORED]
        while producer.send(Message(topic, b"0")).queue.broker_name != "broker-b":  # by the next route poll
            assert SYSTEM_CLOCK.monotonic() - back_at[0] < PATIENCE

    stored = stored_numbers(faulty_cluster.name_server, topic, results)
    duplicated = sum(count - 1 for number, count in stored.items() if number)
    unknown = sum(outcome is Outcome.UNKNOWN for outcome in failed)
    assert len(results) == 24_000
    assert set(range(24_000)) <= set(stored)
    assert duplicated <= unknown
    # some tries go on until the name server has seen the connection end; without new routes thousands would
    assert len(failed) <= 0.01 * len(results)


def test_a_send_to_a_paused_broker_ends_in_its_timeout_and_is_called_unknown(faulty_cluster, new_topic):
    topic = new_topic(queues=1)
    config = ProducerConfig(name_server=faulty_cluster.name_server, retry_times_when_send_failed=0)
    with Producer(config) as producer, Admin(config) as admin:
        queue = next(q for q in admin.fetch_publish_queues(topic) if q.broker_name == "broker-a")
        producer.send(Message(topic, b"0"), queue=queue)
        faulty_cluster.pause("broker-a")
        began = SYSTEM_CLOCK.monotonic()
        with pytest.raises(UnknownOutcomeError, match="may or may not be stored") as caught:
            producer.send(Message(topic, b"1"), queue=queue, timeout=2.0)
        took = SYSTEM_CLOCK.monotonic() - began
        faulty_cluster.unpause("broker-a")
        admin.await_readable({queue: 2}, timeout=PATIENCE)  # the paused broker had read it

    assert took < 20  # far below any other deadline: the timeout was 2 s
    assert isinstance(caught.value, SendError)
    assert [attempt.outcome for attempt in caught.value.attempts] == [Outcome.UNKNOWN]


def test_with_retries_a_paused_broker_leaves_time_for_another_and_the_result_says_so(
    faulty_cluster, new_topic
):
    topic = new_topic(queues=1)
    with Producer(ProducerConfig(name_server=faulty_cluster.name_server)) as producer:
        producer.send(Message(topic, b"0"))
        faulty_cluster.pause("broker-a")
        began = SYSTEM_CLOCK.monotonic()
        results = [producer.send(Message(topic, b"%d" % number)) for number in range(1, 4)]
        took = SYSTEM_CLOCK.monotonic() - began
        faulty_cluster.unpause("broker-a")

    stored = stored_numbers(faulty_cluster.name_server, topic, results)
    said = [result.may_be_duplicated for result in results]
    tried = [any(a.queue.broker_name == "broker-a" for a in result.attempts) for result in results]
    assert said == tried
    assert any(said)
    assert took < 10 * sum(said)  # a few seconds each: far below the pause of the broker
    assert set(range(4)) <= set(stored)
    assert {number for number, count in stored.items() if count > 1} <= {
        number for number, twice in enumerate(said, 1) if twice
    }


def test_send_many_holds_memory_flat_and_gives_a_result_for_each(docker_cluster, new_topic):
    topic = new_topic()
    body = bytes(1024)
    with Producer(ProducerConfig(name_server=docker_cluster.name_server, send_timeout=10.0)) as producer:
        producer.send_many([Message(topic, body)] * 20_000)
        forget_peak_memory()
        before = peak_memory_bytes()
        results = producer.send_many([Message(topic, body)] * 100_000)
        after = peak_memory_bytes()

    assert len({result.msg_id for result in results}) == 100_000
    # 100,000 results take about 60 MB; the bodies, were they all encoded at once, 130 MB more
    assert (after - before) / 1024**2 < 120
