"""A server on loopback with scripted answers, for tests of single connections."""

import asyncio
from collections.abc import Awaitable, Callable

from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing.fake.server import Answer, Peer, Server
from tests.support.skipping_loop import run_skipping

Script = Callable[[RemotingCommand], Answer]


class ScriptedPeer(Server):
    """``script(request)`` gives the response, raw bytes to write instead, or None for silence.

    With ``disconnects`` it breaks connections instead of answering; the rest is as of a server.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        greeting: bytes = b"",
        disconnects: bool = False,
        reads: bool = True,
    ) -> None:
        super().__init__(self._answer, greeting=greeting, reads=reads)
        self._script = script or (lambda request: None)
        self.disconnects = disconnects
        self.requests: list[RemotingCommand] = []

    async def say(self, data: bytes) -> None:  # type: ignore[override]  # a coroutine here
        """Write to all connections, and let the clients read."""
        super().say(data)
        await asyncio.sleep(0)

    def _answer(self, request: RemotingCommand, peer: Peer) -> Answer:
        self.requests.append(request)
        if self.disconnects:
            peer.drop()
            return None
        return self._script(request)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run an asynchronous test, for 20 seconds at the most, on a loop that does not wait."""

    async def main() -> None:
        await asyncio.wait_for(scenario(), 20)

    run_skipping(main)
