"""Where the queues of a topic are: what the name server says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag

MASTER_ID = 0


class Perm(IntFlag):
    """Permission bits of a topic on a broker (PermName in the Java client)."""

    INHERIT = 1
    WRITE = 2
    READ = 4
    PRIORITY = 8


@dataclass(frozen=True, slots=True)
class QueueData:
    """How many queues of a topic one broker set has, and what may be done with them."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int = 0

    @property
    def is_readable(self) -> bool:
        """Whether clients may pull."""
        return bool(self.perm & Perm.READ)

    @property
    def is_writable(self) -> bool:
        """Whether clients may send."""
        return bool(self.perm & Perm.WRITE)


@dataclass(frozen=True, slots=True)
class BrokerData:
    """The addresses of one broker set by broker id; 0 is the master."""

    broker_name: str
    broker_addrs: Mapping[int, str]
    cluster: str = ""
    zone_name: str | None = None
    enable_acting_master: bool = False


@dataclass(frozen=True, slots=True)
class TopicQueueMapping:
    """A static topic's logic queues on one broker: global queue id -> the broker's own id."""

    topic: str
    broker_name: str
    scope: str
    total_queues: int
    epoch: int
    dirty: bool = False
    curr_id_map: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class TopicRouteData:
    """One topic's route. ``order_topic_conf``: None and "" differ (see ``policy.publish``)."""

    queue_datas: tuple[QueueData, ...] = ()
    broker_datas: tuple[BrokerData, ...] = ()
    order_topic_conf: str | None = None
    filter_server_table: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    topic_queue_mapping_by_broker: Mapping[str, TopicQueueMapping] | None = None


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """All brokers a name server knows, and which cluster each belongs to."""

    broker_addr_table: Mapping[str, BrokerData] = field(default_factory=dict)
    cluster_addr_table: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
