"""The ``async with`` block and the iteration of asynchronous classes, and their refusal to be pickled."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")


class NotPickled:
    """Refuses to be pickled, and names the config as what to pickle instead."""

    def __reduce__(self) -> str:
        raise TypeError(
            f"a {type(self).__name__} has connections and cannot be pickled: pickle its config, and make a "
            f"{type(self).__name__} where it is used"
        )


class Asynchronous(NotPickled, ABC):
    """Starts when a block is entered and closes when it is left."""

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


class ItemsUntilNone(AsyncIterator[T]):
    """The items that a coroutine function returns, up to None. A cancelled call ends no iteration."""

    def __init__(self, fetch: Callable[[], Awaitable[T | None]]) -> None:
        self._fetch = fetch

    async def __anext__(self) -> T:
        if (item := await self._fetch()) is None:
            raise StopAsyncIteration
        return item
