"""Servers of the tests whose timers may be 20 ms late, so that idle ones rest.

An idle broker wakes 1,700 times a second and takes 6 % of a processor for it; with such timers 470 times and
2.4 %. A message can be read up to 20 ms later then; no other promise of a server depends on it. Programs
under test, and the clusters they start, keep the timers of the machine.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from rmqtools.cluster import LocalCluster
from rmqtools.sync.loop_thread import LoopThread

_SET_TIMER_SLACK, _GET_TIMER_SLACK = 29, 30  # of Linux's prctl; a thread passes its slack on to its children
_SLACK_NS = 20_000_000


@contextmanager
def late_timers() -> Iterator[None]:
    """Processes and threads that this thread starts meanwhile have late timers."""
    prctl = ctypes.CDLL(None).prctl
    before = prctl(_GET_TIMER_SLACK, 0, 0, 0, 0)
    prctl(_SET_TIMER_SLACK, ctypes.c_ulong(_SLACK_NS), 0, 0, 0)
    try:
        yield
    finally:
        prctl(_SET_TIMER_SLACK, ctypes.c_ulong(before), 0, 0, 0)


class RestingCluster(LocalCluster):
    """A local cluster whose servers have late timers."""

    def start(self) -> Self:
        """Start the servers as :class:`LocalCluster` does."""
        LoopThread.of_this_process()  # now: started below, it would have late timers itself
        with late_timers():
            return super().start()
