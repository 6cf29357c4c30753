"""The life of one message: what brokers store of it, and what clients have recorded about it."""

from dataclasses import dataclass
from enum import StrEnum

from rmqtools.model.group_view import MessageTrack


class StoryEventKind(StrEnum):
    """The kinds of events in a message's life."""

    BORN = "born"
    SENT = "sent"
    WAITS = "waits"
    STORED = "stored"
    DECIDED = "decided"
    DELIVERED = "delivered"
    SENT_BACK = "sent back"
    RETRY = "retry"
    DEAD_LETTER = "dead letter"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryClient:
    """A client as its trace record shows it.

    Attributes:
        name: its client id, if it is connected now and no other client fits; else ``ip@pid``, if the record
            has them; else its address.
        is_member: whether ``name`` is a client id.
        addr: the address of the connection by which the record came.
    """

    name: str
    is_member: bool
    addr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A send that has stored the message.

    Attributes:
        group: producer group.
        client: the producer; of Java clients the process, since its trace has a connection of its own.
        at_ms: begin of the send, in milliseconds since 1970, by the client's clock.
        seconds: its duration.
        success: whether the broker reported complete success.
        kind: normal, transaction or delayed message, as the producer says.
    """

    group: str
    client: StoryClient
    at_ms: int
    seconds: float
    success: bool
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A transaction's end, by its producer.

    Attributes:
        group: producer group.
        client: the producer.
        at_ms: time by the client's clock.
        state: COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW.
        from_check: whether a broker had asked.
    """

    group: str
    client: StoryClient
    at_ms: int
    state: str
    from_check: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCopy:
    """The message as a broker stores it, in its topic or in one of RocketMQ's own.

    Attributes:
        topic: where it is stored: its own topic, a retry or dead-letter topic, or the topic of delays.
        real_topic: in the topic of delays: the topic that it will go to; else ``topic``.
        broker_name: the broker.
        queue_id: the queue.
        queue_offset: its offset in the queue.
        store_host: the broker's address.
        at_ms: the time of storing, by the broker's clock.
        reconsume_times: how often the message had been delivered without success.
        delay_level: in the topic of delays: the level; 0: not known.
    """

    topic: str
    real_topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    store_host: str
    at_ms: int
    reconsume_times: int
    delay_level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A listener call with the message.

    Attributes:
        group: consumer group.
        client: the member.
        request_id: the id of the call, by which records belong together.
        began_ms: time by the member's clock; None: no record of the begin was found.
        ended_ms: likewise; None: no record of the end was found, or it has no time.
        seconds: duration of the call divided by the number of its messages; None: not known.
        result: success, failed, exception, timed out, or nothing returned; None: no record of the end.
        reconsume_times: how often it was delivered before; None: not known.
    """

    group: str
    client: StoryClient
    request_id: str
    began_ms: int | None
    ended_ms: int | None
    seconds: float | None
    result: str | None
    reconsume_times: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A redelivery that a broker has scheduled after a failure.

    Attributes:
        number: 1 is the first redelivery.
        sent_back: the copy in the topic of delays; None: none was found. Popped messages have none.
        ready: the copy in the retry topic; None: it waits still, or has expired.
        delay_seconds: from ``sent_back`` to ``ready``; None: one of them is not known.
    """

    number: int
    sent_back: StoredCopy | None
    ready: StoredCopy | None
    delay_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStory:
    """The message in one consumer group.

    Attributes:
        group: its name.
        track: what the group's consumer offset shows; None: the group neither reads the topic now nor has
            an offset of it.
        deliveries: in the order of their times.
        retries: by number.
        dead_letters: normally one or none.
    """

    group: str
    track: MessageTrack | None
    deliveries: tuple[Delivery, ...] = ()
    retries: tuple[Retry, ...] = ()
    dead_letters: tuple[StoredCopy, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryEvent:
    """One line of a message's life.

    Attributes:
        at_ms: its time; None: not known.
        kind: what happened.
        text: the details.
        group: the group it belongs to; "": none.
        client: the client that did it; "": a broker.
    """

    at_ms: int | None
    kind: StoryEventKind
    text: str
    group: str = ""
    client: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStory:
    """The life of one message.

    Attributes:
        topic: its topic.
        msg_id: its unique key.
        tags: its tags; None: none, or not known.
        keys: its keys, likewise.
        born_ms: time by the producer's clock; None: not known.
        born_host: the producer's address as the broker saw it; None: not known.
        sendings: by producers that send trace records.
        decisions: of a transaction, likewise.
        waited: copies in the topic of delays before it was stored in its topic.
        stored: copies in its topic; more than one: it was sent again after an unknown outcome.
        groups: by name.
        events: all of that, in the order of time.
        unknown: what is not known, and why.
    """

    topic: str
    msg_id: str
    tags: str | None
    keys: str | None
    born_ms: int | None
    born_host: str | None
    sendings: tuple[Sending, ...]
    decisions: tuple[Decision, ...]
    waited: tuple[StoredCopy, ...]
    stored: tuple[StoredCopy, ...]
    groups: tuple[GroupStory, ...]
    events: tuple[StoryEvent, ...]
    unknown: tuple[str, ...]
