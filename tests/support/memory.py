"""How much memory a process has held at most, as Linux counts it.

``ru_maxrss`` will not do: it never falls, and a new process begins at that of the one it was forked from.
"""

from pathlib import Path


def peak_memory_bytes(pid: int | str = "self") -> int:
    """The most a process has held, since :func:`forget_peak_memory` or its beginning."""
    return _status_bytes(pid, "VmHWM:")


def held_memory_bytes() -> int:
    """What this process holds now."""
    return _status_bytes("self", "VmRSS:")


def forget_peak_memory() -> None:
    """Count from the memory that this process uses now."""
    Path("/proc/self/clear_refs").write_text("5")


def _status_bytes(pid: int | str, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024
