"""Sends record batches and counts the outcomes of their rows.

- It takes 10,000 rows or 16 MB at a time, in the types of ``canonical``. ``check_rows`` checks whole columns,
  ``queue_choice`` gives each row its queue or leaves it to the producer, ``encode_rows`` joins the parts of
  all messages with one kernel, and ``rows_to_requests`` cuts the result into batches, one request each. They
  are sent one per queue at a time, and none is started after a failure.
- Two portions are in flight in one ``BatchSeries`` while the next is encoded. Only rows with a delay, and
  rows larger than a request, become a ``Message``.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, NoReturn, Self

import pyarrow as pa

from rmqtools.arrow.bad_row import BadRow
from rmqtools.arrow.canonical import canonical_batches, canonical_column
from rmqtools.arrow.check_rows import find_bad_rows
from rmqtools.arrow.queue_choice import RowQueues
from rmqtools.arrow.row_bytes import DIGEST_BITS, digest_of
from rmqtools.arrow.rows import Rows, rows_of
from rmqtools.arrow.rows_to_requests import encode_batches
from rmqtools.errors import MessageRejectedError, RocketMQError, SendError, UnknownOutcomeError
from rmqtools.model.encoded_batch import EncodedBatch, StoredBatch
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import Outcome, SendStatus
from rmqtools.select import MessageQueueSelector

if TYPE_CHECKING:
    from rmqtools.sync.producer import Producer

ExtraProperties = Callable[[pa.RecordBatch, int], dict[str, pa.Array]]
"""Called with a batch and the number of its first row; returns more properties, a text for every row."""


_ROWS_AT_ONCE: Final = 10_000  # Spark's batches have as many; fewer than the 65536 unique ids of one call
_BYTES_AT_ONCE: Final = 16 * 1024 * 1024  # approximate; about four times this is in memory
_PORTIONS: Final = 2  # in flight while the next one is encoded, so that brokers do not idle
_POSSIBLY_STORED: Final = (Outcome.STORED, Outcome.UNKNOWN)


@dataclass(slots=True)
class SendReport:
    """The outcomes of rows.

    Attributes:
        acked: rows acknowledged by a broker, so stored at least once.
        retried: those of them that needed more than one attempt.
        not_replicated: those of them that the broker had not yet flushed, or copied to a slave.
        unknown: how many copies of rows may be stored in addition: one for each row of an attempt that got
            no answer, or that was stored and still followed by another attempt. There are at most this
            many duplicates.
        failed: rows not acknowledged; if an attempt got no answer, they are in ``unknown`` too.
        bytes: encoded bytes of all acknowledged requests.
        by_broker: rows acknowledged, by broker name.
        end_offsets: per queue, the offset after its last acknowledged row, without rows with a delay, which
            are not in the queue yet.
        ranges: per queue, where the acknowledged rows are: ``[begin, end)``, in the order of the answers;
            None: not noted.
        digest: a number that depends on these rows, and not on their order: with ``ranges``, for
            ``StagedWrites.commit``. The digest of several reports is their sum modulo 2**128.
    """

    acked: int = 0
    retried: int = 0
    not_replicated: int = 0
    unknown: int = 0
    failed: int = 0
    bytes: int = 0
    by_broker: dict[str, int] = field(default_factory=dict)
    end_offsets: dict[MessageQueue, int] = field(default_factory=dict)
    ranges: dict[MessageQueue, list[tuple[int, int]]] | None = None
    digest: int = 0

    def counts(self) -> dict[str, int | dict[str, int]]:
        """Return the numbers by name."""
        return {name: getattr(self, name) for name in _COUNTS} | {
            "by_broker": dict(sorted(self.by_broker.items()))
        }

    def add(self, other: "SendReport") -> None:
        """Add the counts of ``other``."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for broker_name, count in other.by_broker.items():
            self._count_broker(broker_name, count)
        for queue, offset in other.end_offsets.items():
            self._reach(queue, offset)
        self.digest = (self.digest + other.digest) % (1 << DIGEST_BITS)

    def count(self, batch: EncodedBatch, result: StoredBatch | SendError) -> None:
        """Count the rows of a batch."""
        copies = sum(attempt.outcome in _POSSIBLY_STORED for attempt in result.attempts)
        if isinstance(result, SendError):
            self.failed += len(batch)
            self.unknown += copies * len(batch)
            return
        self.acked += result.count
        self.retried += result.count * (len(result.attempts) > 1)
        self.not_replicated += result.count * (result.status is not SendStatus.SEND_OK)
        self.unknown += max(0, copies - 1) * result.count
        self.bytes += batch.nbytes
        self._count_broker(result.queue.broker_name, result.count)
        if batch.message is None or not batch.message.is_delayed:  # else the offset is of another topic
            self._reach(result.queue, result.queue_offset + result.count)
            if self.ranges is not None:
                self._note(self.ranges.setdefault(result.queue, []), result)

    def _note(self, found: list[tuple[int, int]], result: StoredBatch) -> None:
        begin, end = result.queue_offset, result.queue_offset + result.count
        if found and found[-1][1] == begin:
            begin = found.pop()[0]
        found.append((begin, end))

    def _count_broker(self, broker_name: str, count: int) -> None:
        self.by_broker[broker_name] = self.by_broker.get(broker_name, 0) + count

    def _reach(self, queue: MessageQueue, offset: int) -> None:
        self.end_offsets[queue] = max(offset, self.end_offsets.get(queue, 0))


