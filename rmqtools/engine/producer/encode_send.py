"""Encodes messages into requests: one message per request, or many in a batch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rmqtools.compiled import twins
from rmqtools.config import ProducerConfig
from rmqtools.model.codes import RequestCode
from rmqtools.model.encoded_batch import MOST_IDS, EncodedBatch, MsgIds
from rmqtools.model.frozen import maker_of
from rmqtools.model.message import Message, body_length
from rmqtools.model.message_const import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_KEYS,
    PROPERTY_PRIORITY,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_TIMER_DELAY_MS,
    PROPERTY_TIMER_DELIVER_MS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
)
from rmqtools.model.names import with_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.model.reply import ReplyMessage
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.policy.endpoint.features import DELAYS, PRIORITY, REQUEST_REPLY, Feature
from rmqtools.policy.route_update import DEFAULT_TOPIC
from rmqtools.protocol.headers.send import SendMessageRequestHeaderV2
from rmqtools.protocol.messages.batch import FIXED_BYTES, encode_batch
from rmqtools.protocol.messages.compression import CompressionType, compress
from rmqtools.protocol.messages.properties import format_properties
from rmqtools.protocol.wire.command import request
from rmqtools.protocol.wire.template import Request, RequestTemplate, filled_request

DEFAULT_TOPIC_QUEUE_NUMS = 4  # upstream defaultTopicQueueNums
_WAIT_OK = format_properties({PROPERTY_WAIT_STORE_MSG_OK: "true"})
_UNIQUE_ID = PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
_LONGEST_ID = 56  # characters, of a host with an IPv6 address
FRAMING_BYTES = FIXED_BYTES + len(f"{_UNIQUE_ID}12{_WAIT_OK}") + _LONGEST_ID
_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """The content of one request, for any queue."""

    topic: str
    wire_topic: str
    group: str
    msg_ids: Sequence[str]
    body: bytes | memoryview
    properties_text: str
    born_timestamp_ms: int
    sys_flag: int
    flag: int
    code: RequestCode
    needs: Feature | None  # what not every broker has
    may_be_inner: bool  # a batch that a queue of type BatchCQ may store as one message
    is_inner: bool  # the queue is of this type

    def request_to(
        self, queue: MessageQueue, broker_name: str, *, oneway: bool = False, creates_topic: bool = True
    ) -> Request:
        """Return the request that stores the content in ``queue``.

        ``creates_topic``: whether a broker that does not have the topic may make it like the default topic.
        """
        default = DEFAULT_TOPIC if creates_topic else self.wire_topic
        template = _template(self.code, self.group, self.wire_topic, broker_name, oneway, default)
        numbers = (queue.queue_id, self.sys_flag, self.born_timestamp_ms, self.flag)
        text = self.properties_text
        if self.is_inner:
            text = f"{_UNIQUE_ID}\x01{self.msg_ids[0]}\x02{text}"
        return filled_request(template, numbers, text, self.body)


_outgoing = maker_of(Outgoing)


@lru_cache(maxsize=1024)
def _template(
    code: RequestCode, group: str, wire_topic: str, broker_name: str, oneway: bool, default_topic: str
) -> RequestTemplate:
    """Template of all requests to a topic's queues on one broker."""
    header = SendMessageRequestHeaderV2(
        producer_group=group,
        topic=wire_topic,
        default_topic=default_topic,
        default_topic_queue_nums=DEFAULT_TOPIC_QUEUE_NUMS,
        queue_id=0,
        sys_flag=0,
        born_timestamp=0,
        flag=0,
        properties="",
        reconsume_times=0,
        unit_mode=False,
        batch=code is RequestCode.SEND_BATCH_MESSAGE,
        broker_name=broker_name,
    )
    return RequestTemplate(request(header, code=code, oneway=oneway), ("e", "f", "g", "h"), text="i")


