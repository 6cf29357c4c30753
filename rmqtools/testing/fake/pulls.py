"""Pulls with long polling: a pull without messages is held until a message comes or its timeout.

Source of the rules: PullMessageProcessor, DefaultMessageStore.getMessage, PullRequestHoldService (broker
5.5.0).
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import SUB_ALL
from rmqtools.model.sys_flag import PullSysFlag
from rmqtools.policy.selectors import java_hash_code
from rmqtools.policy.subscription import TAG
from rmqtools.protocol.headers.codec import decode_header, encode_header
from rmqtools.protocol.headers.pull import PullMessageRequestHeader, PullMessageResponseHeader
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing.fake.commit_log import Entry, QueueKey, QueueLog
from rmqtools.testing.fake.members import Members
from rmqtools.testing.fake.server import Peer
from rmqtools.testing.fake.state import Handlers, Settings, State, refused
from rmqtools.testing.fake.timers import Timer


class _Everything:
    """The hash codes of a subscription to all tags."""

    def __contains__(self, code: object) -> bool:
        return True


class _QueueLookUp(NamedTuple):
    """The result of a look-up in a queue; ``status`` is upstream's GetMessageStatus, the remark."""

    code: int
    status: str
    next_offset: int
    entries: list[Entry]


@dataclass(eq=False)
class _Held:
    """A held pull."""

    request: RemotingCommand
    peer: Peer
    header: PullMessageRequestHeader
    codes: Container[int]
    timer: Timer | None = None


