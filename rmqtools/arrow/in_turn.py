"""Runs iterators one after the other and starts the next few ahead of their turn."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class _Begun(Generic[K, T]):
    """An iterator whose first item is being made."""

    def __init__(self, key: K, weight: int, items: AsyncGenerator[T, None]) -> None:
        self.key = key
        self.weight = weight
        self.items = items
        self.first = asyncio.ensure_future(_next(items))


async def in_turn(
    weighed: Iterable[tuple[K, int, AsyncGenerator[T, None]]], *, max_weight: int, at_once: int
) -> AsyncGenerator[tuple[K, T], None]:
    """Yield the items of all iterators, one iterator after the other.

    Keeps no reference to an item that was yielded.

    Args:
        weighed: iterators, each with a key that is yielded with its items, and a weight.
        max_weight: maximum weight of all running iterators; a heavier one starts when its turn comes.
        at_once: maximum number of running iterators; each of them holds one item.
    """
    waiting = deque(weighed)
    begun: deque[_Begun[K, T]] = deque()

    def may_begin() -> bool:
        return not begun or (
            len(begun) < at_once and sum(one.weight for one in begun) + waiting[0][1] <= max_weight
        )

    try:
        while waiting or begun:
            while waiting and may_begin():
                begun.append(_Begun(*waiting.popleft()))
            found = await begun[0].first
            while found:
                yield begun[0].key, found.pop()
                found = await _next(begun[0].items)
            begun.popleft()
    finally:
        for one in begun:
            one.first.cancel()
        await asyncio.gather(*(one.first for one in begun), return_exceptions=True)
        for one in begun:
            await one.items.aclose()


async def _next(items: AsyncGenerator[T, None]) -> list[T]:
    """Return the next item in a list, so that taking it out leaves no other reference. Empty at the end."""
    async for item in items:
        return [item]
    return []
