"""How much memory a process has held at most, as Linux counts it.

``ru_maxrss`` will not do: it never falls, and a new process begins at that of the one it was forked from.
"""

from pathlib import Path


def peak_memory_bytes() -> int:
    """The most this process has held, since :func:`forget_peak_memory` or its beginning."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024


def forget_peak_memory() -> None:
    """Count from what this process holds now."""
    Path("/proc/self/clear_refs").write_text("5")
