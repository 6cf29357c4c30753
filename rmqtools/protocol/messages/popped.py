"""Completes popped messages (5.x) with the data that acknowledging needs.

A broker's answer has the stored messages and a header with three texts about all of them. From these the
client makes a text for each message, POP_CK, which acknowledges it.
Source of the rule: MQClientAPIImpl.processPopResponse (Java client). Left out: light message queues (LMQ).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from rmqtools.errors import ProtocolError
from rmqtools.model.message import (
    Filler,
    MessageExt,
    Undecoded,
    fillers_of,
    receipt_of,
    receive_popped,
    undecoded_alike,
)
from rmqtools.model.message_const import PROPERTY_FIRST_POP_TIME, PROPERTY_POP_CK
from rmqtools.model.sys_flag import COMPRESSED_FLAG
from rmqtools.protocol.headers.pop_extra_info import (
    NORMAL_TOPIC,
    RETRY_TOPIC,
    RETRY_TOPIC_V2,
    PopExtraInfo,
    format_extra_info,
    offset_key,
    parse_extra_info,
    parse_msg_offset_info,
    parse_offset_info,
    queue_key,
    split_extra_info,
    topic_type,
)
from rmqtools.protocol.headers.pull import PopMessageResponseHeader
from rmqtools.protocol.messages.corrupt_message import corrupt_message
from rmqtools.protocol.messages.found import PORTION_BYTES, PORTION_MESSAGES, worked_bytes
from rmqtools.protocol.messages.inner_batch import INNER_BATCH, has_sys_flag, is_inner_batch, unwrap
from rmqtools.protocol.messages.stored import decompressed
from rmqtools.protocol.messages.stored_head import fill_popped, popped_fillers

_POP_CK = PROPERTY_POP_CK.encode()
_place_of, _queue_offset_of = attrgetter("topic", "queue_id"), attrgetter("queue_offset")


def with_extra_info(
    messages: Sequence[MessageExt],
    header: PopMessageResponseHeader,
    *,
    topic: str,
    broker_name: str,
    order: bool,
) -> list[MessageExt]:
    """Return the messages of a pop with POP_CK, first pop time, topic and broker.

    Args:
        messages: all messages of the answer, in its order.
        header: the answer's header.
        topic: the topic popped, as the user knows it; messages of its retry topic get it too.
        broker_name: the broker that answered.
        order: whether the pop was orderly; messages then count their attempts.

    Raises:
        ProtocolError: the header lacks data of a message's queue.
    """
    if (undecoded := undecoded_alike(messages)) is not None:
        fill_popped(messages, undecoded)
    popped = _Popped(messages, header, broker_name)
    found: list[MessageExt] = []
    for _, group in groupby(messages, key=_place_of):
        of_queue = [*group]
        parts = undecoded if len(of_queue) == len(messages) else undecoded_alike(of_queue)
        found += popped.complete(of_queue, parts, topic, order=order)
    return found


def receipt_parts(message: MessageExt) -> tuple[str, int] | None:
    """Return the parts of POP_CK before its queue offset, and this; None: it has no queue offset.

    Raises:
        KeyError: the message was not popped.
        ProtocolError: the queue offset is not a number.
    """
    return receipt_of(message) or split_extra_info(message.properties[PROPERTY_POP_CK])


def extra_info_of(message: MessageExt) -> PopExtraInfo:
    """Return the parts of POP_CK of a popped message.

    Raises:
        KeyError: it was not popped.
        ProtocolError: its text cannot be read.
    """
    if (parts := receipt_of(message)) is None:
        return parse_extra_info(message.properties[PROPERTY_POP_CK])
    head, queue_offset = parts
    return parse_extra_info(f"{head} {queue_offset}")


def broken_extra_infos(
    broken: Iterable[tuple[int, int]],
    messages: Sequence[MessageExt],
    header: PopMessageResponseHeader,
    *,
    broker_name: str,
) -> list[PopExtraInfo]:
    """Return what acknowledges popped messages that cannot be decoded, by the header's offsets.

    Left out is a message whose queue and offset are not in the header, or in it for several topics.

    Args:
        broken: queue id and queue offset of each.
        messages: the other messages of the answer.
        header: the answer's header.
        broker_name: the broker that answered.

    Raises:
        ProtocolError: the header cannot be read.
    """
    if not (places := list(broken)):
        return []
    popped = _Popped(messages, header, broker_name)
    found = (popped.missing(queue_id, queue_offset) for queue_id, queue_offset in places)
    return [info for info in found if info is not None]


class Portion(NamedTuple):
    """Some of the messages of an answer, and whether more of them follow."""

    messages: list[MessageExt]
    has_more: bool


def popped_portions(messages: Sequence[MessageExt], *, max_body_bytes: int) -> Iterator[Portion]:
    """Yield the same messages decompressed, in portions that take little memory and time; nearly always one.

    Those of stored batches come one by one, each with the POP_CK of its batch.
    """
    if len(messages) <= PORTION_MESSAGES and not has_sys_flag(messages, COMPRESSED_FLAG | INNER_BATCH):
        if messages:
            yield Portion([*messages], has_more=False)
        return
    found: list[MessageExt] = []
    room = PORTION_BYTES
    for number, message in enumerate(messages, 1):
        is_small = not message.sys_flag & (COMPRESSED_FLAG | INNER_BATCH)
        found += (message,) if is_small else _plain_messages(message, max_body_bytes)
        room -= 0 if is_small else worked_bytes(found[-1])
        if number < len(messages) and (room <= 0 or len(found) >= PORTION_MESSAGES):
            yield Portion(found, has_more=True)
            found, room = [], PORTION_BYTES
    if found:
        yield Portion(found, has_more=False)


def _plain_messages(message: MessageExt, max_body_bytes: int) -> list[MessageExt]:
    """Return a message with its body as sent, or those of a stored batch; an unreadable one as corrupt."""
    try:
        plain = decompressed(message, max_body_bytes)
        if not is_inner_batch(plain.sys_flag):
            return [plain]
        return [_with_pop_of(plain, inner) for inner in unwrap(plain)]
    except ProtocolError as error:
        return [corrupt_message(message.with_values(), error)]


def _with_pop_of(batch: MessageExt, inner: MessageExt) -> MessageExt:
    of_batch = {name: batch.properties[name] for name in (PROPERTY_FIRST_POP_TIME, PROPERTY_POP_CK)}
    return inner.with_values(properties={**inner.properties, **of_batch})


class _Queue(NamedTuple):
    """Common data of one queue's messages in an answer: all of POP_CK but the queue offset."""

    key: str
    head: str
    known: frozenset[int]
    """The offsets that the header has."""
    stored: Mapping[str, Filler]
    """The fillers of the queue's first message, before the answer's data was added."""
    popped: Mapping[str, Filler]
    """The same fillers with the answer's data: see :func:`popped_fillers`."""


