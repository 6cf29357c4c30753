"""The loop thread behind the blocking face: one per process, started on first use.

A loop thread belongs to one pid. After a fork the child starts its own.

A thread of uvloop that takes up an event after the end of the interpreter ends the process by SIGSEGV. So the
loop halts when the interpreter begins to end.
"""

import asyncio
import atexit
import os
import threading

from rmqtools.engine.connection.background import Background
from rmqtools.sync.greenlets import are_threads_greenlets, new_cooperative_loop, run_forever

_PATIENCE_AT_EXIT = 5.0  # seconds

THREADS: "dict[int, LoopThread]" = {}


def new_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop: uvloop's if that is installed, else asyncio's.

    Raises:
        ClientStateError: no loop can run in this process, see :func:`are_threads_greenlets`.
    """
    if are_threads_greenlets():
        return new_cooperative_loop()
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class LoopThread:
    """A daemon thread that runs one event loop until the interpreter ends.

    Attributes:
        halts: the interpreter is about to end; the loop takes up no event unless the main thread needs it.
    """

    def __init__(self) -> None:
        self.halts = False
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._goes_on = threading.Event()
        self.background = Background()
        self.walked: set[object] = set()
        self._ident: int | None = None

    @classmethod
    def of_this_process(cls) -> "LoopThread":
        """Return the running loop thread of this process."""
        thread = THREADS.get(os.getpid()) or THREADS.setdefault(os.getpid(), cls())
        thread._start()
        return thread

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running event loop."""
        assert self._loop is not None
        return self._loop

    def is_current(self) -> bool:
        """Return whether the caller runs on the loop thread, which must not block."""
        return threading.get_ident() == self._ident

    def _start(self) -> None:
        with self._lock:
            if self._loop is not None:
                if self.halts and threading.current_thread() is threading.main_thread():
                    self.halts = False  # of functions that atexit calls; a daemon thread waits until the end
                    self._goes_on.set()
                return
            run = self._run_cooperatively if are_threads_greenlets() else self._run
            loop = new_loop()  # not on its thread: the caller gets the error
            ready = threading.Event()
            threading.Thread(target=run, args=(loop, ready), name="rmqtools-loop", daemon=True).start()
            ready.wait()

    def halt(self) -> None:
        """Stop the loop from taking up events. Returns when it rests, or after 5 s if a callback hangs."""
        if self._loop is None or are_threads_greenlets():
            return
        self.halts = True
        self._goes_on.clear()
        rests = threading.Event()
        self._loop.call_soon_threadsafe(self._rest, rests)
        rests.wait(_PATIENCE_AT_EXIT)

    def _rest(self, rests: threading.Event) -> None:
        rests.set()
        self._goes_on.wait()

    def _run(self, loop: asyncio.AbstractEventLoop, ready: threading.Event) -> None:
        self._open(loop, ready)
        asyncio.set_event_loop(loop)
        loop.run_forever()

    def _run_cooperatively(self, loop: asyncio.AbstractEventLoop, ready: threading.Event) -> None:
        self._open(loop, ready)
        run_forever(loop)

    def _open(self, loop: asyncio.AbstractEventLoop, ready: threading.Event) -> None:
        """Take over the loop on its thread. It sets ``ready`` as soon as it runs."""
        self._loop, self._ident = loop, threading.get_ident()
        loop.call_soon(ready.set)


@atexit.register  # with the import: what a program registers afterwards runs before, and may close clients
def _halt_at_exit() -> None:
    if (thread := THREADS.get(os.getpid())) is not None:
        thread.halt()
