"""Joins facts about a message to its story: stored copies, trace records, members, consumer offsets.

Nothing is guessed. A delivery is one request id of trace records; a member is named by its client id only if
exactly one connected member fits. What is missing is listed in ``MessageStory.unknown``.
Source of the rules: TraceDataEncoder, MessageClientIDSetter (Java client); AbstractSendMessageProcessor
(broker: copies of a failed message keep its unique key).

The trace record of a Java member comes by a connection of its own, which brokers list under no member. Its
request id has address and process id of the member, as client ids have them by default; ours come by the
member's own connection.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeVar

from rmqtools.model.group import Connection
from rmqtools.model.group_view import MessageTrack, TrackType
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_DELAY_TIME_LEVEL, PROPERTY_REAL_TOPIC
from rmqtools.model.message_story import (
    Decision,
    Delivery,
    GroupStory,
    MessageStory,
    Retry,
    Sending,
    StoredCopy,
    StoryClient,
    StoryEvent,
    StoryEventKind,
)
from rmqtools.model.names import DELAY_TOPICS, dlq_topic, retry_topic, without_this_namespace
from rmqtools.model.queue import queue_name
from rmqtools.model.trace import (
    ConsumeReturnType,
    EndTransactionTrace,
    PubTrace,
    SubAfterTrace,
    SubBeforeTrace,
    Trace,
)

R = TypeVar("R", PubTrace, EndTransactionTrace)

_PID_OF_ID = re.compile(r".*@(\d+)(#\d+)?")
_PID_MASK = 0xFFFF  # an id has 16 bits of it
_RECENT_MS = 15_000  # clients send their records every 5 seconds
_FAILURES: Mapping[int, str] = {
    ConsumeReturnType.EXCEPTION: "exception",
    ConsumeReturnType.RETURNNULL: "nothing returned",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTrace:
    """A trace record, and where it came from.

    Attributes:
        record: the record.
        addr: the address of the client that sent the trace message, ``ip:port``.
        ip, pid: of the process that made the record's request id, or the message's unique key; "", -1: none.
    """

    record: Trace
    addr: str
    ip: str = ""
    pid: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryFacts:
    """Facts about one message. Topics and groups have plain names.

    Attributes:
        topic: its topic.
        msg_id: its unique key.
        namespace: of the clients; stored properties have it.
        copies: every stored copy, in whatever topic.
        retry_topics: the retry topics of each group.
        traces: trace records with its unique key.
        tracks: what the groups' offsets show.
        members: the connected members of each group.
        gaps: what could not be looked up, and why.
        now_ms: time of the look-up.
    """

    topic: str
    msg_id: str
    namespace: str | None = None
    copies: Sequence[MessageExt] = ()
    retry_topics: Mapping[str, Sequence[str]] = field(default_factory=dict)
    traces: Sequence[FoundTrace] = ()
    tracks: Sequence[MessageTrack] = ()
    members: Mapping[str, Sequence[Connection]] = field(default_factory=dict)
    gaps: Sequence[str] = ()
    now_ms: int = 0


def join_story(facts: StoryFacts) -> MessageStory:
    """Return the story that some facts tell."""
    copies = [_copy(message, facts.namespace) for message in facts.copies]
    stored = [copy for copy in copies if copy.topic == facts.topic]
    first = min(facts.copies, key=lambda message: message.store_timestamp_ms, default=None)
    sendings = tuple(sorted(_sendings(facts), key=lambda one: one.at_ms))
    story = MessageStory(
        topic=facts.topic,
        msg_id=facts.msg_id,
        tags=first.tags if first is not None else next((s.tags for s in _pubs(facts)), None),
        keys=first.keys if first is not None else next((s.keys for s in _pubs(facts)), None),
        born_ms=first.born_timestamp_ms if first is not None else None,
        born_host=first.born_host if first is not None else None,
        sendings=sendings,
        decisions=tuple(sorted(_decisions(facts), key=lambda one: one.at_ms)),
        waited=_sorted(
            copy for copy in copies if copy.topic in DELAY_TOPICS and copy.real_topic == facts.topic
        ),
        stored=_sorted(stored),
        groups=_groups(facts, copies),
        events=(),
        unknown=(),
    )
    events = tuple(sorted(_events(story), key=lambda event: (event.at_ms is None, event.at_ms or 0)))
    return replace(story, events=events, unknown=tuple(_unknown(story, facts, events)))


def _groups(facts: StoryFacts, copies: Sequence[StoredCopy]) -> tuple[GroupStory, ...]:
    deliveries: defaultdict[str, list[Delivery]] = defaultdict(list)
    for delivery in _deliveries(facts):
        deliveries[delivery.group].append(delivery)
    tracks = {track.consumer_group: track for track in facts.tracks}
    stories = []
    for group in sorted({*deliveries, *tracks, *facts.retry_topics}):
        story = GroupStory(
            group=group,
            track=tracks.get(group),
            deliveries=tuple(sorted(deliveries[group], key=_delivery_order)),
            retries=_retries(copies, facts.retry_topics.get(group, (retry_topic(group),))),
            dead_letters=_sorted(copy for copy in copies if copy.topic == dlq_topic(group)),
        )
        if story.track or story.deliveries or story.retries or story.dead_letters:
            stories.append(story)
    return tuple(stories)


def _retries(copies: Sequence[StoredCopy], topics: Sequence[str]) -> tuple[Retry, ...]:
    """Return the redeliveries in some retry topics, by number."""
    sent_back = {
        copy.reconsume_times: copy
        for copy in copies
        if copy.topic in DELAY_TOPICS and copy.real_topic in topics
    }
    ready = {copy.reconsume_times: copy for copy in copies if copy.topic in topics}
    retries = []
    for number in sorted({*sent_back, *ready}):
        began, ended = sent_back.get(number), ready.get(number)
        delay = (ended.at_ms - began.at_ms) / 1000 if began and ended else None
        retries.append(Retry(number=number, sent_back=began, ready=ended, delay_seconds=delay))
    return tuple(retries)


def _deliveries(facts: StoryFacts) -> Iterator[Delivery]:
    """Return one delivery for each request id; a trace message that was stored twice adds none."""
    begun: dict[str, tuple[SubBeforeTrace, FoundTrace]] = {}
    ended: dict[str, tuple[SubAfterTrace, FoundTrace]] = {}
    for found in facts.traces:
        if isinstance(found.record, SubBeforeTrace):
            begun[found.record.request_id] = found.record, found
        elif isinstance(found.record, SubAfterTrace):
            ended[found.record.request_id] = found.record, found
    for request_id in dict.fromkeys((*begun, *ended)):
        before, _ = begun.get(request_id, (None, None))
        after, _ = ended.get(request_id, (None, None))
        _, found_by = begun.get(request_id) or ended[request_id]
        group = before.group if before is not None else (after and after.group) or ""
        yield Delivery(
            group=group,
            client=_client(found_by, facts.members.get(group, ())),
            request_id=request_id,
            began_ms=None if before is None else before.timestamp_ms,
            ended_ms=None if after is None else after.timestamp_ms,
            seconds=None if after is None else after.cost_ms / 1000,
            result=None if after is None else _result(after),
            reconsume_times=None if before is None else before.retry_times,
        )


def _result(after: SubAfterTrace) -> str:
    """Return the result of a call; before 4.9 clients wrote only whether it succeeded."""
    if after.return_type == ConsumeReturnType.TIME_OUT:
        return "timed out"
    return "success" if after.success else _FAILURES.get(after.return_type, "failed")


def _sendings(facts: StoryFacts) -> Iterator[Sending]:
    for record, client in _distinct(facts, PubTrace):
        yield Sending(
            group=record.group,
            client=client,
            at_ms=record.timestamp_ms,
            seconds=record.cost_ms / 1000,
            success=record.success,
            kind=record.message_type.name,
        )


def _decisions(facts: StoryFacts) -> Iterator[Decision]:
    for record, client in _distinct(facts, EndTransactionTrace):
        yield Decision(
            group=record.group,
            client=client,
            at_ms=record.timestamp_ms,
            state=record.state,
            from_check=record.from_check,
        )


def _distinct(facts: StoryFacts, kind: type[R]) -> Iterator[tuple[R, StoryClient]]:
    """Yield the producers' records of a kind with their clients; one that was stored twice counts once."""
    seen: set[R] = set()
    for found in facts.traces:
        if isinstance(found.record, kind) and found.record not in seen:
            seen.add(found.record)
            yield found.record, _client(found, ())


