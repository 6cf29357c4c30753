"""Decisions of staged writes: the record of a commit, and topics that fit together.

A record says which rows of the staging topic belong to a commit, and where each target queue ended before
the first of them was copied. It is text with a version: a newer release may finish the commit.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from rmqtools.errors import ConfigError, ExactAppendError, MessageRejectedError
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.model.staged import StagedQueue

_VERSION = 1
COPIED, GIVEN_UP = "/copied", "/given-up"
"""Endings of two more keys of a commit: it is finished, or it was given up."""


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


def encode_record(parts: Sequence[StagedQueue], most_bytes: int) -> bytes:
    """Return the record of a commit.

    Raises:
        MessageRejectedError: it is longer than a message may be.
    """
    record = {
        "version": _VERSION,
        "queues": [
            {
                "broker": part.target.broker_name,
                "queue": part.target.queue_id,
                "from": part.source.topic,
                "to": part.target.topic,
                "since": part.since,
                "ranges": [[each.begin, each.end] for each in part.ranges],
            }
            for part in parts
        ],
    }
    encoded = json.dumps(record, separators=(",", ":")).encode()
    if len(encoded) > most_bytes:
        count = sum(len(part.ranges) for part in parts)
        raise MessageRejectedError(
            f"the record of {count} ranges has {len(encoded)} bytes, at most {most_bytes} are allowed: send "
            "more rows with one request (max_batch_bytes, in Spark batchBytes), or fewer rows with one commit"
        )
    return encoded


def decode_record(record: bytes) -> list[StagedQueue]:
    """Return the parts of a commit.

    Raises:
        ExactAppendError: not a record of this version.
    """
    try:
        found = json.loads(record)
        if found["version"] != _VERSION:
            raise ValueError(f"version {found['version']}")
        return [_part(each) for each in found["queues"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ExactAppendError(
            f"the record {record[:80]!r} is not one of staged writes that this version reads ({error}): use "
            "a topic for decisions alone, and the newest version"
        ) from error


def _part(found: Mapping[str, object]) -> StagedQueue:
    broker, number, ranges = str(found["broker"]), int(str(found["queue"])), found["ranges"]
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


def check_targets(wanted: Iterable[MessageQueue], present: Iterable[MessageQueue], topic: str) -> None:
    """Check that each staged row has a queue to be copied to.

    Raises:
        ConfigError: names a queue that the target lacks.
    """
    if missing := set(wanted) - set(present):
        raise ConfigError(
            f"rows were staged for {min(missing)}, which topic {topic!r} does not have, or which may not be "
            "written: give the topic this queue; the staging topic has one queue for each of its queues"
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
