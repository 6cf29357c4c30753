"""Sends of single messages whose callers get a future: they cross to the loop thread together.

Waking the loop costs a system call and a switch of threads, so a send does it only if no earlier one has just
done so. A message that waits for others (``linger``) needs no task.
"""

import asyncio
import contextvars
from collections import deque
from concurrent.futures import Future
from typing import Any, NamedTuple

from rmqtools.aio import Producer
from rmqtools.engine.producer.in_flight import InFlight, reservation_of
from rmqtools.engine.producer.send import queue_choice
from rmqtools.errors import BackPressureError
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendResult
from rmqtools.policy.selectors import MessageQueueSelector
from rmqtools.sync.loop import Bridge, CallFuture, chain


class _WaitingSend(NamedTuple):
    future: Future[SendResult]
    context: contextvars.Context
    message: Message
    queue: MessageQueue | None
    selector: MessageQueueSelector | None
    arg: Any
    timeout: float | None


class FutureSends:
    """Sends for one producer. Safe to share between threads, without a lock unless they are bounded."""

    def __init__(self, producer: Producer, bridge: Bridge) -> None:
        self._producer = producer
        self._bridge = bridge
        self._in_flight = producer._in_flight
        self._given: deque[_WaitingSend] = deque()
        self._is_woken = False  # the loop will take what was given

    def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None,
        selector: MessageQueueSelector | None,
        arg: Any,
        timeout: float | None,
    ) -> Future[SendResult]:
        """Begin a send on the loop, in the order of calls; errors as of ``Bridge.run``."""
        self._bridge.check()
        future: Future[SendResult] = CallFuture()
        if self._in_flight is not None:
            left = _seconds_left(self._in_flight, future, message, timeout)
            if left is None:
                return future
            timeout = left
        context = contextvars.copy_context()
        self._given.append(_WaitingSend(future, context, message, queue, selector, arg, timeout))
        if not self._is_woken:
            self._is_woken = True
            try:
                self._bridge.call_soon(self._begin_all)
            except BaseException:  # also an interrupt: the next call wakes the loop, which drops this one
                future.cancel()
                self._is_woken = False
                raise
        return future

    def _begin_all(self) -> None:
        """Begin the sends given so far, on the loop thread."""
        self._is_woken = False  # before they are taken: a later one wakes the loop again
        for _ in range(len(self._given)):
            self._begin(self._given.popleft())

    def _begin(self, given: _WaitingSend) -> None:
        future, context, message, queue, selector, arg, timeout = given
        if future.cancelled():
            future.set_running_or_notify_cancel()
            return
        try:
            choice = queue_choice(queue, selector, arg)
            sending = self._producer._begin(message, choice, timeout)
        except Exception as error:  # noqa: BLE001 - raised where the caller asks for the result
            if future.set_running_or_notify_cancel():
                future.set_exception(error)
            return
        loop = asyncio.get_running_loop()
        if isinstance(sending, asyncio.Future):
            source = sending
        else:
            source = loop.create_task(sending, context=context)
        chain(source, future)


def _seconds_left(
    in_flight: InFlight, future: Future[SendResult], message: Message, timeout: float | None
) -> float | None:
    """Wait for room, and count the message until its future is done; return the seconds left for its send.

    None: there is no room, and the future has the error. An interrupt cancels the future.
    """
    reservation = reservation_of(message)
    future.add_done_callback(lambda _: in_flight.leave(reservation))
    try:
        return in_flight.enter_on_thread(reservation, timeout)
    except BackPressureError as error:
        future.set_exception(error)
        return None
    except BaseException:
        future.cancel()
        raise
