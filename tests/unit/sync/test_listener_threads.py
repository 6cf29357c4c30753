import asyncio
import subprocess
import sys
import threading

import pytest

from rmqtools.engine.consumer.listeners import Pace
from rmqtools.sync.listener_threads import ListenerThreads


def raises(error: BaseException):
    def listen():
        raise error

    return listen


async def test_results_come_back_to_who_awaits_them():
    threads = ListenerThreads(3)
    assert await asyncio.gather(*(threads.call(abs, -n) for n in range(100))) == list(range(100))
    threads.close()


async def test_no_more_threads_are_started_than_calls_need_or_may_run_at_once():
    names = set()

    threads = ListenerThreads(2)
    for _ in range(20):
        await threads.call(lambda: names.add(threading.current_thread().name))
    assert len(names) == 1
    together = threading.Barrier(2)
    await asyncio.gather(*(threads.call(together.wait, 5) for _ in range(4)))
    assert threads._threads == 2
    threads.close()


async def _paced(threads: ListenerThreads, pace: Pace, *, long: int, width: int) -> None:
    """Run jobs of 100 calls each, of which some are long, until so many threads may be active."""
    while threads._width != width:
        await asyncio.gather(*(threads.call(pace.note, 100, long) for _ in range(8)))


def _meeting_in(threads: ListenerThreads):
    """Four jobs, each of which waits until all have begun."""
    together = threading.Barrier(4)
    return asyncio.gather(*(threads.call(together.wait, 10) for _ in range(4)))


async def _threads_of(threads: ListenerThreads, jobs: int) -> set[str]:
    """The threads that run so many jobs, all of which wait before the first has ended."""
    go_on = threading.Event()
    names = [threads.call(lambda: go_on.wait(10) and threading.current_thread().name) for _ in range(jobs)]
    go_on.set()
    return {*await asyncio.gather(*names)}


@pytest.mark.process
async def test_jobs_share_one_thread_while_calls_are_short():
    threads = ListenerThreads(4, pace=(pace := Pace()))
    await _meeting_in(threads)  # nothing is known yet
    await _paced(threads, pace, long=0, width=1)
    while len(await _threads_of(threads, 20)) > 1:  # an overloaded machine stopped a thread for a while
        await _paced(threads, pace, long=0, width=1)
    await _paced(threads, pace, long=50, width=4)
    await _meeting_in(threads)
    threads.close()


@pytest.mark.process
async def test_a_job_in_which_no_call_ends_does_not_hold_up_the_others():
    threads = ListenerThreads(4, pace=(pace := Pace()))
    await _paced(threads, pace, long=0, width=1)
    await _meeting_in(threads)
    threads.close()


@pytest.mark.parametrize(("calls", "long", "are_short"), [(0, 0, None), (100, 5, True), (100, 6, False)])
def test_calls_are_short_if_nearly_all_are(calls, long, are_short):
    pace = Pace()
    pace.note(calls, long)
    assert (pace.look(), pace.look()) == (are_short, None)


@pytest.mark.parametrize("error", [ValueError("x"), StopIteration(), SystemExit(3), asyncio.CancelledError()])
async def test_whatever_a_listener_raises_comes_back_as_an_exception_and_its_thread_goes_on(error):
    threads = ListenerThreads(1)
    with pytest.raises((ValueError, RuntimeError)) as raised:
        await threads.call(raises(error))
    assert error in (raised.value, raised.value.__cause__)
    assert await threads.call(abs, -1) == 1
    threads.close()


async def test_closing_ends_the_threads_and_calls_not_begun_are_never_made():
    begun, over, made = threading.Event(), threading.Event(), list[int]()

    threads = ListenerThreads(1)
    first = threads.call(lambda: (begun.set(), over.wait(5)))
    threads.call(made.append, 1)
    await asyncio.to_thread(begun.wait, 5)
    thread = next(one for one in threading.enumerate() if one.name == "rmqtools-listener-1")
    threads.close()
    over.set()
    await first
    await asyncio.to_thread(thread.join, 5)
    assert (made, thread.is_alive()) == ([], False)


@pytest.mark.process
def test_a_listener_that_never_ends_does_not_keep_the_process():
    program = """
import asyncio, threading
from rmqtools.sync.listener_threads import ListenerThreads

async def main():
    begun = threading.Event()
    ListenerThreads(1).call(lambda: (begun.set(), threading.Event().wait()))
    begun.wait()

asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=20, check=False).returncode == 0
