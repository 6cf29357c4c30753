"""The blocking ExactAppender, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

from collections.abc import Sequence

from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.sync.handwritten.exact_appender import BlockingExactAppender


class ExactAppender(BlockingExactAppender):
    """A writer that stores each message once, in order, in one queue, whatever breaks. New in 0.3.0.

    Each message has a position that only rises. After a crash, continue after :attr:`last_position`: no store
    beside the brokers is needed. One process writes with one ``writer`` name to a queue at a time;
    other producers may write to it, too. Use ``with``, or call start and close.

    One thread appends.

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

    __module__ = "rmqtools"

    @property
    def queue(self) -> MessageQueue:
        """The queue that it writes to."""
        return self._appender.queue

    @property
    def last_position(self) -> int | None:
        """The position of the last message that is stored; None: there is none."""
        return self._appender.last_position

    def start(self) -> None:
        """Take the writer's lock and find its last message; errors as of :meth:`resume`."""
        super().start()

    def resume(self) -> int | None:
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
        return self._bridge.run(lambda: self._appender.resume())

    def append(self, messages: Sequence[Message], positions: Sequence[int]) -> None:
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
        self._bridge.run(lambda: self._appender.append(messages, positions))

    def close(self) -> None:
        """Release the lock, and reset the connection. A request that is on the wire has an open outcome.

        May be called at any time, in any state. Interrupting a call ends only its waiting.
        """
        super().close()
