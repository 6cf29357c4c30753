"""Administration of pins: which machines get a group's queues."""

from rmqtools.engine.admin.masters import AdminPart
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.group.pin_store import PinStore
from rmqtools.errors import RocketMQError
from rmqtools.policy.allocate.pins import Pins


class PinAdmin(AdminPart):
    """The methods about pins; :class:`rmqtools.aio.Admin` has them all.

    Name servers have no access control: every client that can connect can pin any group. They do not
    replicate pins, so each has its own copy. Members with the strategy PINS read all copies.
    """

    def __init__(self, client: ClientCore, *, partial: bool = False) -> None:
        super().__init__(client, partial=partial)
        self._pins = PinStore(client)

    async def fetch_pins(self, group: str) -> Pins:
        """Return the pins of a group that are valid: the highest version that any name server has.

        Returns:
            They may have expired: see :meth:`rmqtools.allocate.Pins.at`. :data:`rmqtools.allocate.NO_PINS`
            if the group never had any.

        Raises:
            RocketMQError: no name server answered with valid data.
        """
        copies = await self._pins.fetch_copies(group)
        if (pins := self._pins.newest_of(group, copies, None)) is None:
            raise next(copy for copy in copies.values() if isinstance(copy, RocketMQError))
        return pins

    async def fetch_pin_copies(self, group: str) -> dict[str, Pins | RocketMQError]:
        """Return each name server's copy by its address, or the error (not raised) if it cannot be read."""
        return await self._pins.fetch_copies(group)

    async def fetch_pin_groups(self) -> list[str]:
        """Return the groups that have pins, or had some before they were cleared.

        Raises:
            RocketMQError: no name server answered with valid data.
        """
        return await self._pins.fetch_groups()

    async def set_pins(self, group: str, pins: Pins) -> Pins:
        """Pin a group. Writes the next version to every name server and reads it back.

        Members follow within about 10 s. Does not check whether they use the strategy PINS.

        Args:
            group: its name.
            pins: the pins to write; their version is ignored.

        Returns:
            The pins with their version.

        Raises:
            RocketMQError: some name servers did not store them; the text names each. Members obey the pins
                as soon as one name server has them: repeat the call when all answer.
        """
        return await self._pins.put(group, pins)

    async def clear_pins(self, group: str, *, set_by: str = "") -> Pins:
        """Remove a group's pins by writing a newer, empty version: all members share again.

        Raises:
            RocketMQError: as :meth:`set_pins`.
        """
        return await self._pins.clear(group, set_by=set_by)

    async def repair_pins(self, group: str) -> Pins | None:
        """Write a group's valid pins to every name server, so that they beat all copies written before.

        Use it if copies differ, cannot be parsed, or are ignored because of an impossible version.

        Returns:
            The written pins; None: all copies were equal, and nothing was written.

        Raises:
            RocketMQError: a name server does not answer: nothing was written. Or as :meth:`set_pins`.
        """
        return await self._pins.repair(group)
