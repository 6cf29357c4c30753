"""Brokers that answer sends as a test says, and a name server whose route leads to them."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.command import RemotingCommand, response
from tests.support.scripted_peer import ScriptedPeer

Answer = Callable[[RemotingCommand], RemotingCommand | None]
SENDS = {RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}


def stored(request: RemotingCommand, code: int = ResponseCode.SUCCESS) -> RemotingCommand:
    """What a broker says that has stored a message, or each message of a batch."""
    count = _count(request)
    ids = ",".join(f"7F00000100002A9F{offset:016X}" for offset in range(count))
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


class ScriptedCluster:
    """``answers`` says per broker name what becomes of sends; ``sends`` which broker got each, in order."""

    def __init__(self, answers: Mapping[str, Answer], *, queues: int = 4, perm: int = 6) -> None:
        self.answers = dict(answers)
        self.queues = queues
        self.perm = perm
        self.sends: list[tuple[str, RemotingCommand]] = []
        self.addrs: dict[str, str] = {}
        self.route_requests = 0
        self.name_server = ""

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["ScriptedCluster"]:
        async with contextlib.AsyncExitStack() as stack:
            for name in self.answers:
                peer = await stack.enter_async_context(ScriptedPeer(self._broker(name)).serving())
                self.addrs[name] = peer.addr
            name_server = await stack.enter_async_context(ScriptedPeer(self._answer_route).serving())
            self.name_server = name_server.addr
            yield self

    def kill(self, broker_name: str) -> None:
        """Let the route lead to a port where nobody listens."""
        self.addrs[broker_name] = "127.0.0.1:1"

    def _broker(self, name: str) -> Answer:
        def answer(request: RemotingCommand) -> RemotingCommand | None:
            if request.code not in SENDS:
                return response(ResponseCode.SUCCESS, 0)
            self.sends.append((name, request))
            return self.answers[name](request)

        return answer

    def _answer_route(self, request: RemotingCommand) -> RemotingCommand:
        self.route_requests += 1
        brokers = [
            {"brokerName": name, "cluster": "C", "brokerAddrs": {"0": addr}}
            for name, addr in self.addrs.items()
        ]
        numbers = {
            "readQueueNums": self.queues,
            "writeQueueNums": self.queues,
            "perm": self.perm,
            "topicSysFlag": 0,
        }
        queues = [{"brokerName": name} | numbers for name in self.addrs]
        return response(0, 0, body=json.dumps({"brokerDatas": brokers, "queueDatas": queues}).encode())
