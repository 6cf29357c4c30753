"""Runs a target on damaged input, by number: the same number is the same input."""

import random
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from rmqtools.errors import RocketMQError
from tools.measure.fuzz.damage import damaged
from tools.measure.fuzz.targets import TARGETS, Target

_MOST_SECONDS = 5.0  # of CPU for one input of a few hundred bytes


@dataclass(frozen=True)
class Finding:
    """Fault of a decoder, and the input."""

    target: str
    number: int
    data: bytes
    what: str

    def __str__(self) -> str:
        again = f"python -m tools.measure.fuzz --target {self.target} --number {self.number}"
        return f"{again}\n  input {self.data.hex()}\n{self.what}"


def attempt(name: str, number: int, target: Target | None = None) -> Finding | None:
    """Decode one damaged input; None: as it must be, decoded or refused with our error."""
    target = target or TARGETS[name]
    data = damaged(random.Random(f"{name} {number}"), target.seeds)
    began = time.process_time()
    try:
        target.decode(data)
    except RocketMQError:
        pass
    except Exception:  # noqa: BLE001 - every other error is the finding
        return Finding(name, number, data, traceback.format_exc())
    seconds = time.process_time() - began
    return Finding(name, number, data, f"took {seconds:.1f} s") if seconds > _MOST_SECONDS else None


def findings(names: list[str], seconds: float, first: int) -> Iterator[Finding | int]:
    """Try inputs from number ``first`` on for a time, the targets in turn.

    Yields:
        Finding: each thing found.
        int: last, how many inputs were tried.
    """
    end = time.monotonic() + seconds
    tried = 0
    while time.monotonic() < end:
        for name in names:
            if found := attempt(name, first + tried // len(names)):
                yield found
            tried += 1
    yield tried
