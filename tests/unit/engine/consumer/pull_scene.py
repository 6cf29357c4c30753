"""Pull consumers on a fake broker set whose queues are filled; settings of consumers that read from 0."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Any, Self

from rmqtools import aio
from rmqtools.config.consumer import PullConsumerConfig, PushConsumerConfig
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import ConsumeFromWhere
from rmqtools.model.names import with_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import FakeCluster, Reaction

TOPIC, BROKER = "T", "broker-a"
Q0, Q1 = MessageQueue(TOPIC, BROKER, 0), MessageQueue(TOPIC, BROKER, 1)


class BrokerSet:
    """Each queue of T has the offsets [low, high), but for ``gaps``; offset n was stored at 1000 + n ms.

    ``committed`` is what group g has stored by queue id, ``updates`` all it has told; ``refused`` are request
    codes that are answered by an error.
    """

    def __init__(
        self,
        high: int = 100,
        *,
        queues: int = 1,
        low: int = 0,
        gaps: Iterable[int] = (),
        tags: str | None = None,
        namespace: str | None = None,
    ) -> None:
        self.cluster = FakeCluster()
        self.refused: set[int] = set()
        self.cluster.fault(broker=BROKER, times=None, answer=self._refuse)
        self._topic, self._group = (with_namespace(name, namespace) for name in (TOPIC, "g"))
        self._tags = tags
        self._queues = [MessageQueue(self._topic, BROKER, queue_id) for queue_id in range(queues)]
        self.cluster.create_topic(self._topic, queues=queues)
        for queue in self._queues:
            self.cluster.begin_at(queue, low)
            self.grow(queue.queue_id, range(low, high))
            for offset in gaps:
                self.cluster.erase(queue, offset)

    @property
    def name_server(self) -> str:
        return self.cluster.name_server

    def grow(self, queue_id: int, offsets: Iterable[int]) -> None:
        """Store messages; each has its offset as body."""
        queue = self._queues[queue_id]
        for offset in offsets:
            self.cluster.store(
                self._topic, b"%d" % offset, queue=queue, tags=self._tags, store_timestamp_ms=1000 + offset
            )

    @property
    def committed(self) -> dict[int, int]:
        found = {queue.queue_id: self.cluster.committed(self._group, queue) for queue in self._queues}
        return {queue_id: offset for queue_id, offset in found.items() if offset is not None}

    def forget_offsets(self) -> None:
        """Lose the group's stored offsets, as a killed broker may."""
        for queue in self._queues:
            self.cluster.commit(self._group, queue, None)

    @property
    def updates(self) -> list[tuple[int, int]]:
        told = (request.ext_fields for request in self.of(RequestCode.UPDATE_CONSUMER_OFFSET))
        return [(int(fields["queueId"] or 0), int(fields["commitOffset"] or 0)) for fields in told]

    @property
    def topics(self) -> set[str]:
        asked = self.cluster.requests(RequestCode.GET_ROUTEINFO_BY_TOPIC)
        return {str(request.ext_fields["topic"]) for request in asked}

    def pulls(self) -> list[int]:
        return [int(r.ext_fields["queueOffset"] or 0) for r in self.of(RequestCode.PULL_MESSAGE)]

    def of(self, code: RequestCode) -> list[RemotingCommand]:
        """The requests of a code that came to the broker."""
        return self.cluster.requests(code, broker=BROKER)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[Self]:
        async with self.cluster:
            yield self

    def silence(self, code: RequestCode) -> None:
        """Handle the requests of a code, and send no answer."""
        self.cluster.fault(code=code, times=None, answer=Reaction.SWALLOW)

    @property
    def left(self) -> int:
        """Number of requests by which members left the group."""
        return len(self.of(RequestCode.UNREGISTER_CLIENT))

    def _refuse(self, request: RemotingCommand) -> RemotingCommand | Reaction:
        refused = request.code in self.refused
        return response(ResponseCode.SYSTEM_ERROR, 0, remark="scripted") if refused else Reaction.PASS


def config(brokers: BrokerSet | FakeCluster, **settings: Any) -> PullConsumerConfig:
    given: dict[str, Any] = {
        "name_server": brokers.name_server,
        "group": "g",
        "client_ip": "127.0.0.1",
        "request_timeout": 3.0,
        "consume_from": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        "delay_after_error": 0.05,
        "poll_timeout": 5.0,
    }
    return PullConsumerConfig(**(given | settings))


def push_config(brokers: BrokerSet | FakeCluster, **settings: Any) -> PushConsumerConfig:
    """Settings of a member of group g that begins with the first message."""
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    given: dict[str, Any] = {"name_server": brokers.name_server, "group": "g", "consume_from": first}
    return PushConsumerConfig(**(given | settings))


@contextlib.asynccontextmanager
async def reading(brokers: BrokerSet, **settings: Any) -> AsyncIterator[aio.PullConsumer]:
    """A started consumer of topic T, subscribed unless ``assign`` names queues."""
    assigned = settings.pop("assign", None)
    async with brokers.serving():
        consumer = aio.PullConsumer(config(brokers, **settings))
        if assigned is None:
            consumer.subscribe(TOPIC)
        else:
            consumer.assign(assigned)
        async with consumer:
            yield consumer


async def polled(consumer: aio.PullConsumer, count: int) -> list[int]:
    """The offsets of the next ``count`` messages."""
    offsets: list[int] = []
    while len(offsets) < count:
        messages = await consumer.poll(5, count - len(offsets))
        assert messages, f"only {offsets}"
        offsets += [message.queue_offset for message in messages]
    return offsets
