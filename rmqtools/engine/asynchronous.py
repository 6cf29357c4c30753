"""The common part of every asynchronous class: ``async with``, one event loop, no pickling.

An object belongs to the loop of its start until it is closed. Its locks, tasks and connections work on no
other loop: a second ``asyncio.run`` would get errors of asyncio, or wait for ever. So each public coroutine
and asynchronous iterator compares the loops first. :class:`Asynchronous` adds this to its subclasses.

Locks, tasks and connections of a client belong to the event loop of its start.
``engine.asynchronous.Asynchronous`` wraps the public coroutines and iterators of every class that inherits
from it, and these compare the loops first; only ``Producer.send`` does so itself. ``functools.wraps`` hides
this from signatures; ``mark_of`` looks behind it. Private methods are not wrapped: other classes of the
engine and the blocking face use those.
"""

import warnings
from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from functools import wraps
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, get_origin

from rmqtools.config.checked import check_arguments
from rmqtools.engine.client_object import ClientObject
from rmqtools.errors import ClientStateError

T = TypeVar("T")


class Asynchronous(ClientObject, ABC):
    """Starts when a block is entered and closes when it is left; belongs to one event loop meanwhile."""

    _loop: AbstractEventLoop | None = None  # from the beginning of its start to the end of its close
    _host: "Asynchronous | None" = None  # the started object whose connections it uses

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        members = {name: member for each in reversed(cls.__mro__) for name, member in vars(each).items()}
        for name, member in members.items():
            is_public = isinstance(member, FunctionType) and (name[0] != "_" or name == "__aiter__")
            is_unbound = is_public and name not in cls._compare_loops_themselves
            if is_unbound and (bound := _bound(name, member, checks=cls._checks_arguments)) is not None:
                setattr(cls, name, bound)

    _checks_arguments = False
    """True if all arguments are compared with the annotations before a call, which takes some microseconds.
    False: after an error of Python, to name the argument that has caused it."""

    _compare_loops_themselves: frozenset[str] = frozenset()
    """Names of coroutine methods that are not wrapped: their own code compares the loops and checks all
    arguments. For methods with many calls at a time: a wrapper adds a tenth to a send with ``linger``."""

    close_ends_start = False
    """True if ``close`` itself ends a ``start`` that still runs; else that start must be cancelled before."""

    @abstractmethod
    async def start(self) -> None:
        """Make the object usable."""

    @abstractmethod
    async def close(self) -> None:
        """Close it, and wait until it is closed: at any time, from any state, any number of times."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    if not TYPE_CHECKING:  # a type checker says it by itself

        def __enter__(self) -> NoReturn:
            name = type(self).__name__
            raise TypeError(f"rmqtools.aio.{name} works in 'async with': write that, or use rmqtools.{name}")

        def __exit__(self, *_: object) -> None: ...

    def _shown(self) -> Mapping[str, str]:
        return {} if self._host is None else self._host._shown()

    def __del__(self) -> None:
        if self._loop is not None and self._loop.is_closed():
            name = " ".join([type(self).__name__, *filter(None, [getattr(self, "client_id", None)])])
            text = f"unclosed {name}, whose event loop has ended: call close() before, or use async with"
            warnings.warn(text, ResourceWarning, source=self, stacklevel=2)

    def _check_loop(self) -> None:
        """Raise if this object, or the one that it works on, was started on another loop than this one."""
        owner = self if self._loop is not None or self._host is None else self._host
        if owner._loop is None or owner._loop is get_running_loop():
            return
        name, is_closed = type(owner).__name__, owner._loop.is_closed()
        where = "an event loop that is closed" if is_closed else "another event loop"
        remedy = "close it before its loop ends" if is_closed else "use and close this one there"
        raise ClientStateError(
            f"this {name} was started on {where}: make a new one on this loop, and {remedy}"
        )


class ItemsUntilNone(AsyncIterator[T]):
    """The items that a coroutine function returns, up to None. A cancelled call ends no iteration."""

    def __init__(self, fetch: Callable[[], Awaitable[T | None]]) -> None:
        self._fetch = fetch

    async def __anext__(self) -> T:
        if (item := await self._fetch()) is None:
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


class _Walk(AsyncGenerator[Any, None]):
    """An asynchronous iterator of an object."""

    def __init__(self, owner: Asynchronous, items: AsyncGenerator[Any, None]) -> None:
        self._owner = owner
        self._items = items

    async def __anext__(self) -> Any:
        if self._owner._loop is not get_running_loop():
            self._owner._check_loop()
        return await self._items.__anext__()

    def asend(self, value: None) -> Coroutine[Any, Any, Any]:
        return self._items.asend(value)

    def athrow(self, *error: Any) -> Coroutine[Any, Any, Any]:
        return self._items.athrow(*error)

    def aclose(self) -> Coroutine[Any, Any, None]:
        return self._items.aclose()


def _bound(name: str, function: FunctionType, *, checks: bool) -> Callable[..., Any] | None:
    """Return a public method that compares the loops first; None: it is bound already, or needs no loop."""
    if hasattr(function, "__wrapped__") or getattr(function, "__isabstractmethod__", False):
        return None
    if name in ("start", "close"):
        return _bound_start(function) if name == "start" else _bound_close(function)
    kind = function.__code__.co_flags
    if kind & CO_COROUTINE:
        return _bound_coroutine(function, checks=checks)
    is_iterator = get_origin(function.__annotations__.get("return")) in (AsyncGenerator, AsyncIterator)
    return _bound_iterator(function) if kind & CO_ASYNC_GENERATOR or is_iterator else None


def _bound_coroutine(function: Callable[..., Any], *, checks: bool) -> Callable[..., Any]:
    @wraps(function)
    async def on_its_loop(self: Asynchronous, *args: Any, **kwargs: Any) -> Any:
        if self._loop is not get_running_loop():
            self._check_loop()
        if checks:
            check_arguments(function, self, *args, **kwargs)
        try:
            return await function(self, *args, **kwargs)
        except (TypeError, AttributeError):
            check_arguments(function, self, *args, **kwargs)
            raise

    return on_its_loop


def _bound_iterator(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def on_its_loop(self: Asynchronous, *args: Any, **kwargs: Any) -> _Walk:
        check_arguments(function, self, *args, **kwargs)
        return _Walk(self, function(self, *args, **kwargs))  # called on any thread; walked on a loop

    return on_its_loop


def _bound_start(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def start(self: Asynchronous) -> None:
        self._check_loop()
        is_first = self._loop is None
        self._loop = get_running_loop()
        try:
            await function(self)
        except BaseException:
            if is_first:  # else another start has made it usable
                self._loop = None
            raise

    return start


def _bound_close(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def close(self: Asynchronous) -> None:
        if self._loop is not None:  # else there is nothing to close, or nothing any more
            self._check_loop()
        await function(self)
        self._loop = None

    return close
