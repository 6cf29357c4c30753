"""A queue with scripted answers to pulls on a fake cluster, and a read from it."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

from rmqtools import ClientConfig, MessageQueue, QueueRange, aio
from rmqtools.model.block import MessageBlock
from rmqtools.protocol.messages.stored import decode_message
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import FakeCluster, Reaction, RequestCode, ResponseCode, encode_stored, stored_message
from rmqtools.testing.fake.servers import slave_name
from tests.support.scripted_peer import run

QUEUE = MessageQueue("T", "broker-a", 0)
Answer = RemotingCommand | Reaction | None


def stored(offset: int, body: bytes | None = None) -> bytes:
    return encode_stored([stored_message("T", offset, body=body)])


class Broker:
    """A queue with offsets [low, high); ``count(offset)`` says how many messages a pull there gets."""

    is_slave = False  # whether its master is down

    def __init__(
        self,
        low: int,
        high: int,
        count: Callable[[int], int] = lambda offset: 32,
        holes: Collection[int] = frozenset(),
        body: bytes | None = None,
    ) -> None:
        self.low, self.high, self.count, self.holes, self.body = low, high, count, holes, body
        self.pulls: list[int] = []

    def __call__(self, request: RemotingCommand) -> Answer:
        if request.code != RequestCode.PULL_MESSAGE:
            return Reaction.PASS
        offset = int(request.ext_fields["queueOffset"] or 0)
        self.pulls.append(offset)
        return self.answer(request, offset)

    def answer(self, request: RemotingCommand, offset: int) -> Answer:
        """Return the answer to a pull at an offset."""
        if not self.low <= offset < self.high:
            code = ResponseCode.PULL_NOT_FOUND if offset == self.high else ResponseCode.PULL_OFFSET_MOVED
            return response(code, 0, ext_fields=self.fields(min(max(offset, self.low), self.high)))
        count = min(self.count(offset), int(request.ext_fields["maxMsgNums"] or 0))
        after = min(offset + count, self.high)
        found = [stored(o, self.body) for o in range(offset, after) if o not in self.holes]
        code = ResponseCode.SUCCESS if found else ResponseCode.PULL_RETRY_IMMEDIATELY
        return response(code, 0, ext_fields=self.fields(after), body=b"".join(found))

    def fields(self, next_begin_offset: int) -> dict[str, str | None]:
        """Return the header of an answer to a pull."""
        names = ("suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset")
        return dict(zip(names, map(str, (0, next_begin_offset, self.low, self.high)), strict=True))


def offset_at(block: MessageBlock, start: int) -> int:
    return decode_message(block.buffer, start).queue_offset


@asynccontextmanager
async def reading(broker: Broker, **settings: Any) -> AsyncIterator[tuple[FakeCluster, aio.Client]]:
    """A cluster that answers pulls as ``broker`` does, and a client that reads from it."""
    async with FakeCluster(slaves=int(broker.is_slave)) as cluster:
        cluster.create_topic("T", queues=1)
        cluster.fault(broker=slave_name("broker-a", int(broker.is_slave)), times=None, answer=broker)
        if broker.is_slave:
            cluster.stop("broker-a", in_route=False)
        config = ClientConfig(name_server=cluster.name_server, **settings)
        async with aio.Client(config) as client:
            yield cluster, client


def read(
    broker: Broker,
    begin: int,
    end: int,
    *,
    max_messages: int = 100,
    how: Mapping[str, Any] = MappingProxyType({}),
    **settings: Any,
) -> list[list[int]]:
    """The offsets of each block."""
    blocks: list[list[int]] = []

    async def scenario() -> None:
        async with reading(broker, **settings) as (_, client):
            found = client.read_blocks(
                QueueRange(QUEUE, begin, end),
                max_messages=max_messages,
                **how,
            )
            blocks.extend([[offset_at(block, start) for start in block.starts] async for block in found])

    run(scenario)
    return blocks


def flat(blocks: list[list[int]]) -> list[int]:
    return [offset for block in blocks for offset in block]