class Pulls:
    """Answers pulls to a master, or to a slave."""

    def __init__(self, state: State, members: Members) -> None:
        self._state = state
        self._members = members
        self._held: dict[QueueKey, list[_Held]] = {}
        self.suggested_broker_id = 0
        self.handlers: Handlers = {
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.LITE_PULL_MESSAGE: self._pull,
        }

    @property
    def held(self) -> int:
        """Number of held pulls."""
        return sum(map(len, self._held.values()))

    def appended(self, key: QueueKey, entry: Entry) -> None:
        """Answer the held pulls that a new message matches."""
        for held in [held for held in self._held.get(key, ()) if entry.tags_code in held.codes]:
            if entry.queue_offset >= held.header.queue_offset:
                self._release(held)

    def forget(self, peer: Peer) -> None:
        """Drop the held pulls of a closed connection."""
        for waiting in self._held.values():
            for held in [held for held in waiting if held.peer is peer]:
                self._drop(held)

    def _pull(self, request: RemotingCommand, peer: Peer) -> RemotingCommand | None:
        header = decode_header(PullMessageRequestHeader, request.ext_fields)
        if refusal := self._refusal(header):
            return refusal
        codes = self._codes(header)
        if isinstance(codes, RemotingCommand):
            return codes
        place = (header.consumer_group, header.topic, header.queue_id)
        if header.sys_flag & PullSysFlag.FLAG_COMMIT_OFFSET and place not in self._state.resets:
            self._state.offsets[place] = header.commit_offset
        found = self._find(header, codes)
        if found.code == ResponseCode.PULL_NOT_FOUND and header.sys_flag & PullSysFlag.FLAG_SUSPEND:
            self._hold(_Held(request, peer, header, codes))
            return None
        return self._answer(header, found)

    def _refusal(self, header: PullMessageRequestHeader) -> RemotingCommand | None:
        if refusal := self._state.group_refusal(header.consumer_group):
            return refusal
        topic = self._state.topics.get(header.topic)
        if topic is None:
            remark = f"topic[{header.topic}] not exist, apply first please!"
            return refused(ResponseCode.TOPIC_NOT_EXIST, remark)
        if not topic.is_readable:
            return refused(
                ResponseCode.NO_PERMISSION, f"the topic[{header.topic}] pulling message is forbidden"
            )
        if not 0 <= header.queue_id < topic.read_queue_nums:
            remark = f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}]"
            return refused(ResponseCode.INVALID_PARAMETER, remark)
        return None

    def _codes(self, header: PullMessageRequestHeader) -> Container[int] | RemotingCommand:
        """Return the hash codes of a pull's tags, or the refusal."""
        if not header.sys_flag & PullSysFlag.FLAG_SUBSCRIPTION:
            told = self._members.subscription(header.consumer_group, header.topic)
            if told is None:
                remark = "the consumer's subscription not exist"
                return refused(ResponseCode.SUBSCRIPTION_NOT_EXIST, remark)
            if told.sub_version < header.sub_version:
                remark = "the consumer's subscription not latest"
                return refused(ResponseCode.SUBSCRIPTION_NOT_LATEST, remark)
            expression, kind = told.sub_string, told.expression_type
        else:
            expression, kind = header.subscription or SUB_ALL, header.expression_type or TAG
        if kind != TAG:
            remark = "The broker does not support consumer to filter message by " + kind
            return refused(ResponseCode.SYSTEM_ERROR, remark)
        return tag_codes(expression)

    def _find(self, header: PullMessageRequestHeader, codes: Container[int]) -> _QueueLookUp:
        queue = self._state.log.queue(header.topic, header.queue_id)
        offset = header.queue_offset
        low = queue.min_offset
        high = queue.max_offset
        place = (header.consumer_group, header.topic, header.queue_id)
        if (reset := self._state.resets.pop(place, None)) is not None:
            return _QueueLookUp(ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET", reset, [])
        if high == 0:
            code = ResponseCode.PULL_OFFSET_MOVED if offset else ResponseCode.PULL_NOT_FOUND
            return _QueueLookUp(code, "NO_MESSAGE_IN_QUEUE", 0, [])
        if offset < low:
            return _QueueLookUp(ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", low, [])
        if offset == high:
            return _QueueLookUp(ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", offset, [])
        if offset > high:
            return _QueueLookUp(ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", high, [])
        entries, after = _collect(queue, header, codes, self._state.settings)
        if entries:
            return _QueueLookUp(ResponseCode.SUCCESS, "FOUND", after, entries)
        return _QueueLookUp(ResponseCode.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE", after, [])

    def _answer(self, header: PullMessageRequestHeader, found: _QueueLookUp) -> RemotingCommand:
        queue = self._state.log.queue(header.topic, header.queue_id)
        fields = PullMessageResponseHeader(
            suggest_which_broker_id=self.suggested_broker_id,
            next_begin_offset=found.next_offset,
            min_offset=queue.min_offset,
            max_offset=queue.max_offset,
            topic_sys_flag=0,
            group_sys_flag=0,
        )
        body = b"".join(entry.data for entry in found.entries)
        return response(found.code, 0, found.status, encode_header(fields), body)

    def _hold(self, held: _Held) -> None:
        key = (held.header.topic, held.header.queue_id)
        self._held.setdefault(key, []).append(held)
        seconds = held.header.suspend_timeout_millis / 1000
        held.timer = self._state.timers.after(seconds, lambda: self._release(held))

    def _release(self, held: _Held) -> None:
        self._drop(held)
        held.peer.answer(held.request, self._answer(held.header, self._find(held.header, held.codes)))

    def _drop(self, held: _Held) -> None:
        self._held[held.header.topic, held.header.queue_id].remove(held)
        if held.timer is not None:
            self._state.timers.cancel(held.timer)


def tag_codes(expression: str) -> Container[int]:
    """Return the hash codes that match a tag expression: ``a || b``, or ``*`` for all."""
    tags: Iterable[str] = filter(None, map(str.strip, expression.split("||")))
    codes = frozenset(map(java_hash_code, tags))
    return _Everything() if expression.strip() in ("", SUB_ALL) else codes


def _collect(
    queue: QueueLog, header: PullMessageRequestHeader, codes: Container[int], settings: Settings
) -> tuple[list[Entry], int]:
    """Collect the messages of one pull, and the offset after the last message checked."""
    most = min(header.max_msg_nums, settings.pull_max_messages)
    entries: list[Entry] = []
    size, offset = 0, header.queue_offset
    while offset < queue.max_offset and len(entries) < most:
        entry = queue.at(offset)
        if entry is not None and entry.tags_code in codes:
            if entries and size + len(entry.data) > settings.pull_max_bytes:
                break
            entries.append(entry)
            size += len(entry.data)
        offset += 1
    return entries, offset
