"""The columns of messages that were read: the one list of them.

Derived from it: Arrow's and Spark's schemas, the option ``columns``, rows that are decoded one by one or
looked up by key, and which columns are left out when rows that were read are written. A new column needs a
line here, its values for messages that are decoded together (``rmqtools.arrow.decode``), and a row in the
table of docs/spark-jobs.md; ``make check`` says what is missing.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, NamedTuple

from rmqtools.model.message import MessageExt
from rmqtools.model.names import without_namespace
from rmqtools.model.queue import MessageQueue


class ColumnKind(Enum):
    """Types of columns. Times are in microseconds, UTC."""

    TEXT = auto()
    INT32 = auto()
    INT64 = auto()
    BINARY = auto()
    TIMESTAMP = auto()
    TEXT_MAP = auto()


class ReadColumn(NamedTuple):
    """One column.

    Attributes:
        name: its name in Arrow and Spark.
        kind: its type.
        value: its value for a message of a queue; a timestamp in milliseconds. An unreadable body raises.
        is_writable: rows may have it when they are written; others are set by brokers and clients.
        is_extra: it is read only where it is named.
    """

    name: str
    kind: ColumnKind
    value: Callable[[MessageExt, MessageQueue], object]
    is_writable: bool = False
    is_extra: bool = False


def topic_in(queue: MessageQueue, stored: str) -> str:
    """Return a message's topic as its reader names it: without the stored namespace.

    Source of the rule: DefaultMQPullConsumerImpl.resetTopic (Java client).
    """
    return queue.topic if without_namespace(stored) == queue.topic else stored


PROPERTIES: Final = "properties"
QUEUE_OFFSET: Final = "queueOffset"

READ_COLUMNS: Final = (
    ReadColumn("topic", ColumnKind.TEXT, lambda one, queue: topic_in(queue, one.topic), is_writable=True),
    ReadColumn("brokerName", ColumnKind.TEXT, lambda _, queue: queue.broker_name, is_writable=True),
    ReadColumn("queueId", ColumnKind.INT32, lambda one, _: one.queue_id, is_writable=True),
    ReadColumn(QUEUE_OFFSET, ColumnKind.INT64, lambda one, _: one.queue_offset),
    ReadColumn("body", ColumnKind.BINARY, lambda one, _: one.body, is_writable=True),
    ReadColumn("tags", ColumnKind.TEXT, lambda one, _: one.tags, is_writable=True),
    ReadColumn("keys", ColumnKind.TEXT, lambda one, _: one.keys, is_writable=True),
    ReadColumn(
        PROPERTIES, ColumnKind.TEXT_MAP, lambda one, _: list(one.properties.items()), is_writable=True
    ),
    ReadColumn("msgId", ColumnKind.TEXT, lambda one, _: one.msg_id),
    ReadColumn("bornTimestamp", ColumnKind.TIMESTAMP, lambda one, _: one.born_timestamp_ms),
    ReadColumn("storeTimestamp", ColumnKind.TIMESTAMP, lambda one, _: one.store_timestamp_ms),
    ReadColumn("bornHost", ColumnKind.TEXT, lambda one, _: one.born_host),
    ReadColumn("reconsumeTimes", ColumnKind.INT32, lambda one, _: one.reconsume_times),
    ReadColumn("sysFlag", ColumnKind.INT32, lambda one, _: one.sys_flag),
    ReadColumn("flag", ColumnKind.INT32, lambda one, _: one.flag),
    ReadColumn("offsetMsgId", ColumnKind.TEXT, lambda one, _: one.offset_msg_id, is_extra=True),
)
COLUMN_BY_NAME: Final = {column.name: column for column in READ_COLUMNS}
"""In the order of a read row; extra columns last."""
