"""Start, close and the ``with`` block of every blocking class."""

import asyncio
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self, TypeVar

from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.client_object import ClientObject
from rmqtools.errors import ClientStateError
from rmqtools.sync.loop import Bridge

T = TypeVar("T")


class ItemsUntilNone(Iterator[T]):
    """The items that a function returns, up to None. An interrupted call ends no iteration."""

    def __init__(self, fetch: Callable[[], T | None]) -> None:
        self._fetch = fetch

    def __next__(self) -> T:
        if (item := self._fetch()) is None:
            raise StopIteration
        return item


class Blocking(ClientObject):
    """Starts and closes an asynchronous object from blocking code."""

    def __init__(self, asynchronous: Asynchronous) -> None:
        self._bridge = Bridge()
        self._asynchronous = asynchronous
        self._may_be_open = False  # started, and not closed since
        self._open = False
        self._starting: asyncio.Task[object] | None = None  # used on the loop thread only

    def start(self) -> None:
        """Start the object. An interrupted start (Ctrl-C) closes it."""
        self._may_be_open = True
        try:
            self._bridge.run(self._start)
        except Exception:  # it has closed itself; a second start has started nothing
            raise
        except BaseException:
            self.close()
            raise
        self._open = self._may_be_open  # a listener may have closed it

    def close(self) -> None:
        """Close it, and wait until it is closed: at any time, from any state, any number of times.

        Interrupting a call ends only its waiting. Closing continues, and the next call waits for its end.
        """
        if self._may_be_open:
            self._bridge.run(self._close)
            self._may_be_open = self._open = False

    async def _start(self) -> None:
        self._starting = task = asyncio.current_task()
        try:
            await self._asynchronous.start()
        except asyncio.CancelledError as error:
            raise ClientStateError("closed while it was being started: make a new one") from error
        finally:
            if self._starting is task:
                self._starting = None

    async def _close(self) -> None:
        if (starting := self._starting) is not None and not self._asynchronous.close_ends_start:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
        await self._asynchronous.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    if not TYPE_CHECKING:  # a type checker says it by itself

        async def __aenter__(self) -> NoReturn:
            name = type(self).__name__
            raise TypeError(f"rmqtools.{name} works in 'with': write that, or use rmqtools.aio.{name}")

        async def __aexit__(self, *_: object) -> None: ...

    def _shown(self) -> Mapping[str, str]:
        return self._asynchronous._shown()

    def __del__(self) -> None:
        if getattr(self, "_open", False) and self._bridge.is_of_this_process():
            warnings.warn(
                f"unclosed {type(self).__name__}: call close()", ResourceWarning, source=self, stacklevel=2
            )
