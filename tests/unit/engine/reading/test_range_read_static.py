"""Reads of a static topic: a broker counts its own offsets, and another one may serve the queue tomorrow."""

import pytest

from rmqtools import MessageQueue, QueueRange
from rmqtools.errors import ProtocolError
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import ResponseCode, encode_stored, stored_message
from tests.unit.engine.reading.scripted_queue import Answer, Broker, reading

LOGIC_QUEUE = MessageQueue("T", "__syslo__global__", 3)
MOVED_AT = 10_000  # the logic offset of the first message on the broker that serves the queue now


class Moved(Broker):
    """The logic offsets [low, high), stored as queue 0 of a broker, from its offset 0 on."""

    delta = MOVED_AT

    def answer(self, request: RemotingCommand, offset: int) -> Answer:
        plain = super().answer(request, offset)
        assert isinstance(plain, RemotingCommand)
        plain.ext_fields = {**plain.ext_fields, "offsetDelta": str(self.delta)}
        if plain.body:
            after = int(plain.ext_fields["nextBeginOffset"] or 0)
            plain.body = encode_stored([stored_message("T", at - MOVED_AT) for at in range(offset, after)])
        return plain


class Twice(Moved):
    """Two brokers convert the offset of the first answer, as brokers 5.5.0 do while a queue moves."""

    def answer(self, request: RemotingCommand, offset: int) -> Answer:
        if len(self.pulls) > 1:
            return super().answer(request, offset)
        names = ("suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset")
        fields = dict(zip(names, ("0", "20000", "20000", "20000"), strict=True))
        return response(ResponseCode.PULL_RETRY_IMMEDIATELY, 0, ext_fields=fields)


async def places(broker: Broker, begin: int, end: int) -> list[tuple[int, int]]:
    """Queue id and queue offset of each message that a read returns."""
    async with reading(broker, request_timeout=1.0) as (_, client):
        await client._client.routes.refresh("T")
        client._client.routes.tables.endpoints[LOGIC_QUEUE] = "broker-a"
        found = client.read_messages(QueueRange(LOGIC_QUEUE, begin, end))
        return [(message.queue_id, message.queue_offset) async for some in found for message in some]


@pytest.mark.parametrize("broker", [Moved, Twice])
async def test_messages_behind_a_move_are_read_with_the_offsets_of_the_logic_queue(broker):
    found = await places(broker(MOVED_AT, MOVED_AT + 100), MOVED_AT, MOVED_AT + 50)

    assert found == [(3, offset) for offset in range(MOVED_AT, MOVED_AT + 50)]


async def test_an_offset_that_no_queue_can_have_is_an_error():
    broker = Moved(MOVED_AT, MOVED_AT + 1)
    broker.delta = 2**63 - 1
    with pytest.raises(ProtocolError, match="queue offset"):
        await places(broker, MOVED_AT, MOVED_AT + 1)
