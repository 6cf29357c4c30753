"""The driver's requests to the cluster before a read: queues, their stored offsets, start and end.

The Spark source refuses static topics: their stored queue offsets are physical (``offsetDelta``).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

import rmqtools
from rmqtools import MessageQueue, QueueRange, aio
from rmqtools.errors import (
    BrokerError,
    ConfigError,
    DataLossError,
    ProtocolError,
    RocketMQError,
    TopicNotFoundError,
)
from rmqtools.log import get_logger
from rmqtools.model.names import LMQ_PREFIX, LOGICAL_QUEUE_MOCK_BROKER_PREFIX
from rmqtools.model.staged import OWN_TOPIC_PREFIX, decisions_topic
from spark_connector.options.offsets import Bound, Times
from spark_connector.options.read_settings import ReadOptions
from spark_connector.options.selection import EVERY_TOPIC, Assign, TopicPattern
from spark_connector.read.bounds import (
    TIMES_REMEDY,
    Resolved,
    check_complete,
    resolve_group,
    resolve_offsets,
    resolve_times,
)
from spark_connector.read.loss import report_losses, report_missing_queues, report_missing_topics
from spark_connector.read.patience import ask_all
from spark_connector.read.stored import Stored
from spark_connector.worker.clients import client_of

if TYPE_CHECKING:
    from rmqtools import Admin

log = get_logger(__name__)
T = TypeVar("T")
K = TypeVar("K")

_NAME_SERVERS: Final = "the name servers"


class Lookup:
    """Requests on behalf of a read. The answers describe the present moment.

    If no answer comes, requests are repeated for ``planningTimeout``, while :attr:`is_patient`.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._client = client_of(options.client)
        self._admin = aio.Admin(self._client.asynchronous)
        self.is_patient = True
        self._is_checked = False

    @property
    def blocking_admin(self) -> "Admin":
        """Client for requests about groups."""
        return rmqtools.Admin(self._client)

    def topics(self) -> list[str]:
        """Return the topics to read; empty if a pattern matches none.

        Raises:
            ConfigError: this source cannot read a topic.
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
        """Return the queues to read, sorted by topic.

        Raises:
            TopicNotFoundError: a topic has no route, and ``failOnDataLoss`` is set or no topic has one.
            PermissionDeniedError: a topic is not readable.
            ConfigError: an assigned queue does not exist, or this source cannot read the topic.
        """
        fail, selection = self._options.fail_on_data_loss, self._options.selection
        self._refuse_staged_rows()
        by_topic = self._queues_by_topic()
        if not isinstance(selection, TopicPattern):
            missing = [topic for topic, found in by_topic.items() if not found]
            present = by_topic.keys() - set(missing)
            report_missing_topics(missing, present, fail=fail, fetch_known=self._user_topics)
        queues = _joined(by_topic)
        for queue in queues:
            if queue.broker_name.startswith(LOGICAL_QUEUE_MOCK_BROKER_PREFIX):
                raise ConfigError(
                    f"topic {queue.topic!r} is a static topic, its queues move between brokers: it cannot be "
                    "read by format rocketmq; copy it to a plain topic"
                )
        if not isinstance(selection, Assign):
            return queues
        return report_missing_queues(selection.queues, queues, fail=fail)

    def queues_left(self) -> list[MessageQueue]:
        """Return the queues that exist now; missing ones are left out."""
        queues = _joined(self._queues_by_topic())
        return [queue for queue in queues if self._options.selection.covers(queue)]

    def stored(self, queues: Iterable[MessageQueue]) -> Stored:
        """Return the offsets stored in queues now."""
        bounds = self._ask_queues(self._bounds_of, queues)
        return Stored(
            {queue: earliest for queue, (earliest, _) in bounds.items()},
            {queue: latest for queue, (_, latest) in bounds.items()},
        )

    def store_times(self, offsets: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
        """Store times in ms of the messages at these offsets; queues without a message there are left out."""
        found = self._ask_queues(lambda queue: self._store_time(queue, offsets[queue]), offsets)
        return {queue: time for queue, time in found.items() if time is not None}

    def broker_names(self) -> set[str]:
        """Names of the running brokers, as name servers list them."""
        info = self._run(_NAME_SERVERS, self._admin.fetch_cluster_info)
        return set(info.broker_addr_table)

    def resolve(self, bound: Bound, stored: Stored, *, is_start: bool = True) -> dict[MessageQueue, int]:
        """Resolve one end of a read to an offset for each queue of ``stored``.

        Raises:
            ConfigError: offsets are not stored, queues are left out or unknown, the group has no offsets, or
                no message is stored from a time on; the text names option, queue and remedy.
        """
        try:
            resolved = self._resolve(bound, stored, is_start=is_start)
        except ConfigError as error:
            raise ConfigError(f"option {bound.option!r}: {error}") from None
        report_losses(resolved.losses, fail=self._options.fail_on_data_loss, option=bound.option)
        return resolved.offsets

    def offsets_at(self, times: Times, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
        """Per queue, the offset of the first message stored at its time or later; the queue's end if none."""
        return self._ask_queues(lambda queue: self._admin.search_offset(queue, times.at(queue)), queues)

    def check_read_group(self, queues: Iterable[MessageQueue]) -> None:
        """Refuse a missing group of option ``readGroup``: brokers would create it at the first pull.

        Raises:
            ConfigError: a broker of the queues does not have the group.
        """
        group = self._options.client.read_group
        if group is None:
            return
        one_each = {queue.broker_name: queue for queue in queues}.values()
        found = self._ask_queues(lambda queue: self._has_group(group, queue), one_each)
        if missing := sorted(queue.broker_name for queue, is_there in found.items() if not is_there):
            raise ConfigError(
                f"option 'readGroup' = {group!r}: no such group on {', '.join(missing)}; create it by "
                "rmqtools.Admin.create_group or mqadmin updateSubGroup, or leave the option out"
            )

    def check_sql(self, stored: Stored) -> None:
        """Ask one queue of each broker name to check the condition, before tasks would fail because of it.

        Raises:
            ConfigError: the condition is invalid, or the broker does not filter by conditions.
        """
        if self._options.sql is None:
            return
        filled = (queue for queue in stored.earliest if stored.earliest[queue] < stored.latest[queue])
        for queue in {queue.broker_name: queue for queue in filled}.values():
            first = QueueRange(queue, stored.earliest[queue], stored.earliest[queue] + 1)
            try:
                list(self._client.read_blocks(first, sql=self._options.sql))
            except BrokerError as error:
                raise ConfigError(
                    f"option 'sql' = {self._options.sql!r}: {error}; want a condition such as a > 5 AND "
                    "b IS NOT NULL, and brokers with enablePropertyFilter=true"
                ) from error
            except DataLossError:  # the message has just expired
                continue

    def _resolve(self, bound: Bound, stored: Stored, *, is_start: bool) -> Resolved:
        spec = bound.spec
        if isinstance(spec, Times):
            times = spec
            if not isinstance(times.timestamps_ms, int):
                check_complete(times.timestamps_ms, stored.latest, remedy=TIMES_REMEDY)
            found = self.offsets_at(times, stored.latest)
            refuse = is_start and self._options.when_none_after == "error"
            return resolve_times(times, found, stored, refuse_none_after=refuse)
        if spec == "group":
            group, fallback = self._options.group, self._options.group_offset_fallback
            assert group is not None  # the settings check it
            return resolve_group(self._group_offsets(group, stored), stored, group=group, fallback=fallback)
        return resolve_offsets(spec, stored)

    def _group_offsets(self, group: str, stored: Stored) -> dict[MessageQueue, int | None]:
        topics = {queue.topic for queue in stored.latest}
        by_topic = self._ask(
            lambda topic: self._admin.fetch_consumer_offsets(group, topic),
            topics,
            asked=lambda topic: f"the brokers of topic {topic!r}",
        )
        known = {queue: at for offsets in by_topic.values() for queue, at in offsets.items()}
        return {queue: known.get(queue) for queue in stored.latest}

    def _matching(self, pattern: TopicPattern) -> list[str]:
        info = self._run(_NAME_SERVERS, self._admin.fetch_cluster_info)
        return pattern.select(
            self._run(_NAME_SERVERS, self._admin.fetch_topic_list),
            reserved=info.own_topics,
        )

    def _refuse_staged_rows(self) -> None:
        """Refuse topics that an exactly-once write makes for itself; patterns leave them out. Once a read."""
        selection = self._options.selection
        if self._is_checked or isinstance(selection, TopicPattern):
            return
        decisions = {decisions_topic(topic): topic for topic in selection.topics}
        found = self._ask(self._queues_of, decisions, asked=lambda topic: _NAME_SERVERS)
        own = [topic for topic in selection.topics if topic.startswith(OWN_TOPIC_PREFIX)]
        if own := own + [decisions[name] for name, queues in found.items() if queues]:
            raise ConfigError(
                f"topic {own[0]!r} belongs to a write with delivery=exactlyOnce: it has rows of failed "
                "attempts too, or decisions; read the topic that this write names"
            )
        self._is_checked = True

    def _user_topics(self) -> list[str]:
        """Return all topics that users made, for the text of an error; empty if that is refused."""
        try:
            return self._matching(EVERY_TOPIC)
        except RocketMQError:
            return []

    def _queues_by_topic(self) -> dict[str, list[MessageQueue]]:
        """Return the queues of every topic; empty for a topic without a route."""
        return self._ask(self._queues_of, self.topics(), asked=lambda topic: _NAME_SERVERS)

    async def _queues_of(self, topic: str) -> list[MessageQueue]:
        try:
            return await self._admin.fetch_subscribe_queues(topic)
        except TopicNotFoundError:
            return []

    async def _has_group(self, group: str, queue: MessageQueue) -> bool:
        """Return whether a queue's broker has a group.

        True where the broker refuses the question, for lack of permission or as a proxy: users whose keys
        allow the group's pulls, and no more, may name it.
        """
        try:
            return await self._admin.has_group(group, queue)
        except BrokerError as error:
            log.warning("read_group_not_checked", group=group, broker=queue.broker_name, reason=str(error))
            return True

    async def _bounds_of(self, queue: MessageQueue) -> tuple[int, int]:
        earliest = await self._admin.min_offset(queue)
        return earliest, await self._admin.max_offset(queue)

    async def _store_time(self, queue: MessageQueue, offset: int) -> int | None:
        time = None
        try:
            async for messages in self._admin.read_messages(QueueRange(queue, offset, offset + 1)):
                time = messages[0].store_timestamp_ms
        except (BrokerError, DataLossError, ProtocolError):  # the task that reads the queue raises it
            return None
        return time

    def _ask_queues(
        self, question: Callable[[MessageQueue], Awaitable[T]], queues: Iterable[MessageQueue]
    ) -> dict[MessageQueue, T]:
        return self._ask(question, queues, asked=lambda queue: f"broker {queue.broker_name}")

    def _ask(
        self, question: Callable[[K], Awaitable[T]], keys: Iterable[K], *, asked: Callable[[K], str]
    ) -> dict[K, T]:
        seconds = self._options.planning_timeout if self.is_patient else 0.0
        return self._client.run(ask_all(question, list(keys), asked, seconds))

    def _run(self, asked: str, question: Callable[[], Awaitable[T]]) -> T:
        return self._ask(lambda _: question(), [asked], asked=str)[asked]


def _joined(by_topic: Mapping[str, list[MessageQueue]]) -> list[MessageQueue]:
    return [queue for queues in by_topic.values() for queue in queues]
