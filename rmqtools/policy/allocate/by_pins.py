"""PINS: like PINNED_BY_IP, but the pins can change while the group runs."""

from collections.abc import Sequence
from dataclasses import field, replace

from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record
from rmqtools.policy.allocate.averagely import AllocateAveragely
from rmqtools.policy.allocate.pinned_by_ip import AllocatePinnedByIp, WhenAbsent, check_when_absent
from rmqtools.policy.allocate.pins import Pins
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy


@record(kw_only=False)
class AllocateByPins:
    """The members on the pinned machines share all queues; without pins all members share them.

    Users make it without pins. The engine reads the pins and calls ``strategy.with_pins(pins.at(now))``.

    Attributes:
        inner: the strategy that shares among the pinned members, or among all.
        when_absent: as in :class:`AllocatePinnedByIp`, for pins that have no value of their own.
        pins: the valid pins; None: not known yet, so the member takes no queue, which could be another's.

    Source of the rule: our own.
    """

    inner: AllocateMessageQueueStrategy = field(default_factory=AllocateAveragely)
    when_absent: WhenAbsent = field(kw_only=True)
    pins: Pins | None = field(default=None, kw_only=True)
    name = "PINS"

    def __post_init__(self) -> None:
        check_when_absent(self.when_absent)

    def with_pins(self, pins: Pins | None) -> "AllocateByPins":
        """Return the same strategy with other pins."""
        return replace(self, pins=pins)

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See the class."""
        if self.pins is None:
            return []
        return self._sharer(self.pins).allocate(group, client_id, queues, client_ids)

    def _sharer(self, pins: Pins) -> AllocateMessageQueueStrategy:
        if not pins.ips:
            return self.inner
        return AllocatePinnedByIp(pins.ips, self.inner, when_absent=pins.when_absent or self.when_absent)
