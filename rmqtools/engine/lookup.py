"""Look-ups that wait and try again: routes, offsets, anything that changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_random_exponential

from rmqtools.errors import RocketMQError
from rmqtools.policy.retry import may_retry

T = TypeVar("T")
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 1.0  # seconds; full jitter between


async def look_up(call: Callable[[], Awaitable[T]], *, timeout: float) -> T:
    """Await ``call()``, again after retriable errors, until it succeeds or ``timeout`` seconds are over.

    Raises:
        RocketMQError: the last error, unchanged.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        return await call()  # nearly always; tenacity takes 20 us to do as much
    except RocketMQError as error:
        if not may_retry(error):
            raise
        first = error
    retrying = AsyncRetrying(
        retry=retry_if_exception(may_retry),
        stop=stop_after_delay(timeout - (loop.time() - began)),
        wait=wait_random_exponential(multiplier=_FIRST_WAIT, max=min(_LONGEST_WAIT, timeout)),
        reraise=True,
    )
    async for attempt in retrying:
        with attempt:
            if attempt.retry_state.attempt_number == 1:
                raise first  # made already
            return await call()
    raise AssertionError("tenacity ends with a result or the last error")
