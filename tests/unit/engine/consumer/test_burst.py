"""Bursts beside a broker that fails: what is unusual goes back to the loop, and no message is lost."""

import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rmqtools import Admin, ClientConfig, ConsumeFromWhere, MessageQueue, PushConsumer, PushConsumerConfig
from rmqtools.engine.consumer import burst
from rmqtools.engine.consumer.burst_sources import Source
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.sys_flag import PullSysFlag
from rmqtools.testing import FakeCluster, Reaction
from tests.support.bursts import note_sources
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE

EACH = 2_000  # messages of each of the two queues
QUEUES = [MessageQueue("T", "broker-a", number) for number in range(2)]


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(brokers=("broker-a",)) as cluster:
        cluster.create_topic("T", queues=2)
        for queue in QUEUES:
            for begin in range(0, EACH, 50):
                cluster.store("T", *[b"body"] * 50, queue=queue, tags="odd" if begin // 50 % 2 else "even")
        yield cluster


@pytest.fixture
def sources(monkeypatch) -> list[Source[Any]]:
    """The queues that the thread fetched."""
    return note_sources(monkeypatch)


def consume(
    cluster, count: int, *, at: dict[int, Callable[[], None]] | None = None, tags: str = "*", **settings
) -> Counter[tuple[int, int]]:
    """Hear so many places, and close; ``at``: what to do when so many messages were heard. How often each."""
    heard: Counter[tuple[int, int]] = Counter()
    done = threading.Event()

    def listen(messages, _) -> None:
        for message in messages:
            heard[message.queue_id, message.queue_offset] += 1
        if at and (act := at.pop(heard.total(), None)) is not None:
            act()
        if len(heard) >= count:
            done.set()

    consume_until(done, cluster, listen, tags=tags, delay_after_error=0.05, **settings)
    return heard


def consume_until(
    done: threading.Event, cluster: FakeCluster, listen, *, tags: str = "*", **settings
) -> None:
    """Consume from the first message on until the listener has set ``done``."""
    config = PushConsumerConfig(
        name_server=cluster.name_server,
        group="G",
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        **settings,
    )
    consumer = PushConsumer(config)
    consumer.subscribe("T", listen, tags=tags)
    with consumer:
        assert done.wait(PATIENCE)


def committed(cluster: FakeCluster) -> list[int | None]:
    return [cluster.committed("G", queue) for queue in QUEUES]


ALL = Counter({(number, offset): 1 for number in range(2) for offset in range(EACH)})


@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        Reaction.SILENCE,
        Reaction.SWALLOW,
        Reaction.DISCONNECT,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.SUBSCRIPTION_NOT_EXIST,
    ],
)
def test_a_pull_that_fails_in_a_burst_costs_no_message(cluster, sources, answer, orderly):
    def fail() -> None:
        cluster.fault(code=RequestCode.PULL_MESSAGE, times=3, answer=answer)

    heard = consume(
        cluster, 2 * EACH, at={EACH: fail}, orderly=orderly, pull_timeout=1.0, long_poll_timeout=0.5
    )

    assert sources
    assert heard == ALL
    assert committed(cluster) == [EACH, EACH]


def test_a_broker_that_ends_in_a_burst_and_comes_back_costs_no_message(cluster, sources):
    def end() -> None:
        cluster.stop("broker-a")
        cluster.restart("broker-a")

    heard = consume(cluster, 2 * EACH, at={EACH: end}, pull_timeout=1.0, long_poll_timeout=0.5)

    assert sources
    assert set(heard) == set(ALL)


def test_a_commit_in_the_middle_of_a_turn_has_what_the_thread_has_consumed(cluster, sources, monkeypatch):
    """Its pulls carry as much, and a commit of less would set the group back."""
    monkeypatch.setattr(burst, "_TURN", PATIENCE)
    monkeypatch.setattr(burst, "_SLOW", PATIENCE)
    is_stored = threading.Event()

    def await_commit() -> None:
        wait_until(lambda: sum(offset or 0 for offset in committed(cluster)) >= EACH - 2, seconds=10)
        is_stored.set()

    heard = consume(cluster, 2 * EACH, at={EACH: await_commit}, persist_consumer_offset_interval=0.01)

    assert sources
    assert heard == ALL
    assert is_stored.is_set()


