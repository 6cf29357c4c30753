"""The client: connections and routes that reads and administration share."""

from collections.abc import AsyncGenerator, Collection

from rmqtools.config import ClientConfig
from rmqtools.config.client import check_config
from rmqtools.engine.blocking_form import CLOSE_NOTE, START_NOTE, blocking
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.connected import Connected
from rmqtools.engine.reading.range_filter import read_filter
from rmqtools.engine.reading.range_read import RangeReader
from rmqtools.engine.reading.read_messages import read_messages
from rmqtools.model.block import CorruptBody, MessageBlock
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import QueueRange


class Client(Connected):
    """A connection to a cluster that reads ranges. Use ``async with``, or call start and close.

    Raises:
        ConfigError: by the constructor, for settings that are not valid.
    """

    __module__ = "rmqtools.aio"

    def __init__(self, config: ClientConfig) -> None:
        check_config(type(self).__name__, config, ClientConfig)
        self._client = ClientCore(config)

    @property
    def client_id(self) -> str:
        """The name of this client at brokers: ``ip@instance``."""
        return self._client.client_id

    @blocking("base", note=START_NOTE)
    async def start(self) -> None:
        """Start the background tasks: route polls and heartbeats. Connections are made when needed."""
        self._client.start()

    @blocking("base", note=CLOSE_NOTE)
    async def close(self) -> None:
        """Close all connections. Every call waits until that is done."""
        await self._client.close()

    def read_blocks(
        self,
        range_: QueueRange,
        *,
        max_messages: int = 1024,
        max_bytes: int = 2 * 1024 * 1024,
        tags: Collection[str] = (),
        sql: str | None = None,
        fail_on_data_loss: bool = True,
    ) -> AsyncGenerator[MessageBlock, None]:
        """Read exactly the messages of a range, in order, undecoded.

        Args:
            range_: which offsets of which queue. Offsets without a message are skipped.
            max_messages: a block ends when it holds this many messages
            max_bytes: or this many bytes; the last block may be smaller, and so may blocks of messages that
                have 32 KiB or more on average: an answer of those is not copied to be joined with others.
            tags: brokers send only messages with one of these tags; empty: all. Brokers compare hash codes,
                so compare the tags again, as :func:`rmqtools.arrow.read_range` does. Of a topic with the
                queue type BatchCQ, which stores batches as one message, they send all messages.
            sql: brokers send only messages whose properties meet this SQL92 condition.
            fail_on_data_loss: whether deleted or missing offsets raise an error; if not, they are skipped
                and a warning ``messages_lost`` is logged.

        Yields:
            Blocks in the order of their offsets, none of them empty.

        Raises:
            ConfigError: both ``tags`` and ``sql``, or ``sql`` and the queue type BatchCQ.
            BrokerError: the SQL92 condition is not valid, or the broker's ``enablePropertyFilter`` is off.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
            DataLossError: part of the range has expired or was never written; the text names the offsets.
            RemotingError: no answer came for three times ``request_timeout``.
        """
        self._client.check_started()
        reader = RangeReader(
            self._client,
            range_,
            read_filter=read_filter(range_.queue.topic, tags=tags, sql=sql),
            fail_on_data_loss=fail_on_data_loss,
        )
        return reader.blocks(max_messages=max_messages, max_bytes=max_bytes)

    def read_messages(
        self,
        range_: QueueRange,
        *,
        max_messages: int = 256,
        max_bytes: int = 1024 * 1024,
        tags: Collection[str] = (),
        sql: str | None = None,
        fail_on_data_loss: bool = True,
        corrupt_body: CorruptBody = "fail",
    ) -> AsyncGenerator[list[MessageExt], None]:
        """Read exactly the messages of a range, in order; arguments and errors as of :meth:`read_blocks`.

        Properties, hosts and ids of a message are decoded when they are first used.

        Args:
            corrupt_body: handling of a message whose body cannot be read: ``fail`` raises, ``raw``
                gives the bytes as they are stored, ``null`` gives a message whose ``body`` raises. With both,
                a message with a broken head is skipped and logged.

        Yields:
            Lists of messages in the order of their offsets, never empty: about ``max_messages`` messages or
            ``max_bytes`` stored bytes each.

        Raises:
            ConfigError: ``corrupt_body`` is none of these.
            CorruptBodyError: a body that cannot be read; the text names queue and queue offset.
            ProtocolError: a message whose head is broken; the text names queue and queue offset.
        """
        self._client.check_started()
        return read_messages(
            self._client,
            range_,
            max_messages=max_messages,
            max_bytes=max_bytes,
            read_filter=read_filter(range_.queue.topic, tags=tags, sql=sql),
            fail_on_data_loss=fail_on_data_loss,
            namespace=self._client.config.namespace,
            corrupt_body=corrupt_body,
        )
