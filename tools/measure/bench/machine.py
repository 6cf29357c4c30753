"""CPU time of processes and of the machine, from /proc."""

import os
from collections import defaultdict
from pathlib import Path

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_USER, _SYSTEM, _WAITED_USER, _WAITED_SYSTEM = 11, 12, 13, 14  # fields of /proc/PID/stat behind the name
_IDLE, _IO_WAIT, _FIELDS = 3, 4, 8  # of the line "cpu" of /proc/stat; stolen time counts as used


def machine_seconds() -> float:
    """Return what all processors have worked since the start of the machine."""
    with Path("/proc/stat").open() as lines:
        ticks = [int(word) for word in lines.readline().split()[1 : 1 + _FIELDS]]
    return (sum(ticks) - ticks[_IDLE] - ticks[_IO_WAIT]) * _TICK


def tree_seconds(pid: int) -> float:
    """Return what a process and all below it have worked, ended children included."""
    own, children = _processes()
    return sum(own.get(one, 0.0) for one in _below(pid, children))


def tree(pid: int) -> list[int]:
    """Return a process and all below it."""
    return _below(pid, _processes()[1])


def _below(pid: int, children: dict[int, list[int]]) -> list[int]:
    found, todo = list[int](), [pid]
    while todo:
        found.append(todo.pop())
        todo += children[found[-1]]
    return found


def _processes() -> tuple[dict[int, float], dict[int, list[int]]]:
    own: dict[int, float] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        fields = text[text.rindex(")") + 2 :].split()
        pid = int(path.parent.name)
        ticks = (_USER, _SYSTEM, _WAITED_USER, _WAITED_SYSTEM)
        own[pid] = sum(int(fields[field]) for field in ticks) * _TICK
        children[int(fields[1])].append(pid)
    return own, children


def resident_bytes(pid: int) -> int:
    """Return the most memory a process has held so far."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
