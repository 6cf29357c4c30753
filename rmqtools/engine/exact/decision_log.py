"""Decisions of several processes: the first record of a key in a topic of one queue counts.

A process writes its record first, and then reads all records that were stored before it. If processes read
first and then wrote, two of them could both find nothing.
"""

from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.blocking_form import CLOSE_NOTE, blocking
from rmqtools.engine.exact.first_records import FirstRecords, only_queue
from rmqtools.engine.producer.producer import Producer
from rmqtools.errors import ClientStateError
from rmqtools.model.decision import Decision


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
        self._producer = self._host = producer
        self._client = producer._client
        self._topic = topic
        self._records: FirstRecords | None = None

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
        self._records = FirstRecords(self._producer, queue, begin)

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
        """
        return await self._started().decide(key, record)

    async def look_up(self, key: str) -> Decision | None:
        """Return the first record of a key; None: there is none so far.

        None is no decision: another process may decide a moment later. To decide, use :meth:`decide`.
        """
        return await self._started().look_up(key)

    @blocking("base", note=CLOSE_NOTE)
    async def close(self) -> None:
        """Drop the records from memory. The producer stays open."""
        self._records = None

    def _started(self) -> FirstRecords:
        if self._records is None:
            raise ClientStateError("the decision log is not open: call start() or use it in a with block")
        return self._records
