"""Pops: messages are handed out, and hidden from their group until they are acknowledged or their time ends.

A message that is not acknowledged goes to the group's retry topic of its topic, which is popped together with
it. In order it stays where it is, and its queue is blocked meanwhile.
Source of the rules: PopMessageProcessor, AckMessageProcessor, ChangeInvisibleTimeProcessor,
ConsumerOrderInfoManager, NotificationProcessor (broker 5.5.0, without its key-value service).
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message_const import PROPERTY_FIRST_POP_TIME
from rmqtools.model.names import pop_retry_topic
from rmqtools.policy.assignment import POP_FROM_MAX
from rmqtools.protocol.headers.codec import decode_header, encode_header
from rmqtools.protocol.headers.pop_extra_info import NORMAL_TOPIC, RETRY_TOPIC, parse_extra_info
from rmqtools.protocol.headers.pull import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    NotificationRequestHeader,
    NotificationResponseHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)
from rmqtools.protocol.messages.batch_ack import parse_batch_ack_body
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing.fake.commit_log import Entry, QueueKey
from rmqtools.testing.fake.pulls import tag_codes
from rmqtools.testing.fake.server import Peer
from rmqtools.testing.fake.state import Handlers, State, refused, succeeded
from rmqtools.testing.fake.timers import Timer
from rmqtools.testing.fake.topics import TopicConfig

_MOST = 32
_IN_ORDER = 999  # KeyBuilder.POP_ORDER_REVIVE_QUEUE: the revive queue of pops in order


class _Place(NamedTuple):
    """A queue as one group sees it."""

    group: str
    topic: str
    queue_id: int


@dataclass(eq=False)
class _Hidden:
    """A message that was handed out."""

    entry: Entry | None  # None: there was none
    pop_time: int
    until: float
    timer: Timer | None = None
    counts: bool = True  # as a try, when it comes again
    is_left: bool = False  # its group's offset was reset since: it comes again, and holds no offset back


@dataclass(eq=False)
class _Order:
    """The last answer in order from one queue."""

    attempt_id: str | None
    hidden: dict[int, _Hidden]
    tries: dict[int, int] = field(default_factory=dict)


@dataclass(eq=False)
class _Held:
    """A pop, or a question for messages, that waits."""

    request: RemotingCommand
    peer: Peer
    header: PopMessageRequestHeader | NotificationRequestHeader
    timer: Timer | None = None


_ByPop = dict[tuple[int, int], _Hidden]  # by offset and time of the pop


class Pops:
    """Answers pops and what settles popped messages."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._next: dict[_Place, int] = {}
        self._hidden: defaultdict[_Place, _ByPop] = defaultdict(dict)
        self._orders: dict[_Place, _Order] = {}
        self._held: list[_Held] = []
        self.handlers: Handlers = {
            RequestCode.POP_MESSAGE: self._pop,
            RequestCode.ACK_MESSAGE: self._ack,
            RequestCode.BATCH_ACK_MESSAGE: self._batch_ack,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME: self._change,
            RequestCode.NOTIFICATION: self._notify,
        }

    def appended(self, key: QueueKey) -> None:
        """Answer held requests that the message now stored in this queue can answer."""
        for held in [*self._held]:
            topics = (held.header.topic, pop_retry_topic(held.header.topic, held.header.consumer_group))
            if key[0] in topics:
                self._try_again(held)

    def forget(self, peer: Peer) -> None:
        """Drop the held requests of a closed connection."""
        for held in [held for held in self._held if held.peer is peer]:
            self._drop(held)

    def _pop(self, request: RemotingCommand, peer: Peer) -> RemotingCommand | None:
        header = decode_header(PopMessageRequestHeader, request.ext_fields)
        if header.max_msg_nums > _MOST:
            return refused(ResponseCode.INVALID_PARAMETER, "pop message's num is greater than 32")
        if (refusal := self._refusal(header.topic, header.queue_id)) is not None:
            return refusal
        if (refusal := self._state.group_refusal(header.consumer_group)) is not None:
            return refusal
        if (answer := self._found(header)) is not None:
            return answer
        return None if self._hold(_Held(request, peer, header)) else _nothing(header)

    def _notify(self, request: RemotingCommand, peer: Peer) -> RemotingCommand | None:
        header = decode_header(NotificationRequestHeader, request.ext_fields)
        if (refusal := self._refusal(header.topic, header.queue_id)) is not None:
            return refusal
        if self._has_message(header):
            return succeeded(NotificationResponseHeader(has_msg=True))
        return None if self._hold(_Held(request, peer, header)) else _nothing(header)

    def _refusal(self, topic: str, queue_id: int) -> RemotingCommand | None:
        config = self._state.topics.get(topic)
        if config is None:
            return refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please!")
        if not config.is_readable:
            return refused(ResponseCode.NO_PERMISSION, f"the topic[{topic}] peeking message is forbidden")
        if queue_id >= config.read_queue_nums:
            return refused(ResponseCode.INVALID_PARAMETER, f"queueId[{queue_id}] is illegal, topic:[{topic}]")
        return None

    def _places(self, header: PopMessageRequestHeader | NotificationRequestHeader) -> Iterator[_Place]:
        """Yield the queues of a pop: the retry topic's first, but not in order."""
        group, topic = header.consumer_group, header.topic
        retry = pop_retry_topic(topic, group)
        if not header.order and retry in self._state.topics:
            yield _Place(group, retry, 0)
        config = self._state.topics.get(topic)
        assert config is not None
        chosen = range(config.read_queue_nums) if header.queue_id < 0 else (header.queue_id,)
        for queue_id in chosen:
            yield _Place(group, topic, queue_id)

    def _found(self, header: PopMessageRequestHeader) -> RemotingCommand | None:
        """Return the answer with messages; None: there are none."""
        left, pop_time = header.max_msg_nums, self._state.timers.now_ms()
        starts, offsets, counts, body = [], [], [], b""
        for place in self._places(header):
            entries = self._take(place, header, left, pop_time) if left else []
            if not entries:
                continue
            left -= len(entries)
            word = f"{NORMAL_TOPIC if place.topic == header.topic else RETRY_TOPIC} {place.queue_id}"
            starts.append(f"{word} {entries[0].queue_offset}")
            offsets.append(f"{word} {','.join(str(entry.queue_offset) for entry in entries)}")
            for offset, count in self._orders[place].tries.items() if header.order else ():
                counts.append(f"{NORMAL_TOPIC} qo{place.queue_id}%{offset} {count}")
            body += b"".join(entry.data for entry in entries)
        if not starts:
            return None
        fields = PopMessageResponseHeader(
            pop_time=pop_time,
            invisible_time=header.invisible_time,
            revive_qid=_IN_ORDER if header.order else 0,
            rest_num=self._left(header),
            start_offset_info=";".join(starts),
            msg_offset_info=";".join(offsets),
            order_count_info=";".join(counts) if counts else None,
        )
        return response(ResponseCode.SUCCESS, 0, "FOUND", encode_header(fields), body)

    def _take(self, place: _Place, header: PopMessageRequestHeader, most: int, pop_time: int) -> list[Entry]:
        """Take messages of one queue and hide them."""
        self._follow_reset(place)
        if header.order and self._is_blocked(place, header.attempt_id):
            return []
        queue = self._state.log.queue(place.topic, place.queue_id)
        codes = tag_codes(header.exp or "*")
        taken: list[Entry] = []
        offset = self._begin(place, header)
        while offset < queue.max_offset and len(taken) < most:
            entry = queue.at(offset)
            if entry is not None and entry.tags_code in codes:
                taken.append(entry)
            offset += 1
        until = self._state.timers.monotonic() + header.invisible_time / 1000
        hidden = {entry.queue_offset: _Hidden(entry, pop_time, until) for entry in taken}
        if not header.order:
            self._next[place] = offset
            self._state.offsets.setdefault(place, offset)
            for each, one in hidden.items():
                self._hide(place, each, one)
            self._commit(place)
        elif hidden:
            self._order(place, header.attempt_id, hidden)
        return taken

    def _follow_reset(self, place: _Place) -> None:
        """Go on where an administrator has put the group, whatever is hidden."""
        if (reset := self._state.resets.pop(place, None)) is not None:
            self._state.offsets[place] = reset
            self._orders.pop(place, None)
            for one in self._hidden[place].values():
                one.is_left = True

    def _left(self, header: PopMessageRequestHeader) -> int:
        """Return how many messages a pop leaves behind."""
        places = self._places(header)
        return sum(
            self._state.log.queue(one.topic, one.queue_id).max_offset - self._begin(one, header)
            for one in places
        )

    def _begin(self, place: _Place, header: PopMessageRequestHeader) -> int:
        """Return the offset of a group's next message."""
        queue = self._state.log.queue(place.topic, place.queue_id)
        known = self._known(place)
        if known is None:
            from_end = header.init_mode == POP_FROM_MAX and queue.min_offset and place.topic == header.topic
            known = queue.max_offset if from_end else queue.min_offset
        return max(min(known, queue.max_offset), queue.min_offset)

    def _known(self, place: _Place) -> int | None:
        """Return where a group goes on in a queue; None: it has not begun."""
        known = self._state.offsets.get(place)
        return max(known or 0, self._next.get(place, 0)) if self._waiting(place) else known

    def _waiting(self, place: _Place) -> list[int]:
        """Return the offsets of the messages that hold the group's offset back."""
        hidden = self._hidden[place].items()
        return [offset for (offset, _), one in hidden if self._holds_back(place, offset, one)]

    def _holds_back(self, place: _Place, offset: int, hidden: _Hidden) -> bool:
        """Return whether a hidden message is still where it was, and its group's offset was not reset."""
        entry = self._state.log.queue(place.topic, place.queue_id).at(offset)
        return entry is not None and entry is hidden.entry and not hidden.is_left

    def _hide(self, place: _Place, offset: int, hidden: _Hidden) -> None:
        seconds = max(0.0, hidden.until - self._state.timers.monotonic())
        self._hidden[place][offset, hidden.pop_time] = hidden
        hidden.timer = self._state.timers.after(seconds, lambda: self._revive(place, offset, hidden))

    def _revive(self, place: _Place, offset: int, hidden: _Hidden) -> None:
        """Store a message that was not acknowledged for its next delivery."""
        self._hidden[place].pop((offset, hidden.pop_time), None)
        if self._holds_back(place, offset, hidden):
            self._commit(place)
        entry = self._state.log.queue(place.topic, place.queue_id).at(offset)
        if entry is None or entry is not hidden.entry:
            return
        message = entry.decode(self._state.name, decompress=False)
        topic = (
            place.topic if place.topic.startswith("%RETRY%") else pop_retry_topic(place.topic, place.group)
        )
        if topic not in self._state.topics:
            self._state.topics.put(topic, TopicConfig(1, 1))
        first = {PROPERTY_FIRST_POP_TIME: str(hidden.pop_time)}
        self._state.log.append(
            replace(
                message,
                topic=topic,
                queue_id=0,
                properties={**first, **message.properties},
                reconsume_times=message.reconsume_times + hidden.counts,
                store_timestamp_ms=self._state.timers.now_ms(),
            )
        )

    def _commit(self, place: _Place) -> None:
        """Move the group's offset to its first message that is not settled, unless it was deleted."""
        if place in self._state.offsets:
            end = self._next.get(place, self._state.offsets[place])
            self._state.offsets[place] = min(self._waiting(place), default=end)

    def _order(self, place: _Place, attempt_id: str | None, hidden: dict[int, _Hidden]) -> None:
        """Note an answer in order; messages that were in the one before have one more try."""
        before = self._orders.get(place)
        again = before is not None and attempt_id is not None and before.attempt_id == attempt_id
        tries = {} if before is None else dict(before.tries)
        for offset in hidden:
            if before is not None and offset in before.hidden and not again:
                tries[offset] = tries.get(offset, 0) + before.hidden[offset].counts
        kept = {offset: count for offset, count in tries.items() if offset in hidden}
        self._orders[place] = _Order(attempt_id, hidden, kept)
        last = max(one.until for one in hidden.values()) - self._state.timers.monotonic()
        self._state.timers.after(last, lambda: self.appended((place.topic, place.queue_id)))

    def _is_blocked(self, place: _Place, attempt_id: str | None) -> bool:
        order = self._orders.get(place)
        if order is None or (attempt_id is not None and order.attempt_id == attempt_id):
            return False
        now = self._state.timers.monotonic()
        return any(one.until > now for one in order.hidden.values())

    def _ack(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(AckMessageRequestHeader, request.ext_fields)
        if (refusal := self._refusal(header.topic, header.queue_id)) is not None:
            return refusal
        if not self._has_offset(header.topic, header.queue_id, header.offset):
            return refused(ResponseCode.NO_MESSAGE, f"offset is illegal, key:{header.topic}")
        place = _Place(header.consumer_group, header.topic, header.queue_id)
        self._settle(place, header.offset, parse_extra_info(header.extra_info).pop_time)
        return succeeded()

    def _batch_ack(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        for ack in parse_batch_ack_body(request.body):
            place = _Place(ack.group, ack.stored_in, ack.queue_id)
            for offset in ack.offsets:
                if self._has_offset(place.topic, place.queue_id, offset):
                    self._settle(place, offset, ack.pop_time)
        return succeeded()

    def _has_offset(self, topic: str, queue_id: int, offset: int) -> bool:
        queue = self._state.log.queue(topic, queue_id)
        return queue.min_offset <= offset <= queue.max_offset

    def _settle(self, place: _Place, offset: int, pop_time: int) -> None:
        """Acknowledge one message; a text of another pop does nothing."""
        order = self._orders.get(place)
        if order is not None and offset in order.hidden:
            if order.hidden[offset].pop_time == pop_time:
                self._settle_in_order(place, order, offset)
            return
        hidden = self._hidden[place].pop((offset, pop_time), None)
        if hidden is not None:
            if hidden.timer is not None:
                self._state.timers.cancel(hidden.timer)
            if self._holds_back(place, offset, hidden):
                self._commit(place)

    def _settle_in_order(self, place: _Place, order: _Order, offset: int) -> None:
        """Acknowledge a message in order; the offset goes on to the first that is not acknowledged."""
        last = max(order.hidden)
        del order.hidden[offset]
        self._state.offsets[place] = min(order.hidden, default=last + 1)
        self.appended((place.topic, place.queue_id))

    def _change(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(ChangeInvisibleTimeRequestHeader, request.ext_fields)
        if (refusal := self._refusal(header.topic, header.queue_id)) is not None:
            return refusal
        place = _Place(header.consumer_group, header.topic, header.queue_id)
        info, now = parse_extra_info(header.extra_info), self._state.timers.now_ms()
        until = self._state.timers.monotonic() + header.invisible_time / 1000
        if info.revive_qid == _IN_ORDER:
            return self._change_in_order(place, header, info.pop_time, until)
        self._settle(place, header.offset, info.pop_time)
        entry = self._state.log.queue(place.topic, place.queue_id).at(header.offset)
        self._hide(place, header.offset, _Hidden(entry, now, until, counts=not header.suspend))
        return succeeded(
            ChangeInvisibleTimeResponseHeader(
                pop_time=now, invisible_time=header.invisible_time, revive_qid=info.revive_qid
            )
        )

    def _change_in_order(
        self, place: _Place, header: ChangeInvisibleTimeRequestHeader, pop_time: int, until: float
    ) -> RemotingCommand:
        order = self._orders.get(place)
        if order is None or header.offset not in order.hidden:
            return succeeded()
        hidden = order.hidden[header.offset]
        if hidden.pop_time == pop_time:
            hidden.until, hidden.counts = until, not header.suspend
            self._state.timers.after(
                header.invisible_time / 1000, lambda: self.appended((place.topic, place.queue_id))
            )
        visible_ms = self._state.timers.now_ms() + header.invisible_time
        return succeeded(
            ChangeInvisibleTimeResponseHeader(
                pop_time=pop_time, invisible_time=visible_ms - pop_time, revive_qid=_IN_ORDER
            )
        )

    def _has_message(self, header: NotificationRequestHeader) -> bool:
        for place in self._places(header):
            if header.order and self._is_blocked(place, header.attempt_id):
                continue
            queue = self._state.log.queue(place.topic, place.queue_id)
            known = self._known(place)
            if queue.max_offset > (queue.min_offset if known is None else known):
                return True
        return False

    def _hold(self, held: _Held) -> bool:
        """Hold a request for its poll time; False: it does not wait."""
        if held.header.poll_time <= 0:
            return False
        self._held.append(held)
        held.timer = self._state.timers.after(held.header.poll_time / 1000, lambda: self._end(held))
        return True

    def _try_again(self, held: _Held) -> None:
        """Answer a held request if there is a message for it now."""
        header = held.header
        answer: RemotingCommand | None
        if isinstance(header, NotificationRequestHeader):
            has_message = self._has_message(header)
            answer = succeeded(NotificationResponseHeader(has_msg=True)) if has_message else None
        else:
            answer = self._found(header)
        if answer is not None:
            self._drop(held)
            held.peer.answer(held.request, answer)

    def _end(self, held: _Held) -> None:
        self._drop(held)
        held.peer.answer(held.request, _nothing(held.header))

    def _drop(self, held: _Held) -> None:
        self._held.remove(held)
        if held.timer is not None:
            self._state.timers.cancel(held.timer)


def _nothing(header: PopMessageRequestHeader | NotificationRequestHeader) -> RemotingCommand:
    """Return the answer when no message has come."""
    if isinstance(header, NotificationRequestHeader):
        return succeeded(NotificationResponseHeader(has_msg=False))
    return refused(ResponseCode.POLLING_TIMEOUT, "NO_MESSAGE_IN_QUEUE")
