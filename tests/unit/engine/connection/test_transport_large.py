"""Answers larger than a connection's buffer, on both event loops."""

import asyncio
from pickle import PickleBuffer
from unittest.mock import Mock

from rmqtools.engine.connection.transport import Connection
from rmqtools.protocol.wire.command import RemotingCommand, encode_command, response
from tests.support.event_loops import on_both_loops
from tests.support.scripted_peer import ScriptedPeer

MIB = 1024 * 1024


def connection_to(addr):
    async def refuse(request: RemotingCommand, addr: str) -> None:
        return None

    return Connection(addr, on_request=refuse, max_frame_bytes=4 * MIB)


async def sizes_of_answers(count):
    """The bodies' sizes of large answers, each asked for when the one before has come."""
    async with ScriptedPeer(lambda request: response(0, request.opaque, body=bytes(MIB))).serving() as peer:
        host, port = peer.addr.split(":")
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: connection_to(peer.addr), host, int(port))
        sizes = [len((await connection.invoke(RemotingCommand(11), 5)).body) for _ in range(count)]
        await connection.close()
    return sizes


@on_both_loops
def test_large_answers_arrive_although_nothing_comes_after_them(new_loop):
    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(sizes_of_answers(3)) == [MIB] * 3


def test_a_complete_answer_is_taken_although_the_connection_ends_before_its_memory_is_released():
    async def scenario():
        connection = connection_to("127.0.0.1:1")
        connection.connection_made(Mock(is_closing=lambda: False))
        answer = connection.start(RemotingCommand(11), 5)
        stream = encode_command(response(0, 1, body=bytes(MIB)))
        while stream:
            room = connection.get_buffer(-1)
            count = min(len(room), len(stream))
            room[:count], stream = stream[:count], stream[count:]
            holder = PickleBuffer(room)  # as uvloop holds it
            connection.buffer_updated(count)
            holder.release()
        connection.connection_lost(None)
        return len((await answer).body)

    assert asyncio.run(scenario()) == MIB
