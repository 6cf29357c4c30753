import asyncio
import gc
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from types import ModuleType

import pytest

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.errors import ClientStateError
from rmqtools.sync.loop import Bridge
from rmqtools.sync.loop_thread import LoopThread
from rmqtools.testing import FakeCluster
from tests.support.forked import in_child
from tests.support.interrupts import interrupted_at, interrupted_when


async def where() -> int:
    return threading.get_ident()


def test_threads_that_start_it_at_the_same_time_get_the_same_loop():
    with ThreadPoolExecutor(16) as threads:
        seen = set(threads.map(lambda _: Bridge().run(where), range(16)))

    assert len(seen) == 1


def test_a_blocking_call_on_the_loop_thread_raises_instead_of_waiting_for_itself():
    bridge = Bridge()

    async def block() -> None:
        bridge.run(where)

    with pytest.raises(ClientStateError, match=r"use rmqtools\.aio"):
        bridge.run(block)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The places that were logged because they blocked a running loop."""
    monkeypatch.setattr("rmqtools.sync.loop._noted", [])

    def found() -> list[str]:
        blocked = [one for one in caplog.records if one.getMessage().startswith("event_loop_blocked ")]
        return [record.__dict__["called_at"] for record in blocked]

    return found


def test_calls_that_block_a_running_event_loop_are_logged_once_with_their_place(events):
    async def block() -> None:
        Bridge().run(where)
        Bridge().run(where)

    Bridge().run(where)
    assert events() == []
    asyncio.run(block())

    assert events() == [f"{__file__}:{block.__code__.co_firstlineno + 1}"]


def test_a_send_that_blocks_a_running_event_loop_is_logged_and_one_with_a_future_is_not(events):
    async def send(producer: Producer) -> None:
        producer.send_async(Message("T", b"1")).add_done_callback(lambda sent: sent.result())
        assert events() == []
        producer.send(Message("T", b"2"))

    with FakeCluster() as cluster, Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        asyncio.run(send(producer))

    (place,) = events()
    assert place.startswith(f"{__file__}:")


def test_a_notebook_whose_cells_run_on_a_loop_gets_no_such_event(events, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))

    async def block() -> None:
        Bridge().run(where)

    asyncio.run(block())
    assert events() == []


def test_iterate_crosses_once_per_item_and_closes_a_generator_left_early():
    closed = threading.Event()

    async def numbers():
        try:
            for number in range(5):
                yield number
        finally:
            closed.set()

    items = Bridge().iterate(numbers())
    first = next(items)
    items.close()

    assert (first, closed.is_set()) == (0, True)
    assert list(Bridge().iterate(numbers())) == [0, 1, 2, 3, 4]


def test_iterate_has_the_next_item_made_while_one_is_used_and_no_more():
    made = []
    second = threading.Event()

    async def numbers():
        for number in range(5):
            made.append(number)
            if number == 1:
                second.set()
            yield number

    items = Bridge().iterate(numbers())

    assert next(items) == 0
    assert second.wait(5)
    assert next(items) == 1
    assert Bridge().run(lambda: settled(made)) == [0, 1, 2]
    items.close()


async def settled(made: list[int]) -> list[int]:
    """What was made when the loop has done all it can do now."""
    for _ in range(20):
        await asyncio.sleep(0)
    return list(made)


@pytest.mark.process
def test_an_interrupt_while_an_item_is_waited_for_is_that_interrupt():
    waiting = threading.Event()

    async def one_item():
        yield 0
        await asyncio.Event().wait()

    items = Bridge().iterate(one_item())
    next(items)
    threading.Timer(0.1, waiting.set).start()

    with interrupted_when(waiting), pytest.raises(KeyboardInterrupt):
        next(items)


def walk_once():
    async def numbers():
        for number in range(5):
            yield number

    items = Bridge().iterate(numbers())
    return lambda: next(items)


def run_once():
    bridge = Bridge()
    return lambda: bridge.run(where)


@pytest.mark.parametrize("prepared", [walk_once, run_once])
def test_an_interrupt_of_a_call_leaves_no_coroutine_behind_wherever_it_comes(prepared):
    number = 1
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        while interrupted_at(number, ["loop.py", "loop_thread.py"], prepared(), what="call"):
            number += 1
        gc.collect()

    assert number > 8
    assert [str(each.message) for each in said if "never awaited" in str(each.message)] == []


def test_an_interrupt_while_a_call_is_waited_for_cancels_its_coroutine():
    waiting, ended = threading.Event(), threading.Event()

    async def wait_for_ever():
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with interrupted_when(waiting), pytest.raises(KeyboardInterrupt):
        Bridge().run(wait_for_ever)

    assert ended.wait(5)


def test_a_coroutine_that_was_cancelled_is_an_exception_like_any_other_for_its_caller():
    async def cancelled():
        raise asyncio.CancelledError

    with pytest.raises(CancelledError) as caught:
        Bridge().run(cancelled)

    assert isinstance(caught.value, Exception)


def test_an_error_keeps_nothing_alive_that_its_caller_had():
    class Held:
        pass

    async def fail() -> None:
        raise ValueError

    def call() -> weakref.ref[Held]:
        held = Held()
        try:
            Bridge().run(fail)
        except ValueError:
            return weakref.ref(held)
        raise AssertionError

    gc.disable()
    try:
        assert call()() is None
    finally:
        gc.enable()


def test_a_new_bridge_in_a_forked_child_has_a_loop_of_its_own():
    Bridge().run(where)

    def use_new() -> str:
        Bridge().run(lambda: asyncio.sleep(0))
        return f"{LoopThread.of_this_process() is LoopThread.of_this_process()}"

    assert in_child(use_new) == "True"
