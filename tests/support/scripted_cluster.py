"""A fake cluster whose brokers answer sends as a test says; every topic has a route."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Self

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.route import Perm
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import FakeCluster, Reaction

Answer = Callable[[RemotingCommand], RemotingCommand | Reaction | None]
SENDS = {RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}


def stored(request: RemotingCommand, code: int = ResponseCode.SUCCESS) -> RemotingCommand:
    """What a broker says that has stored a message, or each message of a batch."""
    ids = ",".join(f"7F00000100002A9F{offset:016X}" for offset in range(_count(request)))
    fields = {"msgId": ids, "queueId": request.ext_fields["e"], "queueOffset": "5"}
    return response(code, 0, ext_fields=fields)


def _count(request: RemotingCommand) -> int:
    if request.code != RequestCode.SEND_BATCH_MESSAGE:
        return 1
    count = start = 0
    while start < len(request.body):
        start += int.from_bytes(request.body[start : start + 4], "big")
        count += 1
    return count


def says(code: int, remark: str = "scripted") -> Answer:
    return lambda request: response(code, 0, remark=remark)


def silent(request: RemotingCommand) -> None:
    return None


class ScriptedCluster(FakeCluster):
    """``answers``: results of sends by broker name; ``sends``: the brokers that got them, in order."""

    def __init__(self, answers: Mapping[str, Answer], *, queues: int = 4, perm: int = 6) -> None:
        super().__init__(tuple(answers))
        self.answers = dict(answers)
        self.sends: list[tuple[str, RemotingCommand]] = []
        self._shape: dict[str, Any] = {"queues": queues, "perm": perm}
        self._asked = self.fault(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, times=None, answer=self._make_topic)
        for name in answers:
            self.fault(broker=name, times=None, answer=self._broker(name))

    @property
    def route_requests(self) -> int:
        return self._asked.fired()

    @property
    def addrs(self) -> dict[str, str]:
        return {name: self.addr(name) for name in self.answers}

    def forbid_writes(self) -> None:
        """Let no topic take messages from now on."""
        self._shape["perm"] = int(Perm.READ)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[Self]:
        async with self:
            yield self

    def _broker(self, name: str) -> Answer:
        def answer(request: RemotingCommand) -> RemotingCommand | Reaction | None:
            if request.code not in SENDS:
                return Reaction.PASS
            self.sends.append((name, request))
            return self.answers[name](request)

        return answer

    def _make_topic(self, request: RemotingCommand) -> Reaction:
        self.create_topic(str(request.ext_fields["topic"]), **self._shape)
        return Reaction.PASS
