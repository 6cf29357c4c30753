"""Lets a proxy answer one request with a large answer at a time on a connection.

A proxy 5.5.0 drops an answer while 64 KB of earlier ones wait on the connection; its client waits in vain.
The answers to a pull and to a batch may be that large, so only one of them is on the wire. Requests whose
answers have less than 1 KB wait for nobody: thousands of sends would use up their time in a line. Pulls that
the proxy holds until messages come (long polls) do not either: they would keep others back for seconds.

Source of the rule: AbstractRemotingActivity.writeResponse (proxy 5.5.0).
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from rmqtools.model.codes import RequestCode
from rmqtools.model.sys_flag import PullSysFlag
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.protocol.wire.template import Request

_SMALL = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        RequestCode.END_TRANSACTION,
        RequestCode.RECALL_MESSAGE,
        RequestCode.HEART_BEAT,
        RequestCode.UNREGISTER_CLIENT,
        RequestCode.CHECK_CLIENT_CONFIG,
    }
)


def room_of(request: Request) -> int:
    """Return 1 if the request's answer may be large; 0: it is small, or may be held back."""
    if request.code in _SMALL:
        return 0
    if request.code == RequestCode.PULL_MESSAGE:
        flag = request.command().ext_fields.get("sysFlag") or "0"
        return 0 if flag.isdecimal() and int(flag) & PullSysFlag.FLAG_SUSPEND else 1
    return 1


@dataclass(slots=True)
class AnswerRoom:
    """The room for one large answer on a connection; requests get it in the order in which they ask."""

    _free: int = 1
    _waiting: "deque[tuple[int, asyncio.Future[None]]]" = field(default_factory=deque)

    async def take(self, size: int) -> None:
        """Wait until the room is free, and take it; a size of 0 never waits."""
        if size == 0 or (not self._waiting and size <= self._free):
            self._free -= size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._serve()  # those behind it may fit now
            else:
                self.give(size)  # it came together with the cancellation
            raise

    def give(self, size: int) -> None:
        """Return room, for those that wait."""
        self._free += size
        self._serve()

    def keep_until(self, answer: "asyncio.Future[RemotingCommand]", size: int) -> None:
        """Return room when an answer came or its time is over, whatever becomes of its caller."""

        def ended(answer: "asyncio.Future[RemotingCommand]") -> None:
            self.give(size)
            if not answer.cancelled():
                answer.exception()  # a cancelled caller does not look at it

        answer.add_done_callback(ended)

    def _serve(self) -> None:
        while self._waiting:
            size, turn = self._waiting[0]
            if not turn.done():
                if size > self._free:
                    return
                self._free -= size
                turn.set_result(None)
            self._waiting.popleft()
