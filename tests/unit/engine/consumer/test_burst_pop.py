"""Bursts of popped queues: all comes once and is acknowledged; what is unusual goes back to the loop."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from rmqtools import ConsumeConcurrentlyStatus, MessageQueue
from rmqtools.engine.consumer import burst
from rmqtools.engine.consumer.acknowledge import Acknowledger
from rmqtools.engine.consumer.burst_sources import Source
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import QueryAssignmentRequestBody
from rmqtools.protocol.messages.batch_ack import parse_batch_ack_body
from rmqtools.protocol.wire.bodies import format_body, parse_body
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import FakeCluster, Reaction
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE
from tests.unit.engine.consumer import burst_scene
from tests.unit.engine.consumer.burst_scene import (
    ALL,
    EACH,
    MIDDLE,
    TAGGED_BB,
    Listener,
    Place,
    backlog,
    committed,
    consume_all,
    heard_of_a_slow_broker,
    noted_bursts,
)
from tests.unit.engine.group.test_pop_assignment import share

member = partial(burst_scene.member, client_rebalance=False)


def let_pop(cluster: FakeCluster, *brokers: str) -> None:
    """Give all queues of the topic on these brokers to whoever asks, and none of the retry topic."""
    queues = [MessageQueue("T", name, -1) for name in brokers]

    def answer(asked: RemotingCommand) -> RemotingCommand:
        topic = parse_body(QueryAssignmentRequestBody, asked.body).topic
        mine = share("POP", *queues) if topic == "T" else share("POP")
        return response(ResponseCode.SUCCESS, 0, body=format_body(mine))

    cluster.fault(code=RequestCode.QUERY_ASSIGNMENT, times=None, answer=answer)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with backlog() as cluster:
        let_pop(cluster, "broker-a")
        yield cluster


@pytest.fixture
def sources(monkeypatch) -> list[Source[Any]]:
    """The queues that the thread of a burst fetched."""
    return noted_bursts(monkeypatch)


@pytest.fixture
def consume(cluster, sources) -> Callable[..., None]:
    return partial(consume_all, cluster, sources, client_rebalance=False)


def acknowledged(cluster: FakeCluster) -> set[Place]:
    """The places that were acknowledged, singly or together; some twice, if an answer was late."""
    fields = [one.ext_fields for one in cluster.requests(RequestCode.ACK_MESSAGE)]
    bodies = [one.body for one in cluster.requests(RequestCode.BATCH_ACK_MESSAGE)]
    together = [(ack.queue_id, ack.offsets) for body in bodies for ack in parse_batch_ack_body(body)]
    found = {(int(one["queueId"] or 0), int(one["offset"] or 0)) for one in fields}
    return found | {(queue_id, offset) for queue_id, offsets in together for offset in offsets}


def test_a_backlog_comes_once_and_is_acknowledged_once_by_its_thread(cluster, consume):
    consume()

    polls = Counter(one.ext_fields["pollTime"] for one in cluster.requests(RequestCode.POP_MESSAGE))
    assert acknowledged(cluster) == set(ALL)
    assert polls["0"] > polls.total() / 2
    assert committed(cluster) == [EACH, EACH]


@pytest.mark.parametrize(
    "answer",
    [
        Reaction.SILENCE,
        Reaction.DISCONNECT,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.POLLING_FULL,
        ResponseCode.POLLING_TIMEOUT,
        ResponseCode.SUBSCRIPTION_NOT_EXIST,
    ],
)
def test_a_pop_that_fails_in_a_burst_costs_no_message(cluster, consume, monkeypatch, answer):
    monkeypatch.setattr("rmqtools.engine.consumer.pop._ANSWER_PATIENCE", 0.5)

    def fail() -> None:
        cluster.fault(code=RequestCode.POP_MESSAGE, times=2, answer=answer)

    consume({MIDDLE: fail}, long_poll_timeout=0.5)

    assert acknowledged(cluster) == set(ALL)


def test_a_late_answer_is_waited_for_since_its_messages_are_hidden(cluster, sources, consume):
    def stand_still() -> None:
        cluster.freeze("broker-a")
        threading.Timer(0.3, cluster.thaw, ["broker-a"]).start()

    consume({MIDDLE: stand_still})

    assert len(sources) > 1
    assert acknowledged(cluster) == set(ALL)


def test_a_loop_that_takes_over_at_any_moment_loses_nothing(cluster, sources, monkeypatch):
    monkeypatch.setattr(burst, "_SLOW", 0.001)
    monkeypatch.setattr(burst, "_LOOK_AGAIN", 0.0)
    listener = Listener()

    with member(cluster, listener, pop_batch_nums=8):
        assert listener.wait()
        wait_until(lambda: acknowledged(cluster) == set(ALL))

    assert len(sources) > 1  # as often as the machine lets the loop come first
    assert listener.heard == ALL
    assert {one.held.wait_ack_count for one in sources} == {0}


def test_what_the_thread_cannot_acknowledge_is_acknowledged_by_the_loop(cluster, consume):
    faults = []

    def refuse() -> None:
        error = ResponseCode.SYSTEM_ERROR
        faults.append(cluster.fault(code=RequestCode.BATCH_ACK_MESSAGE, times=1, answer=error))

    consume({MIDDLE: refuse})

    assert faults[0].fired()
    assert committed(cluster) == [EACH, EACH]


def test_while_one_call_hangs_all_else_is_consumed_and_acknowledged(cluster, sources):
    go_on = threading.Event()
    listener = Listener({MIDDLE: lambda: go_on.wait(PATIENCE) and None})

    with member(cluster, listener):
        assert listener.wait(2 * EACH - 1)
        wait_until(lambda: acknowledged(cluster) == set(ALL) - {MIDDLE})
        go_on.set()
        assert listener.wait()

    assert sources
    assert listener.heard == ALL
    assert acknowledged(cluster) == set(ALL)


def test_a_call_that_fails_hides_its_message_alone(cluster, consume):
    failing = {(number, offset) for number in range(2) for offset in range(100, EACH, 100)}
    later = ConsumeConcurrentlyStatus.RECONSUME_LATER

    consume({place: lambda: later for place in failing})

    fields = [one.ext_fields for one in cluster.requests(RequestCode.CHANGE_MESSAGE_INVISIBLETIME)]
    assert {(int(one["queueId"]), int(one["offset"])) for one in fields} == failing
    assert len(fields) == len(failing)
    assert acknowledged(cluster) == set(ALL) - failing


def test_a_member_that_closes_in_a_burst_acknowledges_what_was_heard_and_nothing_else(cluster, sources):
    listener, second = Listener(), Listener()

    with member(cluster, listener):
        assert listener.wait(EACH)
    assert acknowledged(cluster) == set(listener.heard)
    cluster.advance(61)  # what is hidden comes again
    with member(cluster, second):
        wait_until(lambda: listener.heard.total() + second.heard.total() >= 2 * EACH)

    assert sources
    assert listener.heard.total() + second.heard.total() == 2 * EACH


def test_a_listener_that_closes_its_consumer_loses_no_result(cluster, sources):
    closed = threading.Event()
    listener = Listener({MIDDLE: lambda: (consumer.close(), closed.set())[1]})
    consumer = member(cluster, listener)
    consumer.start()
    assert closed.wait(PATIENCE)

    assert sources
    assert acknowledged(cluster) == set(listener.heard) - {MIDDLE}


def test_suspend_ends_a_burst_and_what_was_popped_is_still_consumed(cluster, sources):
    is_suspended = threading.Event()
    listener = Listener({MIDDLE: lambda: (consumer.suspend(), is_suspended.set())[1]})
    consumer = member(cluster, listener)

    with consumer:
        assert is_suspended.wait(PATIENCE)
        wait_until(lambda: all(source.returned.done() for source in sources))
        wait_until(lambda: acknowledged(cluster) == set(listener.heard))
        assert len(listener.heard) < 2 * EACH
        consumer.resume()
        assert listener.wait()

    assert sources
    assert listener.heard == ALL
    assert acknowledged(cluster) == set(ALL)


def test_messages_with_other_tags_of_equal_hash_are_acknowledged_unheard(cluster, sources):
    listener = Listener()

    with member(cluster, listener, tags="BB"):
        assert listener.wait(EACH)
        wait_until(lambda: acknowledged(cluster) == set(ALL))

    assert sources
    assert sorted(listener.heard) == TAGGED_BB


def test_a_slow_broker_does_not_hold_up_the_queues_of_another(sources):
    def share_out(cluster: FakeCluster) -> None:
        let_pop(cluster, "broker-a", "broker-b")

    heard = heard_of_a_slow_broker(RequestCode.POP_MESSAGE, share_out, client_rebalance=False)

    assert {one.held.queue.broker_name for one in sources} == {"broker-a", "broker-b"}
    assert heard < 3 * EACH // 4


def test_brokers_that_acknowledge_only_one_by_one_are_not_popped_by_threads(cluster, sources, monkeypatch):
    monkeypatch.setattr(Acknowledger, "note_version", lambda *_: None)
    listener = Listener()

    with member(cluster, listener):
        assert listener.wait(EACH)

    assert not sources
    assert not cluster.requests(RequestCode.BATCH_ACK_MESSAGE)


def test_members_with_a_limit_of_messages_a_second_have_no_burst(cluster, sources):
    listener = Listener()

    with member(cluster, listener, max_messages_per_second=1_000_000):
        assert listener.wait(EACH)

    assert not sources