def test_a_slow_broker_does_not_hold_up_the_queues_of_another(sources):
    heard: Counter[str] = Counter()
    at_end: list[int] = []
    done = threading.Event()

    def listen(messages, _) -> None:
        heard[messages[0].broker_name] += 1
        if heard.total() == EACH // 2:
            two.fault(code=RequestCode.PULL_MESSAGE, broker="broker-b", times=None, delay=0.2)
        if heard["broker-a"] == EACH and not at_end:
            at_end.append(heard["broker-b"])
            done.set()

    with FakeCluster(brokers=("broker-a", "broker-b")) as two:
        two.create_topic("T", queues=1)
        for name in ("broker-a", "broker-b"):
            two.store("T", *[b"body"] * EACH, queue=MessageQueue("T", name, 0))
        consume_until(done, two, listen)

    assert {source.held.queue.broker_name for source in sources} == {"broker-a", "broker-b"}
    assert at_end[0] < 3 * EACH // 4


def test_queues_that_do_not_fit_into_one_turn_are_served_all_the_same(sources, monkeypatch):
    monkeypatch.setattr(burst, "_TURN", 0.001)
    heard: Counter[int] = Counter()
    at_half: list[Counter[int]] = []
    done = threading.Event()

    def listen(messages, _) -> None:
        heard[messages[0].queue_id] += 1
        if heard.total() == 24 * 200:
            at_half.append(heard.copy())
        if heard.total() == 24 * 400:
            done.set()

    with FakeCluster(brokers=("broker-a",)) as many:
        many.create_topic("T", queues=24)
        for number in range(24):
            many.store("T", *[b"body"] * 400, queue=MessageQueue("T", "broker-a", number))
        consume_until(done, many, listen)

    assert sources
    assert max(at_half[0].values()) - min(at_half[0][number] for number in range(24)) < 300


def test_pulls_of_a_burst_ask_for_no_long_poll(cluster, sources):
    flags: list[int] = []

    def note(request):
        flags.append(int(request.ext_fields["sysFlag"]))
        return Reaction.PASS

    cluster.fault(code=RequestCode.PULL_MESSAGE, times=None, answer=note)
    heard = consume(cluster, 2 * EACH)

    assert sources
    assert heard == ALL
    by_threads = [flag for flag in flags if not flag & PullSysFlag.FLAG_SUSPEND]
    assert len(by_threads) > len(flags) / 2


def test_messages_with_other_tags_are_passed_over_in_a_burst(cluster, sources):
    heard = consume(cluster, EACH, tags="odd")

    assert sources
    assert sorted(heard) == [place for place in ALL if place[1] // 50 % 2]
    assert committed(cluster) == [EACH, EACH]


def test_an_offset_that_is_set_back_in_a_burst_counts(cluster, sources):
    def set_back() -> None:
        with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            admin.reset_offsets("G", "T", 0)

    heard = consume(cluster, 2 * EACH, at={EACH: set_back})

    assert sources
    assert set(heard) == set(ALL)
    assert heard[0, 0] == heard[1, 0] == 2


@pytest.mark.parametrize("orderly", [False, True])
def test_a_listener_that_closes_its_consumer_in_a_burst_loses_only_its_own_call(
    cluster, sources, orderly, caplog
):
    closed, heard = threading.Event(), list[object]()

    def listen(messages, _) -> None:
        heard.extend(messages)
        if len(heard) == EACH:
            consumer.close()
            closed.set()

    config = PushConsumerConfig(
        name_server=cluster.name_server,
        group="G",
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        orderly=orderly,
    )
    consumer = PushConsumer(config)
    consumer.subscribe("T", listen)
    consumer.start()
    assert closed.wait(PATIENCE)
    gc.collect()

    assert sources
    assert len(heard) == EACH
    assert sum(offset or 0 for offset in committed(cluster)) == EACH - 1
    assert "was destroyed" not in caplog.text


@pytest.mark.parametrize(
    "settings",
    [
        {"namespace": "space"},
        {"max_messages_per_second": 1_000_000},
    ],
    ids=["namespace", "rate"],
)
def test_what_the_loop_alone_knows_is_not_fetched_by_the_thread(cluster, sources, settings):
    if "namespace" in settings:
        cluster.create_topic("space%T", queues=1)
        cluster.store("space%T", *[b"body"] * EACH, queue=MessageQueue("space%T", "broker-a", 0))
    consume(cluster, EACH, **settings)

    assert not sources
