"""A connection to a cluster, shared by whatever is built on it."""

from collections.abc import AsyncGenerator, Collection

from rmqtools.aio.lifecycle import Asynchronous
from rmqtools.config import ClientConfig
from rmqtools.engine.client import ClientCore
from rmqtools.engine.range_filter import read_filter
from rmqtools.engine.range_read import RangeReader
from rmqtools.engine.read_messages import read_messages
from rmqtools.model.block import MessageBlock
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import QueueRange


class Client(Asynchronous):
    """Connections, routes and a client id. Use it in an ``async with`` block, or call start and close.

    Raises:
        ConfigError: by the constructor, for settings that cannot be used.
    """

    def __init__(self, config: ClientConfig) -> None:
        self.core = ClientCore(config)

    @property
    def client_id(self) -> str:
        """``ip@instance``: the name brokers know this client by."""
        return self.core.client_id

    async def start(self) -> None:
        """Begin to poll routes and to send heartbeats. Nothing is sent before it is needed."""
        self.core.start()

    async def close(self) -> None:
        """Close all connections. A second call does nothing."""
        await self.core.close()

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
            range_: which offsets of which queue. Offsets without a message are passed over.
            max_messages: a block is handed out when it holds so many messages
            max_bytes: or so many bytes; the last one may be smaller.
            tags: brokers send messages with one of these only; none: all. They compare hash codes: look at
                the tags again, as :func:`rmqtools.arrow.read_range` does.
            sql: brokers send messages only whose properties fulfil this SQL92 condition.
            fail_on_data_loss: whether offsets that are gone are an error; else they are passed over and a
                warning ``messages_lost`` is logged.

        Yields:
            Blocks in the order of their offsets, none of them empty.

        Raises:
            ConfigError: both ``tags`` and ``sql``.
            BrokerError: the condition is none, or the broker's ``enablePropertyFilter`` is off.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
            DataLossError: part of the range has expired or was never written; the text names the offsets.
            RemotingError: nobody answered for three times ``request_timeout``.
        """
        self.core.check_started()
        reader = RangeReader(
            self.core,
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
    ) -> AsyncGenerator[list[MessageExt], None]:
        """Read exactly the messages of a range, in order; arguments and errors as of :meth:`read_blocks`.

        A field of a message is decoded when it is first asked for: what nobody looks at costs nothing.

        Yields:
            Lists of messages in the order of their offsets, none of them empty; some ``max_messages`` or
            ``max_bytes`` at a time, as stored.

        Raises:
            ProtocolError: a message that cannot be read; the text names it.
        """
        self.core.check_started()
        return read_messages(
            self.core,
            range_,
            max_messages=max_messages,
            max_bytes=max_bytes,
            read_filter=read_filter(range_.queue.topic, tags=tags, sql=sql),
            fail_on_data_loss=fail_on_data_loss,
            namespace=self.core.config.namespace,
        )
