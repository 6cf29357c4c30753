"""Decisions of a mirror: which queues belong together, and which messages are copied."""

import zlib
from collections.abc import Sequence

from rmqtools.errors import BrokerError, ConfigError, RemotingError, RocketMQError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.mirror import Place
from rmqtools.model.queue import MessageQueue

_HASHES = 1 << 32
_PASSING = (ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE)


def pair_queues(
    source: Sequence[MessageQueue], target: Sequence[MessageQueue]
) -> list[tuple[MessageQueue, MessageQueue]]:
    """Return each queue of a topic with the queue that it is copied to, by broker name and queue id.

    Raises:
        ConfigError: the topics do not have as many queues; names the remedy.
    """
    if len(source) != len(target) or not source:
        raise ConfigError(
            f"the source topic has {len(source)} queues that can be read, the target topic {len(target)} "
            "that can be written: a queue is copied to one queue, so give them as many (rmqtools topic alter)"
        )
    by_place = [sorted(queues, key=lambda queue: queue.sort_key) for queues in (source, target)]
    return list(zip(*by_place, strict=True))


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


def may_come_back(error: RocketMQError) -> bool:
    """Return whether a mirror waits for its source after this error: it is away, busy, or just starting."""
    return isinstance(error, RemotingError) or (isinstance(error, BrokerError) and error.code in _PASSING)


def is_in_share(key: bytes, share: float) -> bool:
    """Return whether messages of a key belong to a share of all: the same for every mirror."""
    return zlib.crc32(key) < share * _HASHES
