"""Event loops of processes whose threads are greenlets, because gevent has patched them.

There the loop thread is a greenlet too. It shares one thread with all others, so it has to give way whenever
it waits: uvloop and epoll would stop the process. gevent is never imported unless the program has done so.

- Where gevent has patched threads, the loop thread is a greenlet (``sync.greenlets``). While it waits, no
  loop is noted as running: asyncio notes it for the whole thread, and other greenlets would be refused what
  coroutines may not do.
- A greenlet survives a fork. In the child the loop must end before it reads: the sockets and the bytes in
  them are the parent's.
- A signal handler runs on any greenlet, the loop's too. An exception that it raises to end the process goes
  on to the main greenlet, and the loop continues: closing needs it.
"""

import asyncio
import importlib
import os
import selectors
import sys
from collections.abc import Mapping
from typing import Any

from rmqtools.errors import ClientStateError


def are_threads_greenlets() -> bool:
    """Return whether gevent has patched the threads of this process.

    Raises:
        ClientStateError: eventlet has patched it.
    """
    _refuse_eventlet()
    return _has_patched("threading")


def are_sockets_patched() -> bool:
    """Return whether gevent has patched threads or sockets of this process; errors as above."""
    return are_threads_greenlets() or _has_patched("socket")


def _has_patched(module: str) -> bool:
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched(module))


def _refuse_eventlet() -> None:
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is not None and any(map(patcher.is_monkey_patched, ("thread", "socket"))):
        raise ClientStateError(
            "eventlet has patched this process (monkey_patch), and no event loop of asyncio can run in it: "
            "use gevent (gunicorn -k gevent, celery -P gevent) or threads, see docs/frameworks.md"
        )


def new_cooperative_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of asyncio that lets other greenlets run while it waits."""
    selector = _YieldingSelector()
    selector.loop = asyncio.SelectorEventLoop(selector)
    return selector.loop


def run_forever(loop: asyncio.AbstractEventLoop) -> None:
    """Run a cooperative loop until it is stopped.

    Python calls a signal handler on whichever greenlet is running, here as well. An exit that it raises goes
    on to the main greenlet, as from every other greenlet, and the loop continues: closing needs it.
    """
    asyncio._set_running_loop(None)  # of another greenlet, which gets it back while this loop waits
    while True:
        try:
            return loop.run_forever()
        except (KeyboardInterrupt, SystemExit) as error:
            sys.modules["gevent"].get_hub().handle_system_error(type(error), error)


class _YieldingSelector(selectors.BaseSelector):
    """gevent's selector. While it waits, no loop runs as far as other greenlets can see.

    asyncio notes the running loop for each thread. Django, for one, refuses its database where one is noted.

    Greenlets survive a fork, unlike threads. In a forked child a selector of the parent never returns: what
    is ready belongs to the parent, and a loop that ends removes the note of the child's own loop.
    """

    loop: asyncio.AbstractEventLoop  # that waits here

    def __init__(self) -> None:
        self._inner: selectors.BaseSelector = importlib.import_module("gevent.selectors").GeventSelector()
        self._pid = os.getpid()
        self._noted: asyncio.AbstractEventLoop | None = asyncio._get_running_loop()  # by other greenlets

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        asyncio._set_running_loop(self._noted)
        try:
            ready = self._inner.select(timeout)
            if os.getpid() != self._pid:
                self._inner.close()
                sys.modules["gevent"].get_hub().switch()
        finally:
            self._noted = asyncio._get_running_loop()
            asyncio._set_running_loop(self.loop)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.modify(fileobj, events, data)

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.get_key(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()
