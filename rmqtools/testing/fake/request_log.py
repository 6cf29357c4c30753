"""The requests received by the servers of a fake cluster: the newest, bounded in number and bytes."""

from collections import deque

from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing.fake.faults import topic_of

MAX_REQUESTS = 10_000
MAX_BYTES = 64 * 1024 * 1024  # of bodies


class RequestLog:
    """Requests with the name of the receiving server, oldest first."""

    def __init__(self) -> None:
        self._entries: deque[tuple[str, RemotingCommand]] = deque()
        self._bytes = 0

    def add(self, server: str, request: RemotingCommand) -> None:
        """Add a request, and drop the oldest ones above the limits."""
        self._entries.append((server, request))
        self._bytes += len(request.body)
        while len(self._entries) > MAX_REQUESTS or (self._bytes > MAX_BYTES and len(self._entries) > 1):
            self._bytes -= len(self._entries.popleft()[1].body)

    def find(self, code: int | None, server: str | None, topic: str | None) -> list[RemotingCommand]:
        """Return the requests with a code, to a server, about a topic; None: any."""
        return [
            request
            for name, request in self._entries
            if code in (None, request.code) and server in (None, name) and topic in (None, topic_of(request))
        ]
