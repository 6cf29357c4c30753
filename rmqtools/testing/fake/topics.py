"""The topics of one broker, created by request or by the first message.

Source of the rules: TopicConfigManager, TopicValidator (broker 5.5.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rmqtools.model.names import HALF_TOPIC, SCHEDULE_TOPIC, dlq_topic, retry_topic
from rmqtools.model.route import Perm

AUTO_CREATE_TOPIC = "TBW102"
_READ_WRITE = int(Perm.READ | Perm.WRITE)
_MAX_AUTO_QUEUES = 8  # the queues of TBW102


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One topic on one broker."""

    read_queue_nums: int
    write_queue_nums: int
    perm: int = _READ_WRITE
    topic_sys_flag: int = 0
    order: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_readable(self) -> bool:
        """True if consumers may pull."""
        return bool(self.perm & Perm.READ)

    @property
    def is_writable(self) -> bool:
        """True if producers may send."""
        return bool(self.perm & Perm.WRITE)


class Topics:
    """The topics of one broker by name.

    Attributes:
        permission: the broker's ``brokerPermission``.
        is_wiped: whether name servers were asked to show no topic as writable; any change of a topic ends it.
    """

    def __init__(self, *, auto_create: bool) -> None:
        self._auto_create = auto_create
        self.permission = _READ_WRITE
        self.is_wiped = False
        self._configs = {
            HALF_TOPIC: TopicConfig(1, 1),
            SCHEDULE_TOPIC: TopicConfig(18, 18),
        }
        if auto_create:
            inherited = _READ_WRITE | int(Perm.INHERIT)
            self._configs[AUTO_CREATE_TOPIC] = TopicConfig(_MAX_AUTO_QUEUES, _MAX_AUTO_QUEUES, inherited)

    def __contains__(self, topic: str) -> bool:
        return topic in self._configs

    @property
    def names(self) -> list[str]:
        """Names of all topics."""
        return [*self._configs]

    def get(self, topic: str) -> TopicConfig | None:
        """One topic; None: it does not exist."""
        return self._configs.get(topic)

    def put(self, topic: str, config: TopicConfig) -> None:
        """Create or change a topic; then the broker registers all of them anew."""
        self._configs[topic] = config
        self.is_wiped = False

    def shown_perm(self, config: TopicConfig) -> int:
        """Return the permission of a topic in routes."""
        perm = config.perm & self.permission if self.permission != _READ_WRITE else config.perm
        return perm & ~int(Perm.WRITE) if self.is_wiped else perm

    def delete(self, topic: str) -> None:
        """Delete a topic, if it exists."""
        self._configs.pop(topic, None)

    def for_send(self, topic: str, default_topic: str, queues: int) -> TopicConfig | None:
        """Return the topic of a message, created if that is allowed; None: it does not exist."""
        if topic not in self._configs and self._auto_create and default_topic == AUTO_CREATE_TOPIC:
            count = min(queues, _MAX_AUTO_QUEUES)
            self.put(topic, TopicConfig(count, count))
        return self._configs.get(topic)

    def retry(self, group: str, queues: int) -> str:
        """Return the name of a group's retry topic; creates the topic."""
        return self._made(retry_topic(group), queues)

    def dlq(self, group: str) -> str:
        """Return the name of a group's dead-letter topic; creates the topic."""
        return self._made(dlq_topic(group), 1)

    def _made(self, topic: str, queues: int) -> str:
        if topic not in self._configs:
            self.put(topic, TopicConfig(queues, queues))
        return topic
