"""From acknowledged to readable: a read that starts after ``save()`` returned finds what was saved.

A broker acknowledges a message when it is in the commit log, and enters it into its queue a moment later; a
queue's latest offset, where a batch read ends, is that of the queue. On a busy machine the moment was seen
to be thousands of messages long.
"""

from collections.abc import Mapping
from typing import Final

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_exponential

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.errors import RocketMQError
from spark_connector.clients import client_of

_TIMEOUT: Final = 30.0  # seconds; a broker further behind has troubles of its own


def wait_until_readable(
    config: ClientConfig, end_offsets: Mapping[MessageQueue, int], *, timeout: float = _TIMEOUT
) -> list[MessageQueue]:
    """Wait until every queue reaches its offset.

    Returns:
        The queues that did not within ``timeout`` seconds, or whose broker did not say: their messages are
        stored all the same.
    """
    if not end_offsets:
        return []
    behind = set(end_offsets)
    retrying = Retrying(
        retry=retry_if_result(bool),
        stop=stop_after_delay(timeout),
        wait=wait_exponential(multiplier=0.01, max=0.5),
    )
    try:
        admin = Admin(client_of(config))
        retrying(_drop_reached, admin, end_offsets, behind)
    except (RetryError, RocketMQError):
        return sorted(behind)
    return []


def _drop_reached(
    admin: Admin, end_offsets: Mapping[MessageQueue, int], behind: set[MessageQueue]
) -> set[MessageQueue]:
    behind -= {queue for queue in behind if admin.max_offset(queue) >= end_offsets[queue]}
    return behind
