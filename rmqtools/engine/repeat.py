"""Work that a client does again and again in the background, whatever becomes of one time."""

import asyncio
from collections.abc import Awaitable, Callable

from rmqtools.log import get_logger

log = get_logger(__name__)


async def repeat_forever(interval: float, work: Callable[[], Awaitable[None]], *, what: str) -> None:
    """Do some work every ``interval`` seconds, until cancelled; errors are logged under the name ``what``."""
    while True:
        await asyncio.sleep(interval)
        try:
            await work()
        except Exception as error:  # the outermost frame of a background task: the next time may be better
            log.error("background_work_failed", what=what, reason=repr(error), exc_info=error)
