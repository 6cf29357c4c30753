"""Names of topics and queues: wire names (with the namespace, for brokers) and plain names (for users)."""

from dataclasses import replace

from rmqtools.model.message import MessageExt
from rmqtools.model.names import with_namespace, without_this_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.redelivery import original_topic


class TopicNames:
    """The names of one member's topics. ``group`` is the wire name."""

    def __init__(self, group: str, namespace: str | None) -> None:
        self._group = group
        self._namespace = namespace
        self._popped: dict[str, str] = {}  # retry topic of a popped topic -> that topic, plain

    def wire_topic(self, topic: str) -> str:
        """Return the wire name of a topic."""
        return with_namespace(topic, self._namespace)

    def plain_topic(self, topic: str) -> str:
        """Return the plain name of a topic."""
        return without_this_namespace(topic, self._namespace)

    def wire_queue(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue with its wire name."""
        return replace(queue, topic=self.wire_topic(queue.topic)) if self._namespace else queue

    def plain_queue(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue with its plain name."""
        return queue.without_namespace(self._namespace)

    def was_popped(self, retry_topic: str, topic: str) -> None:
        """Note that this retry topic holds messages of ``topic``, which was popped before (wire names)."""
        self._popped[retry_topic] = self.plain_topic(topic)

    def plain_message(self, message: MessageExt) -> MessageExt:
        """Return a message with its plain topic; for one from a retry topic, the topic it was sent to."""
        topic = self._popped.get(message.topic) or original_topic(message, self._group)
        topic = self.plain_topic(topic)
        return message if topic == message.topic else message.with_topic(topic)
