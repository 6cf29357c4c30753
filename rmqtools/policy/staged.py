"""Decisions of staged writes: which rows a commit has, which commits count, and topics that fit together.

A writer writes one topic; its name has both. Its commits have numbers that rise, as Spark's
micro-batches do. A decision is a message in the topic of decisions:

    keys      writer/number
    tags      decided │ copied │ given-up
    property  RMQTOOLS_DECISION: a random token, by which the process that wrote it finds it again
    body      of "decided": JSON; the number, the one decided before it (``after``), the rows of each
              queue, their digest, the process, and where each target queue ended before the first row

All processes read the same messages in the same order. One counts if the number before it is not lower than
the last one that counts. So the first one of a number counts, and none that comes late, whoever wrote it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from rmqtools.errors import ConfigError, ExactAppendError, MessageRejectedError
from rmqtools.model.decision import DECISION_TOKEN
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.model.staged import StagedQueue

_VERSION = 2
DECIDED, COPIED, GIVEN_UP = "decided", "copied", "given-up"
"""Tags of records: the rows of a commit; that all of them are copied; that the rest will not be."""

NEW_WRITE = "write it with another writer name (in Spark: a new stampId, or a new checkpoint)"


@dataclass(slots=True, kw_only=True)
class BatchDecision:
    """The decision of one commit.

    Attributes:
        batch: its number.
        after: the number of the decision before it; None: there was none.
        digest: a number that depends on the rows, and not on their order; None: not known.
        by: the process that has decided.
        parts: the rows, by queue.
        token: the token of the record.
        queue_offset: where the record is.
        store_timestamp_ms: when it was stored.
        end: the tag of the record that ended the commit; "": it is not known to have ended.
    """

    batch: int
    after: int | None
    digest: int | None
    by: str
    parts: Sequence[StagedQueue]
    token: str = ""
    queue_offset: int = -1
    store_timestamp_ms: int = 0
    end: str = ""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(part.rows for part in self.parts)


class Decisions:
    """The decisions of one writer that count.

    Attributes:
        last: the last one; None: there is none so far.
    """

    def __init__(self, writer: str) -> None:
        self._writer = writer
        self.last: BatchDecision | None = None

    def note(self, message: MessageExt) -> None:
        """Note the next message of the topic of decisions.

        The first decision that is read counts: reading begins with one that does, or with the topic.

        Raises:
            ExactAppendError: a decision of this writer that cannot be read.
        """
        token = message.properties.get(DECISION_TOKEN)
        writer, _, number = (message.keys or "").rpartition("/")
        if not token or writer != self._writer:
            return
        if message.tags == DECIDED:
            found = decode_decision(message.body)
            if self.last is None or (found.after is not None and found.after >= self.last.batch):
                found.token, found.queue_offset = token, message.queue_offset
                found.store_timestamp_ms = message.store_timestamp_ms
                self.last = found
        elif self.last is not None and number == str(self.last.batch) and not self.last.end:
            self.last.end = message.tags or ""


def check_same(
    decided: BatchDecision, rows: int, digest: int | None, *, last: int, writer: str, target: str
) -> None:
    """Check that a commit that is called again has the rows that were decided.

    ``last``: the number of the last decided commit. Values may differ in a job that makes new ones at each
    run; only its last commit may keep the first rows, because Spark repeats no other.

    Raises:
        ExactAppendError: it has other rows: names the rows that are stored, and the ways out.
    """
    is_same = None in (digest, decided.digest) or digest == decided.digest
    if rows == decided.rows and is_same:
        return
    when = datetime.fromtimestamp(decided.store_timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
    keep = (
        "if the job makes new values at each run, as uuid() and rand() do, keep the stored rows with "
        "keep_first (in Spark: onChangedRows=keepFirst)"
        if decided.batch == last
        else f"commits up to {last} are decided, so a checkpoint was restored, or another driver is running: "
        "go on with the newest checkpoint, and end the other driver"
    )
    raise ExactAppendError(
        f"commit {decided.batch} of writer {writer!r} has {rows} rows now, and {decided.rows} "
        f"{'' if is_same else 'other '}rows of it are stored in topic {target!r}, decided on {when} by "
        f"{decided.by}. Nothing was added. If these are new rows, {NEW_WRITE}; {keep}"
    )


def lost_decision(batch: int, last: int, *, writer: str, target: str) -> ExactAppendError:
    """Return the error of a commit that was decided, with rows that are not known any more."""
    give_up = " or, if its rows are stored, end it with give_up" if batch == last else ""
    return ExactAppendError(
        f"commit {batch} of writer {writer!r} for topic {target!r} was decided before, as all up to {last}, "
        "and its record has expired in the topic of decisions, or was lost: its rows may be stored or not. "
        f"If these are new rows, {NEW_WRITE}{give_up}"
    )


def merge_ranges(ranges: Iterable[QueueRange]) -> list[QueueRange]:
    """Return the same offsets in as few ranges as possible, by queue and in order; empty ones are left out.

    Raises:
        ValueError: an offset is in two of them.
    """
    merged: list[QueueRange] = []
    for each in sorted(filter(len, ranges), key=lambda one: (one.queue.sort_key, one.begin)):
        last = merged[-1] if merged and merged[-1].queue == each.queue else None
        if last is not None and each.begin < last.end:
            raise ValueError(f"{each} and {last} overlap: a row belongs to one range")
        if last is not None and each.begin == last.end:
            merged[-1] = QueueRange(last.queue, last.begin, each.end)
        else:
            merged.append(each)
    return merged


def by_queue(ranges: Sequence[QueueRange], topic: str) -> dict[MessageQueue, list[QueueRange]]:
    """Return merged ranges by the queue of ``topic`` that they are copied to: same broker, same number."""
    return {
        MessageQueue(topic, queue.broker_name, queue.queue_id): list(parts)
        for queue, parts in groupby(merge_ranges(ranges), key=lambda each: each.queue)
    }


def encode_decision(decision: BatchDecision, most_bytes: int) -> bytes:
    """Return the record of a commit.

    Raises:
        MessageRejectedError: it is longer than a message may be.
    """
    record = {
        "version": _VERSION,
        "batch": decision.batch,
        "after": decision.after,
        "digest": None if decision.digest is None else f"{decision.digest:032x}",
        "by": decision.by,
        "queues": [
            {
                "broker": part.target.broker_name,
                "queue": part.target.queue_id,
                "from": part.source.topic,
                "to": part.target.topic,
                "since": part.since,
                "ranges": [[each.begin, each.end] for each in part.ranges],
            }
            for part in decision.parts
        ],
    }
    encoded = json.dumps(record, separators=(",", ":")).encode()
    if len(encoded) > most_bytes:
        count = sum(len(part.ranges) for part in decision.parts)
        raise MessageRejectedError(
            f"the record of {count} ranges has {len(encoded)} bytes, at most {most_bytes} are allowed: send "
            "more rows with one request (max_batch_bytes, in Spark batchBytes), or fewer rows with one commit"
        )
    return encoded


def decode_decision(record: bytes) -> BatchDecision:
    """Return the decision of a record.

    Raises:
        ExactAppendError: not a record of this version.
    """
    try:
        found = json.loads(record)
        if found["version"] != _VERSION:
            raise ValueError(f"version {found['version']}")
        return BatchDecision(
            batch=int(found["batch"]),
            after=None if found["after"] is None else int(found["after"]),
            digest=None if found["digest"] is None else int(found["digest"], 16),
            by=str(found["by"]),
            parts=[_part(each) for each in found["queues"]],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ExactAppendError(
            f"the record {record[:80]!r} is not one of staged writes that this version reads ({error}): use "
            "a topic for decisions alone, and the newest version"
        ) from error


def _part(found: Mapping[str, object]) -> StagedQueue:
    broker = str(found["broker"])
    number = int(str(found["queue"]))
    ranges = found["ranges"]
    source = MessageQueue(str(found["from"]), broker, number)
    if not isinstance(ranges, list) or not ranges:
        raise ValueError("no ranges")
    return StagedQueue(
        ranges=[QueueRange(source, int(begin), int(end)) for begin, end in ranges],
        target=MessageQueue(str(found["to"]), broker, number),
        since=int(str(found["since"])),
    )


def rows_up_to(part: StagedQueue, last: int | None) -> int:
    """Return how many rows are copied; ``last``: the last copied one."""
    return part.rows - sum(end - begin for begin, end in rest_of(part, last))


def rest_of(part: StagedQueue, last: int | None) -> list[tuple[int, int]]:
    """Return the offsets that are not copied yet; ``last``: the last copied one."""
    first = part.ranges[0].begin if last is None else last + 1
    return [(max(first, each.begin), each.end) for each in part.ranges if each.end > first]


def queue_counts(queues: Iterable[MessageQueue]) -> dict[str, int]:
    """Return how many queues each broker needs, so that it has these."""
    counts: dict[str, int] = {}
    for queue in queues:
        counts[queue.broker_name] = max(counts.get(queue.broker_name, 0), queue.queue_id + 1)
    return dict(sorted(counts.items()))


def check_targets(
    wanted: Iterable[MessageQueue], present: Iterable[MessageQueue], topic: str, *, is_decided: bool
) -> None:
    """Check that each staged row has a queue to be copied to.

    Raises:
        ConfigError: names a queue that the target lacks.
    """
    if missing := set(wanted) - set(present):
        way_out = (
            "they are decided: give the topic this queue again until they are copied, or end the commit "
            "with give_up (in Spark: give_up_batch)"
            if is_decided
            else "start the write again: it then stages rows for the queues that there are; nothing of this "
            "run was stored"
        )
        raise ConfigError(
            f"rows were staged for {min(missing)}, which topic {topic!r} does not have, or which may not be "
            f"written: {way_out}"
        )


def check_retention(broker_name: str, hours: str | None, longest_outage: float) -> None:
    """Check that a broker keeps messages for longer than an outage may last.

    Raises:
        ConfigError: it does not; names its setting.
    """
    if hours is not None and hours.isdecimal() and int(hours) * 3600 < longest_outage:
        raise ConfigError(
            f"broker {broker_name!r} keeps messages for fileReservedTime={hours} hours: less than the "
            f"longest outage of {longest_outage / 3600:g} hours, after which staged rows must still be "
            "there; raise the setting, or lower the longest outage"
        )
