"""Decisions that several processes share: the first record of a key in a queue."""

from dataclasses import dataclass

DECISION_TOKEN = "RMQTOOLS_DECISION"
"""Property of a record: a random text by which its sender finds it again."""


@dataclass(frozen=True, slots=True)
class Decision:
    """First record of a key.

    Attributes:
        key: the key that is decided.
        record: the content of the first record.
        is_ours: whether the call that returned this has written the record.
        queue_offset: its offset in the queue.
        store_timestamp_ms: time of storing, by the clock of the broker; ms since 1970.
    """

    key: str
    record: bytes
    is_ours: bool
    queue_offset: int
    store_timestamp_ms: int
