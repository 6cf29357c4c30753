"""Bursts beside a broker that fails: what is unusual goes back to the loop, and no message is lost."""

import gc
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.engine.consumer import burst
from rmqtools.engine.consumer.burst_sources import Source
from rmqtools.engine.group import process_queue
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.sys_flag import PullSysFlag
from rmqtools.testing import FakeCluster, Reaction
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE
from tests.unit.engine.consumer.burst_scene import (
    ALL,
    EACH,
    MIDDLE,
    TAGGED_BB,
    Listener,
    backlog,
    committed,
    consume_all,
    heard_of_a_slow_broker,
    member,
    noted_bursts,
)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with backlog() as cluster:
        yield cluster


@pytest.fixture
def sources(monkeypatch) -> list[Source[Any]]:
    """The queues that the thread fetched."""
    return noted_bursts(monkeypatch)


def test_all_calls_of_a_burst_count_in_the_rates_of_the_member(cluster, sources, monkeypatch):
    monkeypatch.setattr(burst, "_SLOW", PATIENCE)  # what the loop takes over is fetched, and counted, again
    listener = Listener()
    with member(cluster, listener) as consumer:
        assert listener.wait()

    counted = consumer._consumer._member.rates._slices["T"]
    assert sources
    assert (sum(one.succeeded for one in counted), sum(one.pulled for one in counted)) == (len(ALL), len(ALL))


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

    settings = {"orderly": orderly, "pull_timeout": 0.3, "long_poll_timeout": 0.2}
    consume_all(cluster, sources, {MIDDLE: fail}, **settings)

    assert committed(cluster) == [EACH, EACH]


def test_a_commit_in_the_middle_of_a_turn_has_what_the_thread_has_consumed(cluster, sources, monkeypatch):
    """Its pulls carry as much, and a commit of less would set the group back."""
    monkeypatch.setattr(burst, "_TURN", PATIENCE)
    monkeypatch.setattr(burst, "_SLOW", PATIENCE)
    is_stored = threading.Event()

    def await_commit() -> None:
        with suppress(AssertionError):  # the test is to fail then, and not this call
            wait_until(lambda: (committed(cluster)[0] or 0) >= MIDDLE[1], seconds=10)
            is_stored.set()

    consume_all(cluster, sources, {MIDDLE: await_commit}, persist_consumer_offset_interval=0.01)

    assert is_stored.is_set()


def test_a_slow_broker_does_not_hold_up_the_queues_of_another(sources):
    heard = heard_of_a_slow_broker(RequestCode.PULL_MESSAGE)

    assert {source.held.queue.broker_name for source in sources} == {"broker-a", "broker-b"}
    assert heard < 3 * EACH // 4


def test_queues_that_do_not_fit_into_one_turn_are_served_all_the_same(sources, monkeypatch):
    monkeypatch.setattr(burst, "_TURN", 0.0005)
    heard: Counter[int] = Counter()
    at_half: list[Counter[int]] = []
    done = threading.Event()

    def listen(messages, _) -> None:
        heard[messages[0].queue_id] += 1
        if heard.total() == 24 * 50:
            at_half.append(heard.copy())
        if heard.total() == 24 * 100:
            done.set()

    with FakeCluster(brokers=("broker-a",)) as many:
        many.create_topic("T", queues=24)
        for number in range(24):
            many.store("T", *[b"body"] * 100, queue=MessageQueue("T", "broker-a", number))
        with member(many, listen, pull_batch_size=8):
            assert done.wait(PATIENCE)

    assert sources
    assert max(at_half[0].values()) - min(at_half[0][number] for number in range(24)) < 75


def test_pulls_of_a_burst_ask_for_no_long_poll(cluster, sources):
    consume_all(cluster, sources)

    pulls = cluster.requests(RequestCode.PULL_MESSAGE)
    by_threads = [one for one in pulls if not int(one.ext_fields["sysFlag"] or 0) & PullSysFlag.FLAG_SUSPEND]
    assert len(by_threads) > len(pulls) / 2


def test_messages_with_other_tags_are_passed_over_in_a_burst(cluster, sources):
    listener = Listener()

    with member(cluster, listener, tags="BB"):
        assert listener.wait(EACH)

    assert sources
    assert sorted(listener.heard) == TAGGED_BB
    assert committed(cluster) == [EACH, EACH]


