"""Look-ups that wait and try again: routes, offsets, anything that changes nothing."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_random_exponential

from rmqtools.policy.retry import may_retry

T = TypeVar("T")
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 1.0  # seconds; full jitter between


async def look_up(call: Callable[[], Awaitable[T]], *, timeout: float) -> T:
    """Await ``call()``, again after retriable errors, until it succeeds or ``timeout`` seconds are over.

    Raises:
        RocketMQError: the last error, unchanged.
    """
    retrying = AsyncRetrying(
        retry=retry_if_exception(may_retry),
        stop=stop_after_delay(timeout),
        wait=wait_random_exponential(multiplier=_FIRST_WAIT, max=min(_LONGEST_WAIT, timeout)),
        reraise=True,
    )
    async for attempt in retrying:
        with attempt:
            return await call()
    raise AssertionError("tenacity ends with a result or the last error")
