"""Asks a cluster for the numbers that ``top`` shows; keeps the counters' history for rates."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from rmqtools import aio
from rmqtools.broker import BrokerState, check_gone
from rmqtools.cli.broker import broker_values
from rmqtools.cli.group import is_system_group
from rmqtools.cli.moments import clock_text
from rmqtools.cli.printing import now
from rmqtools.cli.top.findings_list import Problem
from rmqtools.cli.top.rates import Meter
from rmqtools.cli.topic import is_internal
from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.errors import RocketMQError
from rmqtools.group import Finding, GroupCheck, severity
from rmqtools.model.queue import MessageQueue

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
    """A group at one moment with its problems, lag and rates."""

    check: GroupCheck
    lag: int
    meter: Meter


class Sampler:
    """Looks at one cluster again and again. Belongs to one event loop."""

    def __init__(self, client: aio.Client, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock
        self._meters: defaultdict[tuple[str, str], Meter] = defaultdict(Meter)
        self._seen: dict[str, str] = {}
        self._problems: dict[str, list[Problem]] = {}
        self.begin()

    def begin(self) -> None:
        """Begin a look: brokers that did not answer in the last one are asked again."""
        self._admin = aio.Admin(self._client, partial=True)

    @property
    def problems(self) -> list[Problem]:
        """Findings of the last looks at brokers and groups, the worst first."""
        found = [one for problems in self._problems.values() for one in problems]
        return sorted(found, key=lambda one: (severity(one.finding), one.name))

    async def brokers(self) -> list[Row]:
        """Return a row for each broker. One that does not answer has a note and no numbers, a lost one too.

        Raises:
            RocketMQError: no name server answers.
        """
        check = await self._admin.check_cluster()
        states = check.brokers
        gone = check_gone(states, self._seen)
        self._seen |= {broker.broker_name: clock_text(now()) for broker in states}
        self._problems["brokers"] = [Problem("", finding) for finding in (*gone, *check.findings)]
        return [*map(self._broker_row, states), *(self._gone_row(finding) for finding in gone)]

    async def topics(self) -> list[Row]:
        """Return a row for each topic of users."""
        own = (await self._admin.fetch_cluster_info()).own_topics
        names = await self._admin.fetch_topic_list()
        return await self._each(self._topic, [n for n in names if n not in own and not is_internal(n)])

    async def groups(self) -> list[Row]:
        """Return a row for each group of users. Asks every member, for findings."""
        names = [name for name in await self._admin.fetch_group_list() if not is_system_group(name)]
        problems: dict[str, list[Problem]] = {}
        rows = await self._each(lambda name: self._group_row(name, problems), names)
        self._problems["groups"] = [one for name in names for one in problems.get(name, ())]
        return rows

    async def group(self, group: str, *, ages: bool = True) -> GroupLook:
        """Look at one group closely: which member owns which queue.

        Costs a request for each member and a few more, one for each queue of which nothing is consumed, and
        with ``ages`` one for each queue that is behind.
        """
        check = await self._admin.check_group(group, ages=ages)
        progress = check.view.progress
        self._read("group", group, {queue: each.consumer_offset or 0 for queue, each in progress.items()})
        lag = sum(each.lag for each in progress.values())
        return GroupLook(check=check, lag=lag, meter=self._meters["group", group])

    def _broker_row(self, broker: BrokerState) -> Row:
        values = broker_values(broker)
        meter = self._meters["broker", broker.addr]
        if broker.error is None:
            meter.rates.append(values["put_tps"] or 0.0)
        name = f"{broker.broker_name} {broker.role}"
        return Row(name=name, values=values, meter=meter, note=values["note"])

    def _gone_row(self, finding: Finding) -> Row:
        values = {"addr": "-", "role": "gone"}
        note = f"gone since {self._seen[finding.subject]}"
        return Row(name=finding.subject, values=values, meter=Meter(), note=note)

    async def _topic(self, topic: str) -> Row:
        meter = self._meters["topic", topic]
        try:
            table = (await self._admin.fetch_topic_stats(topic)).offset_table
        except RocketMQError as error:
            return Row(name=topic, values={}, meter=meter, note=str(error))
        self._read("topic", topic, {queue: each.max_offset for queue, each in table.items()})
        messages = sum(each.max_offset - each.min_offset for each in table.values())
        values = {"rate": meter.rate, "queues": len(table), "messages": messages}
        return Row(name=topic, values=values, meter=meter)

    async def _group_row(self, group: str, problems: dict[str, list[Problem]]) -> Row:
        meter = self._meters["group", group]
        try:
            look = await self.group(group, ages=False)
        except RocketMQError as error:
            return Row(name=group, values={}, meter=meter, note=str(error))
        view, found = look.check.view, look.check.findings
        problems[group] = [Problem(group, one) for one in found if _is_worth_a_line(one, look)]
        values = {
            "members": len(view.members),
            "lag": look.lag,
            "dead": view.dead_letters.count,
            "rate": meter.rate,
        }
        return Row(name=group, values=values, meter=meter, note=_note(problems[group]))

    def _read(self, kind: str, name: str, counts: Mapping[MessageQueue, int]) -> None:
        self._meters[kind, name].read(self._clock.monotonic(), counts)

    async def _each(self, ask: Callable[[Any], Awaitable[T]], things: Iterable[Any]) -> list[T]:
        """Ask about all things, a few at a time; the answers in the things' order."""
        free = asyncio.Semaphore(_AT_ONCE)

        async def ask_in_turn(thing: Any) -> T:
            async with free:
                return await ask(thing)

        return await asyncio.gather(*(ask_in_turn(thing) for thing in things))


def _is_worth_a_line(finding: Finding, look: GroupLook) -> bool:
    """Return whether a finding gets a line: not of an unused group, nor of a server, which has a row."""
    if finding.kind.value in ("broker_silent", "name_server_silent"):
        return False
    return finding.kind.value != "no_members" or look.lag > 0


def _note(problems: list[Problem]) -> str:
    """Return the worst finding of a group, and how many more there are."""
    if not problems:
        return ""
    more = f" +{len(problems) - 1}" if len(problems) > 1 else ""
    return f"{problems[0].finding.kind.value}{more}"
