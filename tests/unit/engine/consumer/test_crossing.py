import asyncio
import threading
from typing import Any

from rmqtools.engine.consumer.crossing import Crossing


async def test_the_loop_takes_all_that_has_come_in_order_and_is_woken_once():
    taken: list[Any] = []

    crossing = Crossing(taken.append)
    crossing.open()
    for number in range(100):
        crossing.put(number)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert taken == [list(range(100))]


async def test_results_of_many_threads_all_arrive():
    taken: list[Any] = []

    crossing = Crossing(taken.extend)
    crossing.open()

    def put(begin):
        for number in range(begin, begin + 1000):
            crossing.put(number)

    threads = [threading.Thread(target=put, args=(begin,)) for begin in range(0, 4000, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    await asyncio.sleep(0)
    assert sorted(taken) == list(range(4000))


async def test_taking_early_leaves_nothing_for_later():
    taken: list[Any] = []

    crossing = Crossing(taken.append)
    crossing.open()
    crossing.put(1)
    crossing.take()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    crossing.put(2)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert taken == [[1], [2]]
