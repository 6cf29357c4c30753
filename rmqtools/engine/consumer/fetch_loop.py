"""The loop that fetches a held queue until it is dropped: its pauses, and what follows an error.

Pulling and popping are its two sources. Ours: a broker that has forgotten this member gets a heartbeat at
once.
Source of the rules: DefaultMQPushConsumerImpl.pullMessage, popMessage (Java client).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from rmqtools.engine.connection.background import Background
from rmqtools.engine.connection.refusals import FETCH
from rmqtools.engine.consumer.fetch_policy import FetchRate
from rmqtools.engine.group.held_queue import HeldQueue
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.membership import FORGOTTEN_DELAY
from rmqtools.errors import BrokerError, RocketMQError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.backoff import PullBackoff

LOOK_AGAIN = 0.5  # seconds after which a queue that may not be fetched is checked again in any case
_HELD_SECONDS = 0.5  # an answer without messages that takes so long was held by the broker
_BUSY = (ResponseCode.FLOW_CONTROL, ResponseCode.SYSTEM_BUSY)
_FORGOTTEN = (
    ResponseCode.SUBSCRIPTION_NOT_EXIST,
    ResponseCode.SUBSCRIPTION_NOT_LATEST,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
)

H = TypeVar("H", bound=HeldQueue)


class FetchLoop(Generic[H]):
    """Fetches held queues, each in a task of its own.

    Pauses between two fetches of a queue are for the message rate, and after answers without progress.
    """

    def __init__(
        self,
        member: Member,
        rate: FetchRate,
        fetch: Callable[[H], Awaitable[None]],
        log_failure: Callable[[H, Exception], None],
    ) -> None:
        """Make it.

        Args:
            member: the member that holds the queues.
            rate: its limit of messages a second.
            fetch: fetches a queue once, or until something fails; called again until the queue is dropped.
            log_failure: logs the error of a fetch.
        """
        self._member = member
        self._client = member.client
        self._rate = rate
        self._fetch = fetch
        self._log_failure = log_failure
        self._backoff = PullBackoff(member.config.delay_after_error, random.random)
        self._held_seconds = min(_HELD_SECONDS, member.config.long_poll_timeout / 2)
        self.tasks = Background()

    def start(self, held: H, name: str) -> "asyncio.Task[None]":
        """Fetch a queue until it is dropped, in a task of this name."""
        return self.tasks.spawn_loop(name, lambda: self._run(held))

    async def _run(self, held: H) -> None:
        while not held.is_dropped:
            try:
                await self._fetch(held)
            except Exception as error:  # noqa: BLE001 - outermost frame of a queue's task, which logs it and goes on
                self._log_failure(held, error)
                await self.pause(held, await self._seconds_after(held.queue, error))

    def delay(self, queue: MessageQueue) -> float:
        """Return the seconds until a queue is checked again, at most ``LOOK_AGAIN``; 0: it is fetched now."""
        pause = self._backoff.delay(queue, self._client.clock.monotonic())
        return min(LOOK_AGAIN, max(pause, self._rate.delay()))

    def is_held(self, seconds: float) -> bool:
        """Return whether an answer that took so long was held by its broker."""
        return seconds >= self._held_seconds

    def answered(self, queue: MessageQueue, *, has_progress: bool) -> None:
        """Note an answer: the next fetch waits if this one and the one before had no progress."""
        if has_progress:
            self.forget(queue)
        else:
            self._backoff.note(queue, self._client.clock.monotonic())

    def forget(self, queue: MessageQueue) -> None:
        """End the pauses of a queue."""
        self._backoff.ended(queue)

    async def pause(self, held: H, seconds: float) -> None:
        """Wait so many seconds, or until the queue is dropped. Waiting counts as activity."""
        deadline = self._client.clock.monotonic() + seconds
        while not held.is_dropped and (left := deadline - self._client.clock.monotonic()) > 0:
            held.note_waiting()
            await held.changed(left)

    async def _seconds_after(self, queue: MessageQueue, error: Exception) -> float:
        """Return how long to wait after an error."""
        if isinstance(error, RocketMQError):
            self._client.refusals.note(FETCH, queue.broker_name, error)
        if isinstance(error, BrokerError) and error.code in _BUSY:
            return self._backoff.note(queue, self._client.clock.monotonic(), paused=True)
        if isinstance(error, BrokerError) and error.code in _FORGOTTEN:
            await self._member.membership.remind(queue.broker_name, error.addr)
            return FORGOTTEN_DELAY
        return self._member.config.delay_after_error
