"""The first record of every key in one queue: written first, and then read up to what was written."""

import asyncio
import uuid
from contextlib import suppress

from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.exact.tail import read_range
from rmqtools.engine.producer.producer import Producer
from rmqtools.errors import ConfigError, UnknownOutcomeError
from rmqtools.model.decision import DECISION_TOKEN, Decision
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.queue import MessageQueue

READABLE_TIMEOUT = 30.0  # seconds until a broker shows what it has acknowledged


async def only_queue(client: ClientCore, topic: str) -> MessageQueue:
    """Return the queue of a topic for decisions.

    Raises:
        ConfigError: the topic does not have exactly one queue.
        TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be used.
    """
    await client.routes.refresh(topic)
    queues = (await client.routes.publish_info(topic)).queues
    if len(queues) != 1:
        raise ConfigError(
            f"topic {topic!r} has {len(queues)} queues: decisions need a topic of one queue, since "
            "only messages of one queue have an order"
        )
    return queues[0]


class FirstRecords:
    """The first records from an offset on, kept in memory. ``producer``: a started one; it stays open.

    Attributes:
        queue: the queue of the records.
    """

    def __init__(self, producer: Producer, queue: MessageQueue, begin: int) -> None:
        self._producer = producer
        self._client = producer._client
        self.queue = queue
        self._position = begin
        self._first: dict[str, tuple[str, Decision]] = {}  # by key: token and decision
        self._reading = asyncio.Lock()

    async def decide(self, key: str, record: bytes) -> Decision:
        """Append a record, and return the first one of its key."""
        token = uuid.uuid4().hex
        message = Message(self.queue.topic, record, keys=[key], properties={DECISION_TOKEN: token})
        end = await self._say(message) + 1
        await QueueAdmin(self._client).await_readable({self.queue: end}, timeout=READABLE_TIMEOUT)
        await self._read_to(end)
        return self._decision(key, token)

    async def look_up(self, key: str) -> Decision | None:
        """Return the first record of a key; None: there is none so far."""
        await self.refresh()
        return self._decision(key, "") if key in self._first else None

    async def refresh(self) -> list[Decision]:
        """Read what is there now, and return all first records in their order."""
        await self._read_to(await QueueAdmin(self._client).max_offset(self.queue))
        return [found for _, found in self._first.values()]

    def found(self, key: str) -> Decision | None:
        """Return the first record of a key, of those read so far."""
        return self._first[key][1] if key in self._first else None

    async def _say(self, message: Message) -> int:
        """Append a record, again after an open outcome: a record twice decides nothing else."""
        for _ in range(self._producer.config.retry_times_when_send_failed):
            with suppress(UnknownOutcomeError):
                return (await self._producer.send(message, queue=self.queue)).queue_offset
        return (await self._producer.send(message, queue=self.queue)).queue_offset

    async def _read_to(self, end: int) -> None:
        async with self._reading:
            if self._position < end:
                async for message in read_range(self._client, self.queue, self._position, end):
                    self._note(message)
                    self._position = message.queue_offset + 1
                self._position = end

    def _note(self, message: MessageExt) -> None:
        token, key = message.properties.get(DECISION_TOKEN), message.keys
        if token and key and key not in self._first:
            decision = Decision(key, message.body, False, message.queue_offset, message.store_timestamp_ms)
            self._first[key] = (token, decision)

    def _decision(self, key: str, token: str) -> Decision:
        written, found = self._first[key]
        return Decision(key, found.record, written == token, found.queue_offset, found.store_timestamp_ms)
