"""The topics of staged writes: made where they are missing, and checked.

topic                        queues                               messages
STAGING                      those of the target, on each broker  rows, those of failed tasks too
RMQTOOLS_DECISIONS-STAGING   one, on the first broker             decisions: which rows count
"""

import asyncio
from collections.abc import Mapping

from rmqtools.engine.admin.topics import TopicAdmin
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.exact.awaiting import until_there
from rmqtools.engine.exact.decision_log import only_queue
from rmqtools.engine.exact.target_checks import check_target
from rmqtools.errors import ConfigError, RocketMQError, TopicNotFoundError
from rmqtools.log import get_logger
from rmqtools.model.names import MAX_TOPIC_LENGTH, is_system_topic
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import Perm, QueueData
from rmqtools.model.staged import OWN_TOPIC_PREFIX, decisions_topic
from rmqtools.policy.staged import check_retention, queue_counts
from rmqtools.policy.validate import check_name

log = get_logger(__name__)

PATIENCE = 60.0  # seconds until a missing topic of decisions is an error
PAUSE = 1.0  # seconds between two tries while a broker is down


class StagedTopics:
    """The topics of one target. ``staging``: the name of the staging topic."""

    def __init__(self, client: ClientCore, target: str, staging: str) -> None:
        check_name("topic", target, MAX_TOPIC_LENGTH)
        check_name("staging_topic", staging, MAX_TOPIC_LENGTH - len(decisions_topic("")))
        if staging == target or is_system_topic(staging) or staging.startswith(OWN_TOPIC_PREFIX):
            raise ConfigError(f"staging_topic={staging!r}: want a topic of its own, for staged rows alone")
        self._client = client
        self._admin = TopicAdmin(client)
        self.target = target
        self.staging = staging
        self.decisions = decisions_topic(staging)

    async def prepare(self, *, longest_outage: float) -> None:
        """Make missing topics, give the staging topic the target's queues, and check what can be read.

        The topic of decisions is made before the staging topic, so where that one is, this one is, or was
        lost. It is not made a second time: the second one would have other decisions.

        Raises:
            ConfigError: a target whose end cannot be trusted, a broker that keeps messages too shortly, the
                topic of decisions is missing, or the staging topic is one of version 0.3.0.
            UnsupportedError: the broker is behind a proxy.
            TopicNotFoundError, PermissionDeniedError: there is no such target, or it may not be written.
        """
        await self._client.routes.refresh(self.target)
        queues = (await self._client.routes.publish_info(self.target)).queues
        counts = queue_counts(queues)
        settings = await asyncio.gather(*(check_target(self._client, queue) for queue in queues))
        for queue, found in zip(queues, settings, strict=True):
            check_retention(queue.broker_name, found.get("fileReservedTime"), longest_outage)
        if not await self._queues(self.decisions):
            await self._refuse_earlier_version()
            if await self._queues(self.staging):
                await self.decisions_queue()
            else:
                await self._make(self.decisions, {next(iter(counts)): 1})
        await self._make(self.staging, counts)
        await self._client.routes.refresh(self.staging)

    async def decisions_queue(self) -> MessageQueue:
        """Return the queue of decisions; wait up to a minute until its broker is there.

        While its broker is down, name servers do not list the topic.

        Raises:
            ConfigError: the topic is missing, or does not have exactly one queue.
            PermissionDeniedError: it may not be used.
        """
        monotonic = self._client.clock.monotonic
        began = monotonic()

        async def is_away(error: RocketMQError) -> bool:
            if isinstance(error, TopicNotFoundError) and monotonic() - began >= PATIENCE:
                raise ConfigError(
                    f"topic {self.decisions!r} is missing: start its broker; if the topic is lost, make it "
                    f"anew: rmqtools topic create {self.decisions} --queues 1 --broker NAME; if "
                    f"{self.staging!r} is no topic of staged rows, name another one"
                ) from error
            return isinstance(error, TopicNotFoundError)

        return await until_there(
            lambda: only_queue(self._client, self.decisions),
            is_away,
            event="decisions_awaited",
            pause=PAUSE,
            topic=self.decisions,
        )

    async def target_queues(self) -> list[MessageQueue]:
        """Return the queues that rows can be copied to."""
        await self._client.routes.refresh(self.target)
        return list((await self._client.routes.publish_info(self.target)).queues)

    async def one_queue_each(self) -> list[MessageQueue]:
        """Return the first queue of the staging topic on each broker."""
        return [MessageQueue(self.staging, name, 0) for name in await self._queues(self.staging)]

    async def _refuse_earlier_version(self) -> None:
        earlier = [f"{self.staging}-{end}" for end in ("decisions", "decided")]
        if all([await self._queues(topic) for topic in earlier]):
            raise ConfigError(
                f"staging topic {self.staging!r} was used by version 0.3.0, whose decisions this version "
                "does not read. Let 0.3.0 finish each write (exactly_once_status shows is_finished, and a "
                "stream has ended its last micro-batch); then delete the topics "
                f"{' and '.join(earlier)}, or name another staging topic"
            )

    async def _make(self, topic: str, counts: Mapping[str, int]) -> None:
        """Give a topic so many queues to write on each broker; queues that it has already stay readable."""
        present = await self._queues(topic)
        for broker_name in sorted({*counts, *present}):
            count, found = counts.get(broker_name, 0), present.get(broker_name)
            if found is not None and count == (found.write_queue_nums if found.is_writable else 0):
                continue
            before = 0 if found is None else found.read_queue_nums
            await self._admin.create_topic(
                topic,
                read_queue_nums=max(count, before),
                write_queue_nums=count or before,
                perm=Perm.READ | Perm.WRITE if count else Perm.READ,
                broker_names=[broker_name],
            )
            log.info("staged_topic_made", topic=topic, broker=broker_name, queues=count)

    async def _queues(self, topic: str) -> dict[str, QueueData]:
        """Return the queues of a topic by broker; empty: there is no route of it."""
        try:
            route = await self._admin.fetch_route(topic)
        except TopicNotFoundError:
            return {}
        return {each.broker_name: each for each in route.queue_datas}
