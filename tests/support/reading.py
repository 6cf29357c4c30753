"""Reads the stored messages of a topic, for tests of writers."""

from collections.abc import Callable, Iterable
from functools import partial

from rmqtools import Admin, Client, MessageQueue, Producer, SendResult
from rmqtools.model.message import MessageExt
from rmqtools.testing import Drain
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE


def await_readable(admin: Admin, results: Iterable[SendResult]) -> None:
    """Wait until the queues show the acknowledged messages."""
    ends: dict[MessageQueue, int] = {}
    for result in results:
        ends[result.queue] = max(ends.get(result.queue, 0), result.queue_offset + 1)
    admin.await_readable(ends, timeout=PATIENCE)


def stored(admin: Admin, topic: str) -> int:
    """Number of messages that the queues of a topic show now: acknowledged ones may come later."""
    return sum(admin.max_offset(queue) for queue in admin.fetch_subscribe_queues(topic))


def await_stored(admin: Admin, topic: str, count: int) -> int:
    """Wait until the queues of a topic show ``count`` messages; return how many they show."""
    wait_until(lambda: stored(admin, topic) >= count)
    return stored(admin, topic)


def await_writable(admin: Admin, producer: Producer, queues: Iterable[MessageQueue]) -> None:
    """Wait until the producer may send to each queue: brokers that come back join its route later."""
    for queue in queues:
        wait_until(partial(_is_in, admin.fetch_publish_queues, queue))
        wait_until(partial(_is_in, producer.fetch_publish_queues, queue))


def _is_in(fetch: Callable[[str], list[MessageQueue]], queue: MessageQueue) -> bool:
    return queue in fetch(queue.topic)


def read_queues(client: Client, admin: Admin, topic: str) -> dict[MessageQueue, list[MessageExt]]:
    """Return every message of a topic by queue."""
    found: dict[MessageQueue, list[MessageExt]] = {queue: [] for queue in admin.fetch_subscribe_queues(topic)}
    for message in read_all(client, admin, topic):
        found[MessageQueue(topic, message.broker_name, message.queue_id)].append(message)
    return found


def read_all(client: Client, admin: Admin, topic: str) -> list[MessageExt]:
    """Return every message of a topic, queue by queue."""
    return Drain(client, admin)(topic)


def await_messages(
    client: Client, admin: Admin, topic: str, count: int, *, timeout: float = PATIENCE
) -> list[MessageExt]:
    """Return every message of a topic, as soon as it holds ``count``."""
    return Drain(client, admin)(topic, count, timeout=timeout)