def _pubs(facts: StoryFacts) -> list[PubTrace]:
    return [found.record for found in facts.traces if isinstance(found.record, PubTrace)]


def _client(found: FoundTrace, members: Sequence[Connection]) -> StoryClient:
    """Name the client of a record: ours send records by the member's own connection, Java's by another."""
    by_addr = [member for member in members if member.client_addr == found.addr]
    fitting = by_addr or [member for member in members if _fits(member, found)]
    if len(fitting) == 1:
        return StoryClient(name=fitting[0].client_id, is_member=True, addr=found.addr)
    name = f"{found.ip}@{found.pid}" if found.pid >= 0 else found.addr
    return StoryClient(name=name, is_member=False, addr=found.addr)


def _fits(member: Connection, found: FoundTrace) -> bool:
    """Return whether a member's client id has a record's process, and its connection or id the address."""
    match = _PID_OF_ID.fullmatch(member.client_id)
    if match is None or int(match[1]) & _PID_MASK != found.pid:
        return False
    ips = {member.client_id.rpartition("@")[0], _ip(member.client_addr)}
    return found.ip in ips or _ip(found.addr) in ips


def _ip(addr: str) -> str:
    return addr.rpartition(":")[0].strip("[]")


def _copy(message: MessageExt, namespace: str | None) -> StoredCopy:
    properties = message.properties
    is_delayed = message.topic in DELAY_TOPICS
    real_topic = properties.get(PROPERTY_REAL_TOPIC, message.topic) if is_delayed else message.topic
    level = properties.get(PROPERTY_DELAY_TIME_LEVEL, "") if is_delayed else ""
    return StoredCopy(
        topic=message.topic,
        real_topic=without_this_namespace(real_topic, namespace),
        broker_name=message.broker_name,
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        store_host=message.store_host,
        at_ms=message.store_timestamp_ms,
        reconsume_times=message.reconsume_times,
        delay_level=int(level) if level.isascii() and level.isdigit() and len(level) < 5 else 0,
    )


