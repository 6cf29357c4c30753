"""Start and close of the blocking classes, interrupted at any moment."""

import asyncio
import gc
import subprocess
import sys
import threading
import warnings

import pytest

from rmqtools import Client, ClientConfig, Producer, ProducerConfig, TransactionProducer
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.connection.background import Closing
from rmqtools.errors import ClientStateError, ConfigError
from rmqtools.sync.lifecycle import Blocking
from rmqtools.sync.loop import Bridge
from tests.support.interrupts import interrupted_when
from tests.support.threads import in_thread
from tests.support.transactions import Listener


class Slow(Asynchronous):
    """Starts and closes when the gates open; cleans up after an interrupted start."""

    def __init__(self, *, error: Exception | None = None) -> None:
        self.error = error
        self.may_start, self.may_close = asyncio.Event(), asyncio.Event()
        self.starting, self.closing_begun = threading.Event(), threading.Event()
        self.done: list[str] = []
        self.closing = Closing("slow", self._close)

    async def start(self) -> None:
        self.starting.set()
        try:
            await self.may_start.wait()
            if self.error is not None:
                raise self.error
        except BaseException:
            self.done.append("cut short")
            raise
        self.done.append("started")

    async def close(self) -> None:
        await self.closing.wait()

    async def _close(self) -> None:
        self.closing_begun.set()
        await self.may_close.wait()
        self.done.append("closed")


def opened(*, start: bool = True, close: bool = True, error: Exception | None = None) -> Slow:
    async def make() -> Slow:
        slow = Slow(error=error)
        if start:
            slow.may_start.set()
        if close:
            slow.may_close.set()
        return slow

    return Bridge().run(make)


def on_the_loop(function) -> None:
    async def called() -> None:
        function()

    Bridge().run(called)


def started(slow: Slow) -> Blocking:
    blocking = Blocking(slow)
    blocking.start()
    return blocking


@pytest.mark.parametrize("enter", [Blocking.start, Blocking.__enter__])
def test_a_start_that_is_interrupted_leaves_nothing_behind(enter):
    slow = opened(start=False)

    with interrupted_when(slow.starting), pytest.raises(KeyboardInterrupt):
        enter(Blocking(slow))

    assert slow.done == ["cut short", "closed"]


@pytest.mark.process
def test_a_close_that_is_interrupted_goes_on_and_the_next_one_waits_for_its_end():
    slow = opened(close=False)
    blocking = started(slow)

    with interrupted_when(slow.closing_begun), pytest.raises(KeyboardInterrupt):
        blocking.close()
    assert slow.done == ["started"]
    on_the_loop(lambda: asyncio.get_running_loop().call_later(0.1, slow.may_close.set))
    blocking.close()

    assert slow.done == ["started", "closed"]


def test_a_close_on_another_thread_ends_a_start_and_waits_for_what_it_cleans_up():
    slow = opened(start=False)
    blocking = Blocking(slow)

    def close() -> None:
        slow.starting.wait(10)
        blocking.close()

    closed = in_thread(close)
    with pytest.raises(ClientStateError, match="closed while it was being started"):
        blocking.start()
    closed.result(10)

    assert slow.done == ["cut short", "closed"]


def test_a_second_close_waits_for_the_first():
    slow = opened(close=False)
    blocking = started(slow)

    def close() -> list[str]:
        blocking.close()
        return list(slow.done)

    closes = [in_thread(close) for _ in range(2)]
    slow.closing_begun.wait(10)
    on_the_loop(slow.may_close.set)

    assert [each.result(10) for each in closes] == [["started", "closed"]] * 2


def test_closing_what_was_never_started_does_nothing():
    slow = opened()
    blocking = Blocking(slow)

    blocking.close()
    assert slow.done == []
    blocking.start()
    blocking.close()

    assert slow.done == ["started", "closed"]


def test_a_start_that_failed_can_be_closed_and_is_no_resource_left_open():
    slow = opened(error=ConfigError("no"))
    blocking = Blocking(slow)

    with pytest.raises(ConfigError):
        blocking.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        blocking.__del__()
    blocking.close()

    assert slow.done == ["cut short", "closed"]


def test_a_close_that_is_refused_on_the_loop_thread_can_be_made_up_for():
    slow = opened()
    blocking = started(slow)

    with pytest.raises(ClientStateError, match="blocking call on the loop thread"):
        on_the_loop(blocking.close)
    blocking.close()

    assert slow.done == ["started", "closed"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Client(ClientConfig(name_server="127.0.0.1:1")),
        lambda: Producer(ProducerConfig(name_server="127.0.0.1:1")),
        lambda: TransactionProducer(ProducerConfig(name_server="127.0.0.1:1", group="g"), Listener()),
    ],
    ids=["Client", "Producer", "TransactionProducer"],
)
def test_a_second_start_fails_and_leaves_the_first_as_it_is(make):
    made = make()
    made.start()

    with pytest.raises(ClientStateError, match="is started: make a new one"):
        made.start()
    made.close()
    made.close()
    with pytest.raises(ClientStateError, match="is closed: make a new one"):
        made.start()


@pytest.mark.process
def test_an_object_left_open_says_so_and_one_that_is_closed_does_not():
    left = started(opened())

    with pytest.warns(ResourceWarning, match="unclosed Blocking"):
        left.__del__()
    left.close()
    del left
    gc.collect()


@pytest.mark.process
def test_a_transaction_producer_that_is_closed_when_the_process_ends_still_closes():
    program = """
import atexit
from rmqtools import ProducerConfig, TransactionProducer
class Listener:
    def execute_local_transaction(self, message, arg): ...
    def check_local_transaction(self, message): ...
producer = TransactionProducer(ProducerConfig(name_server="127.0.0.1:1", group="g"), Listener())
producer.start()
atexit.register(lambda: print("closed"))
atexit.register(producer.close)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)

    assert (done.returncode, done.stdout) == (0, "closed\n")
    assert "Traceback" not in done.stderr
