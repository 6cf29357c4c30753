"""Decisions of an exact appender: when it may send, and what an unknown outcome has come to.

The queue's own tail is the memory. Each message has a mark with a position that only rises, so after a crash
or an unknown outcome the last mark of the queue says what is stored, provided that

    no request can arrive late    its own answer came, or an answering period of the broker has passed
    everything stored is visible  a fence message, sent after that, is visible
    nobody else writes            the lock is held, and was renewed a short time ago
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from rmqtools.errors import ExactAppendError
from rmqtools.model.append_mark import AppendMark
from rmqtools.model.codes import ResponseCode
from rmqtools.model.queue import MessageQueue

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


def meaning_of(code: int) -> Answered:
    """Return what a broker's answer to a send means; an internal error may come after the storing."""
    if code in _STORED:
        return Answered.STORED
    if code in _TRY_AGAIN:
        return Answered.TRY_AGAIN
    return Answered.UNKNOWN if code == ResponseCode.SYSTEM_ERROR else Answered.REFUSED


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

    def may_send(self, now: float) -> bool:
        """Return whether less than half of the lock's life has passed since it was renewed."""
        return self._renewed_at is not None and now - self._renewed_at < self.seconds / 2


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


def is_restarted(boot_before: str | None, boot_now: str | None) -> bool:
    """Return whether a broker was started again between two connections: its buffers are gone."""
    return boot_before is not None and boot_now is not None and boot_before != boot_now


@dataclass(frozen=True, slots=True)
class Fence:
    """A message in a private topic, sent when no earlier request can arrive any more.

    Brokers show messages in the order of their commit log, whatever topic they are in. So all that was
    stored before is visible once this one is.
    """

    queue_offset: int

    def is_passed(self, max_offset: int) -> bool:
        """Return whether the fence is visible, by the largest offset of its queue."""
        return max_offset > self.queue_offset


@dataclass(frozen=True, slots=True)
class Tail:
    """End of a queue, as far as one writer is concerned.

    Attributes:
        position: the position of the writer's last message; None: it has none.
        queue_offset: the offset of that message.
        end: the offset of the queue's next message.
    """

    position: int | None
    queue_offset: int | None
    end: int


@dataclass(frozen=True, slots=True)
class Since:
    """Begin of one piece of work in a queue, which its writer knows from elsewhere.

    Attributes:
        queue_offset: the end of the queue before the first of them was sent.
        position: the position of the first of them; the writer has used lower ones for earlier work.
    """

    queue_offset: int
    position: int


def last_mark(
    marks: Iterable[tuple[int, AppendMark | None]], writer: str, *, lowest: int = 0
) -> tuple[int, AppendMark] | None:
    """Return the last of some messages, given by offset and mark, that a writer has stored.

    It is the first one with the highest position. A message behind it with a lower one is a copy that another
    program has sent into the queue with all properties.

    ``lowest``: the first position of the work; messages before it belong to earlier work.
    """
    found = None
    for queue_offset, mark in marks:
        if mark is None or mark.writer != writer or mark.position < lowest:
            continue
        if found is None or mark.position > found[1].position:
            found = (queue_offset, mark)
    return found


def windows(begin: int, end: int, *, first: int = 64, most: int = 16_384) -> Iterable[tuple[int, int]]:
    """Yield ``[begin, end)`` in pieces from its end backwards, each twice as long as the one before."""
    size = first
    while end > begin:
        start = max(begin, end - size)
        yield start, end
        end, size = start, min(most, 2 * size)


def first_to_read(queue: MessageQueue, *, min_offset: int, end: int, hint: int | None) -> int:
    """Return the offset at which a scan of a tail ends that goes backwards.

    ``hint``: the offset of a message that the writer has stored; None: not known.

    Raises:
        ExactAppendError: the queue has no such offset any more: the topic was made anew.
    """
    if hint is None:
        return min_offset
    if hint >= end:
        raise ExactAppendError(
            f"{queue} ends at offset {end}, and a message was appended at {hint}: the topic was made anew, "
            "or its broker has lost its end; to begin anew, delete the group of this writer"
        )
    return max(hint, min_offset)


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
    queue: MessageQueue, writer: str, *, min_offset: int, hint: int | None, is_new: bool
) -> None:
    """Check that a queue without a message of a writer means that it has never written there.

    Raises:
        ExactAppendError: it does not: the messages may have expired, or the topic was made anew.
    """
    if hint is not None:
        what = (
            f"has expired (the queue begins at {min_offset})" if hint < min_offset else "is another message"
        )
        raise ExactAppendError(
            f"the message of writer {writer!r} at offset {hint} of {queue} {what}, and no later one was "
            "found: its position is not known; delete the group of this writer and set is_new to begin anew"
        )
    if min_offset > 0 and not is_new:
        raise ExactAppendError(
            f"{queue} begins at offset {min_offset} and has no message of writer {writer!r}: its last one "
            "may have expired; set is_new if this writer has never written to this queue"
        )


def check_origin(queue: MessageQueue, mark: AppendMark, origin: str) -> None:
    """Check that a writer's last message came from where its next ones come from.

    Raises:
        ExactAppendError: it came from somewhere else, so positions cannot be compared.
    """
    if mark.origin != origin:
        raise ExactAppendError(
            f"the last message of writer {mark.writer!r} in {queue} came from {mark.origin!r}, and the next "
            f"would come from {origin!r}: positions of two origins cannot be compared; use another writer "
            "name, or put the queues into their former order"
        )


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


def check_gap(
    queue: MessageQueue,
    marks: Iterable[tuple[int, AppendMark | None]],
    writer: str,
    *,
    lowest: int = 0,
) -> None:
    """Check that messages which came in between are not of the same writer.

    ``lowest``: see :func:`last_mark`.

    Raises:
        ExactAppendError: one is: another process writes with the same name.
    """
    found = last_mark(marks, writer, lowest=lowest)
    if found is not None:
        raise ExactAppendError(
            f"another process has stored position {found[1].position} of writer {writer!r} at offset "
            f"{found[0]} of {queue}: end one of the two"
        )


def check_positions(positions: Sequence[int], *, count: int, last: int | None) -> None:
    """Check the positions of messages to append.

    Raises:
        ValueError: not one for each message, negative, or not rising.
    """
    if len(positions) != count:
        raise ValueError(f"{len(positions)} positions for {count} messages: give one for each")
    before = -1 if last is None else last
    for position in positions:
        if position <= before:
            raise ValueError(
                f"position {position} after {before}: positions of a writer only rise, from 0 on; the last "
                f"one in the queue is {last}"
            )
        before = position
