"""Decisions of an exact appender: when it may send, and whether a message with an unknown outcome is stored.

The queue's own tail is the memory. Each message has a mark with a position that only rises, so after a crash
or an unknown outcome the last mark of the queue says what is stored, provided that

    no request can arrive late    its own answer came, or an answering period of the broker has passed
    everything stored is visible  a fence message, sent after that, is visible
    nobody else writes            the lock is held, and was renewed a short time ago

A broker that is killed while it copies a batch has stored its first messages. So every message has a
position, not every batch.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from rmqtools.errors import ExactAppendError
from rmqtools.model.append_mark import AppendMark
from rmqtools.model.codes import ResponseCode
from rmqtools.model.queue import MessageQueue

_LOST_END = (
    "the topic was made anew, or its broker has lost its end; to go on behind the last message that is "
    "there, delete the groups of this writer"
)
LOCK_SECONDS = 60.0  # upstream rocketmq.broker.rebalance.lockMaxLiveTime
LEAST_SLOW = 1.0  # seconds; a shorter wait for an answer proves nothing about the broker


class Answered(Enum):
    """Meaning of a broker's answer to a send for its messages."""

    STORED = "stored"
    TRY_AGAIN = "not stored: the broker was too busy, or cannot store now"
    REFUSED = "not stored"
    UNKNOWN = "perhaps stored"


_STORED = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
    }
)
_TRY_AGAIN = frozenset({ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.GO_AWAY})


_BUSY_PAGE_CACHE = "[PC_SYNCHRONIZED]"  # brokers 4.9 and 5.x: SYSTEM_ERROR before anything is stored
_TOO_LARGE = re.compile("message (body )?size exceeded")  # SYSTEM_ERROR for a batch, before it is stored


def meaning_of(code: int, remark: str | None = None) -> Answered:
    """Return what a broker's answer to a send means; an internal error may come after the storing."""
    if code in _STORED:
        return Answered.STORED
    if code in _TRY_AGAIN or _BUSY_PAGE_CACHE in (remark or ""):
        return Answered.TRY_AGAIN
    if is_of_messages(code, remark):
        return Answered.REFUSED
    return Answered.UNKNOWN if code == ResponseCode.SYSTEM_ERROR else Answered.REFUSED


def is_of_messages(code: int, remark: str | None) -> bool:
    """Return whether a broker refuses some messages of a request, and may take others."""
    return code == ResponseCode.MESSAGE_ILLEGAL or bool(_TOO_LARGE.search(remark or ""))


@dataclass(slots=True)
class LockAge:
    """Time of a writer's lock: when it was renewed, and whether that is recent enough to send.

    Times are seconds of a monotonic clock. A writer that was paused finds here that its lock is old: another
    writer may have taken it.
    """

    seconds: float = LOCK_SECONDS
    _renewed_at: float | None = None

    def renewed(self, asked_at: float) -> None:
        """Note that the lock was granted to a request of this time."""
        self._renewed_at = asked_at

    def lost(self) -> None:
        """Note that the lock is not held."""
        self._renewed_at = None

    def seconds_left(self, now: float) -> float:
        """Return for how long the writer may send: half of the lock's life since it was renewed."""
        return 0.0 if self._renewed_at is None else max(0.0, self._renewed_at + self.seconds / 2 - now)

    def may_send(self, now: float) -> bool:
        """Return whether less than half of the lock's life has passed since it was renewed."""
        return self.seconds_left(now) > 0.0


@dataclass(slots=True)
class AnsweringPeriod:
    """A period in which a broker has answered all the time, after a connection to it was lost.

    A broker that stood still stores, when it continues, what lies in its buffers. So the period begins at an
    answer, and begins again after a missing or a slow one. A pause of this process counts as a slow answer.
    """

    seconds: float
    _since: float | None = None
    _last: float = 0.0

    @property
    def slow(self) -> float:
        """Seconds from which on an answer, or the time between two, begins the period again."""
        return max(LEAST_SLOW, self.seconds / 4)

    def answered(self, asked_at: float, now: float) -> None:
        """Note an answer."""
        is_first = self._since is None
        if is_first or now - asked_at > self.slow or asked_at - self._last > self.slow:
            self._since = now
        self._last = now

    def missed(self) -> None:
        """Note a request without an answer."""
        self._since = None

    def is_over(self, now: float) -> bool:
        """Return whether the broker has answered for long enough."""
        return self._since is not None and now - self._since >= self.seconds


@dataclass(frozen=True, slots=True)
class Tail:
    """End of a queue, as far as one writer is concerned.

    Attributes:
        position: the position of the writer's last message; None: none was found.
        queue_offset: the offset of that message.
        end: the offset of the queue's next message.
        next_position: the first position that is not done; None: nothing was done so far.
        source_ms: when that message was stored at its source; None: not known.
        noted: a position that was done before, and the time of the last message that was read then.
    """

    position: int | None
    queue_offset: int | None
    end: int
    next_position: int | None = None
    source_ms: int | None = None
    noted: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Since:
    """Begin of one piece of work in a queue, which its writer knows from elsewhere.

    Attributes:
        queue_offset: the end of the queue before the first of them was sent.
        position: the position of the first of them; the writer has used lower ones for earlier work.
    """

    queue_offset: int
    position: int


