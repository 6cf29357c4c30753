"""Settings of mirrors."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from rmqtools.config.checked import checked
from rmqtools.config.client import ClientConfig
from rmqtools.config.producer import ProducerConfig
from rmqtools.errors import ConfigError
from rmqtools.model.record import record

Begin: TypeAlias = Literal["earliest", "latest"] | int
"""Where a mirror begins that has copied nothing yet: a word, or a time in milliseconds since 1970."""

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


@checked
@record
class MirrorConfig:
    """Settings of a mirror: topics, source and target."""

    source: ClientConfig
    """The cluster to copy from."""

    target: ProducerConfig
    """The cluster to copy to, the same one or another; without ``linger`` and ``enable_trace``."""

    topics: Mapping[str, str]
    """Each topic to copy, and the topic to copy it to, which must exist and have as many queues."""

    name: str | None = None
    """Name of the mirror, for its locks and marks; None: the name of the source cluster.

    The same after a restart. Two mirrors that copy to the same topic need two names.
    """

    source_name: str | None = None
    """Name of the source cluster in the way of its messages; None: its own. All mirrors use the same."""

    target_name: str | None = None
    """Name of the target cluster; see ``source_name``. Needed if both clusters have the same name."""

    begin: Begin = field(
        default="earliest", metadata={"wanted": "earliest, latest, or milliseconds since 1970"}
    )
    """Where to begin in a queue at its first start: earliest, latest, or ms since 1970."""

    tags: tuple[str, ...] = ()
    """Copy only messages with one of these tags; empty: all."""

    sql: str | None = None
    """Copy only messages whose properties meet this SQL92 condition."""

    share: float = 1.0
    """Part of the messages to copy: by sharding key, else by keys, else by unique id.

    All messages of one sharding key are copied, or none.
    """

    max_messages_per_second: float | None = None
    """Limit of all queues together; None: no limit."""

    settle_seconds: float = 10.0
    """Seconds that each start takes; see :class:`rmqtools.ExactAppender`."""

    is_new: bool = False
    """True for a first copy to target queues whose oldest messages have expired.

    See :class:`rmqtools.ExactAppender`.
    """

    refused: str = "stop"
    """What happens to a message that the target refuses, such as one that is too large for it.

    stop: its topic stops with an error. skip: it is left out, logged and counted. Another word: the topic of
    the target that gets it instead, with the reason as a property, and without its body and its other
    properties if that is refused, too; after a crash it may be there twice.
    """

    request_bytes: int = 1024 * 1024
    """Bytes of messages in one request to the target. Brokers refuse more than their maxMessageSize."""

    def __post_init__(self) -> None:
        if not self.topics:
            raise ConfigError("topics is empty: name a topic to copy")
        self._check_names()
        if self.tags and self.sql is not None:
            raise ConfigError(f"both tags={sorted(self.tags)} and sql={self.sql!r}: give one")
        if not 0.0 < self.share <= 1.0:
            raise ConfigError(f"share={self.share!r}: want a part of 1, such as 0.01")
        rate = self.max_messages_per_second
        if rate is not None and not rate > 0:
            raise ConfigError(f"max_messages_per_second={rate!r}: want more than 0, or None")
        if not self.settle_seconds >= 0:
            raise ConfigError(f"settle_seconds={self.settle_seconds!r}: want 0 or more seconds")
        if self.request_bytes <= 0:
            raise ConfigError(f"request_bytes={self.request_bytes!r}: want more than 0")

    def _check_names(self) -> None:
        for name in ("name", "source_name", "target_name"):
            value = getattr(self, name)
            if value is not None and not (value and _NAME_CHARACTERS.issuperset(value)):
                raise ConfigError(f"{name}={value!r}: want letters, digits, _ and -")
        if not self.refused or not (_NAME_CHARACTERS | {"%"}).issuperset(self.refused):
            raise ConfigError(f"refused={self.refused!r}: want stop, skip, or the name of a topic")