class _Popped:
    """The tables of one answer."""

    def __init__(
        self, messages: Sequence[MessageExt], header: PopMessageResponseHeader, broker_name: str
    ) -> None:
        self._messages = messages
        self._header = header
        self._broker_name = broker_name
        self._pop_time = str(header.pop_time)
        self._starts = parse_offset_info(header.start_offset_info)
        self._offsets = parse_msg_offset_info(header.msg_offset_info)
        self._counts = parse_offset_info(header.order_count_info)
        self._queues: dict[tuple[str, int], _Queue] = {}

    def complete(
        self, messages: list[MessageExt], undecoded: Undecoded | None, topic: str, *, order: bool
    ) -> list[MessageExt]:
        """Return messages of one queue with the answer's data: nearly always themselves, still undecoded."""
        if (
            undecoded is not None
            and self._starts
            and not (order and self._counts)
            and _POP_CK not in b"\0".join(undecoded.properties)
        ):
            queue = self._queue(messages[0])
            if queue.stored is undecoded.fillers and queue.known.issuperset(map(_queue_offset_of, messages)):
                receive_popped(messages, topic, self._broker_name, queue.popped)
                return messages
        return [self._completed_copy(message, topic, order=order) for message in messages]

    def _completed_copy(self, message: MessageExt, topic: str, *, order: bool) -> MessageExt:
        properties = message.properties
        known, times = properties.get(PROPERTY_POP_CK), message.reconsume_times
        if not self._starts:
            known = f"{self._queue(message).head} {message.queue_offset}"
        elif known is None:
            queue, offset = self._queue(message), message.queue_offset
            if offset not in queue.known:  # one may be left out: places may be wrong
                offset = self._offset_by_place(queue, offset)
            known = f"{queue.head} {offset}"
            times = (self._count(message) if order else 0) or times
        properties = {PROPERTY_FIRST_POP_TIME: self._pop_time, **properties, PROPERTY_POP_CK: known}
        return message.with_values(
            topic=topic, broker_name=self._broker_name, reconsume_times=times, properties=properties
        )

    def missing(self, queue_id: int, queue_offset: int) -> PopExtraInfo | None:
        """Return the data of a message that was not decoded; None: not known."""
        keys = {type_: queue_key(type_, queue_id) for type_ in (NORMAL_TOPIC, RETRY_TOPIC, RETRY_TOPIC_V2)}
        types = [
            type_
            for type_, key in keys.items()
            if key in self._starts
            and queue_offset in self._offsets.get(key, ())
            and queue_offset not in self._places.get(key, ())
        ]
        if len(types) != 1:
            return None
        start_offset = self._starts[keys[types[0]]]
        return self._info(types[0], queue_id, start_offset=start_offset, queue_offset=queue_offset)

    @cached_property
    def _places(self) -> Mapping[str, dict[int, int]]:
        return _places_by_queue(self._messages)

    @cached_property
    def _first(self) -> dict[tuple[str, int], int]:
        """By topic and queue id, the first message's offset: the check point where the header has none."""
        first: dict[tuple[str, int], int] = {}
        for message in self._messages:
            first.setdefault((message.topic, message.queue_id), message.queue_offset)
        return first

    def _queue(self, message: MessageExt) -> _Queue:
        """Return the queue of a message.

        Raises:
            ProtocolError: the header does not have it.
        """
        place = (message.topic, message.queue_id)
        found = self._queues.get(place)
        if found is None:
            type_ = topic_type(message.topic)
            key = queue_key(type_, message.queue_id)
            start = self._starts.get(key) if self._starts else self._first[place]
            if start is None:
                raise self._lacks(key, message.queue_offset)
            info = self._info(type_, message.queue_id, start_offset=start, queue_offset=None)
            head, known = format_extra_info(info), frozenset(self._offsets.get(key, ()))
            stored = fillers_of(message)
            popped = popped_fillers(stored, head, self._pop_time)
            found = self._queues[place] = _Queue(key, head, known, stored, popped)
        return found

    def _info(
        self, type_: str, queue_id: int, *, start_offset: int, queue_offset: int | None
    ) -> PopExtraInfo:
        return PopExtraInfo(
            start_offset=start_offset,
            pop_time=self._header.pop_time,
            invisible_time=self._header.invisible_time,
            revive_qid=self._header.revive_qid,
            topic_type=type_,
            broker_name=self._broker_name,
            queue_id=queue_id,
            queue_offset=queue_offset,
        )

    def _offset_by_place(self, queue: _Queue, queue_offset: int) -> int:
        """Return the offset that the header has at the place of a message among those of its queue."""
        try:
            return self._offsets[queue.key][self._places[queue.key][queue_offset]]
        except (KeyError, IndexError):
            raise self._lacks(queue.key, queue_offset) from None

    def _lacks(self, key: str, queue_offset: int) -> ProtocolError:
        place = self._places[key][queue_offset]
        return ProtocolError(
            f"answer to a pop: {self._header.start_offset_info!r:.200} and "
            f"{self._header.msg_offset_info!r:.200} lack message {place} of queue {key}"
        )

    def _count(self, message: MessageExt) -> int:
        type_, queue_id = topic_type(message.topic), message.queue_id
        of_queue = self._counts.get(queue_key(type_, queue_id), 0)
        return max(0, self._counts.get(offset_key(type_, queue_id, message.queue_offset), of_queue))


def _places_by_queue(messages: Sequence[MessageExt]) -> Mapping[str, dict[int, int]]:
    """By queue, the place of each queue offset among those of the queue.

    Brokers may return a retry topic's message under the topic itself; its POP_CK then shows it."""
    found: dict[str, dict[int, int]] = defaultdict(dict)
    counts: Counter[str] = Counter()
    for message in messages:
        known = message.properties.get(PROPERTY_POP_CK)
        type_ = topic_type(message.topic) if known is None else parse_extra_info(known).topic_type
        key = queue_key(type_, message.queue_id)
        found[key].setdefault(message.queue_offset, counts[key])
        counts[key] += 1
    return found
