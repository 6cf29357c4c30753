"""Iterators walked one after the other, the next few begun ahead of their turn."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class _Begun(Generic[K, T]):
    """An iterator of which the first item is being made."""

    def __init__(self, key: K, weight: int, items: AsyncGenerator[T, None]) -> None:
        self.key = key
        self.weight = weight
        self.items = items
        self.first = asyncio.ensure_future(_next(items))


async def in_turn(
    weighed: Iterable[tuple[K, int, AsyncGenerator[T, None]]], *, max_weight: int, at_once: int
) -> AsyncGenerator[tuple[K, T], None]:
    """Hand out what each iterator hands out; no item of one before all of those in front of it.

    An item that was handed out is not referenced here any more.

    Args:
        weighed: iterators, each with a key that its items are handed out with, and a weight.
        max_weight: of all that are begun and not over; a heavier one is begun when its turn comes.
        at_once: so many at most are begun and not over; each of them holds one item.
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
    """The next item, alone in a list: who takes it out is the only one who has it. Empty: there is none."""
    async for item in items:
        return [item]
    return []