_COUNTS: Final = ("acked", "retried", "not_replicated", "unknown", "failed", "bytes")


def send_batches(
    producer: "Producer",
    batches: Iterable[pa.RecordBatch],
    *,
    topic: str | None = None,
    selector: MessageQueueSelector | None = None,
    extra_properties: ExtraProperties | None = None,
    unsent: Collection[str] = (),
    on_bad_rows: Callable[[list[BadRow]], None] | None = None,
    report: SendReport | None = None,
) -> SendReport:
    """Send every row of every batch as a message; return when all are acknowledged.

    Takes and encodes further rows from ``batches`` while earlier ones are sent: rows that were taken are
    acknowledged only when this returns. Rows are sent in batches to the queues in turn, and after a failure
    to another broker. Rows with ``brokerName`` and ``queueId``, or with ``shardingKey``, go to that queue,
    or to the queue of the key: in their order, with one attempt.

    Args:
        producer: a started producer.
        batches: batches with columns of ``WRITE_COLUMNS``; large types, views and dictionaries of them too.
        topic: the topic of all rows; replaces a column ``topic``.
        selector: chooses the queue of rows that name none, by ``shardingKey``, else ``keys``. A random one,
            or one of your own, may divide the rows of a key among queues.
        extra_properties: returns more properties.
        unsent: columns that only ``extra_properties`` uses.
        on_bad_rows: called with rows that are not valid, which are then left out; None: they raise an error.
        report: counts the outcomes; it is valid after an error too.

    Raises:
        MessageRejectedError: a row is not valid; the text has its number. Rows before it may be sent. Or the
            producer has ``enable_trace``: these messages cannot be traced.
        SendError: a row was not stored. Others may be stored, also later ones.
        TopicNotFoundError, PermissionDeniedError, RemotingConnectError: there is no queue to send to.
    """
    report = SendReport() if report is None else report
    choice, row = RowQueues(selector), 0
    with _Wire(producer, report) as wire:
        for part in chain.from_iterable(map(_portions, canonical_batches(batches))):
            more = {} if extra_properties is None else extra_properties(part, row)
            extra = {name: canonical_column(column) for name, column in more.items()}
            sent = part.drop_columns([name for name in unsent if name in part.schema.names])
            rows = rows_of(sent, topic=topic, first_row=row, extra=extra)
            rows, encoded = _encoded(producer, rows, choice, on_bad_rows)
            wire.send(encoded)
            if report.ranges is not None and encoded:
                report.digest = (report.digest + digest_of(rows.columns)) % (1 << DIGEST_BITS)
            row += part.num_rows
    return report


