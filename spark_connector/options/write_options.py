"""The options of writes."""

from typing import Final

from spark_connector.options.bad_row_policy import parse_bad_row_policy
from spark_connector.options.option import (
    DURATION,
    OneOf,
    Option,
    Where,
    parse_count,
    parse_duration,
    parse_flag,
    parse_name,
)


def _parse_stamp_id(text: str) -> str:
    if not (name := parse_name(text)).isprintable():
        raise ValueError("it has control characters")
    return name


WRITE_OPTIONS: Final = (
    Option(
        "queueSelector",
        "round-robin, hash, random, machine-room, or module:Class of a module in RMQTOOLS_SPARK_PLUG_INS",
        parse_name,
        "round-robin",
        "How a queue is chosen for rows that name none: hash and machine-room use shardingKey, else keys; "
        "random and a class of yours choose for rows with a shardingKey too. "
        "round-robin skips the broker that failed last and, unlike the Java client's default, slow ones: "
        "rocketmq.sendLatencyFaultEnable=false switches this off.",
        Where.WRITE,
    ),
    Option(
        "queueSelector.*",
        "as the selector's own settings",
        str,
        None,
        "A setting of the selector: queueSelector.room for machine-room, parameters of your own class.",
        Where.WRITE,
    ),
    Option(
        "delivery",
        "atLeastOnce or exactlyOnce",
        OneOf(("atleastonce", "exactlyonce")),
        "atLeastOnce",
        "New in 0.3.0. exactlyOnce: any consumer finds each row of a committed micro-batch or job "
        "once, and no row of a failed one. Rows go to a staging topic, and the driver copies them when "
        "Spark commits. Needs the option topic; a batch write needs stampId. Exceptions: a broker that "
        "fails over to a slave without the last rows, and a driver that is paused between checking its "
        "clock and writing.",
        Where.WRITE,
    ),
    Option(
        "stagingTopic",
        "a topic's name",
        parse_name,
        None,
        "With delivery=exactlyOnce: the topic for staged rows. It is made if it is missing, with another one "
        "named RMQTOOLS_DECISIONS- and its name. By default, the name in option topic with -staging.",
        Where.WRITE,
    ),
    Option(
        "longestOutage",
        DURATION,
        parse_duration,
        "24h",
        "With delivery=exactlyOnce: how long after a failure a write must still be able to finish. Brokers "
        "that keep messages for a shorter time (fileReservedTime) are refused.",
        Where.WRITE,
    ),
    Option(
        "onChangedRows",
        "fail or keepFirst",
        OneOf(("fail", "keepfirst")),
        "fail",
        "New in 0.4.0. With delivery=exactlyOnce: what to do if a micro-batch, or a job with its stampId, "
        "runs again and has other rows than those that are stored. fail: an error that names the ways out. "
        "keepFirst: the stored rows stay, and those of the last micro-batch that runs again are dropped with "
        "a warning; for jobs with other values at each run, such as uuid() and rand(). If rows were added "
        "meanwhile, they are lost.",
        Where.WRITE,
    ),
    Option(
        "stamp",
        "true or false",
        parse_flag,
        "false",
        "Put the write's id, batch, partition, row number and a hash of the row into each message's "
        "properties; spark_connector.drop_duplicates compares them.",
        Where.WRITE,
    ),
    Option(
        "idColumn",
        "a column's name",
        parse_name,
        None,
        "With stamp: hash this column, or the whole row if it is null. It may be a column that is not sent.",
        Where.WRITE,
    ),
    Option(
        "stampId",
        "a text without control characters",
        _parse_stamp_id,
        None,
        "With stamp or delivery=exactlyOnce: your own id of this write. Use the same id when the same job "
        "runs again, so that its rows get equal stamps. With idColumn, rows of any task are the same if "
        "stampId and the column's value are equal; without it, only deterministic input gets equal stamps. "
        "With stamp, query and micro-batch already form an id in foreachBatch; two writes there need an id "
        "each. With delivery=exactlyOnce, every batch write needs an id, also in foreachBatch; a job with an "
        "id that another job has used is refused if it has other rows. On Spark Connect, stamp requires "
        "stampId, and in foreachBatch the number of the micro-batch must be in it.",
        Where.WRITE,
    ),
    Option(
        "onBadRow",
        "fail, skip or topic:NAME",
        parse_bad_row_policy,
        "fail",
        "What to do with a row that cannot be a message, such as one with an empty body or an invalid "
        "property: fail the write; skip the row, count it and log the first ten of each task; or send it to "
        "topic NAME with the reason in property SPARK_BAD_ROW.",
        Where.WRITE,
    ),
    Option(
        "createTopic",
        "true or false",
        parse_flag,
        "true",
        "Whether brokers may create a missing topic (they do with autoCreateTopicEnable=true). false refuses "
        "the write before a row is sent.",
        Where.WRITE,
    ),
    Option(
        "keepQueue",
        "true or false",
        parse_flag,
        "false",
        "For rows that were read (their frame has a column queueOffset): whether brokerName and queueId "
        "choose the queue, as they do for other rows. With false both columns are ignored. With true, a "
        "missing topic is refused before a task starts; a missing queue by the task that has rows for it.",
        Where.WRITE,
    ),
    Option(
        "sendTimeoutMs",
        "a whole number of milliseconds",
        lambda text: str(parse_count(text) / 1000),
        None,
        "How long a row may take to be stored, all attempts together; the client's default is 3 seconds.",
        Where.WRITE,
        "send_timeout",
    ),
    Option(
        "batchBytes",
        "a whole number",
        lambda text: str(parse_count(text)),
        None,
        "At most this many bytes of rows share a request. A larger row is sent alone, and compressed. By "
        "default 512 KiB; lower it for brokers with a smaller maxMessageSize.",
        Where.WRITE,
        "max_batch_bytes",
    ),
)
