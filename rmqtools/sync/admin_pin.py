"""Blocking face of :mod:`rmqtools.aio.admin_pin`."""

from rmqtools import aio
from rmqtools.errors import RocketMQError
from rmqtools.policy.allocate.pins import Pins
from rmqtools.sync.loop import Bridge


class PinAdmin:
    """The methods about pins; :class:`rmqtools.sync.Admin` has them all."""

    _admin: aio.Admin
    _bridge: Bridge

    def fetch_pins(self, group: str) -> Pins:
        """See :meth:`rmqtools.aio.Admin.fetch_pins`."""
        return self._bridge.run(self._admin.fetch_pins(group))

    def fetch_pin_copies(self, group: str) -> dict[str, Pins | RocketMQError]:
        """See :meth:`rmqtools.aio.Admin.fetch_pin_copies`."""
        return self._bridge.run(self._admin.fetch_pin_copies(group))

    def fetch_pin_groups(self) -> list[str]:
        """See :meth:`rmqtools.aio.Admin.fetch_pin_groups`."""
        return self._bridge.run(self._admin.fetch_pin_groups())

    def set_pins(self, group: str, pins: Pins) -> Pins:
        """See :meth:`rmqtools.aio.Admin.set_pins`."""
        return self._bridge.run(self._admin.set_pins(group, pins))

    def clear_pins(self, group: str, *, set_by: str = "") -> Pins:
        """See :meth:`rmqtools.aio.Admin.clear_pins`."""
        return self._bridge.run(self._admin.clear_pins(group, set_by=set_by))

    def repair_pins(self, group: str) -> Pins | None:
        """See :meth:`rmqtools.aio.Admin.repair_pins`."""
        return self._bridge.run(self._admin.repair_pins(group))