class Encoder:
    """Encodes messages that passed ``check_message`` into :class:`Outgoing`, each with a unique id."""

    def __init__(
        self,
        config: ProducerConfig,
        next_id: Callable[[int], str],
        now_ms: Callable[[], int],
        *,
        reserve_ids: Callable[[int, int], MsgIds] | None = None,
    ) -> None:
        """``reserve_ids(count, now_ms)``: reserves ids for up to 65536 messages at once; None: one by one."""
        self._config = config
        self._namespace = config.namespace
        self._compress_over_bytes = config.compress_over_bytes
        self._group = with_namespace(config.group, config.namespace)
        self._next_id = next_id
        self._now_ms = now_ms
        self._reserve_ids = reserve_ids

    def encode(
        self,
        message: Message,
        *,
        system_properties: Mapping[str, str] = _NOTHING,
        sys_flag: int = 0,
        code: RequestCode = RequestCode.SEND_MESSAGE_V2,
    ) -> Outgoing:
        """Encode one message; a body of ``compress_over_bytes`` or more is compressed.

        ``system_properties`` are reserved properties (of transactions, requests). A reply has its own
        properties and code.
        """
        now = self._now_ms()
        topic = message.topic
        body = bytes(message.body)
        needs = None
        msg_id = self._next_id(now)
        ending = f"{_UNIQUE_ID}\x01{msg_id}\x02{_WAIT_OK}"
        text = twins.property_text(message, ending) if twins is not None and not system_properties else None
        if text is None:
            text = property_text(message)
            if type(message) is not Message or message.is_alone:
                needs = _needs(message)
                text += _properties_of_its_kind(message)
                if isinstance(message, ReplyMessage):
                    system_properties, code = message.system_properties, RequestCode.SEND_REPLY_MESSAGE_V2
            if system_properties:
                text += format_properties(system_properties)
            text += ending
        if len(body) >= self._compress_over_bytes:
            body, compressed = self._compressed(body)
            sys_flag |= compressed
        return _outgoing(
            topic=topic,
            wire_topic=with_namespace(topic, self._namespace),
            group=self._group,
            msg_ids=(msg_id,),
            body=body,
            properties_text=text,
            born_timestamp_ms=now,
            sys_flag=sys_flag,
            flag=message.flag,
            code=code,
            needs=needs,
            may_be_inner=False,
            is_inner=False,
        )

    def encode_batch(self, messages: Sequence[Message], texts: Sequence[str] | None = None) -> Outgoing:
        """Encode messages of one topic into one batch; bodies in a batch are not compressed.

        ``texts``: what :func:`property_text` gives for each, if it is known.
        """
        now, topic = self._now_ms(), messages[0].topic
        msg_ids = self._ids(len(messages), now)
        body: bytes | None = None
        if twins is not None and isinstance(msg_ids, MsgIds):
            before, after = f"{_UNIQUE_ID}\x01{msg_ids.prefix}", f"\x02{_WAIT_OK}"
            body = twins.encode_plain([*messages], before, msg_ids.first, after)
        if body is None:
            texts = [property_text(message) for message in messages] if texts is None else texts
            body = encode_batch(
                (message.flag, message.body, f"{text}{_UNIQUE_ID}\x01{msg_id}\x02{_WAIT_OK}".encode())
                for message, text, msg_id in zip(messages, texts, msg_ids, strict=True)
            )
        return self._batch(topic, msg_ids, body, now)

    def _ids(self, count: int, now_ms: int) -> Sequence[str]:
        if twins is not None and self._reserve_ids is not None and count <= MOST_IDS:
            return self._reserve_ids(count, now_ms)
        return [self._next_id(now_ms) for _ in range(count)]

    def complete(self, batch: EncodedBatch) -> Outgoing:
        """Encode the messages of a batch that are not encoded yet, and add topic and properties."""
        if batch.message is not None:
            return self.encode(batch.message)
        body = memoryview(batch.body).cast("B")
        return self._batch(batch.topic, batch.msg_ids, body, self._now_ms(), batch.sys_flag)

    def _batch(
        self, topic: str, msg_ids: Sequence[str], body: bytes | memoryview, now_ms: int, sys_flag: int = 0
    ) -> Outgoing:
        return _outgoing(
            topic=topic,
            wire_topic=with_namespace(topic, self._namespace),
            group=self._group,
            msg_ids=msg_ids,
            body=body,
            properties_text=_WAIT_OK,
            born_timestamp_ms=now_ms,
            sys_flag=sys_flag,
            flag=0,
            code=RequestCode.SEND_BATCH_MESSAGE,
            needs=None,
            may_be_inner=self._config.inner_batches,
            is_inner=False,
        )

    def _compressed(self, body: bytes) -> tuple[bytes, int]:
        if self._config.compression == "none":
            return body, 0
        kind = CompressionType[self._config.compression.upper()]
        return compress(kind, body), MessageSysFlag.COMPRESSED_FLAG | kind.sys_flag


