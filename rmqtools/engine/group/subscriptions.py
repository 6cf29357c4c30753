"""Subscriptions of a group member, by wire topic, and the routes of their topics.

An unsubscribed topic has no expression any more: a pull made before its queues are released asks for all
messages.
"""

import asyncio
from collections.abc import Callable, Collection

from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import ConfigError, PermissionDeniedError, RocketMQError, TopicNotFoundError
from rmqtools.log import get_logger
from rmqtools.model.group import SubscriptionData
from rmqtools.model.names import MAX_TOPIC_LENGTH, RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.endpoint.features import SQL_FILTERS
from rmqtools.policy.subscription import SQL92, TAG, build_subscription
from rmqtools.policy.validate import check_name

log = get_logger(__name__)

_FIRST_LOOK = 0.1  # seconds; brokers create the retry topic when a heartbeat names the group
_LONGEST_PAUSE = 3.0  # the pause doubles up to this while a topic has no route


class Subscriptions(dict[str, SubscriptionData]):
    """Wire topic -> its subscription; or queues that are assigned instead.

    Attributes:
        assigned: the queues this member reads, independently of other members; None: rounds share queues.
    """

    def __init__(self, client: ClientCore) -> None:
        super().__init__()
        self.assigned: frozenset[MessageQueue] | None = None
        self._assigned_by_topic: dict[str, list[MessageQueue]] = {}
        self._client = client
        self._on_change: list[Callable[[], None]] = []
        self._newest = 0  # version of the last subscription: brokers take only greater ones
        self._missing: set[str] = set()  # topics without a route that the log has named

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call ``callback()`` whenever subscriptions or assigned queues change."""
        self._on_change.append(callback)

    def of(self, topic: str) -> SubscriptionData:
        """Return the subscription of a topic; all messages, for queues assigned without a subscription."""
        found = self.get(topic)
        return SubscriptionData(topic=topic) if found is None else found

    def topics(self) -> tuple[str, ...]:
        """Return the topics to read."""
        if self.assigned is None:
            return tuple(self)
        return tuple(self._assigned_by_topic)

    def wants(self, queue: MessageQueue) -> bool:
        """Return whether a queue may still be read."""
        return queue.topic in self if self.assigned is None else queue in self.assigned

    async def find_queues(self, topic: str) -> Collection[MessageQueue] | None:
        """All queues of a topic that may be read; None: not known.

        Raises:
            RemotingError: no name server answers.
        """
        if self.assigned is not None:
            return self._assigned_by_topic.get(topic, ())
        try:
            return await self._client.routes.subscribe_queues(topic)
        except TopicNotFoundError:
            return None
        except PermissionDeniedError:
            return ()

    def want(self, topic: str, *, tags: str = "*", sql: str | None = None) -> str:
        """Subscribe to a topic; return its wire name.

        Raises:
            MessageRejectedError, ConfigError: brokers would refuse the name or the expression.
            UnsupportedError: a condition, and the member reads through a proxy.
        """
        check_name("topic", topic, MAX_TOPIC_LENGTH)
        _check_expression(topic, tags, sql)
        if sql is not None and tags != "*":
            raise ConfigError(f"topic {topic!r}: tags={tags!r} and sql={sql!r} exclude one another: give one")
        if sql is not None:
            self._client.endpoint.require(SQL_FILTERS)  # known once the member has started
        wire_topic = self._client.wire_topic(topic)
        if sql is None:
            self._set(wire_topic, tags, TAG)
        else:
            self._set(wire_topic, sql, SQL92)
        return wire_topic

    def want_all(self, wire_topic: str) -> None:
        """Subscribe to all messages of one of the group's own topics."""
        self._set(wire_topic, "*", TAG)

    def want_no_more(self, wire_topic: str) -> None:
        """Unsubscribe from a topic; the next round gives its queues up."""
        if self.pop(wire_topic, None) is not None:
            self._changed()

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Read exactly these queues (wire names)."""
        self.assigned = frozenset(queues)
        self._assigned_by_topic = {}
        for queue in sorted(self.assigned):
            self._assigned_by_topic.setdefault(queue.topic, []).append(queue)
        self._changed()

    async def find_routes(self) -> None:
        """Look up routes of topics that have none yet.

        Raises:
            RemotingError: no name server answers.
        """
        for topic in self.topics():
            if topic in self._client.routes.tables.routes:
                continue
            try:
                await self._client.routes.refresh(topic)
            except TopicNotFoundError as error:
                self._note_missing(topic, error)
            else:
                if topic in self._missing:
                    self._missing.discard(topic)
                    log.info("topic_found", topic=topic)

    async def look_for_routes_forever(self) -> None:
        """Repeat the look-up: a topic may be created after its consumer."""
        pause = _FIRST_LOOK
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                await self.find_routes()
            except RocketMQError as error:
                log.warning("route_look_up_failed", reason=str(error))

    def _note_missing(self, topic: str, error: TopicNotFoundError) -> None:
        """Log once that a subscribed topic has no route. Brokers make retry topics later."""
        if topic not in self._missing and not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            self._missing.add(topic)
            log.warning("topic_not_found", topic=topic, reason=str(error))

    def _set(self, wire_topic: str, expression: str, kind: str) -> None:
        self._newest = newest = max(self._client.clock.now_ms(), self._newest + 1)
        self[wire_topic] = build_subscription(wire_topic, expression, expression_type=kind, version_ms=newest)
        self._changed()

    def _changed(self) -> None:
        for callback in self._on_change:
            callback()


def _check_expression(topic: str, tags: object, sql: object) -> None:
    if tags is not None and not isinstance(tags, str):
        raise ConfigError(f"topic {topic!r}: tags={tags!r}: want text; several as in 'a || b', all as '*'")
    if sql is not None and not isinstance(sql, str):
        raise ConfigError(f"topic {topic!r}: sql={sql!r}: want text, as in \"region = 'eu'\"")
