"""Unfinished iterators: the process still ends, without output."""

import gc
import itertools
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rmqtools.errors import ClientStateError
from rmqtools.sync.loop import Bridge

SCENE = """
import asyncio, contextlib, gc, sys, threading
from rmqtools import Client, ClientConfig, MessageQueue, QueueRange
from rmqtools.testing import FakeCluster, RequestCode

pulled = threading.Event()
cluster = FakeCluster()
cluster.create_topic("T", queues=1)
cluster.store("T", *[b"x"] * 100)
cluster.fault(code=RequestCode.PULL_MESSAGE, times=None, answer=lambda request: pulled.set())
cluster.__enter__()

async def numbers():
    number = 0
    while True:
        yield number
        number += 1
        await asyncio.sleep(0)

async def one_then_an_error():
    yield 0
    raise ValueError

async def one_then_nothing():
    yield 0
    await asyncio.Event().wait()

client = Client(ClientConfig(name_server=cluster.name_server))
client.start()
"""

PROGRAMS = {
    "iterators of every kind, the client closed": """
        walked = client.iterate(numbers())
        next(walked)
        waiting = client.iterate(one_then_nothing())
        next(waiting)
        failed = client.iterate(one_then_an_error())
        next(failed)
        unwalked = client.iterate(numbers())
        circle = [client.iterate(one_then_nothing())]
        next(circle[0])
        circle.append(circle)
        del circle

        def walk():
            items = client.iterate(numbers())
            try:
                for item in items:
                    yield item
            finally:
                items.close()

        walking = walk()
        next(walking)
        reading = client.read_messages(QueueRange(MessageQueue("T", "broker-a", 0), 0, 100))
        threading.excepthook = lambda args: None
        threading.Thread(target=list, args=(reading,), daemon=True).start()
        pulled.wait()
        client.run(asyncio.sleep(0.05))
        client.close()
        """,
    "iterators and an owner that closes late, the client left open": """
        import warnings
        warnings.simplefilter("ignore", ResourceWarning)
        walked = client.iterate(numbers())
        next(walked)
        circle = [client.iterate(one_then_nothing())]
        next(circle[0])
        circle.append(circle)
        del circle

        class Owner:
            def __init__(self, client):
                self.client = client

            def __del__(self):
                with contextlib.suppress(Exception):
                    self.client.close()

        owner = Owner(client)
        owner.itself = owner
        """,
    "an iterator collected on the loop thread": """
        items = client.iterate(numbers())
        next(items)
        circle = [items]
        circle.append(circle)
        gc.disable()
        del items, circle

        async def collect():
            gc.collect()

        client.run(collect())
        client.close()
        """,
}


@pytest.mark.process
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_process_with_an_unfinished_iterator_ends_at_once_and_says_nothing(program):
    done = subprocess.run(
        [sys.executable, "-c", SCENE + textwrap.dedent(program)], capture_output=True, text=True, timeout=100
    )

    assert (done.returncode, done.stderr) == (0, "")


def ended(program: str) -> tuple[int, str, str]:
    """The exit code of a program, and what it has printed."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.process
def test_after_the_end_of_the_interpreter_the_loop_takes_up_no_event():
    program = """
        import asyncio, ctypes, sys, time
        from rmqtools.sync.loop import Bridge

        bridge = Bridge()
        bridge.submit(lambda: asyncio.sleep(0.5))
        c = ctypes.CDLL(None)
        c.on_exit(ctypes.cast(c.sleep, ctypes.c_void_p), None)  # sleep(1), when Python has ended
        time.sleep(0.1)  # the loop waits for its timer by then
        sys.exit(1)
    """

    assert ended(program) == (1, "", "")


@pytest.mark.process
def test_what_a_program_has_registered_for_its_end_may_use_a_client_whenever_it_was_registered():
    program = """
        import atexit
        atexit.register(lambda: print(bridge.call(lambda: "before the import")))
        from rmqtools.sync.loop import Bridge

        bridge = Bridge()
        bridge.call(int)
        atexit.register(lambda: print(bridge.call(lambda: "after it")))
    """

    assert ended(program) == (0, "after it\nbefore the import\n", "")


@pytest.mark.process
def test_an_iterator_that_is_let_go_of_closes_its_generator_without_being_waited_for():
    closed = threading.Event()

    async def numbers():
        try:
            while True:
                yield 0
        finally:
            closed.set()

    items = Bridge().iterate(numbers())
    next(items)
    del items
    gc.collect()

    assert closed.wait(5)


async def one_and_an_error():
    yield 0
    raise ValueError("second")


def test_an_iterator_that_was_closed_has_no_more_items():
    items = Bridge().iterate(one_and_an_error())
    next(items)
    items.close()
    items.close()

    assert list(items) == []


def test_an_error_of_the_item_made_ahead_comes_in_its_turn_and_is_the_end():
    items = Bridge().iterate(one_and_an_error())

    assert next(items) == 0
    with pytest.raises(ValueError, match="second"):
        next(items)
    assert list(items) == []


def test_two_threads_may_walk_one_iterator():
    async def numbers():
        for number in range(200):
            yield number

    items = Bridge().iterate(numbers())
    with ThreadPoolExecutor(4) as threads:
        seen: list[list[int]] = list(threads.map(list, [items] * 4))

    assert sorted(itertools.chain(*seen)) == list(range(200))


def test_an_iterator_on_the_loop_thread_is_refused():
    bridge = Bridge()

    async def walk() -> None:
        next(bridge.iterate(one_and_an_error()))

    with pytest.raises(ClientStateError, match=r"use rmqtools\.aio"):
        bridge.run(walk)
