"""A consumer group as an operator sees it: who is in it, who reads what, how far it is, what looks wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rmqtools.model.queue import MessageQueue

Subscription = tuple[str, str, str]
"""Topic, expression, type of the expression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One member, by what brokers know of it and what it says of itself.

    Attributes:
        client_id: its name.
        addr: where its connection comes from.
        language: what it is written in, as it says.
        version: as it says (``V5_5_0``), or the number that brokers have.
        error: why it did not say anything of itself; then the fields below mean nothing.
        queues: those it owns now; the retry topic's too.
        pops: of these, the ones it pops instead of pulling.
        strategy: how it shares; None where it does not say.
        pin_version: of the pins it goes by; None: it does not go by pins, or knows none yet.
        subscriptions: what it wants; the retry topic left out.
        orderly: whether it consumes in order, with locks; None where it does not say.
    """

    client_id: str
    addr: str = ""
    language: str | None = None
    version: str = ""
    error: str | None = None
    queues: tuple[MessageQueue, ...] = ()
    pops: tuple[MessageQueue, ...] = ()
    strategy: str | None = None
    pin_version: int | None = None
    subscriptions: frozenset[Subscription] = frozenset()
    orderly: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueProgress:
    """How far a group is on one queue.

    Attributes:
        max_offset: one more than the last message's.
        consumer_offset: what is read next; None: nothing was committed yet.
    """

    max_offset: int
    consumer_offset: int | None

    @property
    def lag(self) -> int | None:
        """How many messages are still to come; None where nothing was committed yet."""
        return None if self.consumer_offset is None else self.max_offset - self.consumer_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group at one moment (the members are asked one after the other, so a rebalance may show in part).

    Attributes:
        group: its name.
        message_model: CLUSTERING or BROADCASTING; None without members.
        consume_type: how members get messages; None without members.
        members: by client id.
        progress: every queue of every topic the group subscribes to or has offsets for, sorted.
        missing_topics: subscribed to, and without a route.
    """

    group: str
    message_model: str | None = None
    consume_type: str | None = None
    members: tuple[GroupMember, ...] = ()
    progress: Mapping[MessageQueue, QueueProgress] = field(default_factory=dict)
    missing_topics: tuple[str, ...] = ()

    def owners(self, queue: MessageQueue) -> list[str]:
        """The client ids of the members that say they own a queue."""
        return [member.client_id for member in self.members if queue in member.queues]


class FindingKind(StrEnum):
    """What can be wrong with a group. ``MEMBER_SILENT`` is the one that leaves the others open."""

    QUEUE_UNOWNED = "queue_unowned"
    QUEUE_OWNED_TWICE = "queue_owned_twice"
    MEMBER_IDLE = "member_idle"
    SUBSCRIPTIONS_DIFFER = "subscriptions_differ"
    STRATEGIES_DIFFER = "strategies_differ"
    MODES_DIFFER = "modes_differ"
    TOPIC_MISSING = "topic_missing"
    PINNED_IP_ABSENT = "pinned_ip_absent"
    PINS_DIFFER = "pins_differ"
    NO_MEMBERS = "no_members"
    MEMBER_SILENT = "member_silent"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that looks wrong: for programs, and for people."""

    kind: FindingKind
    text: str
