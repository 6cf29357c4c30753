"""Keys in Redis: shared by all members of a group, next to effects that are somewhere else.

A key of Redis is ``prefix:group:key``. Its value is the id of the member that is consuming the message, for
``lease`` seconds, and then ``done``, for the window:

    SET name owner NX PX lease     claims it, unless it has a value
    GET name                       done: consumed before; else: another member is consuming it
    SET name done PX window        after the listener returned
    DEL name                       if the listener failed and the value is still our owner
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from rmqtools.once.key_store import Claim

if TYPE_CHECKING:
    from redis import Redis
    from redis.client import Pipeline

_DONE: Final = b"done"


class RedisStore:
    """Remembers keys in Redis, which must not evict them (``maxmemory-policy noeviction``).

    Args:
        client: a ``redis.Redis``, with or without ``decode_responses``; the caller closes it.
        group: the consumer group. Groups do not see each other's keys.
        lease: seconds after which a message of a member that died may be consumed by another one. Must be
            longer than the longest listener call, or two members may consume one message.
        prefix: begins the names of all keys.
    """

    def __init__(
        self, client: "Redis", *, group: str, lease: float = 60.0, prefix: str = "rmqtools:once"
    ) -> None:
        if not 0 < lease < math.inf:
            raise ValueError(f"lease={lease!r}: want a finite number of seconds above 0")
        if not group:
            raise ValueError("group='': want the name of the consumer group")
        self._client: Any = client
        self._prefix = f"{prefix}:{group}:"
        self._lease_ms = max(1, round(lease * 1000))

    @contextmanager
    def claim(self, keys: Sequence[str], window: float) -> Iterator[Claim]:
        """See :meth:`rmqtools.once.KeyStore.claim`.

        Raises:
            redis.RedisError: Redis does not answer. After the listener has returned, this means that its
                messages are delivered again and consumed again.
        """
        owner = uuid4().hex.encode()
        claim = self._take(keys, owner)
        try:
            yield claim
        finally:
            self._release(claim.new - claim.done, owner)
            self._remember(claim.done, window)

    def _take(self, keys: Sequence[str], owner: bytes) -> Claim:
        with self._client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.set(self._prefix + key, owner, nx=True, px=self._lease_ms)
                pipeline.get(self._prefix + key)
            answers = pipeline.execute()
        values = dict(zip(keys, map(_as_bytes, answers[1::2]), strict=True))
        new = frozenset(key for key, value in values.items() if value == owner)
        done = {key for key, value in values.items() if value == _DONE}
        return Claim(new, frozenset(values) - new - done)

    def _remember(self, keys: set[str], window: float) -> None:
        if not keys:
            return
        window_ms = None if window == math.inf else max(1, round(window * 1000))  # None: for ever
        with self._client.pipeline(transaction=True) as pipeline:
            for key in keys:
                pipeline.set(self._prefix + key, _DONE, px=window_ms)
            pipeline.execute()

    def _release(self, keys: frozenset[str], owner: bytes) -> None:
        for key in keys:
            name = self._prefix + key

            def delete_if_ours(pipeline: "Pipeline", name: str = name) -> None:
                ours = _as_bytes(pipeline.get(name)) == owner
                pipeline.multi()
                if ours:
                    pipeline.delete(name)

            self._client.transaction(delete_if_ours, name)


def _as_bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
