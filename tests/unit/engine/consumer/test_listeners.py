"""Which listeners a subscription takes, and whom closing waits for."""

import asyncio
import functools
from collections.abc import Sequence
from typing import Any

import pytest

import rmqtools
from rmqtools import ConsumeContext, MessageExt, PushConsumerConfig, aio
from tests.unit.engine.consumer.push_scene import idle, pushing, stored, until

CONFIG = PushConsumerConfig(name_server="127.0.0.1:1", group="g")
FACES = pytest.mark.parametrize("face", [aio, rmqtools], ids=["asyncio", "blocking"])


async def of_one(messages):
    """Take one argument."""


async def of_three(messages, context, more):
    """Take three arguments."""


@FACES
@pytest.mark.parametrize(
    "listener", [5, "A || B", None, of_one, of_three], ids=["number", "tags", "none", "one", "three"]
)
def test_what_cannot_be_called_with_messages_and_context_is_refused_at_once(face, listener):
    with pytest.raises(TypeError, match=r"topic 't' is .*: want a function listener\(messages, context\)"):
        face.PushConsumer(CONFIG).subscribe("t", listener)


async def of_two(messages: list[MessageExt], context: ConsumeContext) -> None:
    """Take a list."""


async def of_any(*arguments: object) -> None:
    """Take anything."""


class Called:
    async def __call__(self, messages: Sequence[MessageExt], context: ConsumeContext, more: int = 0) -> None:
        """Have a third argument that may be left out."""


@pytest.mark.parametrize("listener", [of_two, of_any, Called(), functools.partial(of_three, more=1), max])
def test_whatever_can_be_called_with_messages_and_context_is_taken(listener):
    aio.PushConsumer(CONFIG).subscribe("t", listener)


@pytest.mark.parametrize("orderly", [False, True], ids=["concurrently", "orderly"])
async def test_a_listener_is_given_a_list(orderly):
    given = []

    async def listen(messages, context):
        given.append(type(messages))

    async with pushing(listen, orderly=orderly) as scene:
        scene.arrive(stored(0))
        scene.consumption.work_on(scene.held)
        await until(lambda: given)
    assert given == [list]


@pytest.mark.parametrize("orderly", [False, True], ids=["concurrently", "orderly"])
async def test_listeners_that_close_their_own_consumer_are_not_waited_for(orderly):
    closed: list[Any] = []
    both = asyncio.Event()

    async def listen(messages, context):
        if messages[0].queue_offset == 1 or orderly:
            both.set()
        await both.wait()
        await idle(messages[0].queue_offset * 50)  # the second comes while the first is being closed
        await scene.consumer.close()
        closed.append(messages[0].queue_offset)

    async with pushing(listen, orderly=orderly, close_timeout=15.0) as scene:
        scene.arrive(stored(0), stored(1))
        scene.consumption.work_on(scene.held)
        await until(lambda: sorted(closed) == ([0] if orderly else [0, 1]))
