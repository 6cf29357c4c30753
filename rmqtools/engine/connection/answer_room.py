"""Limits what a proxy has to answer at once on one connection.

A proxy 5.5.0 drops an answer while 64 KB of earlier ones wait on the connection; its client waits in vain.
So the answers that may come at once have room for 64 KB together. The answer to a pull or to a batch may be
larger, so it gets all the room. Pulls that the proxy holds until messages come (long polls) take none: they
would keep it for seconds.

Source of the rule: AbstractRemotingActivity.writeResponse (proxy 5.5.0).
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from rmqtools.model.codes import RequestCode
from rmqtools.model.sys_flag import PullSysFlag
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.protocol.wire.template import Request

ROOM = 64  # answers of at most 1 KB
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
    """Return the room that a request's answer takes, of :data:`ROOM`; 0: the answer may be held back."""
    if request.code in _SMALL:
        return 1
    if request.code == RequestCode.PULL_MESSAGE:
        flag = request.command().ext_fields.get("sysFlag") or "0"
        return 0 if flag.isdecimal() and int(flag) & PullSysFlag.FLAG_SUSPEND else ROOM
    return ROOM


@dataclass(slots=True)
class AnswerRoom:
    """The room for answers on one connection; requests get it in the order in which they ask."""

    _free: int = ROOM
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
