"""Operating pins: which machines get a group's queues; a part of :class:`rmqtools.aio.Admin`."""

from rmqtools.engine.pin_store import PinStore
from rmqtools.errors import RocketMQError
from rmqtools.policy.allocate.pins import Pins


class PinAdmin:
    """The methods about pins; :class:`rmqtools.aio.Admin` has them all.

    Name servers have no access control and do not tell each other anything, so whoever reaches them can pin
    any group, and each has a copy of its own. Members that share by pins (strategy PINS) read all of them.
    """

    _pins: PinStore

    async def fetch_pins(self, group: str) -> Pins:
        """The pins of a group that count: the highest version that any name server has.

        Returns:
            They may have expired: see :meth:`rmqtools.allocate.Pins.at`. :data:`rmqtools.allocate.NO_PINS`:
            nobody ever set any.

        Raises:
            RocketMQError: no name server could say.
        """
        copies = await self._pins.fetch_copies(group)
        if (pins := self._pins.newest_of(group, copies, None)) is None:
            raise next(copy for copy in copies.values() if isinstance(copy, RocketMQError))
        return pins

    async def fetch_pin_copies(self, group: str) -> dict[str, Pins | RocketMQError]:
        """What each name server has, by its address; an error (not raised) where it cannot be read."""
        return await self._pins.fetch_copies(group)

    async def fetch_pin_groups(self) -> list[str]:
        """The groups that have pins, or had some before they were cleared.

        Raises:
            RocketMQError: no name server could say.
        """
        return await self._pins.fetch_groups()

    async def set_pins(self, group: str, pins: Pins) -> Pins:
        """Pin a group: written to every name server, as the version after the highest, and read back.

        Members follow within some 10 s. Whether they share by pins at all is not checked here.

        Args:
            group: its name.
            pins: what to pin it to; the version is not looked at.

        Returns:
            The pins with their version.

        Raises:
            RocketMQError: some name servers do not have them; the text names each. They count all the
                same where one has them: repeat it when all answer.
        """
        return await self._pins.put(group, pins)

    async def clear_pins(self, group: str, *, set_by: str = "") -> Pins:
        """Pin a group to nothing, by a newer version that says so: all members share again.

        Raises:
            RocketMQError: as :meth:`set_pins`.
        """
        return await self._pins.clear(group, set_by=set_by)
