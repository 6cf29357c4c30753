"""Asks a cluster for the numbers that ``top`` shows; keeps the counters' history for rates."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from rmqtools import aio
from rmqtools.allocate import NO_PINS, Pins
from rmqtools.broker import BrokerState
from rmqtools.cli.broker import broker_places, broker_values
from rmqtools.cli.group import is_system_group
from rmqtools.cli.printing import now
from rmqtools.cli.top.rates import Meter
from rmqtools.cli.topic import is_internal
from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.errors import RocketMQError
from rmqtools.group import (
    Finding,
    GroupMember,
    GroupView,
    check_group,
    member_of,
    silent_member,
)
from rmqtools.model.group import Connection, ConsumerConnection

_AT_ONCE = 16  # topics or groups asked about at the same time
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A broker, a topic or a group at one moment.

    Attributes:
        name: its name.
        values: its numbers by column; None: unknown.
        meter: messages per second over time.
        note: what is wrong with it.
    """

    name: str
    values: dict[str, Any]
    meter: Meter
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLook:
    """A group at one moment: members, queues, lag, pins, problems."""

    view: GroupView
    pins: Pins
    findings: list[Finding]
    lag: int
    meter: Meter


class Sampler:
    """Looks at one cluster again and again. Belongs to one event loop."""

    def __init__(
        self, admin: aio.Admin, *, namespace: str | None = None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._admin = admin
        self._namespace = namespace
        self._clock = clock
        self._meters: defaultdict[tuple[str, str], Meter] = defaultdict(Meter)

    async def brokers(self) -> list[Row]:
        """Return a row for each broker; one that does not answer has a note and no numbers.

        Raises:
            RocketMQError: no name server answers.
        """
        read_only = await self._admin.fetch_read_only_brokers()
        places = broker_places(await self._admin.fetch_cluster_info(), read_only)
        return await self._each(self._broker, places)

    async def topics(self) -> list[Row]:
        """Return a row for each topic of users."""
        own = (await self._admin.fetch_cluster_info()).own_topics
        names = await self._admin.fetch_topic_list()
        return await self._each(self._topic, [n for n in names if n not in own and not is_internal(n)])

    async def groups(self) -> list[Row]:
        """Return a row for each group of users."""
        names = [name for name in await self._admin.fetch_group_list() if not is_system_group(name)]
        return await self._each(self._group, names)

    async def group(self, group: str) -> GroupLook:
        """Look at one group closely: which member owns which queue.

        Costs a request for each member and a few more, however many queues there are.
        """
        connection = await self._admin.fetch_consumer_connection(group)
        members = await self._each(lambda each: self._member(group, each), connection.connection_set)
        progress = await self._admin.fetch_progress(group, connection=connection)
        view = GroupView(
            group=group,
            message_model=connection.message_model,
            consume_type=connection.consume_type,
            members=tuple(sorted(members, key=lambda member: member.client_id)),
            progress=progress,
            now_ms=self._clock.now_ms(),
        )
        pins = await self._pins(view)
        self._read("group", group, sum(each.consumer_offset or 0 for each in progress.values()))
        return GroupLook(
            view=view,
            pins=pins,
            findings=check_group(view, pins.at(now())),
            lag=sum(each.lag for each in progress.values()),
            meter=self._meters["group", group],
        )

    async def _broker(self, place: BrokerState) -> Row:
        meter = self._meters["broker", place.addr]
        try:
            broker = replace(place, statistics=await self._admin.fetch_broker_runtime_info(place.addr))
        except RocketMQError as error:
            broker = replace(place, error=str(error))
        values = broker_values(broker)
        if broker.error is None:
            meter.rates.append(values["put_tps"] or 0.0)
        return Row(name=f"{place.broker_name} {place.role}", values=values, meter=meter, note=values["note"])

    async def _topic(self, topic: str) -> Row:
        meter = self._meters["topic", topic]
        try:
            offsets = (await self._admin.fetch_topic_stats(topic)).offset_table.values()
        except RocketMQError as error:
            return Row(name=topic, values={}, meter=meter, note=str(error))
        self._read("topic", topic, sum(each.max_offset for each in offsets))
        messages = sum(each.max_offset - each.min_offset for each in offsets)
        values = {"rate": meter.rate, "queues": len(offsets), "messages": messages}
        return Row(name=topic, values=values, meter=meter)

    async def _group(self, group: str) -> Row:
        meter = self._meters["group", group]
        try:
            connection = await self._admin.fetch_consumer_connection(group)
            progress = await self._admin.fetch_progress(group, connection=connection)
        except RocketMQError as error:
            return Row(name=group, values={}, meter=meter, note=str(error))
        self._read("group", group, sum(each.consumer_offset or 0 for each in progress.values()))
        lag = sum(each.lag for each in progress.values())
        values = {"members": len(connection.connection_set), "lag": lag, "rate": meter.rate}
        return Row(name=group, values=values, meter=meter, note=_group_note(connection, lag))

    async def _member(self, group: str, connection: Connection) -> GroupMember:
        try:
            info = await self._admin.fetch_running_info(group, connection.client_id)
        except RocketMQError as error:
            return silent_member(connection, str(error))
        return member_of(connection, info, self._namespace)

    async def _pins(self, view: GroupView) -> Pins:
        if not any(member.strategy == "PINS" for member in view.members):
            return NO_PINS
        return await self._admin.fetch_pins(view.group)

    def _read(self, kind: str, name: str, count: int) -> None:
        self._meters[kind, name].read(self._clock.monotonic(), count)

    async def _each(self, ask: Callable[[Any], Awaitable[T]], things: Iterable[Any]) -> list[T]:
        """Ask about all things, a few at a time; the answers in the things' order."""
        free = asyncio.Semaphore(_AT_ONCE)

        async def ask_in_turn(thing: Any) -> T:
            async with free:
                return await ask(thing)

        return await asyncio.gather(*(ask_in_turn(thing) for thing in things))


def _group_note(connection: ConsumerConnection, lag: int) -> str:
    return "nobody consumes" if lag and not connection.connection_set else ""
