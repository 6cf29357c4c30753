"""The state of one broker of a fake cluster, shared by its request handlers."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rmqtools.model.codes import ResponseCode
from rmqtools.model.group_config import SubscriptionGroupConfig
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.headers.codec import Header, encode_header
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing.fake.commit_log import CommitLog
from rmqtools.testing.fake.server import Answer, Peer
from rmqtools.testing.fake.timers import Timers
from rmqtools.testing.fake.topics import Topics

Handler = Callable[[RemotingCommand, Peer], Answer]
Handlers = Mapping[int, Handler]
DELAY_SECONDS = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""The delay of each level from 1 on: a broker's messageDelayLevel."""


@dataclass(kw_only=True)
class Settings:
    """Settings of the brokers of a fake cluster."""

    auto_create_topics: bool = True
    delay_scale: float = 0.0
    lock_seconds: float = 60.0
    pull_max_messages: int = 32
    pull_max_bytes: int = 256 * 1024
    max_bytes: int = 256 * 1024 * 1024


@dataclass(kw_only=True)
class State:
    """One broker's tables.

    ``resets``: offsets that were reset and that no pull has reported yet. ``locks``: by group and queue, the
    client that has locked it, and until when; a broker forgets them when it stops.
    """

    name: str
    cluster: str
    settings: Settings
    timers: Timers
    topics: Topics
    log: CommitLog
    groups: dict[str, SubscriptionGroupConfig] = field(default_factory=dict)
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    resets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    locks: dict[tuple[str, MessageQueue], tuple[str, float]] = field(default_factory=dict)
    delayed: Counter[int] = field(default_factory=Counter)  # messages that wait, by delay level
    addr: str = "127.0.0.1:0"  # until it listens
    boot_timestamp_ms: int = 0  # of the last start
    is_slave: bool = False

    def group(self, name: str) -> SubscriptionGroupConfig:
        """Return the settings of a group; created if missing."""
        return self.groups.setdefault(name, SubscriptionGroupConfig(group_name=name))

    def group_refusal(self, name: str) -> RemotingCommand | None:
        """Return the refusal to a group that may not consume; creates the group if it is missing."""
        if self.group(name).consume_enable:
            return None
        return refused(ResponseCode.NO_PERMISSION, f"subscription group no permission, {name}")


def succeeded(header: Header | None = None, body: bytes = b"") -> RemotingCommand:
    """Return an answer with code SUCCESS."""
    return response(
        ResponseCode.SUCCESS, 0, ext_fields={} if header is None else encode_header(header), body=body
    )


def refused(code: int, remark: str) -> RemotingCommand:
    """Return an answer with an error code."""
    return response(code, 0, remark=remark)