def _sorted(copies: "Iterator[StoredCopy] | Sequence[StoredCopy]") -> tuple[StoredCopy, ...]:
    return tuple(sorted(copies, key=lambda copy: (copy.at_ms, copy.broker_name, copy.queue_id)))


def _delivery_order(delivery: Delivery) -> tuple[int, int]:
    at = delivery.began_ms if delivery.began_ms is not None else delivery.ended_ms
    return at or 0, delivery.reconsume_times or 0


def _events(story: MessageStory) -> Iterator[StoryEvent]:
    kinds = StoryEventKind
    if story.born_ms is not None:
        yield StoryEvent(at_ms=story.born_ms, kind=kinds.BORN, text="", client=story.born_host or "")
    for sending in story.sendings:
        text = f"{'stored' if sending.success else 'stored, with a warning'} after {sending.seconds:.3f} s"
        text += "" if sending.kind == "NORMAL" else f" ({sending.kind})"
        group, client = sending.group, sending.client.name
        yield StoryEvent(at_ms=sending.at_ms, kind=kinds.SENT, text=text, group=group, client=client)
    for decision in story.decisions:
        text = f"{decision.state}{', asked by a broker' if decision.from_check else ''}"
        group, client = decision.group, decision.client.name
        yield StoryEvent(at_ms=decision.at_ms, kind=kinds.DECIDED, text=text, group=group, client=client)
    for copy in story.waited:
        yield StoryEvent(at_ms=copy.at_ms, kind=kinds.WAITS, text=f"{_level(copy)}, {_place(copy)}")
    for copy in story.stored:
        yield StoryEvent(at_ms=copy.at_ms, kind=kinds.STORED, text=f"{_place(copy)}, {copy.store_host}")
    for group_story in story.groups:
        yield from _group_events(group_story)


