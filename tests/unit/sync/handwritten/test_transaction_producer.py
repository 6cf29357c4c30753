"""Callbacks on the thread that waits."""

import threading

import pytest

from rmqtools.sync.handwritten.transaction_producer import CallerThread
from rmqtools.sync.loop import Bridge


def call_from_loop(function, *arguments):
    """Let the loop pass ``function`` to this thread; return its result."""

    async def on_loop():
        return await caller.call(function, *arguments)

    caller = CallerThread(on_loop, Bridge().loop)
    return caller.run()


def test_a_callback_runs_on_the_waiting_thread_and_its_result_comes_back():
    name, value = call_from_loop(lambda value: (threading.current_thread().name, value), 7)

    assert (name, value) == (threading.current_thread().name, 7)


def test_what_a_callback_raises_reaches_the_coroutine():
    with pytest.raises(ZeroDivisionError):
        call_from_loop(lambda: 1 // 0)


def test_an_interrupted_callback_ends_the_call_and_leaves_the_loop_alive():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call_from_loop(interrupted)

    assert call_from_loop(lambda: "alive") == "alive"
