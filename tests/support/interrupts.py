"""Interrupts of a thread that waits, as Ctrl-C makes them."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Literal


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


def interrupted_at(
    number: int,
    files: Collection[str],
    call: Callable[[], Any],
    *,
    what: Literal["opcode", "call"] = "opcode",
) -> bool:
    """Make a call, and raise :class:`Interrupted` at its bytecode with this number; whether it has so many.

    Bytecodes of these files are counted. A signal's handler runs between some of them, so none is left out.
    With ``what="call"`` beginnings of functions are counted, where one always may.
    """
    seen = 0

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal seen
        if Path(frame.f_code.co_filename).name not in files:
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
