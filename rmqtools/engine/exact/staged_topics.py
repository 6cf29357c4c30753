"""The topics of staged writes: made where they are missing, and checked.

topic                  queues                               messages
STAGING                those of the target, on each broker  rows, those of failed tasks too
STAGING-decisions      one, on the first broker             decisions: which rows count
STAGING-decided        one on each broker                   copies of decisions, stored before rows
"""

import asyncio
from collections.abc import Iterable

from rmqtools.engine.admin.topics import TopicAdmin
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.exact.first_records import only_queue
from rmqtools.engine.exact.target_checks import check_target
from rmqtools.errors import ConfigError, TopicNotFoundError
from rmqtools.log import get_logger
from rmqtools.model.names import is_system_topic
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.staged import check_retention, queue_counts
from rmqtools.policy.validate import MAX_TOPIC_LENGTH, check_name

log = get_logger(__name__)

_LONGEST_END = "-decisions"
PATIENCE = 60.0  # seconds until a missing topic of decisions is an error
PAUSE = 1.0  # seconds between two tries while a broker is down


class StagedTopics:
    """The topics of one target. ``staging``: the name of the staging topic."""

    def __init__(self, client: ClientCore, target: str, staging: str) -> None:
        check_name("topic", target, MAX_TOPIC_LENGTH)
        check_name("staging_topic", staging, MAX_TOPIC_LENGTH - len(_LONGEST_END))
        if staging == target or is_system_topic(staging):
            raise ConfigError(f"staging_topic={staging!r}: want a topic of its own, for staged rows alone")
        self._client = client
        self._admin = TopicAdmin(client)
        self.target, self.staging = target, staging
        self.decisions, self.decided = f"{staging}{_LONGEST_END}", f"{staging}-decided"

    async def prepare(self, *, longest_outage: float) -> None:
        """Make missing topics, give the staging topic the target's queues, and check what can be read.

        Raises:
            ConfigError: a target whose end cannot be trusted, a broker that keeps messages too shortly, or
                the topic of decisions is missing.
            UnsupportedError: the broker is behind a proxy.
            TopicNotFoundError, PermissionDeniedError: there is no such target, or it may not be written.
        """
        await self._client.routes.refresh(self.target)
        queues = (await self._client.routes.publish_info(self.target)).queues
        counts = queue_counts(queues)
        settings = await asyncio.gather(*(check_target(self._client, queue) for queue in queues))
        for queue, found in zip(queues, settings, strict=True):
            check_retention(queue.broker_name, found.get("fileReservedTime"), longest_outage)
        if await self._queues(self.decided):  # made after the topic of decisions: this is there, or was lost
            await self.decisions_queue()
        elif not await self._queues(self.decisions):
            await self._make(self.decisions, {next(iter(counts)): 1})
        await self._make(self.decided, dict.fromkeys(counts, 1))
        await self._make(self.staging, counts)

    async def decisions_queue(self) -> MessageQueue:
        """Return the queue of decisions; wait up to a minute until its broker is there.

        The topic is not made anew: while its broker is down, name servers do not list it, and a second one
        would have other decisions.

        Raises:
            ConfigError: the topic is missing, or does not have exactly one queue.
            PermissionDeniedError: it may not be used.
        """
        monotonic = self._client.clock.monotonic
        began, is_logged = monotonic(), False
        while True:
            try:
                return await only_queue(self._client, self.decisions)
            except TopicNotFoundError as error:
                if monotonic() - began >= PATIENCE:
                    raise ConfigError(
                        f"topic {self.decisions!r} is missing: start its broker; if the topic is lost, make "
                        f"it anew: rmqtools topic create {self.decisions} --queues 1 --broker NAME"
                    ) from error
                if not is_logged:
                    is_logged = True
                    log.warning("decisions_awaited", topic=self.decisions, reason=str(error))
            await asyncio.sleep(PAUSE)

    async def target_queues(self) -> list[MessageQueue]:
        """Return the queues that rows can be copied to."""
        await self._client.routes.refresh(self.target)
        return list((await self._client.routes.publish_info(self.target)).queues)

    def copies(self, broker_name: str) -> MessageQueue:
        """Return the queue of a broker that has copies of decisions."""
        return MessageQueue(self.decided, broker_name, 0)

    async def _make(self, topic: str, counts: dict[str, int]) -> None:
        """Give a topic at least so many queues on each broker."""
        present = queue_counts(await self._queues(topic))
        for broker_name, count in counts.items():
            if present.get(broker_name, 0) < count:
                await self._admin.create_topic(
                    topic, read_queue_nums=count, write_queue_nums=count, broker_names=[broker_name]
                )
                log.info("staged_topic_made", topic=topic, broker=broker_name, queues=count)

    async def _queues(self, topic: str) -> Iterable[MessageQueue]:
        try:
            await self._client.routes.refresh(topic)
            return (await self._client.routes.publish_info(topic)).queues
        except TopicNotFoundError:
            return ()
