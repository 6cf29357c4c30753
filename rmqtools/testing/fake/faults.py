"""Faults: matching requests are not handled normally."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from rmqtools.model.codes import ResponseCode
from rmqtools.protocol.wire.command import RemotingCommand, response

_MAX_REMEMBERED = 1000


class Reaction(Enum):
    """Handling of a request, if the test does not give an answer."""

    PASS = "pass"  # as without this fault: to delay or count requests; the next matching fault applies
    SILENCE = "silence"  # not handled, never answered
    SWALLOW = "swallow"  # handled, but the answer is lost: its outcome is unknown to the client
    DISCONNECT = "disconnect"  # not handled; the connection breaks


Outcome = Reaction | ResponseCode | RemotingCommand | bytes | None
"""A reaction, an error code, a response, raw bytes to write, or None for silence."""
FaultAnswer = Outcome | Callable[[RemotingCommand], Outcome]


@dataclass(eq=False, kw_only=True)
class Fault:
    """One fault of a cluster: its conditions and its effect; created by :meth:`FakeCluster.fault`.

    A condition that is None matches everything. ``requests``: the last thousand affected requests.
    """

    code: int | None = None
    broker: str | None = None
    topic: str | None = None
    queue_id: int | None = None
    group: str | None = None
    times: int | None = 1
    answer: FaultAnswer = Reaction.PASS
    delay: float = 0.0
    requests: deque[RemotingCommand] = field(default_factory=lambda: deque(maxlen=_MAX_REMEMBERED))
    _fired: int = 0
    _removed: bool = False

    def fired(self) -> int:
        """Return the number of affected requests."""
        return self._fired

    def remove(self) -> None:
        """Affect no more requests."""
        self._removed = True

    def strike(self, broker: str, request: RemotingCommand) -> bool:
        """Return whether a request to a server matches and the budget allows it; if so, count it."""
        spent = self._removed or (self.times is not None and self._fired >= self.times)
        if spent or not self._matches(broker, request):
            return False
        self._fired += 1
        self.requests.append(request)
        return True

    def outcome(self, request: RemotingCommand) -> Reaction | RemotingCommand | bytes:
        """Return the handling of an affected request."""
        answer = self.answer(request) if callable(self.answer) else self.answer
        if isinstance(answer, ResponseCode):
            return response(answer, 0, remark=f"fault: {ResponseCode.describe(answer)}")
        return Reaction.SILENCE if answer is None else answer

    def _matches(self, broker: str, request: RemotingCommand) -> bool:
        wanted = (self.broker, self.topic, self.queue_id, self.group)
        found = (broker, topic_of(request), queue_id_of(request), group_of(request))
        pairs = zip(wanted, found, strict=True)
        return self.code in (None, request.code) and all(want in (None, has) for want, has in pairs)


def topic_of(request: RemotingCommand) -> str | None:
    """Return the topic in a request."""
    fields = request.ext_fields
    return fields.get("topic") or fields.get("b") or fields.get("originTopic")


def queue_id_of(request: RemotingCommand) -> int | None:
    """Return the queue id in a request."""
    text = request.ext_fields.get("queueId") or request.ext_fields.get("e")
    return int(text) if text and text.removeprefix("-").isdecimal() else None


def group_of(request: RemotingCommand) -> str | None:
    """Return the group in a request."""
    fields = request.ext_fields
    names = ("consumerGroup", "group", "producerGroup", "a")
    return next((fields[name] for name in names if fields.get(name)), None)
