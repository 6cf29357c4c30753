"""Decisions of a mirror: which queues belong together, and which messages are copied."""

import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rmqtools.errors import BrokerError, ConfigError, RemotingError, RocketMQError
from rmqtools.model.append_mark import APPEND_MARK
from rmqtools.model.codes import ResponseCode
from rmqtools.model.message_const import (
    PROPERTY_KEYS,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from rmqtools.model.mirror import MIRROR_WAY, NOT_COPIED, Place
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import ClusterInfo

_MARK, _WAY, _TAGS = APPEND_MARK.encode(), MIRROR_WAY.encode(), PROPERTY_TAGS.encode()
_LEFT_OUT = frozenset(name.encode() for name in NOT_COPIED)
_KEY_NAMES = tuple(
    name.encode() for name in (PROPERTY_SHARDING_KEY, PROPERTY_KEYS, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
)
_HASHES = 1 << 32
_KEY_BITS, _WIDTH_BITS = 44, 18
_GROUPING = re.compile("(?<=[0-9]),(?=[0-9]{3})")  # MessageFormat writes 1,000 days
_UNITS = (86_400, 3_600, 60, 1)  # seconds of a day, an hour, a minute, a second
_PASSING = (ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE)


@dataclass(frozen=True, slots=True)
class Pair:
    """The record at a target queue: what is copied to it, and how many queues its topic has.

        key: 44 bits of a hash of the source queue | width: 18 bits

    Attributes:
        key: of the source queue, see :func:`key_of`.
        width: queues of the target topic; if there are fewer now, a broker is away, with its records.
    """

    key: int
    width: int

    def encode(self) -> int:
        """Return the record as one number."""
        return self.key << _WIDTH_BITS | self.width


def decode_pair(number: int) -> Pair:
    """Return a record."""
    return Pair(number >> _WIDTH_BITS, number & ((1 << _WIDTH_BITS) - 1))


def key_of(queue: MessageQueue) -> int:
    """Return the key of a source queue: the same whatever its cluster is called."""
    return key_of_place(f"{queue.topic}/{queue.broker_name}/{queue.queue_id}")


def key_of_place(place: str) -> int:
    """Return the key of a source queue, given as in the origin of a mark, without its cluster."""
    return int.from_bytes(hashlib.sha256(place.encode()).digest()[:8], "big") >> 64 - _KEY_BITS


@dataclass(frozen=True, slots=True)
class Pairing:
    """The queues of two topics that belong together.

    Attributes:
        pairs: source queues with their target queues.
        awaited: target queues whose source queue is not there: its broker is away.
        unpaired: source queues without a target queue so far.
        lost: queues of the target that are not there.
        width: all queues of the target.
    """

    pairs: dict[MessageQueue, MessageQueue]
    awaited: list[MessageQueue]
    unpaired: list[MessageQueue]
    lost: int
    width: int

    @property
    def is_complete(self) -> bool:
        """True if nothing is waited for."""
        return not (self.awaited or self.unpaired or self.lost)


def pair_queues(
    source: Sequence[MessageQueue],
    target: Sequence[MessageQueue],
    recorded: Mapping[MessageQueue, Pair],
) -> Pairing:
    """Return each queue of a topic with the queue that it is copied to.

    Recorded pairs stay. The others are made by broker name and queue id, unless a queue of the target is
    away: it may have the record of one of them.

    Args:
        source: the queues that can be read.
        target: the queues that can be written.
        recorded: the records of target queues.

    Raises:
        ConfigError: nothing is recorded, and the topics do not have as many queues; names the remedy.
    """
    if not recorded and (len(source) != len(target) or not source):
        raise ConfigError(
            f"the source topic has {len(source)} queues that can be read, the target topic {len(target)} "
            "that can be written: a queue is copied to one queue, so give them as many (rmqtools topic "
            "alter); if a broker is down, start it first"
        )
    by_key = {key_of(queue): queue for queue in source}
    pairs = {by_key[pair.key]: queue for queue, pair in recorded.items() if pair.key in by_key}
    awaited = [queue for queue, pair in recorded.items() if pair.key not in by_key]
    lost = max(0, max((pair.width for pair in recorded.values()), default=0) - len(target))
    rest, free = (
        sorted(set(queues) - taken, key=lambda queue: queue.sort_key)
        for queues, taken in ((source, pairs.keys()), (target, recorded.keys()))
    )
    if not lost:
        pairs |= dict(zip(rest, free, strict=False))
    return Pairing(pairs, awaited, [queue for queue in rest if queue not in pairs], lost, lost + len(target))


def source_time_ms(info: Mapping[str, str]) -> int | None:
    """Return the time of a broker's clock, at most a second early; None: its runtime information lacks it.

    Source of the rule: StoreStatsService.getRuntimeInfo, getFormatRuntime (broker 5.5.0): the start in ms,
    and the time since then in days, hours, minutes and seconds.
    """
    parts = [int(part) for part in re.findall("[0-9]+", _GROUPING.sub("", info.get("runtime", "")))]
    began = info.get("bootTimestamp", "")
    if len(parts) != len(_UNITS) or not began.isdecimal():
        return None
    return int(began) + 1000 * sum(part * unit for part, unit in zip(parts, _UNITS, strict=True))


def cluster_names(
    source: ClusterInfo, target: ClusterInfo, *, source_name: str | None, target_name: str | None
) -> tuple[str, str]:
    """Return the names of both clusters; the same name twice means the same cluster.

    Raises:
        ConfigError: two clusters of one name, or one cluster of two; names the settings.
    """
    is_same = bool(_addresses(source) & _addresses(target))
    from_ = source_name or _only_name(source, "source_name")
    to = target_name or (from_ if is_same else _only_name(target, "target_name"))
    if from_ == to and not is_same:
        raise ConfigError(
            f"both clusters have the name {from_!r}, by which a message's way is noted: give source_name and "
            "target_name, the same ones to all mirrors"
        )
    if from_ != to and is_same:
        raise ConfigError(
            f"{from_!r} and {to!r} are the same cluster: give it one name, and another target topic"
        )
    return from_, to


def _only_name(info: ClusterInfo, setting: str) -> str:
    """Return the name of the one cluster that a name server knows."""
    names = sorted(info.cluster_addr_table)
    if len(names) != 1:
        raise ConfigError(f"the name server knows the clusters {', '.join(names) or 'none'}: give {setting}")
    return names[0]


def _addresses(info: ClusterInfo) -> set[str]:
    return {addr for data in info.broker_addr_table.values() for addr in data.broker_addrs.values()}


class Way:
    """The way of messages from one place to another; decides whether a message has been there already."""

    def __init__(self, source: Place, target: Place) -> None:
        self._source = str(source)
        self._is_inside = source.cluster == target.cluster
        self._wanted = str(target) if self._is_inside else f"{target.cluster}/"

    def next(self, way: str) -> str | None:
        """Return the way of a copy, with the place it came from; None: it was at the target already.

        Within a cluster a place is a topic; between clusters it is the cluster, whatever the topic.
        """
        for place in way.split():
            if place == self._wanted if self._is_inside else place.startswith(self._wanted):
                return None
        return f"{way} {self._source}".lstrip()


def kept_properties(properties: Sequence[bytes]) -> tuple[list[bytes], bytes]:
    """Return the stored properties that a copy has, and the way that the message has come."""
    kept, way = [], b""
    for pair in properties:
        name, _, value = pair.partition(b"\x01")
        if name not in _LEFT_OUT:
            if value:
                kept.append(pair)
        elif name == _WAY:
            way = value
    return kept, way


class MirrorCopies:
    """The choice of messages that a mirror copies, and their properties. ``mark``: a mark without numbers."""

    def __init__(self, way: Way, *, tags: Iterable[str], share: float, mark: str) -> None:
        self._way, self._share = way, share
        self._mark = b"\x01%d " + mark.encode().replace(b"%", b"%%") + b"%d\x02"
        self._tags = frozenset(tag.encode() for tag in tags)
        self._chooses = bool(self._tags) or share < 1.0
        self._ways: dict[bytes, bytes | None] = {}

    def properties(self, stored: Sequence[bytes], queue_offset: int, stored_ms: int) -> bytes | None:
        """Return the properties of a copy; None: the message is not copied."""
        kept, way = kept_properties(stored)
        if self._chooses and not self._is_chosen(stored):
            return None
        if way not in self._ways:
            self._note_way(way)
        if (following := self._ways[way]) is None:
            return None
        kept.append(_MARK + self._mark % (queue_offset, stored_ms) + following)
        return b"\x02".join(kept)

    def _is_chosen(self, stored: Sequence[bytes]) -> bool:
        """Return whether a message has one of the tags, and belongs to the share."""
        pairs = (pair.partition(b"\x01") for pair in stored)
        found = {name: value for name, _, value in pairs}
        if self._tags and found.get(_TAGS) not in self._tags:
            return False
        key = next((found[name] for name in _KEY_NAMES if found.get(name)), b"")
        return self._share >= 1.0 or is_in_share(key, self._share)

    def _note_way(self, way: bytes) -> None:
        """Note the property of the copies of messages that have come this way; None: they are not copied."""
        following = self._way.next(way.decode("utf-8", "replace"))
        if len(self._ways) >= 1000:
            self._ways.clear()
        self._ways[way] = None if following is None else b"%s\x01%s\x02" % (_WAY, following.encode())


def may_come_back(error: RocketMQError) -> bool:
    """Return whether a mirror waits for its source after this error: it is away, busy, or just starting."""
    return isinstance(error, RemotingError) or (isinstance(error, BrokerError) and error.code in _PASSING)


def is_in_share(key: bytes, share: float) -> bool:
    """Return whether messages of a key belong to a share of all: the same for every mirror."""
    return zlib.crc32(key) < share * _HASHES
