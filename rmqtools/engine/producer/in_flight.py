"""Bound of the single sends of one producer that are in flight: messages and bytes of bodies.

A send enters before its message is encoded, and leaves when it ends, however it ends. Sends without room wait
in one line, in order of arrival, or are refused (``back_pressure_waits``). A body that is larger than the
bound of bytes enters alone.
Source of the rule: DefaultMQProducerImpl.executeAsyncMessageSend (Java client). Ours: one line for both
bounds, and closing ends the waiting.

A send is counted in flight before it is handed to the loop. ``send_async`` waits on its caller's thread:
messages that waited on the loop would fill the memory all the same.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from rmqtools.clock import Clock
from rmqtools.config import ProducerConfig
from rmqtools.errors import BackPressureError
from rmqtools.model.message import Message, body_length
from rmqtools.model.result import SendsInFlight


@dataclass(slots=True, eq=False)
class Reservation:
    """Share of the bound that one send takes."""

    size: int
    is_counted: bool = False
    wake: Callable[[], object] | None = None  # called, on any thread, when a waiting send has been counted


def reservation_of(message: Message) -> Reservation:
    """Return the reservation that a message needs; a wrong object needs none, since its send fails."""
    body = getattr(message, "body", None)
    return Reservation(body_length(body) if isinstance(body, bytes | bytearray | memoryview) else 0)


class InFlight:
    """The bound of one producer. Safe to use from any thread; its lock is reentrant for signal handlers."""

    def __init__(self, config: ProducerConfig, clock: Clock) -> None:
        self._max_messages = config.back_pressure_for_async_send_num
        self._max_bytes = config.back_pressure_for_async_send_size
        self._waits = config.back_pressure_waits
        self._send_timeout = config.send_timeout
        self._now = clock.monotonic
        self._lock = threading.RLock()  # of all the following
        self._messages = 0
        self._bytes = 0
        self._line: deque[Reservation] = deque()
        self._is_closed = False

    @asynccontextmanager
    async def room(self, message: Message, timeout: float | None) -> AsyncIterator[float]:
        """Count a message for the time of a block, on an event loop. Gives the seconds left for its send.

        Raises:
            BackPressureError: there is no room, or none came within ``timeout`` (None: ``send_timeout``).
        """
        deadline = self._deadline(timeout)
        reservation = reservation_of(message)
        try:
            if not self._enter(reservation):
                await self._wait(reservation, deadline)
            yield max(0.0, deadline - self._now())
        finally:
            self.leave(reservation)

    def enter_on_thread(self, reservation: Reservation, timeout: float | None) -> float:
        """Count a message whose reservation will be left by the caller, even after an error; block meanwhile.

        Returns and raises what :meth:`room` does.
        """
        deadline = self._deadline(timeout)
        if not self._enter(reservation):
            came = threading.Lock()
            came.acquire()
            self._line_up(reservation, came.release)
            if not came.acquire(timeout=max(0.0, deadline - self._now())):
                raise self._full()
        return max(0.0, deadline - self._now())

    def leave(self, reservation: Reservation) -> None:
        """Give back what a send has taken, also if it waits still. A second call does nothing."""
        with self._lock:
            if reservation.is_counted:
                reservation.is_counted = False
                self._messages -= 1
                self._bytes -= reservation.size
            elif reservation.wake is not None and reservation in self._line:
                self._line.remove(reservation)
            self._admit()

    def figures(self) -> SendsInFlight:
        """Return the sends that are in flight, and those that wait."""
        with self._lock:
            return SendsInFlight(self._messages, self._bytes, len(self._line))

    def close(self) -> None:
        """Wake all waiting sends, which then raise because the producer is closed. Later ones do not wait."""
        with self._lock:
            self._is_closed = True
            self._admit()

    def _deadline(self, timeout: float | None) -> float:
        return self._now() + (self._send_timeout if timeout is None else timeout)

    def _enter(self, reservation: Reservation) -> bool:
        """Count a send for which there is room; False: it must wait.

        Raises:
            BackPressureError: it must not.
        """
        with self._lock:
            if not self._line and self._fits(reservation):
                self._count(reservation)
            elif not self._waits:
                raise self._full()
            return reservation.is_counted

    async def _wait(self, reservation: Reservation, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        came = loop.create_future()
        self._line_up(reservation, partial(_wake, loop, came))
        try:
            async with asyncio.timeout(max(0.0, deadline - self._now())):
                await came
        except TimeoutError as error:
            raise self._full() from error

    def _line_up(self, reservation: Reservation, wake: Callable[[], object]) -> None:
        """Let a send wait behind all others. Calls ``wake`` at once if there is room by now."""
        with self._lock:
            reservation.wake = wake
            self._line.append(reservation)
            self._admit()

    def _admit(self) -> None:
        """Count those in front of the line for which there is room."""
        while self._line and self._fits(self._line[0]):
            reservation = self._line.popleft()
            self._count(reservation)
            assert reservation.wake is not None
            reservation.wake()

    def _fits(self, reservation: Reservation) -> bool:
        if self._is_closed or not self._messages:
            return True
        return self._messages < self._max_messages and self._bytes + reservation.size <= self._max_bytes

    def _count(self, reservation: Reservation) -> None:
        reservation.is_counted = True
        self._messages += 1
        self._bytes += reservation.size

    def _full(self) -> BackPressureError:
        return BackPressureError(
            f"{self._messages} messages and {self._bytes} bytes are in flight: nothing was sent; send more "
            f"slowly, or raise back_pressure_for_async_send_num={self._max_messages} or "
            f"back_pressure_for_async_send_size={self._max_bytes}"
        )


def _wake(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    """Set a future of a loop, from any thread."""
    if asyncio._get_running_loop() is loop:
        _set(future)
    else:
        loop.call_soon_threadsafe(_set, future)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
