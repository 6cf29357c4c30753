"""Exactly one of several processes said it: the first record of a key in a topic of one queue counts.

Writing first and reading then is what makes it certain: whoever has written a record reads all that was
stored before it. Reading first and then writing would let two processes both find nothing.
"""

import asyncio
import uuid
from contextlib import suppress

from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.blocking_form import CLOSE_NOTE, blocking
from rmqtools.engine.exact.tail import read_range
from rmqtools.engine.producer.producer import Producer
from rmqtools.errors import ClientStateError, ConfigError, UnknownOutcomeError
from rmqtools.model.decision import DECISION_TOKEN, Decision
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.queue import MessageQueue


class DecisionLog(Asynchronous):
    """Decisions that several processes share: of all records of a key, the first one stored counts.

    Each process appends its record and reads up to it, so all of them see the same first one. Use ``async
    with``, or call start and close. It keeps the first record of every key in memory. New in this release.

    A decision holds as long as the topic keeps its messages: give the topic a retention that is long enough,
    and do not delete it. Only records written by this class count.

    Args:
        producer: a started producer; it stays open.
        topic: a topic with one queue, for decisions alone.
    """

    __module__ = "rmqtools.aio"

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._client = producer._client
        self._topic = topic
        self._queue: MessageQueue | None = None
        self._first: dict[str, tuple[str, Decision]] = {}  # by key: token and decision
        self._position = 0
        self._reading = asyncio.Lock()

    @blocking("base")
    async def start(self) -> None:
        """Find the queue of the topic, and where it begins.

        Raises:
            ConfigError: the topic does not have exactly one queue.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be used.
        """
        self._client.check_started()
        await self._client.routes.refresh(self._topic)
        queues = (await self._client.routes.publish_info(self._topic)).queues
        if len(queues) != 1:
            raise ConfigError(
                f"topic {self._topic!r} has {len(queues)} queues: decisions need a topic of one queue, since "
                "only messages of one queue have an order"
            )
        self._position = await QueueAdmin(self._client).min_offset(queues[0])
        self._queue = queues[0]

    async def decide(self, key: str, record: bytes) -> Decision:
        """Say something about a key, and return what was said first, by whomever.

        May be repeated: a later call for the same key returns the same decision.

        Args:
            key: a word without spaces; the message has it as its key.
            record: at least one byte.

        Raises:
            MessageRejectedError: no key or no record; nothing was sent.
            UnknownOutcomeError: no answer came: call it again, or ask :meth:`look_up`.
            SendError: the record is not stored, and nothing is decided by it.
            DataLossError: records expired while they were read.
        """
        token = uuid.uuid4().hex
        queue = self._started()
        message = Message(self._topic, record, keys=[key], properties={DECISION_TOKEN: token})
        await self._read_to(queue, await self._say(message, queue) + 1)
        return self._decision(key, token)

    async def look_up(self, key: str) -> Decision | None:
        """Return what was said first about a key; None: nothing, so far.

        Nothing is no decision: another process may say something a moment later. Use :meth:`decide`.
        """
        queue = self._started()
        await self._read_to(queue, await QueueAdmin(self._client).max_offset(queue))
        return self._decision(key, "") if key in self._first else None

    @blocking("base", note=CLOSE_NOTE)
    async def close(self) -> None:
        """Forget what was read. The producer stays open."""
        self._queue = None
        self._first.clear()

    async def _say(self, message: Message, queue: MessageQueue) -> int:
        """Append a record, again after an open outcome: a record twice decides nothing else."""
        for _ in range(self._producer.config.retry_times_when_send_failed):
            with suppress(UnknownOutcomeError):
                return (await self._producer.send(message, queue=queue)).queue_offset
        return (await self._producer.send(message, queue=queue)).queue_offset

    def _started(self) -> MessageQueue:
        if self._queue is None:
            raise ClientStateError("the decision log is not open: call start() or use it in a with block")
        return self._queue

    async def _read_to(self, queue: MessageQueue, end: int) -> None:
        async with self._reading:
            if self._position < end:
                async for message in read_range(self._client, queue, self._position, end):
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
