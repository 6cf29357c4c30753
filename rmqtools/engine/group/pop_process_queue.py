"""A popped queue: counts its messages that are not acknowledged yet.

The broker keeps the offset, so there is nothing to commit. Source of the rule: PopProcessQueue (Java client).
"""

from rmqtools.clock import Clock
from rmqtools.engine.group.held_queue import HeldQueue
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import PopProcessQueueInfo

_PULL_MAX_IDLE_TIME = 120.0  # seconds; upstream PopProcessQueue.PULL_MAX_IDLE_TIME


class PopProcessQueue(HeldQueue):
    """State of one popped queue. Queue id -1 stands for all queues of the topic on the broker.

    Attributes:
        wait_ack_count: messages popped, and neither acknowledged nor returned for redelivery.
    """

    def __init__(self, queue: MessageQueue, clock: Clock) -> None:
        super().__init__(queue)
        self.wait_ack_count = 0
        self.last_pop_ms = clock.now_ms()
        self._clock = clock
        self._last_pop = clock.monotonic()

    @property
    def is_pull_expired(self) -> bool:
        """True if the last request is so long ago that the popping task must have died."""
        return self._clock.monotonic() - self._last_pop > _PULL_MAX_IDLE_TIME

    def popped(self) -> None:
        """Note that a request for messages was sent now."""
        self.note_waiting()
        self.last_pop_ms = self._clock.now_ms()

    def note_waiting(self) -> None:
        """Note that no request is sent on purpose; otherwise the queue would expire."""
        self._last_pop = self._clock.monotonic()

    def found(self, count: int) -> None:
        """Count messages that have arrived."""
        self.wait_ack_count += count

    def settled(self, count: int) -> None:
        """Count messages that are settled: acknowledged or returned."""
        self.wait_ack_count -= count
        self.wake()

    def info(self) -> PopProcessQueueInfo:
        """State reported to administrators."""
        return PopProcessQueueInfo(
            wait_ack_count=self.wait_ack_count, dropped=self.is_dropped, last_pop_timestamp=self.last_pop_ms
        )