def _properties_of_its_kind(message: Message) -> str:
    """Return the properties added for a delay or a priority. Users cannot set these names."""
    text = format_properties(_delay_properties(message)) if message.is_delayed else ""
    if message.priority is not None:
        text += format_properties({PROPERTY_PRIORITY: str(message.priority)})
    return text


def property_text(message: Message) -> str:
    """Return the user's properties as stored, without id, delay, priority and WAIT."""
    text = format_properties(message.properties) if message.properties else ""
    if message.keys and (keys := message.keys_text) is not None:
        text += f"{PROPERTY_KEYS}\x01{keys}\x02"
    if message.tags:
        text += f"{PROPERTY_TAGS}\x01{message.tags}\x02"
    if message.sharding_key:
        text += f"{PROPERTY_SHARDING_KEY}\x01{message.sharding_key}\x02"
    return text


def measured(
    messages: Sequence[Message], sizes: list[int] | None = None
) -> tuple[Sequence[str] | None, list[int]]:
    """Return the text of each message, as :func:`property_text`, and its bytes in a batch, or a few more.

    None instead of the texts: they are not needed, and no message has a delay or a priority.
    ``sizes``: as of ``check_messages``, with ``FRAMING_BYTES``.
    """
    if sizes is not None:
        return None, sizes
    texts = [property_text(message) for message in messages]
    return texts, batch_bytes(messages, texts)


def batch_bytes(messages: Sequence[Message], texts: Sequence[str]) -> list[int]:
    """Return the bytes that each message takes in a batch, or a few more.

    ``texts``: what :func:`property_text` gives for each.
    """
    bodies = [message.body for message in messages]
    lengths = map(len if {*map(type, bodies)} == {bytes} else body_length, bodies)
    text_bytes = map(len, texts if "".join(texts).isascii() else [text.encode() for text in texts])
    return [FRAMING_BYTES + body + text for body, text in zip(lengths, text_bytes, strict=True)]


def content_bytes(message: Message) -> int:
    """Return the bytes of a message's body and texts: a batch takes ``FRAMING_BYTES`` more, or a few less."""
    return body_length(message.body) + len(property_text(message).encode())


def _needs(message: Message) -> Feature | None:
    """Return the feature of brokers without which the message would be stored as an ordinary one."""
    if message.delay is not None or message.deliver_at_ms is not None:
        return DELAYS
    if message.priority is not None:
        return PRIORITY
    return REQUEST_REPLY if isinstance(message, ReplyMessage) else None


def _delay_properties(message: Message) -> dict[str, str]:
    """Return the property that delays a message; ``check_message`` has checked that there is only one."""
    if message.delay_level:
        return {PROPERTY_DELAY_TIME_LEVEL: str(message.delay_level)}
    if message.delay is not None:
        return {PROPERTY_TIMER_DELAY_MS: str(round(message.delay * 1000))}
    return {PROPERTY_TIMER_DELIVER_MS: str(message.deliver_at_ms)}
