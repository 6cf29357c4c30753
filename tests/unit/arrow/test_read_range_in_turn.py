"""Iterators in turn: the order of items, which iterators are started ahead, which are closed."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest

from rmqtools.arrow.read_range import in_turn


@dataclass
class Sources:
    """Iterators that say when they are begun and when closed."""

    begun: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    async def of(self, name: str, count: int = 2) -> AsyncGenerator[str, None]:
        self.begun.append(name)
        try:
            for number in range(count):
                yield f"{name}{number}"
        finally:
            self.closed.append(name)


async def settle() -> None:
    """Let all tasks run that need no input."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_items_come_in_the_order_of_their_iterators():
    async def run() -> list[tuple[str, str]]:
        made = Sources()
        weighed = [("A", 1, made.of("a")), ("B", 1, made.of("b", 0)), ("C", 1, made.of("c"))]
        return [found async for found in in_turn(weighed, max_weight=9, at_once=9)]

    assert asyncio.run(run()) == [("A", "a0"), ("A", "a1"), ("C", "c0"), ("C", "c1")]


@pytest.mark.parametrize(
    ("weights", "max_weight", "at_once", "begun"),
    [
        pytest.param([1, 1, 1], 3, 9, "abc", id="all-fit"),
        pytest.param([1, 1, 1], 2, 9, "ab", id="the-weight-is-reached"),
        pytest.param([1, 1, 1], 9, 2, "ab", id="so-many-at-once"),
        pytest.param([5, 1, 1], 4, 9, "a", id="one-too-heavy-goes-alone"),
        pytest.param([1, 5, 1], 4, 9, "a", id="none-overtakes-a-heavy-one"),
    ],
)
def test_as_many_are_begun_as_may_be_while_the_first_is_used(weights, max_weight, at_once, begun):
    async def run() -> list[str]:
        made = Sources()
        weighed = [(name, weight, made.of(name)) for weight, name in zip(weights, "abc", strict=True)]
        items = in_turn(weighed, max_weight=max_weight, at_once=at_once)
        await anext(items)
        await settle()
        seen = list(made.begun)
        await items.aclose()
        return seen

    assert asyncio.run(run()) == list(begun)


def test_an_error_comes_when_it_is_its_turn_and_ends_all():
    made = Sources()

    async def failing() -> AsyncGenerator[str, None]:
        raise OSError("gone")
        yield

    async def run() -> list[str]:
        weighed = [("A", 1, made.of("a")), ("B", 1, failing()), ("C", 1, made.of("c"))]
        items = in_turn(weighed, max_weight=9, at_once=9)
        got = [(await anext(items))[1], (await anext(items))[1]]
        with pytest.raises(OSError, match="gone"):
            await anext(items)
        return [*got, *made.closed]

    assert asyncio.run(run()) == ["a0", "a1", "a", "c"]


def test_leaving_early_closes_all_that_are_begun():
    made = Sources()

    async def run() -> list[str]:
        items = in_turn([(name, 1, made.of(name)) for name in "abc"], max_weight=2, at_once=9)
        await anext(items)
        await items.aclose()
        return list(made.closed)  # when the loop ends it closes what is left

    assert asyncio.run(run()) == made.begun == ["a", "b"]