def _encoded(
    producer: "Producer",
    rows: Rows,
    choice: RowQueues,
    on_bad_rows: Callable[[list[BadRow]], None] | None,
) -> tuple[Rows, list[EncodedBatch]]:
    """Return the valid rows and their batches; look for bad rows only after an error, which is rare."""
    try:
        return rows, encode_batches(producer, rows, choice)
    except MessageRejectedError:
        if on_bad_rows is None:
            raise
        reasons = find_bad_rows(rows, producer.config.max_message_bytes)
        if not reasons:  # for instance a queue that does not exist
            raise
    on_bad_rows([BadRow.of(rows, row, reason) for row, reason in sorted(reasons.items())])
    left = rows.take(pa.array([row for row in range(len(rows)) if row not in reasons], pa.int64()))
    return left, encode_batches(producer, left, choice) if len(left) else []


def _portions(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Divide a batch into portions with limited rows and bytes."""
    if not batch.num_rows:
        return
    count = max(-(-batch.num_rows // _ROWS_AT_ONCE), -(-batch.nbytes // _BYTES_AT_ONCE))
    size = -(-batch.num_rows // min(count, batch.num_rows))
    for begin in range(0, batch.num_rows, size):
        yield batch.slice(begin, size)


class _Wire:
    """Keeps two portions of rows in flight, so that brokers do not idle while the next one is encoded.

    At the end of the block, also after an error, it waits for the portions in flight and counts them; an
    interruption cancels them.
    """

    def __init__(self, producer: "Producer", report: SendReport) -> None:
        self._sender = producer._encoded_sends
        self._report = report
        self._series = self._sender.new_series()
        self._sent: deque[tuple[Sequence[EncodedBatch], Future[list[StoredBatch | SendError]]]] = deque()
        self._rows = 0  # of all portions
        self._failed: list[tuple[int, RocketMQError]] = []  # rows that were not stored, and the error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None or issubclass(kind, Exception):
                self._await_sent(0)
        finally:
            for _batches, future in self._sent:
                future.cancel()

    def send(self, batches: Sequence[EncodedBatch]) -> None:
        """Send batches as soon as another portion may be in flight.

        Raises:
            RocketMQError: as :meth:`_await_sent`; these batches are not sent.
        """
        self._await_sent(_PORTIONS - 1)
        self._rows += sum(map(len, batches))
        self._sent.append((batches, self._sender.send_encoded_async(batches, series=self._series)))

    def _await_sent(self, left: int) -> None:
        """Wait until at most ``left`` portions are in flight; after a failure, until none is.

        Raises:
            RocketMQError: rows were not stored, or a portion was refused as a whole.
        """
        while self._sent and (len(self._sent) > left or self._failed or self._sent[0][1].done()):
            self._count(*self._sent.popleft())
        if self._failed:
            failed, self._failed = self._failed, []
            _raise_failed(failed, self._rows)

    def _count(
        self, batches: Sequence[EncodedBatch], future: "Future[list[StoredBatch | SendError]]"
    ) -> None:
        try:
            results = future.result()
        except RocketMQError as error:
            count = sum(map(len, batches))
            self._report.failed += count
            self._failed.append((count, error))
            return
        except BaseException:  # an interruption; cancelling a portion that has ended does nothing
            future.cancel()
            raise
        for batch, result in zip(batches, results, strict=True):
            self._report.count(batch, result)
            if isinstance(result, SendError):
                self._failed.append((len(batch), result))


def _raise_failed(failed: Sequence[tuple[int, RocketMQError]], rows: int) -> NoReturn:
    """Raise one error for all failures; each has its number of rows."""
    errors = [error for _, error in failed]
    # the first error of an attempt says more than those of rows that were not tried
    first = next((error for error in errors if isinstance(error, SendError) and error.attempts), errors[0])
    if not isinstance(first, SendError):
        raise first
    is_unknown = any(isinstance(error, UnknownOutcomeError) for error in errors)
    text = (
        f"{sum(count for count, _ in failed)} of {rows} rows could not be placed; the first: {first.args[0]}"
    )
    raise (UnknownOutcomeError if is_unknown else SendError)(text, first.attempts) from first
