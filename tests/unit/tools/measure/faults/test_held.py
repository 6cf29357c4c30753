import asyncio
import socket
import threading

from tools.measure.faults.held import Held


async def test_what_is_left_is_counted():
    before = Held.now()
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    task = asyncio.create_task(asyncio.sleep(10))
    with socket.socket():
        left = [figure.value for figure in Held.now().figures_since(before)]
    over.set()
    thread.join()
    task.cancel()

    assert left == [1, 1, 1]


async def test_what_closes_a_moment_later_is_not_left():
    before = Held.now()
    asyncio.get_running_loop().call_later(0.03, socket.socket().close)

    assert await Held.settled(before) == before
