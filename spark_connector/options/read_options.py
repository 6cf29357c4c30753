"""The options of reads: topics, bounds, partitions, sharing, and those of streams alone."""

from typing import Final

from rmqtools.allocate import STRATEGIES
from rmqtools.model.group import SUB_ALL
from spark_connector.options.columns import parse_columns
from spark_connector.options.offsets import parse_offset_spec, parse_time, parse_times
from spark_connector.options.option import (
    DURATION,
    OneOf,
    Option,
    Where,
    parse_count,
    parse_duration,
    parse_flag,
    parse_name,
    parse_names,
)
from spark_connector.options.queue_json import parse_queues
from spark_connector.options.selection import Assign, parse_pattern
from spark_connector.options.time_zone import parse_zone


def _parse_assign(text: str) -> Assign:
    return Assign(parse_queues(text))


def _parse_tags(text: str) -> tuple[str, ...]:
    if text.strip() == SUB_ALL:
        return ()
    return tuple(dict.fromkeys(parse_name(tag) for tag in text.split("||")))


_OFFSETS: Final = 'earliest, latest, group or JSON {"topic":{"broker":{"queue":offset}}}'
_TIME: Final = "milliseconds (not seconds) since 1970, or ISO 8601 as 2026-01-31T10:00:00Z"
_TIMES: Final = 'JSON {"topic":{"broker":{"queue":time}}}'

WHAT_OPTIONS: Final = (
    Option(
        "topic",
        "a name",
        parse_name,
        None,
        "The topic to read, including retry and dead-letter topics (%RETRY%group, %DLQ%group); or the topic "
        "that all rows are written to, overriding a column topic.",
        Where.BOTH,
    ),
    Option("topics", "names separated by commas", parse_names, None, "Several topics to read.", Where.READ),
    Option(
        "topicPattern",
        "a regular expression of whole names",
        parse_pattern,
        None,
        "Read every topic that matches. Retry and dead-letter topics only match a pattern that itself begins "
        "with %RETRY% or %DLQ%; system topics never match.",
        Where.READ,
    ),
    Option(
        "assign",
        'JSON {"topic":{"broker":[queue, ...]}}',
        _parse_assign,
        None,
        "Read only these queues.",
        Where.READ,
    ),
    Option(
        "tags",
        "tags separated by ||",
        _parse_tags,
        None,
        "Read only messages with one of these tags; brokers filter. * means all messages.",
        Where.READ,
    ),
    Option(
        "sql",
        "an SQL92 condition",
        parse_name,
        None,
        "Read only messages whose properties match the condition, e.g. a > 5 AND region = 'eu'. Brokers "
        "filter; they need enablePropertyFilter=true.",
        Where.READ,
    ),
)

KEY_OPTIONS: Final = (
    Option(
        "messageKeys",
        "keys separated by commas",
        parse_names,
        None,
        "Read only messages with one of these keys, found in the brokers' key index without reading the "
        "topic. startingTimestamp and endingTimestamp bound their store times. Of a key, the index "
        "returns at most 64 messages per second and broker: if there may be more, the read fails. Every "
        "action asks again.",
        Where.BATCH,
    ),
    Option(
        "messageIds",
        "message ids separated by commas",
        parse_names,
        None,
        "Like messageKeys, for messages with one of these ids (column msgId), made by the sending clients. "
        "At most 32 messages with one id per second and broker.",
        Where.BATCH,
    ),
)

BOUND_OPTIONS: Final = (
    Option(
        "startingOffsets",
        _OFFSETS,
        parse_offset_spec,
        None,
        "Where to start, per queue: -2 in JSON is a queue's earliest offset, -1 its latest; "
        '"*":-2 stands for the queues not named at its level. group: the committed offsets of '
        "the consumer group in option group. By default batches start at earliest, streams at latest.",
        Where.READ,
    ),
    Option(
        "startingTimestamp",
        _TIME,
        parse_time,
        None,
        "Start at the first message stored then or later, in every queue. Overrides startingOffsets and "
        "startingOffsetsByTimestamp. A stream reads queues that appear after its first start from their "
        "first message.",
        Where.READ,
    ),
    Option(
        "startingOffsetsByTimestamp",
        _TIMES,
        parse_times,
        None,
        "As startingTimestamp, with a time per queue. Overrides startingOffsets.",
        Where.READ,
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        "error or latest",
        OneOf(("error", "latest")),
        "error",
        "What to do with a queue that has no message from the starting time on, also for startingTimestamp. "
        "A queue that never had a message starts at latest.",
        Where.READ,
    ),
    Option(
        "timeZone",
        "a time zone such as Europe/Berlin, UTC, +02:00 or GMT+2",
        parse_zone,
        None,
        "The zone of ISO 8601 times without one, e.g. spark.conf.get('spark.sql.session.timeZone'): Spark "
        "does not pass the session's zone to data sources. Zones mean the same as in the session, so PST is "
        "America/Los_Angeles; names are accepted in any case.",
        Where.READ,
    ),
    Option(
        "endingOffsets",
        _OFFSETS,
        parse_offset_spec,
        "latest",
        "Where to stop, per queue, not included; -1 in JSON is a queue's latest offset. A stream ends only "
        "if an ending option is given: it reads no message past the end, trigger AvailableNow stops there, "
        "and spark_connector.stop_at_end(query) stops a query with another trigger.",
        Where.READ,
    ),
    Option(
        "endingTimestamp",
        _TIME,
        parse_time,
        None,
        "Stop before the first message stored then or later, else at the latest offset; a stream runs "
        "until that time has passed. Overrides endingOffsets and endingOffsetsByTimestamp.",
        Where.READ,
    ),
    Option(
        "endingOffsetsByTimestamp",
        _TIMES,
        parse_times,
        None,
        "As endingTimestamp, with a time per queue. Overrides endingOffsets.",
        Where.READ,
    ),
    Option(
        "group",
        "a name",
        parse_name,
        None,
        "The consumer group whose offsets or members are used. Reading never joins it.",
        Where.READ,
    ),
    Option(
        "readGroup",
        "a name",
        parse_name,
        None,
        "The consumer group that the read's pulls name: brokers check its permission and count the messages "
        "for it. By default TOOLS_CONSUMER. The group must exist; its offsets are neither used nor changed.",
        Where.READ,
        "read_group",
    ),
    Option(
        "groupOffsetFallback",
        "earliest, latest or error",
        OneOf(("earliest", "latest", "error")),
        "earliest",
        "With offsets of a group: the offset of queues for which the group has none.",
        Where.READ,
    ),
    Option(
        "failOnDataLoss",
        "true or false",
        parse_flag,
        "true",
        "Whether to fail if messages to be read are lost: expired, their topic deleted or recreated, offsets "
        "in JSON not stored. With false, they are skipped, and a warning is logged.",
        Where.READ,
    ),
    Option(
        "planningTimeout",
        DURATION,
        parse_duration,
        "60s",
        "How long the driver waits for name servers and brokers that do not answer, when it looks up queues "
        "and offsets.",
        Where.READ,
    ),
    Option(
        "corruptBody",
        "fail, raw or null",
        OneOf(("fail", "raw", "null")),
        "fail",
        "What to do with a message whose body cannot be decompressed: fail names queue and offset; raw "
        "gives the bytes as they are stored; null gives a row whose body is null. With raw and null, a "
        "message that cannot be decoded at all is skipped, and a warning is logged.",
        Where.READ,
    ),
)

