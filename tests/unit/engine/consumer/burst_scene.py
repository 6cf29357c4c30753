"""Members whose backlog waits in two queues of a fake broker, so that a thread fetches it in bursts."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rmqtools import MessageQueue, PushConsumer
from rmqtools.engine.consumer import listeners
from rmqtools.engine.consumer.burst_sources import Source
from rmqtools.model.codes import RequestCode
from rmqtools.testing import FakeCluster
from tests.support.bursts import note_sources
from tests.support.patience import PATIENCE
from tests.unit.engine.consumer.pull_scene import push_config

Place = tuple[int, int]  # queue id, offset

EACH = 400  # messages of each of the two queues
MIDDLE: Place = (0, EACH // 2)
QUEUES = [MessageQueue("T", "broker-a", number) for number in range(2)]
ALL = Counter({(number, offset): 1 for number in range(2) for offset in range(EACH)})
TAGGED_BB = [place for place in ALL if place[1] // 50 % 2]  # the tag of the others is Aa, of the same hash


def noted_bursts(monkeypatch: pytest.MonkeyPatch) -> list[Source[Any]]:
    """Return a list of the queues that a thread fetches; bursts begin after a few short calls."""
    monkeypatch.setattr(listeners, "_LATELY", 8)
    return note_sources(monkeypatch)


@contextmanager
def backlog() -> Iterator[FakeCluster]:
    """A cluster with all messages."""
    with FakeCluster(brokers=("broker-a",)) as cluster:
        cluster.create_topic("T", queues=2)
        for queue in QUEUES:
            for begin in range(0, EACH, 50):
                cluster.store("T", *[b"body"] * 50, queue=queue, tags="BB" if begin // 50 % 2 else "Aa")
        yield cluster


class Listener:
    """Counts how often each place has come; ``at``: what to do at the first call for a place."""

    def __init__(self, at: dict[Place, Callable[[], object]] | None = None) -> None:
        self.heard: Counter[Place] = Counter()
        self._at = at or {}
        self._came = threading.Condition()

    def __call__(self, messages, _) -> Any:
        (message,) = messages
        place = message.queue_id, message.queue_offset
        act = self._at.pop(place, None)
        result = act() if act is not None else None
        with self._came:
            self.heard[place] += 1
            self._came.notify()
        return result

    def wait(self, count: int = 2 * EACH, *, seconds: float = PATIENCE) -> bool:
        """Wait until so many places have come; False: they have not in this time."""
        with self._came:
            return self._came.wait_for(lambda: len(self.heard) >= count, seconds)


def member(
    cluster: FakeCluster, listener: Callable[..., Any], *, tags: str = "*", **settings: Any
) -> PushConsumer:
    """A member of group G that begins with the first message; its loop fetches little before a burst."""
    given: dict[str, Any] = {"group": "G", "pull_threshold_for_queue": 32, "delay_after_error": 0.05}
    consumer = PushConsumer(push_config(cluster, **(given | settings)))
    consumer.subscribe("T", listener, tags=tags)
    return consumer


def consume_all(
    cluster: FakeCluster,
    sources: list[Source[Any]],
    at: dict[Place, Callable[[], object]] | None = None,
    **settings: Any,
) -> None:
    """Consume each message once, in a burst; ``at``: what to do at the call for a place."""
    listener = Listener(at)
    with member(cluster, listener, **settings):
        assert listener.wait()
    assert sources
    assert listener.heard == ALL


def committed(cluster: FakeCluster) -> list[int | None]:
    return [cluster.committed("G", queue) for queue in QUEUES]


def heard_of_a_slow_broker(
    code: RequestCode, share_out: Callable[[FakeCluster], None] = lambda _: None, **settings
) -> int:
    """How many messages of a broker that turns slow have come when all of another one's have."""
    heard: Counter[str] = Counter()
    at_end: list[int] = []
    done = threading.Event()

    def listen(messages, _) -> None:
        heard[messages[0].broker_name] += 1
        if heard.total() == EACH // 2:
            cluster.fault(code=code, broker="broker-b", times=None, delay=0.2)
        if heard["broker-a"] == EACH and not at_end:
            at_end.append(heard["broker-b"])
            done.set()

    with FakeCluster(brokers=("broker-a", "broker-b")) as cluster:
        cluster.create_topic("T", queues=1)
        share_out(cluster)
        for name in ("broker-a", "broker-b"):
            cluster.store("T", *[b"body"] * EACH, queue=MessageQueue("T", name, 0))
        with member(cluster, listen, **settings):
            assert done.wait(PATIENCE)
    return at_end[0]
