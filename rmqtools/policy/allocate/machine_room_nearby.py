"""MACHINE_ROOM_NEARBY: each machine room's queues are shared by the members in it, by another strategy."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Protocol, TypeVar

from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue, java_order
from rmqtools.model.record import record
from rmqtools.policy.allocate.averagely import AllocateAveragely
from rmqtools.policy.allocate.member_list import client_id_of
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy

T = TypeVar("T")


class MachineRoomResolver(Protocol):
    """Gives the machine room of brokers and members. Pure. None or "" makes every share fail."""

    def broker_deploy_in(self, queue: MessageQueue) -> str | None:
        """Return the machine room of a queue's broker."""

    def consumer_deploy_in(self, client_id: str) -> str | None:
        """Return the machine room of a member."""


@record(kw_only=False)
class RoomByPrefix:
    """Takes the text before the first ``separator`` of a broker name or client id as the room."""

    separator: str = "-"

    def broker_deploy_in(self, queue: MessageQueue) -> str | None:
        """See the class."""
        return self._room(queue.broker_name)

    def consumer_deploy_in(self, client_id: str) -> str | None:
        """See the class."""
        return self._room(client_id)

    def _room(self, text: str) -> str | None:
        room, found, _ = text.partition(self.separator)
        return room if found else None


@record(kw_only=False)
class AllocateMachineRoomNearby:
    """The members in a room share its queues; all members share the queues of rooms without members.

    ``inner`` shares each room's queues. A queue or member without a room is an error for all members,
    because queues would otherwise have two owners, or none.
    Source of the rule: AllocateMachineRoomNearby (Java client).
    """

    inner: AllocateMessageQueueStrategy = field(default_factory=AllocateAveragely)
    resolver: MachineRoomResolver = field(default_factory=RoomByPrefix)

    def __post_init__(self) -> None:
        if self.inner is None or self.resolver is None:
            raise ConfigError(f"MACHINE_ROOM_NEARBY: inner={self.inner}, resolver={self.resolver}: want both")

    @property
    def name(self) -> str:
        """``MACHINE_ROOM_NEARBY-`` and the inner strategy's name."""
        return f"MACHINE_ROOM_NEARBY-{self.inner.name}"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See the class."""
        rooms = _by_room(queues, self.resolver.broker_deploy_in)
        members = _by_room(client_ids, lambda entry: self.resolver.consumer_deploy_in(client_id_of(entry)))
        own_room = next(room for room, ids in members.items() if client_id in ids)
        mine: list[MessageQueue] = []
        for room in [own_room, *sorted(rooms.keys() - members.keys(), key=java_order)]:
            if room in rooms:
                mine += self.inner.allocate(group, client_id, rooms[room], members.get(room, client_ids))
        return mine


def _by_room(items: Iterable[T], room_of: Callable[[T], str | None]) -> dict[str, list[T]]:
    rooms: dict[str, list[T]] = {}
    for item in items:
        if not (room := room_of(item)):
            raise ConfigError(f"MACHINE_ROOM_NEARBY: {item} has no machine room: name it so that it has one")
        rooms.setdefault(room, []).append(item)
    return rooms
