"""Bursts of popped queues: all comes once and is acknowledged; what is unusual goes back to the loop."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rmqtools import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    MessageQueue,
    PushConsumer,
    PushConsumerConfig,
)
from rmqtools.engine.consumer import burst
from rmqtools.engine.consumer.acknowledge import Acknowledger
from rmqtools.engine.consumer.burst_sources import Source
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import (
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from rmqtools.protocol.messages.batch_ack import parse_batch_ack_body
from rmqtools.protocol.wire.bodies import format_body, parse_body
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import FakeCluster, Reaction
from tests.support.bursts import note_sources
from tests.support.patience import PATIENCE

EACH = 2_000  # messages of each of the two queues
QUEUES = [MessageQueue("T", "broker-a", number) for number in range(2)]
ALL = Counter({(number, offset): 1 for number in range(2) for offset in range(EACH)})
Place = tuple[int, int]  # queue id, offset


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(brokers=("broker-a",)) as cluster:
        cluster.create_topic("T", queues=2)
        for queue in QUEUES:
            for begin in range(0, EACH, 50):
                cluster.store("T", *[b"body"] * 50, queue=queue, tags="BB" if begin // 50 % 2 else "Aa")
        let_pop(cluster, "broker-a")
        yield cluster


def let_pop(cluster: FakeCluster, *brokers: str) -> None:
    """Give all queues of the topic on these brokers to whoever asks, and none of the retry topic."""
    queues = [MessageQueue("T", name, -1) for name in brokers]
    mine = tuple(MessageQueueAssignment(message_queue=queue, mode="POP") for queue in queues)

    def share(asked: RemotingCommand) -> RemotingCommand:
        topic = parse_body(QueryAssignmentRequestBody, asked.body).topic
        of_topic = QueryAssignmentResponseBody(message_queue_assignments=mine if topic == "T" else ())
        return response(ResponseCode.SUCCESS, 0, body=format_body(of_topic))

    cluster.fault(code=RequestCode.QUERY_ASSIGNMENT, times=None, answer=share)


@pytest.fixture
def sources(monkeypatch) -> list[Source[Any]]:
    """The queues that the thread of a burst fetched."""
    return note_sources(monkeypatch)


class Listener:
    """Counts how often each place has come; ``at``: what to do at the call for a place."""

    def __init__(self, *, at: dict[Place, Callable[[], object]] | None = None) -> None:
        self.heard: Counter[Place] = Counter()
        self._at = at or {}
        self.came = threading.Condition()

    def __call__(self, messages, _) -> Any:
        (message,) = messages
        place = message.queue_id, message.queue_offset
        act = self._at.pop(place, None)
        result = act() if act is not None else None
        with self.came:
            self.heard[place] += 1
            self.came.notify()
        return result

    def wait(self, count: int) -> bool:
        """Wait until so many places have come."""
        with self.came:
            return self.came.wait_for(lambda: len(self.heard) >= count, PATIENCE)


def member(
    cluster: FakeCluster, listener: Callable[..., Any], *, tags: str = "*", **settings
) -> PushConsumer:
    config = PushConsumerConfig(
        name_server=cluster.name_server,
        group="G",
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        client_rebalance=False,
        delay_after_error=0.05,
        **settings,
    )
    consumer = PushConsumer(config)
    consumer.subscribe("T", listener, tags=tags)
    return consumer


def acknowledged(cluster: FakeCluster) -> set[Place]:
    """The places that were acknowledged, singly or together; some twice, if an answer was late."""
    fields = [one.ext_fields for one in cluster.requests(RequestCode.ACK_MESSAGE)]
    bodies = [one.body for one in cluster.requests(RequestCode.BATCH_ACK_MESSAGE)]
    together = [(ack.queue_id, ack.offsets) for body in bodies for ack in parse_batch_ack_body(body)]
    found = {(int(one["queueId"] or 0), int(one["offset"] or 0)) for one in fields}
    return found | {(queue_id, offset) for queue_id, offsets in together for offset in offsets}


def test_a_backlog_comes_once_and_is_acknowledged_once_by_its_thread(cluster, sources):
    listener = Listener()

    with member(cluster, listener):
        assert listener.wait(2 * EACH)

    polls = Counter(one.ext_fields["pollTime"] for one in cluster.requests(RequestCode.POP_MESSAGE))
    assert listener.heard == ALL
    assert acknowledged(cluster) == set(ALL)
    assert polls["0"] > polls.total() / 2
    assert [cluster.committed("G", queue) for queue in QUEUES] == [EACH, EACH]


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
def test_a_pop_that_fails_in_a_burst_costs_no_message(cluster, sources, monkeypatch, answer):
    monkeypatch.setattr("rmqtools.engine.consumer.pop._ANSWER_PATIENCE", 0.5)

    def fail() -> None:
        cluster.fault(code=RequestCode.POP_MESSAGE, times=3, answer=answer)

    listener = Listener(at={(1, 100): fail})
    with member(cluster, listener, long_poll_timeout=0.5):
        assert listener.wait(2 * EACH)

    assert sources
    assert listener.heard == ALL
    assert acknowledged(cluster) == set(ALL)


def test_a_late_answer_is_waited_for_since_its_messages_are_hidden(cluster, sources):
    def stand_still() -> None:
        cluster.freeze("broker-a")
        threading.Timer(0.3, cluster.thaw, ["broker-a"]).start()

    listener = Listener(at={(0, 1_000): stand_still})
    with member(cluster, listener):
        assert listener.wait(2 * EACH)

    assert len(sources) > 1
    assert listener.heard == ALL
    assert acknowledged(cluster) == set(ALL)


def test_a_loop_that_takes_over_at_any_moment_loses_nothing(cluster, sources, monkeypatch):
    monkeypatch.setattr(burst, "_SLOW", 0.001)
    monkeypatch.setattr(burst, "_LOOK_AGAIN", 0.0)
    listener = Listener()

    with member(cluster, listener):
        assert listener.wait(2 * EACH)
        wait_until(lambda: acknowledged(cluster) == set(ALL))

    assert len(sources) > 10
    assert listener.heard == ALL
    assert {one.held.wait_ack_count for one in sources} == {0}


def test_what_the_thread_cannot_acknowledge_is_acknowledged_by_the_loop(cluster, sources):
    faults = []

    def refuse() -> None:
        error = ResponseCode.SYSTEM_ERROR
        faults.append(cluster.fault(code=RequestCode.BATCH_ACK_MESSAGE, times=1, answer=error))

    listener = Listener(at={(0, 1_000): refuse})
    with member(cluster, listener):
        assert listener.wait(2 * EACH)

    assert sources
    assert faults[0].fired()
    assert listener.heard == ALL
    assert [cluster.committed("G", queue) for queue in QUEUES] == [EACH, EACH]


def test_while_one_call_hangs_all_else_is_consumed_and_acknowledged(cluster, sources):
    go_on = threading.Event()
    listener = Listener(at={(0, 1_010): lambda: go_on.wait(PATIENCE) and None})

    with member(cluster, listener):
        assert listener.wait(2 * EACH - 1)
        others = {place for place in ALL if place != (0, 1_010)}
        wait_until(lambda: acknowledged(cluster) == others)
        go_on.set()
        assert listener.wait(2 * EACH)

    assert sources
    assert listener.heard == ALL
    assert acknowledged(cluster) == set(ALL)


def test_a_call_that_fails_hides_its_message_alone(cluster, sources):
    failing = {(number, offset) for number in range(2) for offset in range(500, EACH, 500)}
    later = ConsumeConcurrentlyStatus.RECONSUME_LATER
    listener = Listener(at={place: lambda: later for place in failing})

    with member(cluster, listener):
        assert listener.wait(2 * EACH)

    assert sources
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
    listener = Listener(at={(0, 1_010): lambda: (consumer.close(), closed.set())[1]})
    consumer = member(cluster, listener)
    consumer.start()
    assert closed.wait(PATIENCE)

    assert sources
    assert acknowledged(cluster) == set(listener.heard) - {(0, 1_010)}


def test_suspend_ends_a_burst_and_what_was_popped_is_still_consumed(cluster, sources):
    listener = Listener(at={(0, 1_000): lambda: consumer.suspend()})
    consumer = member(cluster, listener)

    with consumer:
        wait_until(lambda: sources and sources[0].returned.done())
        wait_until(lambda: acknowledged(cluster) == set(listener.heard))
        assert len(listener.heard) < 2 * EACH
        consumer.resume()
        assert listener.wait(2 * EACH)

    assert sources
    assert listener.heard == ALL
    assert acknowledged(cluster) == set(ALL)


def test_messages_with_other_tags_of_equal_hash_are_acknowledged_unheard(cluster, sources):
    listener = Listener()

    with member(cluster, listener, tags="Aa"):
        assert listener.wait(EACH)
        wait_until(lambda: acknowledged(cluster) == set(ALL))

    assert sources
    assert set(listener.heard) == {place for place in ALL if not place[1] // 50 % 2}


def test_a_slow_broker_does_not_hold_up_the_queues_of_another(sources):
    with FakeCluster(brokers=("broker-a", "broker-b")) as two:
        two.create_topic("T", queues=1)
        let_pop(two, "broker-a", "broker-b")
        for name in ("broker-a", "broker-b"):
            two.store("T", *[b"body"] * EACH, queue=MessageQueue("T", name, 0))
        at_end: list[int] = []
        by_broker: Counter[str] = Counter()
        done = threading.Event()

        def listen(messages, _) -> None:
            by_broker[messages[0].broker_name] += 1
            if by_broker.total() == EACH // 2:
                two.fault(code=RequestCode.POP_MESSAGE, broker="broker-b", times=None, delay=0.2)
            if by_broker["broker-a"] == EACH and not at_end:
                at_end.append(by_broker["broker-b"])
                done.set()

        with member(two, listen):
            assert done.wait(PATIENCE)

    assert {one.held.queue.broker_name for one in sources} == {"broker-a", "broker-b"}
    assert at_end[0] < 3 * EACH // 4


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


def wait_until(true: Callable[[], object]) -> None:
    """Wait for what a broker is about to be asked."""
    deadline = threading.Event()
    for _ in range(round(PATIENCE / 0.02)):
        if true():
            return
        deadline.wait(0.02)
    raise AssertionError("it did not happen")
