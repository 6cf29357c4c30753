"""Brokers as the planner of a stream asks them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rmqtools import MessageQueue
from rmqtools.errors import RemotingTimeoutError, TopicNotFoundError
from spark_connector.options.batch_limits import Limits
from spark_connector.read.bounds import Ends
from spark_connector.read.early_planner import EarlyPlanner
from spark_connector.read.stored import Stored
from spark_connector.read.stream_offsets import StreamOffsets
from spark_connector.read.stream_planner import StreamPlanner
from tests.support.clock import ManualClock

A, B, C = (MessageQueue("T", "a", queue_id) for queue_id in range(3))


@dataclass
class ScriptedBrokers:
    """Queues with a first and a next offset; tests change them as time goes by."""

    queues: dict[MessageQueue, tuple[int, int]]
    start: str = "latest"
    asked: int = 0
    sizes: dict[MessageQueue, int] = field(default_factory=dict)
    is_silent: bool = False
    is_missing: bool = False
    names: set[str] = field(default_factory=lambda: {"a"})
    times: dict[MessageQueue, int] = field(
        default_factory=dict
    )  # when the topic was filled; each ms a message
    selected: str = "T"
    ends: Ends | None = None

    def fetch_stored(self, *, must_exist: bool) -> Stored:
        self.asked += 1
        if self.is_silent:
            raise RemotingTimeoutError("no answer")
        if self.is_missing and must_exist:
            raise TopicNotFoundError("topic 'T' has no route")
        return Stored(
            {queue: first for queue, (first, _) in self.queues.items()},
            {queue: next_ for queue, (_, next_) in self.queues.items()},
        )

    def resolve_start(self, stored: Stored) -> dict[MessageQueue, int]:
        return dict(stored.latest if self.start == "latest" else stored.earliest)

    def fetch_ends(self, stored: Stored) -> Ends | None:
        return self.ends

    def store_times(self, offsets: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
        return {queue: self.times.get(queue, 0) + offset for queue, offset in offsets.items()}

    def is_selected(self, queue: MessageQueue) -> bool:
        return queue.topic == self.selected

    def mean_bytes(self, queue: MessageQueue, begin: int, end: int) -> int:
        return self.sizes[queue]

    def fetch_broker_names(self) -> set[str]:
        return self.names


def planner_on(brokers: ScriptedBrokers, clock=None, **settings) -> StreamPlanner:
    return StreamPlanner(**_given(brokers, clock, {"limits": Limits(), **settings}))


def early_planner_on(brokers: ScriptedBrokers, clock=None, **settings) -> EarlyPlanner:
    return EarlyPlanner(**_given(brokers, clock, settings))


def _given(brokers: ScriptedBrokers, clock: ManualClock | None, settings: dict[str, Any]) -> dict[str, Any]:
    clock = clock or ManualClock()
    defaults = {"clock": clock, "wait": clock.advance, "poll_interval": 1.0, "fail_on_data_loss": True}
    return {"brokers": brokers, **defaults, **settings}


def query_on(queues, clock=None, **given) -> tuple[ScriptedBrokers, StreamPlanner, StreamOffsets]:
    """A new query: its brokers, its planner, and where it starts."""
    scripted = {name: given.pop(name) for name in ("start", "sizes", "times", "ends") if name in given}
    brokers = ScriptedBrokers(queues, **scripted)
    planner = planner_on(brokers, clock, **given)
    return brokers, planner, planner.initial_offset()


def plan(planner, start, limited=True):
    return planner.plan(start.to_json(), limited=limited)
