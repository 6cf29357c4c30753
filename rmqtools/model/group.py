"""Producer and consumer groups as clients and brokers exchange them: members, locks, offsets.

The enumerations are texts, so unknown values of newer servers can be kept.
Source of the names: HeartbeatData, ConsumerConnection, LockBatchRequestBody, TopicStatsTable, ConsumeStats,
QueryAssignmentRequestBody, ResetOffsetBody and what they hold (Java client 5.5.0).
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record

SUB_ALL = "*"


class ConsumeType(StrEnum):
    """Ways of fetching: by the user's calls, by the client in the background, or by popping."""

    CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
    CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
    CONSUME_POP = "CONSUME_POP"


class MessageModel(StrEnum):
    """Sharing in a group: members share a topic's messages, or each gets all of them."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class ConsumeFromWhere(StrEnum):
    """Start of a group without an offset."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class MessageRequestMode(StrEnum):
    """Way in which a member gets the messages of an assigned queue."""

    PULL = "PULL"
    POP = "POP"


@record
class SubscriptionData:
    """The subscription of a group to a topic.

    ``code_set`` has the tags' Java hash codes; ``sub_version`` is its time of creation, in ms since 1970.
    """

    topic: str
    sub_string: str = SUB_ALL
    tags_set: tuple[str, ...] = ()
    code_set: tuple[int, ...] = ()
    sub_version: int = 0
    expression_type: str = "TAG"
    class_filter_mode: bool = False


@record
class ProducerData:
    """One producer group of a client."""

    group_name: str


@record
class ConsumerData:
    """One consumer group of a client."""

    group_name: str
    consume_type: str = ConsumeType.CONSUME_PASSIVELY
    message_model: str = MessageModel.CLUSTERING
    consume_from_where: str = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    subscription_data_set: tuple[SubscriptionData, ...] = ()
    unit_mode: bool = False


@record
class HeartbeatData:
    """All groups of a client, sent to every known broker."""

    client_id: str | None = None
    producer_data_set: tuple[ProducerData, ...] = ()
    consumer_data_set: tuple[ConsumerData, ...] = ()
    heartbeat_fingerprint: int = 0
    without_sub: bool = False


@record
class HeartbeatSyncerData:
    """A consumer's heartbeat to a proxy, as the proxy sends it to other proxies by a topic.

    Attributes:
        heartbeat_type: REGISTER or UNREGISTER.
        client_id: of the consumer.
        group: its group, with its namespace.
        local_proxy_id: ``ip%remoting port%gRPC port`` of the proxy.
        last_update_timestamp: when the proxy got it, in milliseconds since 1970.
    """

    heartbeat_type: str
    client_id: str
    group: str
    local_proxy_id: str = ""
    last_update_timestamp: int = 0


@record
class Connection:
    """One member of a group, as reported by its broker."""

    client_id: str
    client_addr: str
    language: str | None = None
    version: int = 0


@record
class ProducerInfo:
    """One connection of a producer, as reported by its broker; the address begins with a slash (Java)."""

    client_id: str
    remote_ip: str = ""
    language: str | None = None
    version: int = 0
    last_update_timestamp: int = 0


@record
class ProducerTableInfo:
    """The producers that a broker knows, by producer group."""

    data: Mapping[str, tuple[ProducerInfo, ...]] = field(default_factory=dict)


@record
class ConsumerConnection:
    """All members of a consumer group, and their subscriptions."""

    connection_set: tuple[Connection, ...] = ()
    subscription_table: Mapping[str, SubscriptionData] = field(default_factory=dict)
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None


@record
class LockBatchRequestBody:
    """Queues that a member asks to lock (ordered consumption)."""

    consumer_group: str
    client_id: str
    mq_set: tuple[MessageQueue, ...] = ()
    only_this_broker: bool = False


@record
class UnlockBatchRequestBody:
    """Queues that a member unlocks."""

    consumer_group: str
    client_id: str
    mq_set: tuple[MessageQueue, ...] = ()
    only_this_broker: bool = False


@record
class LockBatchResponseBody:
    """The queues of a lock request that were locked."""

    lock_ok_mq_set: tuple[MessageQueue, ...] = ()


@record
class TopicOffset:
    """The offsets of a queue; ``max_offset`` is one more than the last message's."""

    min_offset: int
    max_offset: int
    last_update_timestamp: int = 0


@record
class TopicStatsTable:
    """The offsets of a topic's queues on one broker."""

    offset_table: Mapping[MessageQueue, TopicOffset] = field(default_factory=dict)
    topic_put_tps: float = 0.0


@record
class OffsetWrapper:
    """The consumer offset of a group on one queue; its lag is ``broker_offset - consumer_offset``."""

    broker_offset: int
    consumer_offset: int
    pull_offset: int = 0
    last_timestamp: int = 0


@record
class ConsumeStats:
    """The consumer offsets of a group on one broker."""

    offset_table: Mapping[MessageQueue, OffsetWrapper] = field(default_factory=dict)
    consume_tps: float = 0.0


@record
class ResetOffsetBody:
    """The offsets that a client shall move to."""

    offset_table: Mapping[MessageQueue, int] = field(default_factory=dict)


@record
class CheckClientRequestBody:
    """CHECK_CLIENT_CONFIG: a subscription that the broker is to check."""

    client_id: str
    group: str
    subscription_data: SubscriptionData
    namespace: str | None = None


@record
class QueryAssignmentRequestBody:
    """A member's request to a broker for its share (5.x)."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str
    message_model: str = MessageModel.CLUSTERING


@record
class MessageQueueAssignment:
    """A queue of the share, and how to fetch its messages; ignored without a queue."""

    message_queue: MessageQueue | None = None
    mode: str = MessageRequestMode.PULL
    attachments: Mapping[str, str] | None = None


@record
class QueryAssignmentResponseBody:
    """A member's share; None if the broker does not know the member."""

    message_queue_assignments: tuple[MessageQueueAssignment, ...] | None = None


@record
class GetConsumerListByGroupResponseBody:
    """The client ids of a group."""

    consumer_id_list: tuple[str, ...] = ()


@record
class TopicList:
    """Topic names, unsorted."""

    topic_list: tuple[str, ...] = ()
    broker_addr: str | None = None


@record
class KVTable:
    """Names and texts: a broker's statistics, a name server's settings."""

    table: Mapping[str, str] = field(default_factory=dict)
