"""Look-ups that wait and retry: for routes, offsets and other requests without side effects."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from rmqtools.errors import RocketMQError
from rmqtools.lazy_names import LazyModule
from rmqtools.policy.retry import may_retry

if TYPE_CHECKING:
    import tenacity
else:
    tenacity = LazyModule("tenacity")  # nearly always the first call succeeds

T = TypeVar("T")
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 1.0  # seconds; half of each wait is random


async def look_up(
    call: Callable[[], Awaitable[T]],
    *,
    timeout: float,
    may_retry: Callable[[BaseException], bool] = may_retry,
) -> T:
    """Await ``call()``; repeat it after errors that ``may_retry`` accepts, for up to ``timeout`` seconds.

    Raises:
        RocketMQError: the last error, unchanged.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        return await call()  # almost always succeeds; tenacity takes 20 us for the same
    except RocketMQError as error:
        if not may_retry(error):
            raise
        first = error
    half = {"multiplier": _FIRST_WAIT / 2, "max": _LONGEST_WAIT / 2}
    wait = tenacity.wait_exponential(**half) + tenacity.wait_random_exponential(**half)
    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(may_retry),
        stop=lambda _: loop.time() - began >= timeout,  # not stop_after_delay: it reads another clock
        wait=lambda state: max(0.0, min(wait(state), began + timeout - loop.time())),
        reraise=True,
    )
    async for attempt in retrying:
        with attempt:
            if attempt.retry_state.attempt_number == 1:
                raise first  # the first call is already made
            return await call()
    raise AssertionError("tenacity ends with a result or the last error")
