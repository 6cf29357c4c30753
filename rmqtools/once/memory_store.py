"""Keys in the memory of one process: for tests, and for copies that reach one process."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.once.key_store import Claim


class MemoryStore:
    """Remembers keys in this process only: another member, or a restart, knows none of them.

    Args:
        max_keys: beyond this number the oldest keys are forgotten, even inside the window. A key takes
            about 200 bytes.
        clock: for tests.
    """

    def __init__(self, *, max_keys: int = 1_000_000, clock: Clock = SYSTEM_CLOCK) -> None:
        if max_keys < 1:
            raise ValueError(f"max_keys={max_keys!r}: want 1 or more")
        self._max_keys = max_keys
        self._clock = clock
        self._lock = threading.Lock()
        self._done: OrderedDict[str, float] = OrderedDict()  # key -> when it may be forgotten; oldest first
        self._busy: set[str] = set()

    @contextmanager
    def claim(self, keys: Sequence[str], window: float) -> Iterator[Claim]:
        """See :meth:`rmqtools.once.KeyStore.claim`."""
        claim = self._take(keys)
        try:
            yield claim
        finally:
            self._release(claim, window)

    def _take(self, keys: Sequence[str]) -> Claim:
        with self._lock:
            now = self._clock.monotonic()
            open_keys = {key for key in keys if self._done.get(key, now) <= now}
            busy = frozenset(open_keys & self._busy)
            new = frozenset(open_keys - busy)
            self._busy |= new
            return Claim(new, busy)

    def _release(self, claim: Claim, window: float) -> None:
        with self._lock:
            self._busy -= claim.new
            now = self._clock.monotonic()
            for key in claim.done:
                self._done[key] = now + window
                self._done.move_to_end(key)
            while self._done and (len(self._done) > self._max_keys or next(iter(self._done.values())) <= now):
                self._done.popitem(last=False)
