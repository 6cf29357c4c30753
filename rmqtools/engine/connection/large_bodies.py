"""Parses the bodies of answers; large ones in another thread, so that the event loop goes on."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LARGE_BYTES = 1024 * 1024


async def parse_aside(parse: Callable[[bytes], T], body: bytes) -> T:
    """Return ``parse(body)``; raises what it raises. A body above 1 MiB is parsed in another thread."""
    if len(body) <= _LARGE_BYTES:
        return parse(body)
    return await asyncio.to_thread(parse, body)
