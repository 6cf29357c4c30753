"""A consumer group that is pinned to machines, for tests."""

from rmqtools import Admin
from rmqtools.allocate import AllocateByPins, Pins


class PinnedGroup:
    """A group whose queues go to the members on some machines only. What the fixture ``pinned_group`` gives.

        consumer = PushConsumer(config_of(pinned_group.name), strategy=pinned_group.strategy)

    Attributes:
        name: the group, which no other test uses.
        strategy: for every member of the group.
        ips: the machines it is pinned to now; empty: all members share.
    """

    def __init__(self, admin: Admin, name: str, *ips: str) -> None:
        self._admin = admin
        self.name = name
        self.strategy = AllocateByPins(when_absent="nobody")
        self.ips: tuple[str, ...] = ()
        self.pin(*ips)

    def pin(self, *ips: str) -> None:
        """Pin the group to other machines. Members follow within their ``pin_poll_interval`` (5 s)."""
        self._admin.set_pins(self.name, Pins(0, ips, set_by="a test"))
        self.ips = ips

    def clear(self) -> None:
        """Remove the pins: all members share again."""
        self._admin.clear_pins(self.name, set_by="a test")
        self.ips = ()
