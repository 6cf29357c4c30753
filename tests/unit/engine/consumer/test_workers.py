"""How many tasks call coroutine listeners, and what a call leaves to the next."""

import asyncio

from tests.support.scripted_peer import run
from tests.unit.engine.consumer.push_scene import idle, pushing, stored, until


def workers() -> int:
    return sum(1 for task in asyncio.all_tasks() if task.get_name() == "consume")


def test_messages_that_arrive_together_get_a_worker_each_and_no_more():
    ended, calls = asyncio.Event(), []

    async def listen(messages, context):
        calls.append(messages)
        await ended.wait()

    async def scenario():
        async with pushing(listen, consume_threads=20) as scene:
            for offset in range(6):
                scene.arrive(stored(offset))
            await idle(6)
            assert (len(calls), workers()) == (6, 6)
            ended.set()
            await until(lambda: scene.committed == 6)

    run(scenario)


def test_of_a_listener_that_waits_for_nothing_one_worker_makes_all_calls():
    heard = []

    async def listen(messages, context):
        heard.append((messages[0].queue_offset, asyncio.current_task()))

    async def scenario():
        async with pushing(listen) as scene:
            scene.arrive(*map(stored, range(100)))
            await until(lambda: scene.committed == 100)

    run(scenario)
    assert [offset for offset, _ in heard] == list(range(100))
    assert len({task for _, task in heard}) == 1
