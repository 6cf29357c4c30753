"""Handles rows that cannot be sent (option ``onBadRow``): skips them, or sends them to another topic.

part of a diverted message    content
body                          that of the row; ``-`` if it has none; only its first MiB if it is too large
property SPARK_BAD_ROW        the reason
property SPARK_BAD_ROW_TOPIC  the topic that the row names, if the topic can be a property
tags, keys, properties        those of the row, if all of them can be sent; else left out
stamps                        those of the row, if the write has stamps
"""

from collections.abc import Sequence
from typing import Final

from rmqtools import Message, Producer
from rmqtools.arrow import BadRow
from rmqtools.log import get_logger
from spark_connector.options.bad_row_policy import BadRowPolicy

log = get_logger(__name__)

REASON: Final = "SPARK_BAD_ROW"
TOPIC: Final = "SPARK_BAD_ROW_TOPIC"
_LOGGED: Final = 10  # of a task
_LARGEST_BODY: Final = 1024 * 1024
_REASON_CHARACTERS: Final = 1000


class BadRows:
    """The bad rows of one task; calls take them from ``send_batches``.

    Attributes:
        count: how many there were.
    """

    def __init__(self, policy: BadRowPolicy, producer: Producer, partition: int) -> None:
        self._topic = policy.topic
        self._producer = producer
        self._partition = partition
        self.count = 0

    def __call__(self, rows: Sequence[BadRow]) -> None:
        """Count rows, log the first ten of the task, and send them to the topic if there is one.

        Raises:
            SendError: a row could not be stored in the topic.
        """
        for bad in rows[: max(_LOGGED - self.count, 0)]:
            log.warning("bad_row", partition=self._partition, reason=bad.reason, diverted_to=self._topic)
        self.count += len(rows)
        if self._topic is not None:
            self._producer.send_many([self._diverted(bad, self._topic) for bad in rows])

    def _diverted(self, bad: BadRow, topic: str) -> Message:
        reason = "".join(letter if letter.isprintable() else "?" for letter in bad.reason)
        most = min(_LARGEST_BODY, self._producer.config.max_message_bytes)
        given = {REASON: reason[:_REASON_CHARACTERS]}
        return bad.as_message(topic, given, topic_property=TOPIC, max_body_bytes=most)
