"""The loop that does not wait."""

import asyncio
import socket
import time

import pytest

from rmqtools.clock import SYSTEM_CLOCK, SystemClock
from tests.support.skipping_loop import run_skipping


def test_an_hour_passes_at_once_and_for_the_engines_clock_too():
    async def scenario() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        began, engine_began = loop.time(), SYSTEM_CLOCK.monotonic()
        await asyncio.gather(asyncio.sleep(30), asyncio.sleep(20))
        return loop.time() - began, SYSTEM_CLOCK.monotonic() - engine_began

    began, clock = time.monotonic(), SystemClock.monotonic
    passed = run_skipping(scenario)

    assert passed == pytest.approx((30, 30), abs=0.01)
    assert time.monotonic() - began < 15
    assert SystemClock.monotonic is clock


def test_no_time_passes_while_something_runs():
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        time.sleep(0.05)  # noqa: ASYNC251 - the work of a busy machine
        return loop.time() - began

    assert run_skipping(scenario) < 0.01


def test_timers_run_in_the_order_of_their_times():
    order: list[object] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        for seconds in (3.0, 1.0, 2.0):
            loop.call_later(seconds, order.append, seconds)
        await asyncio.sleep(4)

    run_skipping(scenario)

    assert order == [1.0, 2.0, 3.0]


@pytest.mark.process
def test_what_a_thread_does_for_the_loop_is_waited_for():
    async def scenario() -> None:
        async with asyncio.timeout(5):
            await asyncio.to_thread(time.sleep, 0.3)

    run_skipping(scenario)


@pytest.mark.process
def test_time_passes_slowly_while_sent_bytes_have_not_arrived():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)

        async def seconds() -> float:
            asyncio.get_running_loop().add_reader(ours, lambda: None)
            began = time.monotonic()
            await asyncio.sleep(20)
            return time.monotonic() - began

        ours.send(
            b"x"
        )  # the peer's program has not read it: only there does such a socket count it as received
        assert run_skipping(seconds) >= 20 / 50
        theirs.recv(1)
        assert run_skipping(seconds) < 20 / 50


def test_bytes_on_their_way_come_before_a_timeout():
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(1))
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            for _ in range(50):
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
                writer.write(b"x")
                assert await asyncio.wait_for(reader.readexactly(1), 0.5) == b"x"
                writer.close()

    run_skipping(scenario)
