"""Resources of a process that its clients must give back."""

import asyncio
import threading
from dataclasses import dataclass
from pathlib import Path

from tools.measure.faults.figures import Figure, at_most, unmet

_SETTLE_SECONDS = 1.0


@dataclass(frozen=True)
class Held:
    """Sockets, threads and tasks of this process: none may be left when the clients are closed."""

    sockets: int
    threads: int
    tasks: int

    @classmethod
    def now(cls) -> "Held":
        """Count them; must be called on an event loop."""
        sockets = sum(_is_socket(entry) for entry in Path("/proc/self/fd").iterdir())
        threads = [t for t in threading.enumerate() if not t.name.startswith("asyncio_")]
        return cls(sockets, len(threads), len(asyncio.all_tasks()))

    @classmethod
    async def settled(cls, before: "Held") -> "Held":
        """Count them when no more are left than before, or after a second: closing takes a moment."""
        held = cls.now()
        deadline = asyncio.get_running_loop().time() + _SETTLE_SECONDS
        while unmet(held.figures_since(before)) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.02)
            held = cls.now()
        return held

    def figures_since(self, before: "Held") -> list[Figure]:
        """Return what came to stay since then."""
        return [
            at_most("sockets left", self.sockets - before.sockets, 0),
            at_most("threads left", self.threads - before.threads, 0),
            at_most("tasks left", self.tasks - before.tasks, 0),
        ]


def _is_socket(entry: Path) -> bool:
    try:
        return str(entry.readlink()).startswith("socket:")
    except OSError:
        return False
