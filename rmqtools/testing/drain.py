"""Reads the messages of a topic, for tests: by exact ranges, without a consumer group."""

import threading

from rmqtools import Admin, Client, MessageExt, MessageQueue, QueueRange
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import TopicNotFoundError

_PAUSE = 0.02  # seconds between checks of a real broker's queues


class Drain:
    """Returns the messages of topics, each of them once. What the fixture ``drain`` gives."""

    def __init__(self, client: Client, admin: Admin) -> None:
        self._client = client
        self._admin = admin
        self._next: dict[MessageQueue, int] = {}

    def __call__(self, topic: str, count: int = 0, *, timeout: float = 20.0) -> list[MessageExt]:
        """Return the messages of a topic that no earlier call has returned.

        Args:
            topic: its name.
            count: wait until there are this many; there may be more. Give it on a real cluster: a broker
                acknowledges a message a moment before it can be read. The topic itself may not be there yet
                then, as ``%DLQ%group`` before the group's first dead letter.
            timeout: seconds to wait for them.

        Returns:
            The messages by broker, queue and offset.

        Raises:
            AssertionError: there were fewer when the time was over; the text names those that came.
            TopicNotFoundError: there is no such topic; with ``count``, not when the time was over either.
        """
        before = dict(self._next)
        try:
            found = self._wait(topic, count, timeout)
        except BaseException:
            self._next = before  # what came is not returned: the next call has it
            raise
        return sorted(found, key=lambda one: (one.broker_name, one.queue_id, one.queue_offset))

    def _wait(self, topic: str, count: int, timeout: float) -> list[MessageExt]:
        deadline = SYSTEM_CLOCK.monotonic() + timeout
        found = self._new(topic, wait=bool(count))
        while len(found) < count:
            is_over = SYSTEM_CLOCK.monotonic() > deadline
            if not is_over:
                threading.Event().wait(_PAUSE)
            found += self._new(topic, wait=not is_over)  # at last, an unknown topic is the better reason
            if is_over and len(found) < count:
                bodies = [message.body[:40] for message in found[:10]]
                raise AssertionError(
                    f"topic {topic!r}: {len(found)} of {count} messages after {timeout} s: {bodies}"
                )
        return found

    def _new(self, topic: str, *, wait: bool) -> list[MessageExt]:
        """Return new messages; ``wait``: none if there is no such topic yet."""
        found: list[MessageExt] = []
        for queue in self._queues(topic, wait=wait):
            start = self._next.get(queue)
            start = self._admin.min_offset(queue) if start is None else start
            end = self._admin.max_offset(queue)
            for messages in self._client.read_messages(QueueRange(queue, start, end)) if start < end else ():
                found += messages
            self._next[queue] = max(start, end)
        return found

    def _queues(self, topic: str, *, wait: bool) -> list[MessageQueue]:
        try:
            return self._admin.fetch_subscribe_queues(topic)
        except TopicNotFoundError:
            if wait:
                return []
            raise
