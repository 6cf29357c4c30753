"""Interrupts of a thread that waits, as Ctrl-C makes them."""

import asyncio
import contextlib
import dis
import itertools
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Collection, Coroutine, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

T = TypeVar("T")


@contextlib.contextmanager
def interrupted_when(event: threading.Event) -> Iterator[None]:
    """KeyboardInterrupt on this thread, which waits in a call, as soon as ``event`` is set.

    The signal is repeated: one that arrives just before the thread begins to wait does not wake it.
    """
    interrupted = threading.Event()

    def interrupt(number: int, frame: object) -> None:
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    def send() -> None:
        event.wait(10)
        while not interrupted.is_set():
            os.kill(os.getpid(), signal.SIGUSR1)
            interrupted.wait(0.1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        interrupted.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)


class Interrupted(BaseException):
    """Exception that the signal handler raises."""


class SignalPoints:
    """Trace function that counts the places at which CPython would run a signal's handler.

    These are the start of a function, the end of a loop's round, and the instruction after a call of a
    function written in C: a call of a Python function ends without such a check. At one of them it raises.
    """

    def __init__(self, raise_at: int) -> None:
        self.seen = 0
        self._raise_at = raise_at
        self._before: dict[Any, str] = {}  # the last instruction of each frame
        self._names: dict[Any, dict[int, str]] = {}

    def __call__(self, frame: Any, event: str, _: object) -> Any:
        if is_finalizer(frame):
            return None
        if event == "call":
            self._before.pop(frame.f_back, None)  # what its caller has called is written in Python
            frame.f_trace_opcodes = True
            self._count()
        elif event == "opcode":
            name = self._name(frame)
            is_coroutine = name == "GET_AWAITABLE"  # made without a check by the call before
            if self._before.get(frame, "").startswith(("CALL", "JUMP_BACKWARD")) and not is_coroutine:
                self._count()
            self._before[frame] = name
        elif event == "return":
            self._before.pop(frame, None)
        return self

    def _count(self) -> None:
        self.seen += 1
        if self.seen == self._raise_at:
            sys.settrace(None)
            raise Interrupted

    def _name(self, frame: Any) -> str:
        names = self._names.get(frame.f_code)
        if names is None:
            names = {each.offset: each.opname for each in dis.get_instructions(frame.f_code)}
            self._names[frame.f_code] = names
        return names.get(frame.f_lasti, "")


def is_finalizer(frame: Any) -> bool:
    """Return whether errors of a frame are printed, and go no further."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in {"__del__", "gc_callback"} or "weakref" in code.co_filename:
            return True
        frame = frame.f_back
    return False


def count_points(call: Callable[[], Any]) -> int:
    """Return the number of signal points of a call, made once."""
    points = SignalPoints(-1)
    before = sys.gettrace()
    sys.settrace(points)
    try:
        call()
    finally:
        sys.settrace(before)
    return points.seen


def interrupted_at_point(number: int | None, call: Callable[[], Any]) -> tuple[bool, Any]:
    """Make a call, and raise :class:`Interrupted` at its signal point with this number, if it has so many.

    None: nowhere.

    Returns:
        Whether it was interrupted, and its result if not. An error of the call is raised.
    """
    points = SignalPoints(number or -1)
    before = sys.gettrace()
    sys.settrace(points)
    try:
        return False, call()
    except Interrupted:
        return True, None
    finally:
        sys.settrace(before)


def interrupted_at(
    number: int,
    files: Collection[str],
    call: Callable[[], Any],
    *,
    what: Literal["opcode", "call"] = "opcode",
) -> bool:
    """Make a call, and raise :class:`Interrupted` at its bytecode with this number; whether it has so many.

    Bytecodes of these files are counted; a name may have the folder before it. A signal's handler runs
    between some of them, so none is left out.
    With ``what="call"`` beginnings of functions are counted, where one always may.
    """
    seen = 0

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal seen
        path = Path(frame.f_code.co_filename)
        if path.name not in files and f"{path.parent.name}/{path.name}" not in files:
            return None
        frame.f_trace_opcodes = what == "opcode"
        if event == what:
            seen += 1
            if seen == number:
                sys.settrace(None)
                raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Interrupted:
        return True
    finally:
        sys.settrace(before)
    return False


@types.coroutine
def cancelled_at(
    number: int, coroutine: Coroutine[Any, Any, T], *, is_late: bool
) -> Generator[Any, Any, tuple[bool, T | None]]:
    """Run a coroutine in this task, and cancel the task at the coroutine's wait with this number.

    ``is_late``: cancel it when the wait has ended and the coroutine has not gone on yet.

    Returns:
        Whether it was cancelled, and its result if not.
    """
    task = asyncio.current_task()
    assert task is not None
    step: Callable[[], Any] = partial(coroutine.send, None)
    for seen in itertools.count(1):
        try:
            waited = step()
        except StopIteration as end:
            return False, end.value
        except asyncio.CancelledError:
            if task.uncancel() > 0 or seen <= number:
                raise
            return True, None
        if seen == number:
            if is_late and isinstance(waited, asyncio.Future):
                waited.add_done_callback(lambda _: task.cancel())  # before the callback that wakes the task
            else:
                asyncio.get_running_loop().call_soon(task.cancel)
        step = partial(coroutine.send, None)
        try:
            yield waited
        except BaseException as error:  # noqa: BLE001 - the coroutine's, as everything else
            step = partial(coroutine.throw, error)
    raise AssertionError
