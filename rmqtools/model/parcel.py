"""Messages encoded elsewhere, as the engine sends them: one parcel is one request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import Outcome, SendAttempt, SendStatus

_COUNTER_MASK = 0xFFFF


@dataclass(frozen=True, slots=True)
class MsgIds(Sequence[str]):
    """Unique ids in a row: all begin with ``prefix`` and end in a counter of four hex digits.

    The counter starts again at 0 after FFFF, so a row has at most 65536.
    """

    prefix: str
    first: int
    length: int

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
class Parcel:
    """What one request carries: encoded messages of one topic, or one message still to be encoded.

    Attributes:
        topic: where to.
        body: a batch as ``protocol.message_batch`` draws it; empty with ``message``.
        msg_ids: the unique ids that are in ``body``, one per message.
        message: instead of both: sent alone, so it may have a delay, and is compressed if large.
        queue: this very queue, tried once; None: queues in turn, after a failure one on another broker.
        may_move: after a failure at ``queue``, too, try one on another broker.
    """

    topic: str
    body: bytes | memoryview = b""
    msg_ids: Sequence[str] = ()
    message: Message | None = None
    queue: MessageQueue | None = None
    may_move: bool = False

    def __len__(self) -> int:
        return len(self.msg_ids) if self.message is None else 1

    @property
    def nbytes(self) -> int:
        """The size of what it carries, as far as it is encoded."""
        return len(self.body) if self.message is None else len(self.message.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParcelResult:
    """A parcel that a broker has stored: all its messages in ``queue`` from ``queue_offset`` on.

    ``attempts`` holds every try, the successful one last.
    """

    status: SendStatus
    queue: MessageQueue
    queue_offset: int
    count: int
    attempts: tuple[SendAttempt, ...] = ()

    @property
    def may_be_duplicated(self) -> bool:
        """Whether another attempt has stored the messages as well, or may have."""
        stored = (Outcome.STORED, Outcome.UNKNOWN)
        return sum(attempt.outcome in stored for attempt in self.attempts) > 1
