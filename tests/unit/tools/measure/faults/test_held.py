import asyncio
import socket
import threading

from tools.measure.faults.held import Held


def test_what_is_left_is_counted():
    async def scenario() -> list[float | str | None]:
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
        return left

    assert asyncio.run(scenario()) == [1, 1, 1]


def test_what_closes_a_moment_later_is_not_left():
    async def scenario() -> tuple[Held, Held]:
        before = Held.now()
        asyncio.get_running_loop().call_later(0.03, socket.socket().close)
        return (await Held.settled(before), before)

    settled, before = asyncio.run(scenario())

    assert settled == before
