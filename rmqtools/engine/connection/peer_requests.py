"""The requests of the peer on one connection: answered one by one, floods of operators' requests limited.

What operators ask (running info, consume directly, resets, offsets) and the news that members have changed is
handled ten times a second at most; equal requests that wait are answered together. Replies and check-backs
are never limited: each carries something of its own, and their receivers have bounds.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from rmqtools.engine.connection.background import Background
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand

log = get_logger(__name__)

RequestHandler = Callable[[RemotingCommand, str], Awaitable[RemotingCommand | None]]
_Key: TypeAlias = tuple[object, ...]

LIMITED: Final = frozenset(
    {
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
    }
)
PER_SECOND: Final = 10.0
_MAX_WAITING = 32  # different requests; more are left without an answer
_MAX_WAITING_BYTES = 16 * 1024 * 1024
_MAX_TOGETHER = 32  # equal requests that one answer is written for


class PeerRequests:
    """Handles the requests that one peer sends. Runs on the loop of its connection.

    Args:
        addr: the peer.
        handle: gives the response; None: there is none.
        write: writes a frame.
        takes_bytes: whether the peer reads; to one that does not, no answer is written.
    """

    def __init__(
        self,
        addr: str,
        *,
        handle: RequestHandler,
        write: Callable[[bytes], None],
        takes_bytes: Callable[[], bool],
    ) -> None:
        self._addr = addr
        self._handle = handle
        self._write = write
        self._takes_bytes = takes_bytes
        self._loop = asyncio.get_running_loop()
        self._answering = Background()
        self._waiting: dict[_Key, list[RemotingCommand]] = {}
        self._waiting_bytes = 0
        self._allowed = PER_SECOND  # requests that may be handled now
        self._counted_at = self._loop.time()
        self._alarm: asyncio.TimerHandle | None = None
        self._ignored = 0

    def take(self, request: RemotingCommand) -> None:
        """Handle a request: now, or when the limit allows it."""
        if request.code not in LIMITED:
            self._spawn([request])
            return
        key = _key_of(request)
        waiting = self._waiting.get(key)
        if waiting is None:
            self._wait(key, request)
        else:  # the newest is handled, for all of them
            self._waiting_bytes += len(request.body) - len(waiting[-1].body)
            if request.is_oneway or len(waiting) >= _MAX_TOGETHER:
                waiting.pop()
            waiting.append(request)

    def cancel(self) -> None:
        """Handle nothing more that waits: the connection has ended."""
        self._waiting.clear()
        if self._alarm is not None:
            self._alarm.cancel()

    async def stop(self) -> None:
        """Cancel what runs, and wait for its end."""
        self.cancel()
        await self._answering.stop()

    def _wait(self, key: _Key, request: RemotingCommand) -> None:
        size = self._waiting_bytes + len(request.body)
        if len(self._waiting) >= _MAX_WAITING or size > _MAX_WAITING_BYTES:
            self._ignored += 1
            if self._ignored == 1:
                log.warning("peer_requests_ignored", addr=self._addr, code=request.code)
            return
        self._waiting[key] = [request]
        self._waiting_bytes = size
        if self._alarm is None:
            self._handle_allowed()

    def _handle_allowed(self) -> None:
        now = self._loop.time()
        self._allowed = min(PER_SECOND, self._allowed + (now - self._counted_at) * PER_SECOND)
        self._counted_at, self._alarm = now, None
        while self._waiting and self._allowed >= 1:
            self._allowed -= 1
            requests = self._waiting.pop(next(iter(self._waiting)))
            self._waiting_bytes -= len(requests[-1].body)
            self._spawn(requests)
        if self._waiting:
            self._alarm = self._loop.call_later((1 - self._allowed) / PER_SECOND, self._handle_allowed)

    def _spawn(self, requests: list[RemotingCommand]) -> None:
        self._answering.spawn(f"answer {requests[0].code}", self._answer(requests))

    async def _answer(self, requests: list[RemotingCommand]) -> None:
        response = await self._handle(requests[-1], self._addr)
        if response is None:
            return
        for request in requests:
            if not request.is_oneway and self._takes_bytes():
                self._write(response.encode(request.opaque))


def _key_of(request: RemotingCommand) -> _Key:
    """Return what makes requests equal. A reset replaces an older one of the same topic and group."""
    body = b"" if request.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET else request.body
    return (request.code, body, *request.ext_fields.items())