def set_back(cluster: FakeCluster) -> None:
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        admin.reset_offsets("G", "T", 0)


def consume_again(
    cluster: FakeCluster, sources: list[Source[Any]], listener: Listener, **settings: Any
) -> None:
    """Consume until the first message of both queues has come twice, and each other one at least once."""
    with member(cluster, listener, long_poll_timeout=0.2, **settings):
        wait_until(lambda: listener.heard[0, 0] == listener.heard[1, 0] == 2)
        assert listener.wait()
    assert sources
    assert set(listener.heard) == set(ALL)


def test_an_offset_that_is_set_back_in_a_burst_counts(cluster, sources):
    consume_again(cluster, sources, Listener({MIDDLE: lambda: set_back(cluster)}))


AFTER_THAT = 0, MIDDLE[1] + 32  # in the next answer; the pull that reports the reset is on the wire then


@pytest.mark.parametrize("orderly", [False, True])
def test_an_offset_that_is_set_back_before_a_call_of_a_burst_fails_counts(
    cluster, sources, monkeypatch, orderly
):
    monkeypatch.setattr(burst, "_SLOW", PATIENCE)

    def fail() -> None:
        raise OSError("disk full")

    listener = Listener({MIDDLE: lambda: set_back(cluster), AFTER_THAT: fail})

    consume_again(cluster, sources, listener, orderly=orderly)


@pytest.mark.parametrize("orderly", [False, True])
def test_an_offset_that_is_set_back_before_a_call_of_a_burst_turns_slow_counts(
    cluster, sources, monkeypatch, orderly
):
    monkeypatch.setattr(burst, "_SLOW", PATIENCE)
    monkeypatch.setattr(burst, "_TURN", 0.0005)  # a turn has the time for slow calls that is set at its begin

    def set_back_and_expect_short_calls() -> None:
        set_back(cluster)
        monkeypatch.setattr(burst, "_SLOW", 0.05)

    def wait_for_the_other_queue() -> None:
        wait_until(lambda: listener.heard[1, EACH - 1])

    listener = Listener({MIDDLE: set_back_and_expect_short_calls, AFTER_THAT: wait_for_the_other_queue})

    consume_again(cluster, sources, listener, orderly=orderly)


@pytest.mark.parametrize("orderly", [False, True])
def test_a_listener_that_closes_its_consumer_in_a_burst_loses_only_its_own_call(
    cluster, sources, orderly, monkeypatch, caplog
):
    monkeypatch.setattr(burst, "_SLOW", PATIENCE)  # on a busy machine, closing takes long
    closed, others = threading.Event(), list[int]()

    def close() -> None:
        consumer.close()
        others.append(listener.heard.total())
        closed.set()

    listener = Listener({MIDDLE: close})
    consumer = member(cluster, listener, orderly=orderly)
    consumer.start()
    assert closed.wait(PATIENCE)
    gc.collect()

    assert sources
    assert sum(offset or 0 for offset in committed(cluster)) == others[0]
    assert listener.heard.total() <= others[0] + 1
    assert "was destroyed" not in caplog.text


@pytest.mark.parametrize(
    "settings", [{"namespace": "space"}, {"max_messages_per_second": 1_000_000}], ids=["namespace", "rate"]
)
def test_what_the_loop_alone_knows_is_not_fetched_by_the_thread(cluster, sources, settings):
    cluster.create_topic("space%T", queues=1)
    cluster.store("space%T", *[b"body"] * EACH, queue=MessageQueue("space%T", "broker-a", 0))
    listener = Listener()

    with member(cluster, listener, **settings):
        assert listener.wait(EACH)

    assert not sources


def test_in_a_burst_no_call_of_a_queue_begins_when_its_lock_is_no_longer_trusted(
    cluster, sources, monkeypatch
):
    def end_locks() -> None:
        monkeypatch.setattr(process_queue, "LOCK_MAX_LIVE_TIME", -PATIENCE)

    listener = Listener({MIDDLE: end_locks})
    with member(cluster, listener, orderly=True):
        wait_until(lambda: listener.heard[MIDDLE])
        all_came = listener.wait(seconds=1.0)

    assert sources
    assert not all_came
