"""Producer and consumer groups as clients and brokers tell each other: members, locks, progress.

The enumerations are texts, so what a newer server writes and this version has no name for still fits.
Source of the names: HeartbeatData, ConsumerConnection, LockBatchRequestBody, TopicStatsTable, ConsumeStats,
QueryAssignmentRequestBody, ResetOffsetBody and what they hold (Java client 5.5.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rmqtools.model.queue import MessageQueue

SUB_ALL = "*"


class ConsumeType(StrEnum):
    """Who fetches: the user's calls, the client in the background, or the broker hands out."""

    CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
    CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
    CONSUME_POP = "CONSUME_POP"


class MessageModel(StrEnum):
    """Whether the members of a group share a topic's messages, or each gets all of them."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class ConsumeFromWhere(StrEnum):
    """Where a group starts that has no offset yet."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class MessageRequestMode(StrEnum):
    """How a member gets the messages of an assigned queue."""

    PULL = "PULL"
    POP = "POP"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionData:
    """What of a topic a group wants.

    ``code_set`` holds the tags' Java hash codes; ``sub_version`` is when it was made, in ms since 1970.
    """

    topic: str
    sub_string: str = SUB_ALL
    tags_set: tuple[str, ...] = ()
    code_set: tuple[int, ...] = ()
    sub_version: int = 0
    expression_type: str = "TAG"
    class_filter_mode: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerData:
    """One producer group of a client."""

    group_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerData:
    """One consumer group of a client."""

    group_name: str
    consume_type: str = ConsumeType.CONSUME_PASSIVELY
    message_model: str = MessageModel.CLUSTERING
    consume_from_where: str = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    subscription_data_set: tuple[SubscriptionData, ...] = ()
    unit_mode: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatData:
    """All groups of a client, sent to every broker it knows."""

    client_id: str | None = None
    producer_data_set: tuple[ProducerData, ...] = ()
    consumer_data_set: tuple[ConsumerData, ...] = ()
    heartbeat_fingerprint: int = 0
    without_sub: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One member of a group as its broker sees it."""

    client_id: str
    client_addr: str
    language: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConnection:
    """All members of a consumer group, and what they subscribe to."""

    connection_set: tuple[Connection, ...] = ()
    subscription_table: Mapping[str, SubscriptionData] = field(default_factory=dict)
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockBatchRequestBody:
    """Queues a member wants for itself (ordered consumption)."""

    consumer_group: str
    client_id: str
    mq_set: tuple[MessageQueue, ...] = ()
    only_this_broker: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlockBatchRequestBody:
    """Queues a member gives back."""

    consumer_group: str
    client_id: str
    mq_set: tuple[MessageQueue, ...] = ()
    only_this_broker: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LockBatchResponseBody:
    """The queues of a lock request that are now the asker's."""

    lock_ok_mq_set: tuple[MessageQueue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOffset:
    """What a queue holds; ``max_offset`` is one more than the last message's."""

    min_offset: int
    max_offset: int
    last_update_timestamp: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatsTable:
    """What the queues of a topic hold on one broker."""

    offset_table: Mapping[MessageQueue, TopicOffset] = field(default_factory=dict)
    topic_put_tps: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetWrapper:
    """How far a group is on one queue; its lag is ``broker_offset - consumer_offset``."""

    broker_offset: int
    consumer_offset: int
    pull_offset: int = 0
    last_timestamp: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeStats:
    """How far a group is on the queues of one broker."""

    offset_table: Mapping[MessageQueue, OffsetWrapper] = field(default_factory=dict)
    consume_tps: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOffsetBody:
    """The consumer offsets a client is told to go to."""

    offset_table: Mapping[MessageQueue, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAssignmentRequestBody:
    """A member asks a broker for its share (5.x)."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str
    message_model: str = MessageModel.CLUSTERING


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQueueAssignment:
    """A queue of the share, and how to get its messages; without queue it says nothing."""

    message_queue: MessageQueue | None = None
    mode: str = MessageRequestMode.PULL
    attachments: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAssignmentResponseBody:
    """A member's share; None where the broker does not know the member."""

    message_queue_assignments: tuple[MessageQueueAssignment, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConsumerListByGroupResponseBody:
    """The client ids of a group."""

    consumer_id_list: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicList:
    """Topic names, in no order."""

    topic_list: tuple[str, ...] = ()
    broker_addr: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KVTable:
    """Names and texts: a broker's figures, a name server's settings."""

    table: Mapping[str, str] = field(default_factory=dict)