HOW_OPTIONS: Final = (
    Option(
        "columns",
        "column names separated by commas",
        parse_columns,
        None,
        "Read only these columns, in this order; the others are not decoded. A schema given to Spark with "
        "some of the source's columns does the same. Replaces includeProperties and offsetMsgId.",
        Where.READ,
    ),
    Option(
        "minPartitions",
        "a whole number",
        parse_count,
        None,
        "Split large queues until there are about this many Spark partitions. By default there is one per "
        "queue, but in a stream, queues with less than 1,000 messages in a micro-batch share one.",
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
        "Whether rows have the column properties. Reading is cheaper without it.",
        Where.READ,
    ),
    Option(
        "offsetMsgId",
        "true or false",
        parse_flag,
        "false",
        "Whether rows have a column offsetMsgId: the message id that contains the message's place of "
        "storage.",
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
        "The readers' client ids, as address@name. By default HOST@reader-0 and so on.",
        Where.READ,
    ),
    Option(
        "allocator",
        "a strategy's name, or module:Class of a module in RMQTOOLS_SPARK_PLUG_INS",
        parse_name,
        None,
        f"How queues are shared, by default AVG: {', '.join(name for name in STRATEGIES if name != 'PINS')}; "
        "with asMember also PINS: the pins of its group.",
        Where.READ,
    ),
    Option(
        "allocator.verifyHost",
        "off or warn",
        OneOf(("off", "warn")),
        "off",
        "Whether a task logs a warning if it runs on another address than its reader id names: Spark chooses "
        "where a task runs.",
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
        "Whether queues that no reader gets may stay unread. They are logged; with false they are an error. "
        "A stream skips their messages for ever.",
        Where.READ,
    ),
    Option(
        "asMember",
        "a client id, or an address",
        parse_name,
        None,
        "Read only the queues that this member of the live consumer group owns; with allocator, those it "
        "would own by that strategy. The read neither joins the group nor commits. For batch reads only.",
        Where.READ,
    ),
)

READ_OPTIONS: Final = (*WHAT_OPTIONS, *KEY_OPTIONS, *BOUND_OPTIONS, *HOW_OPTIONS, *ALLOCATION_OPTIONS)

STREAM_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "maxOffsetsPerTrigger",
        "a whole number",
        parse_count,
        None,
        "At most this many offsets per micro-batch, shared among queues in proportion to their waiting "
        "messages; at least one of each queue with messages.",
        Where.STREAM,
    ),
    Option(
        "maxBytesPerTrigger",
        "a whole number",
        parse_count,
        None,
        "About this many bytes of stored messages per micro-batch, estimated from a sample of waiting "
        "messages. At least one message of each queue with messages.",
        Where.STREAM,
    ),
    Option(
        "minOffsetsPerTrigger",
        "a whole number",
        parse_count,
        None,
        "Start no micro-batch with fewer offsets, until maxTriggerDelay is over. Trigger.AvailableNow "
        "ignores it.",
        Where.STREAM,
    ),
    Option(
        "maxTriggerDelay",
        DURATION,
        parse_duration,
        "15m",
        "With minOffsetsPerTrigger: how long after a micro-batch the next one starts with fewer offsets.",
        Where.STREAM,
    ),
    Option(
        "pollInterval",
        DURATION,
        parse_duration,
        "1s",
        "How often an idle query asks the brokers for new messages and new queues. processAllAvailable() may "
        "wait as long, and so may other sources of the same query while it is idle.",
        Where.STREAM,
    ),
    Option(
        "mustExist",
        "true or false",
        parse_flag,
        "true",
        "Whether the topics must exist when a new query starts. With false, the query waits for missing "
        "topics and reads them from their first message.",
        Where.STREAM,
    ),
    Option(
        "commitOffsetsToGroup",
        "true or false",
        parse_flag,
        "false",
        "Whether the query commits its offsets to the consumer group of option group, for tools that show "
        "lag. The group is created if missing; it must have no live members. A query with a checkpoint "
        "never reads these offsets; a new one does with startingOffsets=group.",
        Where.STREAM,
    ),
)