def _group_events(story: GroupStory) -> Iterator[StoryEvent]:
    """Yield what happened in a group in the order of its attempts: times may be equal to the millisecond."""
    kinds, group = StoryEventKind, story.group
    retries = {retry.number: retry for retry in story.retries}
    by_attempt = sorted(story.deliveries, key=_attempt_of)
    deliveries = {number: list(each) for number, each in groupby(by_attempt, _attempt_of)}
    for number in sorted({*retries, *deliveries}):
        if number in retries:
            yield from _retry_events(retries[number], group)
        for delivery in deliveries.get(number, ()):
            at_ms = delivery.began_ms if delivery.began_ms is not None else delivery.ended_ms
            text, client = _outcome(delivery), delivery.client.name
            yield StoryEvent(at_ms=at_ms, kind=kinds.DELIVERED, text=text, group=group, client=client)
    for copy in story.dead_letters:
        text = f"{copy.topic} {_place(copy)}"
        yield StoryEvent(at_ms=copy.at_ms, kind=kinds.DEAD_LETTER, text=text, group=group)


def _attempt_of(delivery: Delivery) -> int:
    return delivery.reconsume_times or 0


def _retry_events(retry: Retry, group: str) -> Iterator[StoryEvent]:
    if (copy := retry.sent_back) is not None:
        delay = "waits" if retry.delay_seconds is None else f"waited {retry.delay_seconds:.1f} s"
        text = f"{delay}, {_level(copy)}"
        yield StoryEvent(at_ms=copy.at_ms, kind=StoryEventKind.SENT_BACK, text=text, group=group)
    if (copy := retry.ready) is not None:
        text = f"number {retry.number}, {copy.topic} {_place(copy)}"
        yield StoryEvent(at_ms=copy.at_ms, kind=StoryEventKind.RETRY, text=text, group=group)


def _outcome(delivery: Delivery) -> str:
    number = f", retry {delivery.reconsume_times}" if delivery.reconsume_times else ""
    if delivery.result is None:
        return f"result not known{number}"
    return f"{delivery.result} after {delivery.seconds or 0:.3f} s{number}"


def _place(copy: StoredCopy) -> str:
    return f"{queue_name(copy)}, offset {copy.queue_offset}"


def _level(copy: StoredCopy) -> str:
    return f"delay level {copy.delay_level or 'not known'}"


def _unknown(story: MessageStory, facts: StoryFacts, events: Sequence[StoryEvent]) -> Iterator[str]:
    """Yield what is not known, and why."""
    yield from facts.gaps
    if not story.stored and not story.waited:
        yield f"where it is stored: no broker has it in topic {story.topic}, or no longer"
    if len(story.stored) > 1:
        yield f"which of its {len(story.stored)} copies a delivery was: they have the same unique key"
    if not story.sendings:
        yield "the send, its duration and attempts: no trace record of its producer (enable_trace)"
    for group in story.groups:
        yield from _unknown_of_group(group)
    if events and facts.now_ms - max(event.at_ms or 0 for event in events) < _RECENT_MS:
        yield "the last seconds: clients send their trace records every 5 s"


def _unknown_of_group(story: GroupStory) -> Iterator[str]:
    name = f"group {story.group}"
    if story.track is not None and story.track.track_type is TrackType.UNKNOWN:
        yield f"{name}, its offset: {story.track.error}"
    is_consumed = story.track is not None and story.track.track_type is TrackType.CONSUMED
    copies = [copy for retry in story.retries for copy in (retry.sent_back, retry.ready) if copy is not None]
    tries = max((copy.reconsume_times for copy in (*copies, *story.dead_letters)), default=0)
    if not story.deliveries and (is_consumed or tries):
        yield f"{name}, who got it, when, with which result: no trace records of its members (enable_trace)"
        return
    known = {delivery.reconsume_times for delivery in story.deliveries}
    if missing := [str(number) for number in range(tries) if number not in known]:
        yield f"{name}, deliveries with retry number {', '.join(missing)}: no trace record of a member"
    for delivery in story.deliveries:
        who = f"{name}, delivery of {delivery.client.name}"
        if delivery.result is None:
            yield f"{who}: its result: no record of its end (still running, killed, or not sent yet)"
        if delivery.began_ms is None:
            yield f"{who}: its begin and number: no record of it"
        if not delivery.client.is_member:
            yield f"{who}: its client id: no connected member, or several, fit its address and process"
