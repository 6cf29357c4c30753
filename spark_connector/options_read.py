"""The options of reads: what, from where to where, how. Those of streams alone are in ``options_stream``."""

from typing import Final

from spark_connector.offsets import Times, parse_offset_spec, parse_times
from spark_connector.option import OneOf, Option, Where, parse_count, parse_flag, parse_name, parse_names
from spark_connector.queue_json import parse_queues
from spark_connector.selection import Assign, parse_pattern


def _parse_assign(text: str) -> Assign:
    return Assign(parse_queues(text))


def _parse_time(text: str) -> Times:
    if (time := int(text)) < 0:
        raise ValueError(f"want 0 or more, got {time}")
    return Times(time)


def _parse_tags(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(parse_name(tag) for tag in text.split("||")))


_OFFSETS: Final = 'earliest, latest, group or JSON {"topic":{"broker":{"queue":offset}}}'
_TIMES: Final = 'JSON {"topic":{"broker":{"queue":milliseconds}}}'

WHAT_OPTIONS: Final = (
    Option(
        "topic",
        "a name",
        parse_name,
        None,
        "The topic to read, a retry or dead-letter topic too (%RETRY%group, %DLQ%group); "
        "or to write all rows to, over a column topic.",
        Where.BOTH,
    ),
    Option("topics", "names separated by commas", parse_names, None, "Several topics to read.", Where.READ),
    Option(
        "topicPattern",
        "a regular expression of whole names",
        parse_pattern,
        None,
        "Read every topic that matches. Retry and dead-letter topics only match a pattern that itself begins "
        "with %RETRY% or %DLQ%; system topics never do.",
        Where.READ,
    ),
    Option(
        "assign",
        'JSON {"topic":{"broker":[queue, ...]}}',
        _parse_assign,
        None,
        "Read these queues only.",
        Where.READ,
    ),
    Option(
        "tags",
        "tags separated by ||",
        _parse_tags,
        None,
        "Read only messages with one of these tags; brokers filter.",
        Where.READ,
    ),
    Option(
        "sql",
        "an SQL92 condition",
        parse_name,
        None,
        "Read only messages whose properties fulfil it, e.g. a > 5 AND region = 'eu'; brokers filter, where "
        "their enablePropertyFilter is on.",
        Where.READ,
    ),
)

BOUND_OPTIONS: Final = (
    Option(
        "startingOffsets",
        _OFFSETS,
        parse_offset_spec,
        None,
        "Where to start, per queue: -2 in JSON is a queue's earliest offset, -1 its latest; group: where the "
        "consumer group of option group is. Batches start at earliest if not told, streams at latest.",
        Where.READ,
    ),
    Option(
        "startingTimestamp",
        "milliseconds since 1970",
        _parse_time,
        None,
        "Start at the first message stored then or later, in every queue. Goes before startingOffsets and "
        "startingOffsetsByTimestamp.",
        Where.READ,
    ),
    Option(
        "startingOffsetsByTimestamp",
        _TIMES,
        parse_times,
        None,
        "The same with a time per queue. Goes before startingOffsets.",
        Where.READ,
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        "error or latest",
        OneOf(("error", "latest")),
        "error",
        "What to do with a queue that has no message from the starting time on.",
        Where.READ,
    ),
    Option(
        "endingOffsets",
        _OFFSETS,
        parse_offset_spec,
        "latest",
        "Where to stop, per queue, not included; -1 in JSON is a queue's latest offset.",
        Where.BATCH,
    ),
    Option(
        "endingTimestamp",
        "milliseconds since 1970",
        _parse_time,
        None,
        "Stop before the first message stored then or later, else at the latest offset. Goes before "
        "endingOffsets and endingOffsetsByTimestamp.",
        Where.BATCH,
    ),
    Option(
        "endingOffsetsByTimestamp",
        _TIMES,
        parse_times,
        None,
        "The same with a time per queue. Goes before endingOffsets.",
        Where.BATCH,
    ),
    Option(
        "group",
        "a name",
        parse_name,
        None,
        "The consumer group whose offsets or members are looked at. Reading never joins it.",
        Where.READ,
    ),
    Option(
        "groupOffsetFallback",
        "earliest, latest or error",
        OneOf(("earliest", "latest", "error")),
        "earliest",
        "With offsets of a group: what counts for queues it has none for.",
        Where.READ,
    ),
    Option(
        "failOnDataLoss",
        "true or false",
        parse_flag,
        "true",
        "Whether to fail where messages to be read have expired; else they are passed over, with a warning.",
        Where.READ,
    ),
)

HOW_OPTIONS: Final = (
    Option(
        "minPartitions",
        "a whole number",
        parse_count,
        None,
        "Split large queues until there are about this many Spark partitions; else one per queue, but in a "
        "stream queues with less than 1,000 messages in a micro-batch share one.",
        Where.READ,
    ),
    Option(
        "maxRecordsPerPartition",
        "a whole number",
        parse_count,
        None,
        "Split queues so that no Spark partition has more messages.",
        Where.READ,
    ),
    Option(
        "includeProperties",
        "true or false",
        parse_flag,
        "true",
        "Whether rows have the column properties; without it reading is cheaper.",
        Where.READ,
    ),
    Option(
        "offsetMsgId",
        "true or false",
        parse_flag,
        "false",
        "Whether rows have a column offsetMsgId: the message id that says where the message is stored.",
        Where.READ,
    ),
)

ALLOCATION_OPTIONS: Final = (
    Option(
        "readers",
        "a whole number",
        parse_count,
        None,
        "Share the queues among this many Spark partitions as if they were the members of a group.",
        Where.READ,
    ),
    Option(
        "readerIds",
        "names separated by commas",
        parse_names,
        None,
        "The readers' client ids, address@name; else they are called HOST@reader-0 and so on.",
        Where.READ,
    ),
    Option(
        "allocator",
        "a strategy's name, or module:Class",
        parse_name,
        None,
        "How queues are shared, AVG if not told: AVG, AVG_BY_CIRCLE, CONFIG, MACHINE_ROOM, "
        "MACHINE_ROOM_NEARBY, CONSISTENT_HASH, PINNED_BY_IP; with asMember also PINS: the pins of its group.",
        Where.READ,
    ),
    Option(
        "allocator.verifyHost",
        "off or warn",
        OneOf(("off", "warn")),
        "off",
        "Whether a task warns that runs on another address than its reader id says: Spark places tasks.",
        Where.READ,
    ),
    Option(
        "allocator.*",
        "as the strategy's own settings",
        str,
        None,
        "A setting of the strategy, e.g. allocator.ips=10.0.0.1,10.0.0.2 for PINNED_BY_IP.",
        Where.READ,
    ),
    Option(
        "allowUnassigned",
        "true or false",
        parse_flag,
        "false",
        "Whether queues that no reader gets may stay unread (they are logged); else that is an error.",
        Where.READ,
    ),
    Option(
        "asMember",
        "a client id, or an address",
        parse_name,
        None,
        "Read only the queues that this member of the live consumer group owns, or with allocator would own; "
        "without joining, without committing.",
        Where.READ,
    ),
)

READ_OPTIONS: Final = (*WHAT_OPTIONS, *BOUND_OPTIONS, *HOW_OPTIONS, *ALLOCATION_OPTIONS)
