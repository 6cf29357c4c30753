"""What the driver asks the cluster before a read: which queues, what they hold, where to start and end."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from rmqtools import Admin, MessageQueue, QueueRange, aio
from rmqtools.errors import BrokerError, ConfigError, DataLossError
from rmqtools.log import get_logger
from rmqtools.model.names import LMQ_PREFIX, LOGICAL_QUEUE_MOCK_BROKER_PREFIX
from spark_connector.clients import client_of
from spark_connector.offsets import Bound, Times, check_queues, resolve_offsets
from spark_connector.queue_json import place, places
from spark_connector.read_role import ReadOptions
from spark_connector.selection import Assign, TopicPattern

log = get_logger(__name__)
T = TypeVar("T")

_QUESTIONS_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class Stored:
    """What queues hold: their first offsets, and the offsets the next messages get."""

    earliest: Mapping[MessageQueue, int]
    latest: Mapping[MessageQueue, int]


class Lookup:
    """Asks the cluster on behalf of a read. Values in its answers are those of the moment."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._client = client_of(options.client)
        self._admin = Admin(self._client)
        self._asked = aio.Admin(self._client.asynchronous)

    @property
    def admin(self) -> Admin:
        """For other questions."""
        return self._admin

    def topics(self) -> list[str]:
        """The topics that are read; none where a pattern matches nothing.

        Raises:
            ConfigError: a topic that this source cannot read.
        """
        selection = self._options.selection
        topics = self._matching(selection) if isinstance(selection, TopicPattern) else list(selection.topics)
        for topic in topics:
            if topic.startswith(LMQ_PREFIX):
                raise ConfigError(
                    f"topic {topic!r} is a light queue inside another topic, without a route: it cannot be "
                    "read; read the topic that it belongs to"
                )
        return topics

    def queues(self) -> list[MessageQueue]:
        """The queues that are read, sorted.

        Raises:
            TopicNotFoundError: a topic has no route.
            PermissionDeniedError: a topic may not be read.
            ConfigError: an assigned queue does not exist, or the topic is one that this source cannot read.
        """
        queues = [queue for topic in self.topics() for queue in self._admin.fetch_subscribe_queues(topic)]
        for queue in queues:
            if queue.broker_name.startswith(LOGICAL_QUEUE_MOCK_BROKER_PREFIX):
                raise ConfigError(
                    f"topic {queue.topic!r} is a static topic, its queues move between brokers: it cannot be "
                    "read by format rocketmq; copy it to a plain topic"
                )
        if not isinstance(self._options.selection, Assign):
            return queues
        assigned = self._options.selection.queues
        if unknown := assigned - set(queues):
            raise ConfigError(
                f"option 'assign': {places(unknown)} does not exist or cannot be read: its topics have "
                f"{places(queues)}"
            )
        return sorted(assigned)

    def stored(self, queues: Iterable[MessageQueue]) -> Stored:
        """What queues hold now."""
        return self._client.run(self._stored(list(queues)))

    def latest(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
        """The offsets that the next messages of queues get."""
        return self._client.run(_ask_all(self._asked.max_offset, list(queues)))

    def resolve(self, bound: Bound, stored: Stored, *, is_start: bool = True) -> dict[MessageQueue, int]:
        """Turn one end of a read into an offset for each queue of ``stored``.

        Raises:
            ConfigError: offsets that are not stored, queues left out or unknown, a group without offsets, no
                message from a time on; the text names option, queue and remedy.
        """
        try:
            if isinstance(bound.spec, Times):
                return self._at_times(bound.spec, stored, is_start=is_start)
            if bound.spec == "group":
                return self._of_group(stored)
            return resolve_offsets(bound.spec, stored.earliest, stored.latest)
        except ConfigError:
            raise
        except ValueError as error:
            raise ConfigError(f"option {bound.option!r}: {error}") from None

    def check_sql(self, stored: Stored) -> None:
        """Let a broker of each name judge the condition, before tasks fail over it one after the other.

        Raises:
            ConfigError: it is none, or the broker does not filter by conditions.
        """
        if self._options.sql is None:
            return
        filled = (queue for queue in stored.earliest if stored.earliest[queue] < stored.latest[queue])
        for queue in {queue.broker_name: queue for queue in filled}.values():
            first = QueueRange(queue, stored.earliest[queue], stored.earliest[queue] + 1)
            try:
                list(client_of(self._options.client).read_blocks(first, sql=self._options.sql))
            except BrokerError as error:
                raise ConfigError(
                    f"option 'sql' = {self._options.sql!r}: {error}; want a condition such as a > 5 AND "
                    "b IS NOT NULL, and brokers with enablePropertyFilter=true"
                ) from error
            except DataLossError:  # it has just expired
                continue

    def _matching(self, pattern: TopicPattern) -> list[str]:
        info = self._admin.fetch_cluster_info()
        return pattern.select(
            self._admin.fetch_topic_list(),
            reserved={*info.cluster_addr_table, *info.broker_addr_table},
            namespace=self._options.client.namespace,
        )

    async def _stored(self, queues: list[MessageQueue]) -> Stored:
        bounds = await _ask_all(self._bounds_of, queues)
        return Stored(
            {queue: earliest for queue, (earliest, _) in bounds.items()},
            {queue: latest for queue, (_, latest) in bounds.items()},
        )

    async def _bounds_of(self, queue: MessageQueue) -> tuple[int, int]:
        earliest = await self._asked.min_offset(queue)
        return earliest, await self._asked.max_offset(queue)

    def _at_times(self, times: Times, stored: Stored, *, is_start: bool) -> dict[MessageQueue, int]:
        if not isinstance(times.timestamps_ms, int):
            check_queues(times.timestamps_ms, stored.latest, remedy="milliseconds since 1970")
        found = self._client.run(
            _ask_all(lambda queue: self._asked.search_offset(queue, times.at(queue)), list(stored.latest))
        )
        if is_start and self._options.when_none_after == "error":
            _refuse_none_after(times, found, stored)
        return {queue: _within(offset, queue, stored) for queue, offset in found.items()}

    def _of_group(self, stored: Stored) -> dict[MessageQueue, int]:
        group = self._options.group
        assert group is not None  # the role has checked it
        topics = sorted({queue.topic for queue in stored.latest})
        known = {
            queue: offset
            for topic in topics
            for queue, offset in self._admin.fetch_consumer_offsets(group, topic).items()
        }
        offsets = {queue: known.get(queue) for queue in stored.latest}
        if missing := [queue for queue, offset in offsets.items() if offset is None]:
            self._refuse_missing(group, missing)
        fallback = stored.earliest if self._options.group_offset_fallback == "earliest" else stored.latest
        return {
            queue: fallback[queue] if offset is None else self._group_offset(offset, queue, stored)
            for queue, offset in offsets.items()
        }

    def _refuse_missing(self, group: str, missing: list[MessageQueue]) -> None:
        if self._options.group_offset_fallback == "error":
            raise ConfigError(
                f"group {group!r} has no offset for {places(missing)}: set groupOffsetFallback=earliest or "
                "latest, or let the group consume first"
            )

    def _group_offset(self, offset: int, queue: MessageQueue, stored: Stored) -> int:
        """A group's offset, where it is still, or already, there."""
        within = _within(offset, queue, stored)
        if within != offset:
            text = (
                f"group {self._options.group!r} is at {offset} of {place(queue)}, which holds "
                f"{stored.earliest[queue]} to {stored.latest[queue]}"
            )
            if self._options.fail_on_data_loss:
                raise ConfigError(f"{text}: give offsets, or set failOnDataLoss=false to go on from {within}")
            log.warning("group_offset_not_stored", reason=text, taken=within)
        return within


async def _ask_all(
    question: Callable[[MessageQueue], Coroutine[Any, Any, T]], queues: list[MessageQueue]
) -> dict[MessageQueue, T]:
    """Ask for every queue at once; after the first error nobody goes on asking."""
    slots = asyncio.Semaphore(_QUESTIONS_AT_ONCE)

    async def ask(queue: MessageQueue) -> T:
        async with slots:
            return await question(queue)

    asked = [asyncio.ensure_future(ask(queue)) for queue in queues]
    try:
        return dict(zip(queues, await asyncio.gather(*asked), strict=True))
    finally:
        for one in asked:
            one.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


def _within(offset: int, queue: MessageQueue, stored: Stored) -> int:
    """A broker answers with offsets outside of what is stored where nothing fits."""
    return min(max(offset, stored.earliest[queue]), stored.latest[queue])


def _refuse_none_after(times: Times, found: Mapping[MessageQueue, int], stored: Stored) -> None:
    if none := [queue for queue, offset in found.items() if offset >= stored.latest[queue]]:
        raise ValueError(
            f"{places(none)} has no message stored at or after {times.at(none[0])}: set "
            "startingOffsetsByTimestampStrategy=latest to start such queues at their end"
        )
