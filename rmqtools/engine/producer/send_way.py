"""The two ways of a send: on the event loop, or on the thread that waits for it. Its coroutine is the same.

On the calling thread the coroutine never suspends: a request is written and answered there, over a blocking
connection. What belongs to the loop (looking up a route, a first connection, asking for a broker's version)
runs there while the thread waits.

A send on its caller's thread takes no lock: a signal handler may close the producer or send in the middle of
it. Shared values are changed by single calls of built-in types; loops over them use a copy.
"""

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar

from rmqtools.engine.connection.blocking_connection import UnexpectedBytesError
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.protocol.wire.template import Request

T = TypeVar("T")


class SendWay(Protocol):
    """Waiting of a send: for an answer, a callback, or nothing."""

    def invoke(self, addr: str, command: Request, *, timeout: float) -> Awaitable[RemotingCommand]:
        """Send a request and wait for its answer; errors as of :meth:`Remoting.invoke`."""

    def on_loop(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> Awaitable[T]:
        """Run a coroutine function on the client's event loop."""


class LoopWay:
    """The way of a send that runs on the client's event loop."""

    def __init__(self, remoting: Remoting) -> None:
        self.invoke = remoting.invoke

    def on_loop(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> Awaitable[T]:
        """See :meth:`SendWay.on_loop`."""
        return function(*arguments)


class LoopRunner(Protocol):
    """Runs coroutines on the client's event loop for other threads."""

    def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine that ``make`` returns, and wait for it; an interrupt cancels it."""


class CallerWay:
    """The way of a send that runs on its caller's thread. Safe to share between threads."""

    def __init__(self, remoting: Remoting, loop: LoopRunner) -> None:
        self._remoting = remoting
        self._loop = loop

    async def invoke(self, addr: str, command: Request, *, timeout: float) -> RemotingCommand:
        """Send a request over a blocking connection; over the loop's if there is none."""
        now = self._remoting.clock.monotonic
        deadline = now() + timeout
        connection = self._remoting.take_blocking(addr, timeout)
        if connection is None:
            left = max(0.0, deadline - now())
            return self._loop.run(lambda: self._invoke_on_loop(addr, command, left))
        try:
            return connection.invoke(self._remoting.signed(command), deadline - now())
        except UnexpectedBytesError:  # only where it was used before, so this ends
            pass
        finally:
            self._remoting.pool.give_back(connection)
        return await self.invoke(addr, command, timeout=deadline - now())

    async def on_loop(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """See :meth:`SendWay.on_loop`."""
        return self._loop.run(partial(function, *arguments))

    async def _invoke_on_loop(self, addr: str, command: Request, timeout: float) -> RemotingCommand:
        return await self._remoting.invoke(addr, command, timeout=timeout)
