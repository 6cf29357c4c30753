"""The options of writes."""

from typing import Final

from spark_connector.option import Option, Where, parse_count, parse_flag, parse_name

WRITE_OPTIONS: Final = (
    Option(
        "queueSelector",
        "round-robin, hash, random, machine-room or module:Class",
        parse_name,
        "round-robin",
        "Which queue a row goes to that names none: hash and machine-room by shardingKey, else keys. In turn "
        "means past the broker that failed last and, other than the Java client's default, past slow ones: "
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
        "stamp",
        "true or false",
        parse_flag,
        "false",
        "Put query, batch, partition, row number and a hash of the row into each message's properties; "
        "spark_connector.drop_duplicates compares them.",
        Where.WRITE,
    ),
    Option(
        "idColumn",
        "a column's name",
        parse_name,
        None,
        "With stamp: hash this column (the whole row where it is null); it may be one that is not sent.",
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
        "How many bytes of rows one request carries; the client's default is 256 KiB.",
        Where.WRITE,
        "max_batch_bytes",
    ),
)
