"""The blocking Client, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

from collections.abc import Collection, Iterator

from rmqtools.model.block import CorruptBody, MessageBlock
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import QueueRange
from rmqtools.sync.handwritten.client import BlockingClient


class Client(BlockingClient):
    """A connection to a cluster that reads ranges. Use ``with``, or call start and close.

    Safe to share between threads.

    Raises:
        ConfigError: by the constructor, for settings that are not valid.
    """

    __module__ = "rmqtools"

    @property
    def client_id(self) -> str:
        """The name of this client at brokers: ``ip@instance``."""
        return self.asynchronous.client_id

    def start(self) -> None:
        """Start the background tasks: route polls and heartbeats. Connections are made when needed.

        An interrupted start (Ctrl-C) closes it.
        """
        super().start()

    def close(self) -> None:
        """Close all connections. Every call waits until that is done.

        May be called at any time, in any state. Interrupting a call ends only its waiting.
        """
        super().close()

    def read_blocks(
        self,
        range_: QueueRange,
        *,
        max_messages: int = 1024,
        max_bytes: int = 2 * 1024 * 1024,
        tags: Collection[str] = (),
        sql: str | None = None,
        fail_on_data_loss: bool = True,
    ) -> Iterator[MessageBlock]:
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
        return self._bridge.iterate(
            self.asynchronous.read_blocks(
                range_,
                max_messages=max_messages,
                max_bytes=max_bytes,
                tags=tags,
                sql=sql,
                fail_on_data_loss=fail_on_data_loss,
            )
        )

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
    ) -> Iterator[list[MessageExt]]:
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
        return self._bridge.iterate(
            self.asynchronous.read_messages(
                range_,
                max_messages=max_messages,
                max_bytes=max_bytes,
                tags=tags,
                sql=sql,
                fail_on_data_loss=fail_on_data_loss,
                corrupt_body=corrupt_body,
            )
        )

    @property
    def is_connected(self) -> bool:
        """True if the client is started and a broker can be reached: an answer for health probes.

        Sends nothing. The first request to a broker opens a connection. Members of groups, producers too,
        also connect with their heartbeats (every ``heartbeat_broker_interval``, 30 s) to the brokers of all
        topics they know, and connect again after a loss. A broker that answered no heartbeat does not count.
        """
        return self.asynchronous.is_connected

    def update_name_server(self, name_server: str) -> None:
        """Use other name servers from now on; connections to brokers stay.

        Args:
            name_server: ``host:port``, several separated by ``;``.

        Raises:
            ConfigError: none is given, or one is no address.

        Source of the rule: MQClientAPIImpl.updateNameServerAddressList (Java client).
        """
        self._bridge.run(lambda: self.asynchronous.update_name_server(name_server))
