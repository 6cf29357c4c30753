"""Counts the interpreter's steps: the work of a function, without a clock."""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class Steps:
    """Counts the bytecodes that run inside ``with``, in functions that are called there.

    The garbage collector is off meanwhile: it calls finalizers and callbacks of test tools at any time.
    """

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> "Steps":
        self._before = sys.gettrace()
        gc.disable()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        gc.enable()

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame: FrameType, event: str, argument: object) -> Any:
        self.count += event == "opcode"
        return self._step


def steady(steps_of: Callable[[int], int], number: int) -> int:
    """Return the second of two counts: the first is too small for functions that Python 3.13 never traced."""
    steps_of(number)
    return steps_of(number)
