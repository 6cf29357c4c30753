"""Routes: a topic's queues and brokers, as the name server reports them; a topic's settings on a broker."""

from collections.abc import Mapping
from dataclasses import field
from enum import IntFlag

from rmqtools.model.record import record

MASTER_ID = 0
BATCH_CQ = "BatchCQ"  # the queue type whose queues hold batches, each as one message
_QUEUE_TYPE = "queue.type"
MESSAGE_TYPE_ATTRIBUTE = "message.type"


class Perm(IntFlag):
    """Permission bits of a topic on a broker (PermName in the Java client)."""

    INHERIT = 1
    WRITE = 2
    READ = 4
    PRIORITY = 8


@record(kw_only=False)
class QueueData:
    """The number of queues of a topic on one broker set, and their permissions."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int = 0

    @property
    def is_readable(self) -> bool:
        """True if clients may pull."""
        return bool(self.perm & Perm.READ)

    @property
    def is_writable(self) -> bool:
        """True if clients may send."""
        return bool(self.perm & Perm.WRITE)


@record
class TopicConfig:
    """The settings of a topic on one broker. Attributes (5.x) have their plain names, e.g. ``message.type``.

    Source of the names: TopicConfig, TopicAttributes (Java client 5.5.0).
    """

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = Perm.READ | Perm.WRITE
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False
    attributes: Mapping[str, str] | None = None

    @property
    def holds_batches(self) -> bool:
        """True if a batch that a producer sends is kept as one message.

        Source of the rule: QueueTypeUtils.isBatchCq (broker).
        """
        return (self.attributes or {}).get(_QUEUE_TYPE) == BATCH_CQ

    @property
    def message_type(self) -> str:
        """The messages that it takes: NORMAL, FIFO, DELAY, TRANSACTION, ...; NORMAL if nothing is set."""
        return (self.attributes or {}).get(MESSAGE_TYPE_ATTRIBUTE, "NORMAL")


@record(kw_only=False)
class BrokerData:
    """The addresses of one broker set by broker id; 0 is the master."""

    broker_name: str
    broker_addrs: Mapping[int, str]
    cluster: str = ""
    zone_name: str | None = None
    enable_acting_master: bool = False


@record(kw_only=False)
class TopicQueueMapping:
    """A static topic's logic queues on one broker: global queue id -> the broker's queue id."""

    topic: str
    broker_name: str
    scope: str
    total_queues: int
    epoch: int
    dirty: bool = False
    curr_id_map: Mapping[int, int] | None = None


@record(kw_only=False)
class TopicRouteData:
    """One topic's route. ``order_topic_conf``: None and "" differ (see ``policy.publish``)."""

    queue_datas: tuple[QueueData, ...] = ()
    broker_datas: tuple[BrokerData, ...] = ()
    order_topic_conf: str | None = None
    filter_server_table: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    topic_queue_mapping_by_broker: Mapping[str, TopicQueueMapping] | None = None


@record(kw_only=False)
class ClusterInfo:
    """All brokers that a name server knows, and their clusters."""

    broker_addr_table: Mapping[str, BrokerData] = field(default_factory=dict)
    cluster_addr_table: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def own_topics(self) -> frozenset[str]:
        """The topics that brokers make for themselves: one of the name of each cluster and each broker."""
        return frozenset((*self.cluster_addr_table, *self.broker_addr_table))
