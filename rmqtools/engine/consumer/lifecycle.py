"""Starts and closes a consumer; interrupted or not, closing can always be completed."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from rmqtools.engine.connection.background import Closing
from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import ClientStateError


class Lifecycle:
    """Start and close of one consumer. Closing runs once, to its end; every call of close waits for it."""

    def __init__(
        self,
        client: ClientCore,
        start: Callable[[], Coroutine[Any, Any, None]],
        *steps: Callable[[], Awaitable[object]],
        settle: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """``start`` joins the group; ``steps`` leave it, in this order, even if the start was interrupted.

        ``settle``: waits, after that, until the member is usable; the steps end it, so that a listener may
        close its consumer before :meth:`start` has returned.
        """
        self._client = client
        self._start = start
        self._settle = settle
        self._starting: asyncio.Task[None] | None = None
        self._closing = Closing(f"consumer {client.client_id}", self._end_start, *steps, client.close)

    async def start(self) -> None:
        """Start. On failure or cancellation, close before raising.

        Raises:
            ClientStateError: already started or closed, or closed during the start.
        """
        if self._closing.has_begun:
            await self.close()  # then the client says that it is closed
        self._client.start()
        self._starting = asyncio.create_task(self._start(), name="start")
        try:
            await self._starting
            if self._settle is not None:
                await self._settle()
        except BaseException as error:  # also Ctrl-C: an unclosed member would keep its queues
            was_closed = self._closing.has_begun and isinstance(error, asyncio.CancelledError)
            await self.close()
            if was_closed and not _is_cancelled():
                raise ClientStateError(f"client {self._client.client_id} was closed meanwhile") from error
            raise

    async def close(self) -> None:
        """Close, from any state. Cancelling a caller ends only its waiting; closing continues."""
        await self._closing.wait()

    async def _end_start(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
