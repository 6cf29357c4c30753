"""Send record batches, and count what became of their rows."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rmqtools.arrow.encode import batch_to_messages
from rmqtools.errors import MessageRejectedError, SendError, SendManyError, UnknownOutcomeError
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendResult, SendStatus
from rmqtools.policy.validate import check_message

if TYPE_CHECKING:
    from rmqtools.sync import Producer

_ROWS_PER_SEND: Final = 2000  # bounds the messages held as Python objects


@dataclass(slots=True)
class SendReport:
    """What became of rows.

    Attributes:
        acked: acknowledged by a broker, so stored at least once.
        retried: of those, how many took more than one attempt.
        not_replicated: of those, how many the broker had not yet flushed, or copied to a slave.
        unknown: rows that may be stored although an attempt, or all of them, ended without an answer.
            Acknowledged ones among them may be stored twice.
        failed: rows that were not placed and are known not to be stored.
        end_offsets: per queue, the offset after its last acknowledged row.
    """

    acked: int = 0
    retried: int = 0
    not_replicated: int = 0
    unknown: int = 0
    failed: int = 0
    end_offsets: dict[MessageQueue, int] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """The numbers alone, by name."""
        return {name: getattr(self, name) for name in _COUNTS}

    def add(self, other: "SendReport") -> None:
        """Count the rows of ``other`` too."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for queue, offset in other.end_offsets.items():
            self._reach(queue, offset)

    def count(self, result: SendResult | SendError) -> None:
        """Count one row."""
        if isinstance(result, SendError):
            self.unknown += isinstance(result, UnknownOutcomeError)
            self.failed += not isinstance(result, UnknownOutcomeError)
            return
        self.acked += 1
        self.retried += len(result.attempts) > 1
        self.not_replicated += result.status is not SendStatus.SEND_OK
        self.unknown += result.may_be_duplicated
        self._reach(result.queue, result.queue_offset + 1)

    def _reach(self, queue: MessageQueue, offset: int) -> None:
        self.end_offsets[queue] = max(offset, self.end_offsets.get(queue, 0))


_COUNTS: Final = ("acked", "retried", "not_replicated", "unknown", "failed")


def send_batches(
    producer: "Producer",
    batches: Iterable[pa.RecordBatch],
    *,
    topic: str | None = None,
    report: SendReport | None = None,
) -> SendReport:
    """Send every row of every batch as a message; return when all are acknowledged.

    Args:
        producer: started; selects the queues.
        batches: have the columns of ``WRITE_COLUMNS``.
        topic: where all rows go, over a column ``topic``.
        report: where to count; holds what was reached also after an error.

    Raises:
        MessageRejectedError: a row that cannot be sent, by its number; the rows before it may have been.
        SendError: a row could not be placed. Others may have been, also later ones.
    """
    report = SendReport() if report is None else report
    row = 0
    for batch in batches:
        for begin in range(0, batch.num_rows, _ROWS_PER_SEND):
            part = batch.slice(begin, _ROWS_PER_SEND)
            _send(producer, batch_to_messages(part, topic=topic, first_row=row), row, report)
            row += part.num_rows
    return report


def _send(producer: "Producer", messages: Sequence[Message], first_row: int, report: SendReport) -> None:
    try:
        results: Sequence[SendResult | SendError] = producer.send_many(messages)
    except SendManyError as error:
        for result in error.results:
            report.count(result)
        raise
    except MessageRejectedError as error:
        raise _with_row(error, messages, first_row) from error
    for result in results:
        report.count(result)


def _with_row(
    error: MessageRejectedError, messages: Sequence[Message], first_row: int
) -> MessageRejectedError:
    """The same error, naming the row. What only a producer's limit refuses is a body too large."""
    for row, message in enumerate(messages, first_row):
        try:
            check_message(message, sys.maxsize)
        except MessageRejectedError as found:
            return MessageRejectedError(f"row {row}: {found}")
    row = max(range(len(messages)), key=lambda number: len(messages[number].body))
    return MessageRejectedError(f"row {first_row + row}, the largest body: {error}")
