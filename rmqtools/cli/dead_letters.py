"""Dead letters as rows of a file, as messages to send again, and how far a replay is."""

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rmqtools import Message, MessageExt, MessageQueue, QueueRange
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.model.message_const import (
    PROPERTY_DLQ_ORIGIN_TOPIC,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_SHARDING_KEY,
    RESERVED_PROPERTIES,
)
from rmqtools.model.names import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX, without_this_namespace

_OURS = RESERVED_PROPERTIES | {PROPERTY_SHARDING_KEY}  # the sharding key is a field of the message


def as_row(message: MessageExt) -> dict[str, Any]:
    """A line of an export: everything that is stored, the body in base64."""
    return {
        "topic": message.topic,
        "brokerName": message.broker_name,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "originTopic": origin_topic(message),
        "msgId": message.msg_id,
        "offsetMsgId": message.offset_msg_id,
        "body": base64.b64encode(message.body).decode(),
        "tags": message.tags,
        "keys": message.keys,
        "properties": dict(message.properties),
        "flag": message.flag,
        "sysFlag": message.sys_flag,
        "bornTimestamp": message.born_timestamp_ms,
        "bornHost": message.born_host,
        "storeTimestamp": message.store_timestamp_ms,
        "storeHost": message.store_host,
        "reconsumeTimes": message.reconsume_times,
    }


def origin_topic(message: MessageExt) -> str | None:
    """Where a message was sent first; None where nobody wrote it down.

    Source of the rule: AbstractSendMessageProcessor.consumerSendMsgBack (broker) sets RETRY_TOPIC; popped
    messages have been in a retry topic of their own, which is not where they came from.
    """
    for name in (PROPERTY_RETRY_TOPIC, PROPERTY_DLQ_ORIGIN_TOPIC):
        topic = message.properties.get(name)
        if topic and not topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)):
            return topic
    return None


def replayed(message: MessageExt, to_topic: str | None, namespace: str | None) -> Message:
    """The message to send again: RocketMQ's own properties left out, they are made anew.

    Raises:
        RocketMQError: nobody wrote down where it came from, and no topic is given.
    """
    origin = to_topic or origin_topic(message)
    if origin is None:
        raise RocketMQError(
            f"message {message.msg_id} at offset {message.queue_offset} does not say which topic it came "
            "from: give --to-topic"
        )
    return Message(
        without_this_namespace(origin, namespace),
        message.body,
        tags=message.tags,
        keys=message.keys or (),
        properties={name: value for name, value in message.properties.items() if name not in _OURS},
        flag=message.flag,
        sharding_key=message.properties.get(PROPERTY_SHARDING_KEY),
    )


@dataclass(slots=True)
class Progress:
    """How far a replay of a topic is: per queue, the offset to go on from."""

    topic: str
    next_offsets: dict[str, int] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, topic: str) -> "Progress":
        """Read what :meth:`persist` wrote; an absent file is a replay that has not begun.

        Raises:
            ConfigError: no such file of ours, or one of another topic.
        """
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            progress = cls(
                given["topic"], {str(queue): int(offset) for queue, offset in given["next"].items()}
            )
        except FileNotFoundError:
            return cls(topic)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(
                f"{path} does not say how far a replay is: {error!r}: give another file"
            ) from error
        if progress.topic != topic:
            raise ConfigError(f"{path} is about topic {progress.topic!r}, not {topic!r}: give another file")
        return progress

    def rest_of(self, range_: QueueRange) -> QueueRange:
        """What of a range, all that its queue holds, is still to be sent.

        A queue that began again at offset 0 and has since grown past what is noted cannot be told from one
        that only grew: what it holds before the noted offset is passed over.

        Raises:
            ConfigError: the queue ends before what is noted: it is another one than was replayed.
        """
        noted = self._noted(range_.queue)
        if noted > range_.end:
            place = _key(range_.queue.broker_name, range_.queue.queue_id)
            raise ConfigError(
                f"queue {place} of {self.topic} ends at offset {range_.end}, before {noted}, where the "
                "replay is to go on: the topic was made anew; give another --progress file"
            )
        return range_.starting_at(max(noted, range_.begin))

    def count_expired(self, range_: QueueRange) -> int:
        """How many messages of a queue the broker has deleted since the last replay, before their turn."""
        noted = self._noted(range_.queue)
        return max(range_.begin - noted, 0) if noted else 0

    def note(self, message: MessageExt) -> None:
        """A message was sent."""
        self.next_offsets[_key(message.broker_name, message.queue_id)] = message.queue_offset + 1

    def persist(self, path: Path) -> None:
        """Write it in one step.

        Raises:
            RocketMQError: it cannot be written; the text holds what should have been.
        """
        text = json.dumps({"topic": self.topic, "next": self.next_offsets}, indent=1, sort_keys=True) + "\n"
        part = path.with_name(path.name + ".part")
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        except OSError as error:
            raise RocketMQError(f"{path} cannot be written: {error}; it should hold {text}") from error

    def _noted(self, queue: MessageQueue) -> int:
        return self.next_offsets.get(_key(queue.broker_name, queue.queue_id), 0)


def _key(broker_name: str, queue_id: int) -> str:
    return f"{broker_name}:{queue_id}"
