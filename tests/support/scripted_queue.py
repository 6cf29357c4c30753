"""A broker of one queue whose answers to pulls a test decides, and a read from it."""

import json
from collections.abc import Mapping
from types import MappingProxyType

from rmqtools import aio
from rmqtools.config import ClientConfig
from rmqtools.model.block import MessageBlock
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.protocol.command import RemotingCommand, response
from rmqtools.protocol.messages import decode_message, encode_message
from tests.support.scripted_peer import ScriptedPeer, run

QUEUE = MessageQueue("T", "broker-a", 0)


def stored(offset: int) -> bytes:
    message = MessageExt(
        topic="T",
        queue_id=0,
        queue_offset=offset,
        commit_log_offset=offset * 100,
        body=b"%d" % offset,
        properties={},
        flag=0,
        sys_flag=0,
        born_timestamp_ms=1,
        born_host="127.0.0.1:1",
        store_timestamp_ms=2,
        store_host="127.0.0.1:2",
    )
    return encode_message(message)


class Broker:
    """A queue with offsets [low, high); ``count(offset)`` says how many messages a pull there gets."""

    def __init__(self, low: int, high: int, count=lambda offset: 32, holes=frozenset()):
        self.low, self.high, self.count, self.holes = low, high, count, holes
        self.pulls: list[int] = []
        self.addr = ""

    def __call__(self, request: RemotingCommand) -> RemotingCommand | None:
        if request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            return response(0, 0, body=self._route())
        offset = int(request.ext_fields["queueOffset"] or 0)
        self.pulls.append(offset)
        if not self.low <= offset < self.high:
            code = ResponseCode.PULL_NOT_FOUND if offset == self.high else ResponseCode.PULL_OFFSET_MOVED
            return response(code, 0, ext_fields=self._fields(min(max(offset, self.low), self.high)))
        count = min(self.count(offset), int(request.ext_fields["maxMsgNums"] or 0))
        after = min(offset + count, self.high)
        found = [stored(o) for o in range(offset, after) if o not in self.holes]
        code = ResponseCode.SUCCESS if found else ResponseCode.PULL_RETRY_IMMEDIATELY
        return response(code, 0, ext_fields=self._fields(after), body=b"".join(found))

    def _fields(self, next_begin_offset: int) -> dict[str, str | None]:
        names = ("suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset")
        return dict(zip(names, map(str, (0, next_begin_offset, self.low, self.high)), strict=True))

    def _route(self) -> bytes:
        broker = {"brokerAddrs": {"0": self.addr}, "brokerName": "broker-a", "cluster": "C"}
        queues = {
            "brokerName": "broker-a",
            "perm": 6,
            "readQueueNums": 1,
            "writeQueueNums": 1,
            "topicSysFlag": 0,
        }
        return json.dumps({"brokerDatas": [broker], "queueDatas": [queues]}).encode()


def offset_at(block: MessageBlock, start: int) -> int:
    return decode_message(block.buffer, start).queue_offset


def read(
    broker: Broker,
    begin: int,
    end: int,
    *,
    max_messages: int = 100,
    reading: Mapping[str, object] = MappingProxyType({}),
    **settings: float,
) -> list[list[int]]:
    """The offsets of each block."""
    blocks: list[list[int]] = []

    async def scenario() -> None:
        async with ScriptedPeer(broker).serving() as peer:
            broker.addr = peer.addr
            config = ClientConfig(name_server=peer.addr, **settings)  # type: ignore[arg-type]
            async with aio.Client(config) as client:
                found = client.read_blocks(
                    QueueRange(QUEUE, begin, end),
                    max_messages=max_messages,
                    **reading,  # type: ignore[arg-type]
                )
                blocks.extend([[offset_at(block, start) for start in block.starts] async for block in found])

    run(scenario)
    return blocks


def flat(blocks: list[list[int]]) -> list[int]:
    return [offset for block in blocks for offset in block]