def check_last(
    queue: MessageQueue,
    writer: str,
    *,
    last: int | None,
    min_offset: int,
    first: tuple[int, AppendMark] | None,
    position: int | None = None,
) -> None:
    """Check that the message of a writer is still where it was stored, unless it has expired.

    Args:
        queue: the writer's queue.
        writer: its name.
        last: the offset of the message; None: not known.
        min_offset: the first offset that is stored.
        first: the writer's first message from ``last`` on.
        position: that of the message; None: not known.

    Raises:
        ExactAppendError: another message is there, or none: the topic was made anew, or an end is lost.
    """
    if last is None or last < min_offset:
        return
    if first is None or first[0] != last or position not in (None, first[1].position):
        raise ExactAppendError(
            f"the message at offset {last} of {queue} is not the one that writer {writer!r} has stored "
            f"there: {_LOST_END}"
        )


def check_since(queue: MessageQueue, since: int, *, min_offset: int, end: int) -> None:
    """Check that everything stored behind an offset is still there.

    Raises:
        ExactAppendError: messages have expired, or the topic was made anew.
    """
    if since > end:
        raise ExactAppendError(
            f"{queue} ends at offset {end}, and ended at {since} before: the topic was made anew, or its "
            "broker has lost its end"
        )
    if since < min_offset:
        raise ExactAppendError(
            f"{queue} begins at offset {min_offset}: messages from {since} on have expired, so it is not "
            "known which ones were stored"
        )


def check_nothing_found(
    queue: MessageQueue,
    writer: str,
    origin: str,
    *,
    min_offset: int,
    last: int | None,
    is_new: bool,
    others: Mapping[str, str],
) -> None:
    """Check that a queue without a message of a writer means that it has never written there.

    ``others``: writers of other messages, by origin.

    Raises:
        ExactAppendError: it does not: the messages may have expired, or it had another name.
    """
    if last is not None:
        raise ExactAppendError(
            f"the message of writer {writer!r} at offset {last} of {queue} has expired (the queue begins at "
            f"{min_offset}), and no later one was found: its position is not known; delete the groups of "
            "this writer and set is_new to begin anew"
        )
    if is_new:
        return
    if min_offset > 0:
        raise ExactAppendError(
            f"{queue} begins at offset {min_offset} and has no message of writer {writer!r}: its last one "
            "may have expired; set is_new if this writer has never written to this queue"
        )
    for other, name in others.items():
        if origin and _place(other) == _place(origin):
            raise ExactAppendError(
                f"{queue} has messages of writer {name!r} from {other!r}, and none of writer {writer!r}: "
                f"they would be stored twice; go on with the name {name!r} (a mirror without name has that "
                "of its source cluster), or set is_new to store them again"
            )


def check_origin(queue: MessageQueue, mark: AppendMark, origin: str) -> None:
    """Check that a writer's last message came from where its next ones come from.

    A cluster may have got another name, if the mark says which message it is: then that is compared.

    Raises:
        ExactAppendError: it came from somewhere else, so positions cannot be compared.
    """
    if mark.origin == origin or (mark.source_ms is not None and _place(mark.origin) == _place(origin)):
        return
    raise ExactAppendError(
        f"the last message of writer {mark.writer!r} in {queue} came from {mark.origin!r}, and the next "
        f"would come from {origin!r}: positions of two origins cannot be compared; use another writer "
        "name, or put the queues and the names of clusters into their former order"
    )


def _place(origin: str) -> str:
    """Return topic, broker and queue of an origin, without the name of the cluster."""
    return origin.partition("/")[2]


def count_stored(
    queue: MessageQueue, positions: Sequence[int], *, before: int | None, found: int | None
) -> int:
    """Return how many messages of an unknown outcome are stored: a broker may have stored the first ones.

    Args:
        queue: where they were sent.
        positions: their positions, in order.
        before: the writer's last position before them.
        found: the last one in the queue now.

    Raises:
        ExactAppendError: the queue has another position: another writer of this name, or a lost end.
    """
    if found == before:
        return 0
    at = -1 if found is None else bisect_left(positions, found)
    if 0 <= at < len(positions) and positions[at] == found:
        return at + 1
    raise ExactAppendError(
        f"the last position in {queue} is {found}, want {before} or one from {positions[0]} to "
        f"{positions[-1]}: another writer has this name, or the broker has lost the end of the queue"
    )


def check_place(queue: MessageQueue, *, expected: int, got: int) -> None:
    """Check where a broker has stored messages. A later place means that others have written, too.

    Raises:
        ExactAppendError: an earlier place: the broker has lost the end of the queue.
    """
    if got < expected:
        raise ExactAppendError(
            f"messages were stored at offset {got} of {queue}, want {expected} or later: the broker has lost "
            "the end of the queue, or another one has taken over without it"
        )


def check_alone(
    queue: MessageQueue, last: tuple[int, AppendMark] | None, *, found: int, sent: int = 0
) -> None:
    """Check that no other process writes with this writer's name.

    Args:
        queue: the writer's queue.
        last: offset and mark of the last message of its name that is new; None: there is none.
        found: how many there are.
        sent: how many of them it has sent itself.

    Raises:
        ExactAppendError: others were stored.
    """
    if last is not None and found != sent:
        raise ExactAppendError(
            f"another process has stored position {last[1].position} of writer {last[1].writer!r} at offset "
            f"{last[0]} of {queue}, or sent an old message again with its properties: end it, and start again"
        )


def check_positions(positions: Sequence[int], *, count: int, next_position: int | None) -> None:
    """Check the positions of messages to append.

    Raises:
        ValueError: not one for each message, negative, or not rising.
    """
    if len(positions) != count:
        raise ValueError(f"{len(positions)} positions for {count} messages: give one for each")
    lowest = next_position or 0
    for position in positions:
        if position < lowest:
            raise ValueError(
                f"position {position}, want {lowest} or more: positions of a writer only rise, from 0 on; "
                f"the next one in the queue is {next_position or 0}"
            )
        lowest = position + 1
