"""Options of streaming reads alone; those shared with batches are in :mod:`spark_connector.options.read`."""

from typing import Final

from spark_connector.options.option import DURATION, Option, Where, parse_count, parse_duration, parse_flag

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
        "How often an idle query asks the brokers for new messages and new queues.",
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
        "lag. The group is created if missing; it must have no live members. The query never reads these "
        "offsets.",
        Where.STREAM,
    ),
)
