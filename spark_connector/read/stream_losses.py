"""Finds the messages that a running stream has lost, and the offset where it continues in each queue.

The rules are those of ``read.loss``.

- A deleted queue keeps its offset in a stream's checkpoint. Without it, the queue would be read from its
  first offset when its broker comes back.
- A name server drops a broker's queues when the connection ends and restores them when the broker is back.
  For a stream, a missing queue is lost only if its broker was up at two checks, or has been away for a
  minute.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from rmqtools import MessageQueue
from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.log import get_logger
from spark_connector.options.queue_json import place
from spark_connector.read.loss import (
    GoneQueues,
    Loss,
    Offsets,
    QueueMark,
    find_losses,
    find_made_anew,
    report_losses,
)
from spark_connector.read.stored import Stored
from spark_connector.read.stream_offsets import StreamOffsets

log = get_logger(__name__)

_MAY_BE_ABSENT: Final = 10.0  # seconds between two checks in which a topic may be recreated and filled


class LossBrokers(Protocol):
    """Requests about queues that may be lost. Every call except ``is_selected`` uses the network."""

    def store_times(self, offsets: Offsets) -> Offsets:
        """Store times in ms of the messages at these offsets; queues without a message there are left out."""

    def is_selected(self, queue: MessageQueue) -> bool:
        """Return whether the options select a queue; the queue need not exist."""

    def fetch_broker_names(self) -> Collection[str]:
        """Names of the running brokers, as name servers list them."""


@dataclass(slots=True)
class LossWatch:
    """Finds losses for one run of a query; remembers the queues that it has seen. Not thread-safe."""

    brokers: LossBrokers
    fail_on_data_loss: bool
    clock: Clock = SYSTEM_CLOCK
    _logged: set[str] = field(default_factory=set)
    _awaited: set[MessageQueue] = field(default_factory=set)  # gone at the last check, may come back
    _gone: GoneQueues = field(default_factory=GoneQueues)
    _filled: set[MessageQueue] = field(default_factory=set)  # queues seen with messages at any time
    _recognised: set[MessageQueue] = field(default_factory=set)  # compared with marks, and present since
    _foreign: dict[MessageQueue, QueueMark] = field(default_factory=dict)  # another message at the mark
    _checked_at: float | None = None

    @property
    def is_waiting(self) -> bool:
        """True if, at the last check, a queue was missing that may come back."""
        return self.fail_on_data_loss and bool(self._awaited)

    def note(self, stored: Stored) -> None:
        """Note what is stored now."""
        self._filled.update(queue for queue, latest in stored.latest.items() if latest)

    def begin_after(
        self, start: StreamOffsets, stored: Stored, *, may_wait: bool
    ) -> tuple[Offsets, Collection[MessageQueue]]:
        """Return where the batch begins that follows ``start``.

        Args:
            start: the end of the batch before.
            stored: the offsets stored now.
            may_wait: queues that are gone may come back; trigger AvailableNow does not wait for them.

        Returns:
            The next offset of every existing queue (of a new one its first); and the recreated queues.

        Raises:
            DataLossError: offsets to read are lost, and ``failOnDataLoss`` is set. Else they are logged once.
                Queues that may come back are logged once as awaited.
        """
        anew = self._find_foreign(start.marks, stored).keys()
        losses = find_losses(
            start.next,
            stored,
            filled=self._filled,
            is_selected=self.brokers.is_selected,
            made_anew=anew,
        )
        certain = self._certain(losses) if may_wait else losses
        report_losses([one for one in certain if one.text not in self._logged], fail=self.fail_on_data_loss)
        self._logged = {loss.text for loss in certain}
        awaited = {loss.queue for loss in losses if loss.queue and loss not in certain}
        for queue in sorted(awaited - self._awaited):
            log.warning("queue_awaited", queue=place(queue), next_offset=start.next[queue])
        self._awaited = awaited
        known = {queue: at for queue, at in start.next.items() if queue in stored.earliest}
        moved = {loss.queue: loss.go_on_at for loss in losses if loss.queue and loss.go_on_at is not None}
        return {**stored.earliest, **known, **moved}, anew

    def recreated_in(self, end: StreamOffsets, stored: Stored) -> Collection[MessageQueue]:
        """Return the recreated queues of a batch that an earlier run planned: it must skip them.

        Raises:
            DataLossError: a queue is no longer selected, or its topic was recreated, and ``failOnDataLoss``
                is set.
        """
        anew = self._find_foreign(end.marks, stored).keys()
        is_selected = self.brokers.is_selected
        losses = find_losses(end.next, stored, is_selected=is_selected, made_anew=anew)
        report_losses(
            [one for one in losses if one.queue in anew or (one.queue and not is_selected(one.queue))],
            fail=self.fail_on_data_loss,
        )
        return anew

    def _find_foreign(
        self, marks: Mapping[MessageQueue, QueueMark], stored: Stored
    ) -> Mapping[MessageQueue, QueueMark]:
        """Find queues with another message at their mark.

        Checks those that were absent at the last check, and all if that was long ago: a query with a long
        trigger or long batches does not see that a topic was absent.
        """
        now = self.clock.monotonic()
        if self._checked_at is not None and now - self._checked_at >= _MAY_BE_ABSENT:
            self._recognised.clear()
        self._checked_at = now
        self._recognised &= stored.earliest.keys()
        new = {
            queue: mark
            for queue, mark in marks.items()
            if queue not in self._recognised and stored.holds(queue, mark.offset)
        }
        if new:
            times = self.brokers.store_times({queue: mark.offset for queue, mark in new.items()})
            self._foreign |= find_made_anew(new, times)
        self._recognised |= stored.earliest.keys()
        self._foreign = {queue: mark for queue, mark in self._foreign.items() if marks.get(queue) == mark}
        return self._foreign

    def _certain(self, losses: list[Loss]) -> list[Loss]:
        """Return the losses that are certain now."""
        deselected = [one for one in losses if one.queue and not self.brokers.is_selected(one.queue)]
        others = [loss for loss in losses if loss not in deselected]
        now = self.clock.monotonic()
        return deselected + self._gone.certain(others, self.brokers.fetch_broker_names, now)
