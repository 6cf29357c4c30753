"""Waits for what is away: it is tried again until it is there, and logged once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger

T = TypeVar("T")
log = get_logger(__name__)


async def until_there(
    work: Callable[[], Awaitable[T]],
    is_away: Callable[[RocketMQError], Awaitable[bool]],
    *,
    event: str,
    pause: float,
    **names: Any,
) -> T:
    """Return what ``work`` returns; run it again after each error that says what it needs is away.

    Args:
        work: what to run.
        is_away: whether an error is such a one; every other error is raised.
        event: logged at the first of them, with ``names``.
        pause: seconds between two runs.
        names: what is waited for.
    """
    is_logged = False
    while True:
        try:
            return await work()
        except RocketMQError as error:
            if not await is_away(error):
                raise
            if not is_logged:
                is_logged = True
                log.warning(event, **names, reason=str(error))
        await asyncio.sleep(pause)
