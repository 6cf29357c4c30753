"""Interface of the key stores of ``deduplicate``."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True, eq=False)
class Claim:
    """The keys of one listener call, as a store found them.

    Attributes:
        new: keys that are consumed for the first time; no other member may consume them now.
        busy: keys that another member is consuming at this moment.
        arguments: further arguments of the listener, such as a database connection.
        done: keys of ``new`` whose messages the listener has consumed; the caller adds them.
    """

    new: frozenset[str]
    busy: frozenset[str] = frozenset()
    arguments: tuple[object, ...] = ()
    done: set[str] = field(default_factory=set)


class KeyStore(Protocol):
    """Remembers keys of consumed messages. Safe to use from several threads.

    Owed: of all members that claim a key at the same time, one finds it in ``new``. When the block ends, the
    keys in ``done`` are remembered for ``window`` seconds at least, and all other keys of ``new`` are free
    again. A block that raises has no ``done`` keys.
    """

    def claim(self, keys: Sequence[str], window: float) -> AbstractContextManager[Claim]:
        """Claim different keys for the duration of a ``with`` block."""
