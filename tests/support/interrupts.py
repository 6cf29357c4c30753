"""Interrupts of a thread that waits, as Ctrl-C makes them."""

import contextlib
import os
import signal
import threading


@contextlib.contextmanager
def interrupted_when(event: threading.Event):
    """KeyboardInterrupt on this thread, which waits in a call, as soon as ``event`` is set.

    The signal is repeated: one that arrives just before the thread begins to wait does not wake it.
    """
    interrupted = threading.Event()

    def interrupt(number, frame):
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
