"""What a member of a group wants to read, by wire topic, and the routes of that."""

import asyncio
from collections import UserDict
from collections.abc import Callable, Iterable

from rmqtools.engine.client import ClientCore
from rmqtools.errors import ConfigError, RocketMQError, TopicNotFoundError
from rmqtools.log import get_logger
from rmqtools.model.group import SubscriptionData
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.policy.subscription import SQL92, TAG, build_subscription
from rmqtools.policy.validate import MAX_TOPIC_LENGTH, check_name

log = get_logger(__name__)

_FIRST_LOOK = 0.1  # seconds; brokers make the retry topic when they hear of the group
_LONGEST_PAUSE = 3.0  # the pause doubles up to this while a topic has no route


class Subscriptions(UserDict[str, SubscriptionData]):
    """Wire topic -> what is wanted of it."""

    def __init__(self, client: ClientCore) -> None:
        super().__init__()
        self._client = client

    def want(self, topic: str, *, tags: str = "*", sql: str | None = None) -> str:
        """Want messages of a topic; its wire name.

        Raises:
            MessageRejectedError, ConfigError: a name or an expression that brokers refuse.
        """
        check_name("topic", topic, MAX_TOPIC_LENGTH)
        if sql is not None and tags != "*":
            raise ConfigError(f"topic {topic!r}: tags={tags!r} and sql={sql!r} exclude one another: give one")
        wire_topic = self._client.wire_topic(topic)
        if sql is None:
            self._set(wire_topic, tags, TAG)
        else:
            self._set(wire_topic, sql, SQL92)
        return wire_topic

    def want_all(self, wire_topic: str) -> None:
        """Want everything of a topic that is the group's own."""
        self._set(wire_topic, "*", TAG)

    async def find_routes(self, topics: Iterable[str]) -> None:
        """Look for those of the topics that have no route yet.

        Raises:
            RemotingError: no name server answers.
        """
        for topic in tuple(topics):
            if topic in self._client.routes.tables.routes:
                continue
            try:
                await self._client.routes.refresh(topic)
            except TopicNotFoundError:
                if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                    log.info("topic_not_found", topic=topic)

    async def look_for_routes_forever(self, topics: Callable[[], Iterable[str]]) -> None:
        """Look again and again: a topic may be made after its consumer."""
        pause = _FIRST_LOOK
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                await self.find_routes(topics())
            except RocketMQError as error:
                log.warning("route_look_up_failed", reason=str(error))

    def _set(self, wire_topic: str, expression: str, kind: str) -> None:
        now = self._client.clock.now_ms()
        self[wire_topic] = build_subscription(wire_topic, expression, expression_type=kind, version_ms=now)
