"""Iterators walked one after the other, the next few begun ahead of their turn."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

_END = object()


class _Begun(Generic[T]):
    """An iterator of which the first item is being made."""

    def __init__(self, weight: int, items: AsyncGenerator[T, None]) -> None:
        self.weight = weight
        self.items = items
        self.first = asyncio.ensure_future(_next(items))


async def in_turn(
    weighed: Iterable[tuple[int, AsyncGenerator[T, None]]], *, max_weight: int, at_once: int
) -> AsyncGenerator[T, None]:
    """Hand out what each iterator hands out; no item of one before all of those in front of it.

    Args:
        weighed: iterators, each with a weight.
        max_weight: of all that are begun and not over; a heavier one is begun when its turn comes.
        at_once: so many at most are begun and not over; each of them holds one item.
    """
    waiting = deque(weighed)
    begun: deque[_Begun[T]] = deque()

    def may_begin() -> bool:
        return not begun or (
            len(begun) < at_once and sum(one.weight for one in begun) + waiting[0][0] <= max_weight
        )

    try:
        while waiting or begun:
            while waiting and may_begin():
                begun.append(_Begun(*waiting.popleft()))
            item = await begun[0].first
            while item is not _END:
                yield item  # type: ignore[misc] # mypy does not narrow on a sentinel
                item = await _next(begun[0].items)
            begun.popleft()
    finally:
        for one in begun:
            one.first.cancel()
        await asyncio.gather(*(one.first for one in begun), return_exceptions=True)
        for one in begun:
            await one.items.aclose()


async def _next(items: AsyncGenerator[T, None]) -> T | object:
    return await anext(items, _END)
