"""The messages of a pop (5.x) as their consumer sees them.

The broker answers stored messages and a header of three texts about all of them; the client gives each
message its own text, POP_CK, to be acknowledged with.
Source of the rule: MQClientAPIImpl.processPopResponse (Java client). Left out: light message queues (LMQ).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rmqtools.errors import ProtocolError
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_FIRST_POP_TIME, PROPERTY_POP_CK
from rmqtools.protocol.headers_pull import PopMessageResponseHeader
from rmqtools.protocol.pop_extra_info import (
    PopExtraInfo,
    format_extra_info,
    offset_key,
    parse_extra_info,
    parse_msg_offset_info,
    parse_offset_info,
    queue_key,
    topic_type,
)


def with_extra_info(
    messages: Sequence[MessageExt],
    header: PopMessageResponseHeader,
    *,
    topic: str,
    broker_name: str,
    order: bool,
) -> list[MessageExt]:
    """The messages of a pop as their consumer sees them: with POP_CK, first pop time, topic and broker.

    Args:
        messages: all that the answer holds, in its order.
        header: of the answer.
        topic: what was popped, as the user knows it; messages of its retry topic get it too.
        broker_name: who answered.
        order: whether it was popped in order: messages then count their tries.

    Raises:
        ProtocolError: the header says nothing, or not enough, of a message's queue.
    """
    popped = _Popped(messages, header, broker_name)
    return [popped.complete(message, topic, order=order) for message in messages]


class _Popped:
    """The tables of one answer."""

    def __init__(
        self, messages: Sequence[MessageExt], header: PopMessageResponseHeader, broker_name: str
    ) -> None:
        self._header = header
        self._broker_name = broker_name
        self._starts = parse_offset_info(header.start_offset_info)
        self._offsets = parse_msg_offset_info(header.msg_offset_info)
        self._counts = parse_offset_info(header.order_count_info)
        self._places = _offsets_by_queue(messages)
        self._first: dict[tuple[str, int], int] = {}  # without starts: the first message is the check point
        for message in messages:
            self._first.setdefault((message.topic, message.queue_id), message.queue_offset)

    def complete(self, message: MessageExt, topic: str, *, order: bool) -> MessageExt:
        known = message.properties.get(PROPERTY_POP_CK)
        times = message.reconsume_times
        if not self._starts:
            known = self._text(message, self._first[message.topic, message.queue_id], message.queue_offset)
        elif known is None:
            known = self._text(message, *self._start_and_offset(message))
            times = (self._count(message) if order else 0) or times
        properties = {PROPERTY_FIRST_POP_TIME: str(self._header.pop_time), **message.properties}
        return replace(
            message,
            topic=topic,
            broker_name=self._broker_name,
            reconsume_times=times,
            properties=properties | {PROPERTY_POP_CK: known},
        )

    def _text(self, message: MessageExt, start_offset: int, queue_offset: int) -> str:
        header = self._header
        return format_extra_info(
            PopExtraInfo(
                start_offset=start_offset,
                pop_time=header.pop_time,
                invisible_time=header.invisible_time,
                revive_qid=header.revive_qid,
                topic_type=topic_type(message.topic),
                broker_name=self._broker_name,
                queue_id=message.queue_id,
                queue_offset=queue_offset,
            )
        )

    def _start_and_offset(self, message: MessageExt) -> tuple[int, int]:
        key = queue_key(topic_type(message.topic), message.queue_id)
        place = self._places[key].index(message.queue_offset)
        try:
            return self._starts[key], self._offsets[key][place]
        except (KeyError, IndexError):
            raise ProtocolError(
                f"answer to a pop: {self._header.start_offset_info!r:.200} and "
                f"{self._header.msg_offset_info!r:.200} lack message {place} of queue {key}"
            ) from None

    def _count(self, message: MessageExt) -> int:
        type_, queue_id = topic_type(message.topic), message.queue_id
        of_queue = self._counts.get(queue_key(type_, queue_id), 0)
        return max(0, self._counts.get(offset_key(type_, queue_id, message.queue_offset), of_queue))


def _offsets_by_queue(messages: Sequence[MessageExt]) -> Mapping[str, list[int]]:
    """Brokers may show a retry topic's message under the topic itself; its POP_CK then tells."""
    found: dict[str, list[int]] = defaultdict(list)
    for message in messages:
        known = message.properties.get(PROPERTY_POP_CK)
        type_ = topic_type(message.topic) if known is None else parse_extra_info(known).topic_type
        found[queue_key(type_, message.queue_id)].append(message.queue_offset)
    return found
