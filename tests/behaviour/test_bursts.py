"""Bursts of blocking push consumers: what threads pull arrives once, also where a burst ends early."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial

import pytest

from rmqtools import Message, MessageQueue, Producer, ProducerConfig, PushConsumer
from rmqtools.errors import SendError
from rmqtools.model.codes import ResponseCode
from tests.behaviour.site import Site, consumer_offset, offset_of, until
from tests.behaviour.wire import Wire
from tests.support.bursts import note_sources
from tests.support.listening import listening
from tests.support.patience import PATIENCE, PATIENT_REQUEST

EACH = 2_000  # messages of each of the two queues
Place = tuple[int, int]  # queue id, offset


@pytest.fixture(autouse=True)
def any_burst(monkeypatch) -> Iterator[None]:
    """A test without a burst would show nothing."""
    sources = note_sources(monkeypatch)
    yield
    assert sources


@pytest.fixture
def backlog(site: Site, topic: str) -> list[Place]:
    """The places of the messages that wait in both queues."""
    return fill(site, topic)


def fill(site: Site, topic: str, *, first: int = 0) -> list[Place]:
    """Send ``EACH`` messages to both queues, which have ``first`` each; return their places."""
    offsets = range(first, first + EACH)
    patient = ProducerConfig(name_server=site.name_server, group="tests", send_timeout=PATIENT_REQUEST)
    with Producer(patient) as producer:
        for number in range(2):
            for begin in offsets[::500]:
                messages = [Message(topic, b"%d %d" % (number, begin + n)) for n in range(500)]
                sending = partial(_is_sent, producer, messages, MessageQueue(topic, site.broker, number))
                until(sending)
    return [(number, offset) for number in range(2) for offset in offsets]


def _is_sent(producer: Producer, messages: list[Message], queue: MessageQueue) -> bool:
    """Send a batch; False: a busy broker has refused it."""
    try:
        producer.send_batch(messages, queue=queue)
    except SendError as error:
        if "SYSTEM_BUSY" not in str(error):
            raise
        return False
    return True


class Listener:
    """Notes the place of each message; ``act`` is called with a place, and how often it has come."""

    def __init__(self, act: Callable[[Place, int], None] = lambda *_: None) -> None:
        self.heard: list[Place] = []
        self._act = act
        self._counts: Counter[Place] = Counter()

    def __call__(self, messages, context) -> None:
        for message in messages:
            number, offset = map(int, message.body.split())
            place = number, offset
            self._counts[place] += 1
            context.delay_level_when_next_consume = 1
            self._act(place, self._counts[place])
            self.heard.append(place)


def slow_from(count: int, listener: Listener, reached: threading.Event) -> None:
    """Set ``reached`` once ``count`` were heard; sleep for each of the next ones, so that many are left."""
    if count <= len(listener.heard) < count + EACH // 2:
        reached.set()
        time.sleep(0.001)


def member(
    site: Site, group: str, topic: str, listener: Listener, **settings
) -> AbstractContextManager[PushConsumer]:
    return listening(site.name_server, topic, listener, group=group, **settings)


@pytest.mark.parametrize("orderly", [False, True])
def test_a_backlog_arrives_once_and_its_end_is_stored(site, wire, topic, group, backlog, orderly):
    listener = Listener()

    with member(site, group, topic, listener, orderly=orderly):
        until(lambda: len(listener.heard) >= len(backlog))

    assert sorted(listener.heard) == backlog
    assert offset_of(consumer_offset(wire, group, topic)) == EACH
    if orderly:
        assert [place for place in listener.heard if place[0] == 0] == backlog[:EACH]


@pytest.mark.parametrize("begun", [pytest.param(20, id="before the burst"), EACH // 2])
@pytest.mark.parametrize("orderly", [False, True])
def test_while_one_call_hangs_all_else_is_consumed(site, wire, topic, group, backlog, orderly, begun):
    go_on = threading.Event()
    stop = 0, begun

    def hang(place: Place, _: int) -> None:
        assert place != stop or go_on.wait(PATIENCE)

    listener = Listener(hang)
    behind = [(0, offset) for offset in range(begun, EACH)] if orderly else [stop]
    with member(site, group, topic, listener, orderly=orderly) as consumer:
        until(lambda: len(listener.heard) >= len(backlog) - len(behind))
        assert sorted([*listener.heard, *behind]) == backlog
        go_on.set()
        until(lambda: len(listener.heard) >= len(backlog))
        consumer.suspend()
        more = fill(site, topic, first=EACH)
        consumer.resume()  # no burst begins while a call hangs: one does now
        until(lambda: len(listener.heard) >= len(backlog) + len(more))

    assert sorted(listener.heard) == sorted(backlog + more)
    assert offset_of(consumer_offset(wire, group, topic)) == 2 * EACH


@pytest.mark.parametrize("orderly", [False, True])
def test_calls_that_fail_are_made_again_and_no_other(site, topic, group, backlog, orderly):
    failing = {(number, offset) for number in range(2) for offset in range(300, EACH, 300)}
    failed: list[Place] = []

    def fail(place: Place, count: int) -> None:
        if place in failing and count == 1 and place not in failed:
            failed.append(place)
            raise OSError("disk full")

    listener = Listener(fail)
    settings = {"orderly": True, "suspend_current_queue_time": 0.01} if orderly else {}
    with member(site, group, topic, listener, **settings):
        until(lambda: len(listener.heard) >= len(backlog))

    assert sorted(listener.heard) == backlog
    assert sorted(failed) == sorted(failing)
    if orderly:
        assert [place for place in listener.heard if place[0] == 1] == backlog[EACH:]


@pytest.mark.parametrize("orderly", [False, True])
def test_a_member_that_closes_in_a_burst_leaves_the_rest_to_the_next(site, topic, group, backlog, orderly):
    reached = threading.Event()
    first = Listener(lambda *_: slow_from(EACH, first, reached))
    second = Listener()

    with member(site, group, topic, first, orderly=orderly):
        assert reached.wait(PATIENCE)
    with member(site, group, topic, second, orderly=orderly):
        until(lambda: len(first.heard) + len(second.heard) >= len(backlog))

    assert sorted(first.heard + second.heard) == backlog
    assert second.heard


def test_a_member_that_joins_in_a_burst_misses_nothing(site, wire, topic, group, backlog):
    reached, joined = threading.Event(), threading.Event()

    def pause(*_: object) -> None:
        if len(first.heard) >= EACH // 2:  # and all later calls, of whatever thread
            reached.set()
            joined.wait(PATIENCE)

    first, second, often = Listener(pause), Listener(), {"persist_consumer_offset_interval": 0.05}
    with member(site, group, topic, first, instance_name="one", **often) as one:
        assert reached.wait(PATIENCE)
        until(lambda: _stored(wire, group, topic) >= len(first.heard) - 64)
        with member(site, group, topic, second, instance_name="two", **often) as two:
            until(lambda: not {*one.queues} & {*two.queues})  # until then, both consume the same queue
            joined.set()
            until(lambda: set(first.heard) | set(second.heard) >= set(backlog))

    again = len(first.heard) + len(second.heard) - len(backlog)
    assert again <= 128  # what was not stored yet, and the calls that stood still


def _stored(wire: Wire, group: str, topic: str) -> int:
    """Return the sum of the offsets that the broker has stored for both queues."""
    answers = [consumer_offset(wire, group, topic, queue_id=number) for number in range(2)]
    return sum(offset_of(answer) for answer in answers if answer.code == ResponseCode.SUCCESS)


def test_suspend_ends_a_burst_and_resume_begins_another(site, topic, group, backlog):
    reached = threading.Event()
    listener = Listener(lambda *_: slow_from(EACH // 2, listener, reached))

    with member(site, group, topic, listener) as consumer:
        assert reached.wait(PATIENCE)
        consumer.suspend()
        still = until(lambda: _stands_still(listener))
        assert still < len(backlog)
        consumer.resume()
        until(lambda: len(listener.heard) >= len(backlog))

    assert sorted(listener.heard) == backlog


def _stands_still(listener: Listener) -> int:
    """How many were heard, if none came for a while."""
    count = len(listener.heard)
    threading.Event().wait(0.3)
    return count if len(listener.heard) == count else 0
