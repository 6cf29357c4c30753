"""Encoded batches: one request each, and the row of their unique ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from rmqtools.compiled import twins
from rmqtools.model.message import Message, body_length
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import Outcome, SendAttempt, SendStatus

_COUNTER_MASK = 0xFFFF
MOST_IDS = _COUNTER_MASK + 1  # of a row of ids


@dataclass(frozen=True, slots=True)
class MsgIds(Sequence[str]):
    """A row of unique ids: all begin with ``prefix`` and end with a counter of four hex digits.

    The counter continues with 0 after FFFF, so a row has at most 65536 ids.
    """

    prefix: str
    first: int
    length: int

    def texts(self) -> list[str]:
        """All ids."""
        texts: list[str] | None = (
            None if twins is None else twins.id_texts(self.prefix, self.first, self.length)
        )
        return [*self] if texts is None else texts

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> "MsgIds": ...
    def __getitem__(self, at: int | slice) -> "str | MsgIds":
        if isinstance(at, slice):
            begin, end, _ = at.indices(self.length)
            return MsgIds(self.prefix, self.first + begin, max(0, end - begin))
        if not -self.length <= at < self.length:
            raise IndexError(at)
        return f"{self.prefix}{self.first + at % self.length & _COUNTER_MASK:04X}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedBatch:
    """The content of one request: encoded messages of one topic, or one message that is not encoded yet.

    Attributes:
        topic: the topic to send to.
        body: a batch in the format of ``protocol.messages.batch``; empty with ``message``.
        msg_ids: the unique ids in ``body``, one per message.
        message: instead of both: sent alone, so it may have a delay and is compressed if it is large.
        queue: send to this queue, one attempt only. None: queues in turn; retries take another broker.
        may_move: after a failure at ``queue``, try a queue of another broker.
        sys_flag: of all messages in ``body``; not 0 if they are compressed already.
    """

    topic: str
    body: bytes | memoryview = b""
    msg_ids: Sequence[str] = ()
    message: Message | None = None
    queue: MessageQueue | None = None
    may_move: bool = False
    sys_flag: int = 0

    def __len__(self) -> int:
        return len(self.msg_ids) if self.message is None else 1

    @property
    def nbytes(self) -> int:
        """The size of its encoded messages."""
        return body_length(self.body if self.message is None else self.message.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """A stored batch: all its messages are in ``queue`` from ``queue_offset`` on.

    ``attempts`` has every attempt, the successful one last.
    """

    status: SendStatus
    queue: MessageQueue
    queue_offset: int
    count: int
    attempts: tuple[SendAttempt, ...] = ()

    @property
    def may_be_duplicated(self) -> bool:
        """True if another attempt may have stored the messages too."""
        stored = (Outcome.STORED, Outcome.UNKNOWN)
        return sum(attempt.outcome in stored for attempt in self.attempts) > 1
