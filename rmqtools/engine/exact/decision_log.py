"""Records of several processes in one queue, which all of them read in one order; the first one of a key.

A process writes its record first, and then reads all records that were stored before it. If processes read
first and then wrote, two of them could both find nothing.
"""

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress

from rmqtools.config.client import check_config
from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.blocking_form import CLOSE_NOTE, blocking
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.exact.tail import read_range
from rmqtools.engine.producer.producer import Producer
from rmqtools.errors import ClientStateError, ConfigError, ExactAppendError, UnknownOutcomeError
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


class Records:
    """The records of one queue. ``note`` gets each of them once, from offset ``begin`` on and in order."""

    def __init__(
        self, producer: Producer, queue: MessageQueue, begin: int, note: Callable[[MessageExt], None]
    ) -> None:
        self._producer, self._admin = producer, QueueAdmin(producer._client)
        self.queue = queue
        self._position, self._note = begin, note
        self._reading = asyncio.Lock()

    async def append(self, record: Message) -> None:
        """Write a record, and read all up to it.

        Raises:
            ExactAppendError: the queue ends before records that were read.
        """
        read = self._position
        end = await self._write(record) + 1
        await self._admin.await_readable({self.queue: end}, timeout=READABLE_TIMEOUT)
        self._check_end(end, at_least=read + 1)
        await self._read_to(end)

    async def _write(self, record: Message) -> int:
        """Write a record, again after an open outcome, and return its offset: twice is no other decision."""
        for _ in range(self._producer.config.retry_times_when_send_failed):
            with suppress(UnknownOutcomeError):
                return (await self._producer.send(record, queue=self.queue)).queue_offset
        return (await self._producer.send(record, queue=self.queue)).queue_offset

    async def refresh(self) -> None:
        """Read what is there now.

        Raises:
            ExactAppendError: the queue ends before records that were read.
        """
        read = self._position
        end = await self._admin.max_offset(self.queue)
        self._check_end(end, at_least=read)
        await self._read_to(end)

    def _check_end(self, end: int, *, at_least: int) -> None:
        if end < at_least:
            raise ExactAppendError(
                f"{self.queue} ends at offset {end}, and records up to {self._position} were read from it: "
                "the topic was made anew, or its broker has lost its end; start this process again"
            )

    async def _read_to(self, end: int) -> None:
        async with self._reading:
            if self._position < end:
                async for message in read_range(self._producer._client, self.queue, self._position, end):
                    self._note(message)
                    self._position = message.queue_offset + 1
                self._position = end


class DecisionLog(Asynchronous):
    """Decisions that several processes share: of all records of a key, the first one stored counts.

    Each process appends its record and reads up to it, so all of them see the same first one. Use ``async
    with``, or call start and close. It keeps the first record of every key in memory. New in 0.3.0.

    A decision holds as long as the topic keeps its messages: give the topic a retention that is long enough,
    and do not delete it. Only records written by this class count.

    Args:
        producer: a started producer; it stays open.
        topic: a topic with one queue, for decisions alone.
    """

    __module__ = "rmqtools.aio"

    def __init__(self, producer: Producer, topic: str) -> None:
        check_config(type(self).__name__, producer, Producer)
        self._producer = self._host = producer
        self._client = producer._client
        self._topic = topic
        self._records: Records | None = None
        self._first: dict[str, tuple[str, Decision]] = {}  # by key: token and decision

    @blocking("base")
    async def start(self) -> None:
        """Find the queue of the topic, and where it begins.

        Raises:
            ConfigError: the topic does not have exactly one queue.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be used.
        """
        self._client.check_started()
        queue = await only_queue(self._client, self._topic)
        begin = await QueueAdmin(self._client).min_offset(queue)
        self._records = Records(self._producer, queue, begin, self._note)

    async def decide(self, key: str, record: bytes) -> Decision:
        """Append a record of a key, and return the key's first record, also if another process wrote it.

        May be repeated: a later call for the same key returns the same record.

        Args:
            key: a word without spaces; the message has it as its key.
            record: at least one byte.

        Raises:
            MessageRejectedError: no key or no record; nothing was sent.
            UnknownOutcomeError: no answer came: call this again, or :meth:`look_up`.
            SendError: the record is not stored and decides nothing.
            RemotingTimeoutError: the record is stored, but cannot be read yet: call this again.
            DataLossError: records expired while they were read.
            ExactAppendError: the topic was made anew since, or its broker has lost its end.
        """
        records, token = self._started(), uuid.uuid4().hex
        await records.append(
            Message(records.queue.topic, record, keys=[key], properties={DECISION_TOKEN: token})
        )
        return self._decision(key, token)

    async def look_up(self, key: str) -> Decision | None:
        """Return the first record of a key; None: there is none so far.

        None is no decision: another process may decide a moment later. To decide, use :meth:`decide`.

        Raises:
            DataLossError: records expired while they were read.
            ExactAppendError: the topic was made anew since, or its broker has lost its end.
        """
        await self._started().refresh()
        return self._decision(key, "") if key in self._first else None

    @blocking("base", note=CLOSE_NOTE)
    async def close(self) -> None:
        """Drop the records from memory. The producer stays open."""
        self._records = None
        self._first.clear()

    def _started(self) -> Records:
        if self._records is None:
            raise ClientStateError("the decision log is not open: call start() or use it in a with block")
        return self._records

    def _note(self, message: MessageExt) -> None:
        token, key = message.properties.get(DECISION_TOKEN), message.keys
        if token and key and key not in self._first:
            decision = Decision(key, message.body, False, message.queue_offset, message.store_timestamp_ms)
            self._first[key] = (token, decision)

    def _decision(self, key: str, token: str) -> Decision:
        written, found = self._first[key]
        return Decision(key, found.record, written == token, found.queue_offset, found.store_timestamp_ms)
