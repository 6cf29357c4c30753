"""Options and columns of Spark's Kafka source, and options of Spark's own calls: what to write here; pure.

One table for errors about unknown names and for docs/kafka.md.
Source of the names: KafkaSourceProvider (Spark).
"""

from collections.abc import Mapping
from typing import Final

KAFKA_OPTIONS: Final[Mapping[str, str]] = {
    "kafka.bootstrap.servers": "nameServer, with the name servers' port 9876",
    "subscribe": "topic, or topics for several",
    "subscribePattern": "topicPattern",
    "kafka.group.id": "readGroup",
    "groupIdPrefix": "readGroup",
    "includeHeaders": "includeProperties, which is true by default",
    "kafkaConsumer.pollTimeoutMs": "rocketmq.requestTimeout, in seconds",
    "fetchOffset.numRetries": "planningTimeout",
    "fetchOffset.retryIntervalMs": "planningTimeout",
    "kafka.security.protocol": "tls.enable=true for TLS",
    "kafka.ssl.truststore.location": "tls.caFile, in PEM",
    "kafka.ssl.keystore.location": "tls.certFile and tls.keyFile, in PEM",
    "kafka.ssl.key.password": "tls.keyPassword",
    "kafka.sasl.mechanism": "accessKey and secretKey, or credentialsFile",
    "kafka.sasl.jaas.config": "accessKey and secretKey, or credentialsFile",
    "kafka.transactional.id": "delivery=exactlyOnce",
    "kafka.enable.idempotence": "delivery=exactlyOnce",
    "kafka.batch.size": "batchBytes",
    "kafka.max.request.size": "rocketmq.maxMessageBytes",
    "kafka.compression.type": "rocketmq.compression",
    "kafka.delivery.timeout.ms": "sendTimeoutMs",
    "kafka.request.timeout.ms": "rocketmq.requestTimeout, in seconds",
    "kafka.linger.ms": "nothing: a task has all its rows, and waits for none",
    "kafka.acks": "nothing: brokers decide whether they wait for disk and slaves (flushDiskType, brokerRole)",
    "kafka.isolation.level": "nothing: messages in transactions are readable after their commit only",
}
"""By Kafka's option: what to write here."""

KAFKA_COLUMNS: Final[Mapping[str, str]] = {
    "key": "keys",
    "value": "body",
    "partition": "queueId",
    "offset": "queueOffset",
    "timestamp": "storeTimestamp",
    "headers": "properties",
}
"""By Kafka's column: ours."""

_ASYNCHRONOUS: Final = "Spark tracks progress asynchronously for its Kafka sink only: leave it out"
SPARK_OPTIONS: Final[Mapping[str, str]] = {
    "asyncProgressTrackingEnabled": _ASYNCHRONOUS,
    "asyncProgressTrackingCheckpointIntervalMs": _ASYNCHRONOUS,
    "maxFilesPerTrigger": "it is for files: give maxOffsetsPerTrigger or maxBytesPerTrigger",
    "trigger": "it is no option: call .trigger(...)",
    "processingTime": "it is no option: call .trigger(processingTime=...)",
    "availableNow": "it is no option: call .trigger(availableNow=True)",
    "outputMode": "it is no option: call .outputMode(...)",
    "mode": "it is no option: call .mode('append')",
    "schema": "it is no option: call .schema(...)",
}
"""By option of Spark: why it is refused, and what to do."""

_KAFKA_CLIENT: Final = "kafka."
_BY_LOWER: Final = {
    **{name.lower(): f"Kafka's, here: {ours}" for name, ours in KAFKA_OPTIONS.items()},
    **{name.lower(): why for name, why in SPARK_OPTIONS.items()},
}


def option_hint(name: str) -> str | None:
    """Return what to do about an option of Kafka's source or of Spark; None: it is none."""
    lower = name.lower()
    if lower not in _BY_LOWER and lower.startswith(_KAFKA_CLIENT):
        return "a setting of Kafka's client; those of this client are rocketmq.*, see OPTIONS.md"
    return _BY_LOWER.get(lower)


def describe_kafka_names() -> str:
    """Return the names as tables of Markdown, for docs/kafka.md."""
    tables = (("option", KAFKA_OPTIONS), ("column", KAFKA_COLUMNS))
    return "\n".join(
        f"| Kafka's {kind} | here |\n|---|---|\n"
        + "".join(f"| `{name}` | {ours} |\n" for name, ours in table.items())
        for kind, table in tables
    )
