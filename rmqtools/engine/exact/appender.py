"""An exact appender: appends messages of the user by a writer of one queue."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rmqtools.config.client import check_config
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.blocking_form import CLOSE_NOTE, blocking
from rmqtools.engine.exact.queue_writer import QueueWriter
from rmqtools.engine.producer.encode_send import batch_bytes, property_text
from rmqtools.engine.producer.producer import Producer
from rmqtools.errors import MessageRejectedError
from rmqtools.model.append_mark import APPEND_MARK
from rmqtools.model.encoded_batch import EncodedBatch
from rmqtools.model.message import Message
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.exact_append import check_positions
from rmqtools.policy.packing import cut
from rmqtools.policy.validate import check_batch, check_message


class ExactAppender(Asynchronous):
    """A writer that stores each message once, in order, in one queue, whatever breaks. New in 0.3.0.

    Each message has a position that only rises. After a crash, continue after :attr:`last_position`: no store
    beside the brokers is needed. One process writes with one ``writer`` name to a queue at a time;
    other producers may write to it, too. Use ``async with``, or call start and close.

    Args:
        producer: a started producer, without ``linger`` and ``enable_trace``; it stays open.
        queue: the queue to write to.
        writer: name of the writer: the same after a restart, and another one for another task.
        origin: what the positions count, such as a queue of another cluster. Stored with every message, and
            compared at the start.
        settle_seconds: how long a broker must answer after a lost connection, before this reads the end of
            its queue: it may still store requests from its buffers. With less, messages may be stored twice.
        is_new: whether this writer has never written to this queue. Only needed if the queue's first messages
            have expired: otherwise a start is refused, because the writer's last message may be among them.

    Raises:
        ConfigError: by the constructor: a setting of the producer, or a value above.
    """

    __module__ = "rmqtools.aio"

    def __init__(
        self,
        producer: Producer,
        queue: MessageQueue,
        *,
        writer: str,
        origin: str = "",
        settle_seconds: float = 10.0,
        is_new: bool = False,
    ) -> None:
        check_config(type(self).__name__, producer, Producer)
        self._writer = QueueWriter(
            producer, queue, writer=writer, origin=origin, settle_seconds=settle_seconds, is_new=is_new
        )
        self._host = producer
        self._config = producer.config
        self._encoder = producer._encoder

    @property
    def queue(self) -> MessageQueue:
        """The queue that it writes to."""
        return self._writer.queue

    @property
    def last_position(self) -> int | None:
        """The position of the last message that is stored; None: there is none."""
        following = self._writer.tail.next_position
        return following - 1 if following else None

    @blocking("base")
    async def start(self) -> None:
        """Take the writer's lock and find its last message; errors as of :meth:`resume`."""
        await self.resume()

    async def resume(self) -> int | None:
        """Find out what is stored, and return the last position. Call it after an error or a cancelled call.

        Waits for the answer to a request that is on the wire, up to a minute for the lock of a writer that
        died, and ``settle_seconds`` for late requests of that writer. Waits without limit if the broker stops
        answering after the first requests.

        Returns:
            The position of the last message of this writer; None: there is none. The next append continues
            behind it.

        Raises:
            UnsupportedError: the broker is behind a proxy.
            ConfigError: a static topic, a queue type, or a setting of topic or broker, with which the end of
                a queue cannot be trusted.
            ExactAppendError: another process uses this writer's name, or the last position is not known.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be written.
            RemotingError: no answer to the first requests, for settings of topic and broker.
        """
        await self._writer.resume()
        return self.last_position

    async def append(self, messages: Sequence[Message], positions: Sequence[int]) -> None:
        """Append messages, and return once they are stored. Waits as long as the broker does not answer.

        Requests have at most ``max_batch_bytes``; some of the messages may be stored when it raises.
        A cancelled call leaves the outcome open: call :meth:`resume`, which returns the last position.

        Args:
            messages: of the queue's topic, without delay or priority.
            positions: of each message, 0 or more; each higher than the one before, and than
                :attr:`last_position`.

        Raises:
            ValueError: positions that do not rise.
            MessageRejectedError: a message is not valid; nothing was sent.
            SendError: the broker refuses the messages: :attr:`last_position` says which are stored.
            ExactAppendError: the queue contradicts what this writer has stored: the broker lost its end, or
                another process uses the writer's name.
            ClientStateError: not started, closed, or interrupted before (then call :meth:`resume`).
        """
        check_positions(positions, count=len(messages), next_position=self._writer.tail.next_position)
        for message in messages:
            check_message(message, self._config.max_message_bytes)
            if message.topic != self.queue.topic:
                raise MessageRejectedError(f"topic {message.topic!r}: want that of {self.queue}")
        if messages:
            marked = [
                replace(
                    message, properties={**message.properties, APPEND_MARK: self._writer.mark_text(position)}
                )
                for message, position in zip(messages, positions, strict=True)
            ]
            for first, batch in self._batches(marked):
                await self._writer.append(batch, positions[first : first + len(batch)])
            self._writer.pass_to(positions[-1] + 1)

    @blocking("base", note=CLOSE_NOTE)
    async def close(self) -> None:
        """Release the lock, and reset the connection. A request that is on the wire has an open outcome."""
        await self._writer.close()

    def _batches(self, messages: Sequence[Message]) -> Iterator[tuple[int, EncodedBatch]]:
        """Yield requests, and the number of their first message."""
        topic = self.queue.topic
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):  # brokers accept no batches there
            for number, message in enumerate(messages):
                yield number, EncodedBatch(topic=topic, message=message, queue=self.queue)
            return
        check_batch(messages)
        texts = [property_text(message) for message in messages]
        for numbers in cut(batch_bytes(messages, texts), self._config.max_batch_bytes):
            outgoing = self._encoder.encode_batch(messages[numbers.start : numbers.stop])
            yield (
                numbers.start,
                EncodedBatch(topic=topic, body=outgoing.body, msg_ids=outgoing.msg_ids, queue=self.queue),
            )
