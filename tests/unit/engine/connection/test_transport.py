"""What a connection writes, and when."""

import asyncio

import pytest

from rmqtools.engine.connection.transport import Connection
from rmqtools.errors import ConnectionLostError, RemotingTimeoutError
from rmqtools.protocol.wire.command import RemotingCommand, decode_command, response
from rmqtools.protocol.wire.framing import FrameDecoder
from tests.support.event_loops import on_both_loops

ASK = RemotingCommand(28)


class Wire(asyncio.Transport):
    """Keeps each write; takes everything."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return False

    def opaques(self) -> list[list[int]]:
        """Of the requests in each write."""
        frames = [FrameDecoder().feed(data) for data in self.writes]
        return [[decode_command(frame).opaque for frame in some] for some in frames]


def connected() -> tuple[Connection, Wire]:
    async def refuse(request: RemotingCommand, addr: str) -> None:
        return None

    connection, wire = Connection("127.0.0.1:1", on_request=refuse, max_frame_bytes=1 << 20), Wire()
    connection.connection_made(wire)
    return connection, wire


async def test_a_request_alone_goes_out_at_once_those_behind_it_together():
    connection, wire = connected()
    for _ in range(4):
        connection.start(ASK, 5)
    assert wire.opaques() == [[1]]
    await asyncio.sleep(0)
    assert wire.opaques() == [[1], [2, 3, 4]]
    connection.connection_lost(None)


async def test_a_frame_that_begins_while_no_request_waits_makes_the_connection_unusable_until_it_is_whole():
    stray = RemotingCommand(40).encode(7)

    def arrive(connection: Connection, data: bytes) -> None:
        connection.get_buffer(-1)[: len(data)] = data
        connection.buffer_updated(len(data))

    connection, _ = connected()
    arrive(connection, stray[:9])
    assert not connection.is_usable
    assert not connection.is_ready
    arrive(connection, stray[9:])
    assert connection.is_usable
    answer = connection.start(ASK, 5)
    arrive(connection, response(0, 1).encode(1)[:9])
    assert connection.is_usable  # the answer that is waited for
    answer.cancel()
    connection.connection_lost(None)


async def test_a_large_request_takes_those_before_it_along():
    connection, wire = connected()
    for body in (b"", b"", bytes(100_000)):
        connection.start(RemotingCommand(310, body=body), 5)
    assert wire.opaques() == [[1], [2, 3]]
    connection.connection_lost(None)


async def test_each_request_ends_at_its_own_time():
    connection, _ = connected()
    long, short = connection.start(ASK, 5), connection.start(ASK, 0.01)
    with pytest.raises(RemotingTimeoutError, match=r"within 0\.010 s"):
        await short
    assert not long.done()
    connection.connection_lost(None)
    assert long.exception() is not None


@on_both_loops
def test_a_request_whose_time_is_nearly_over_keeps_no_other_from_being_sent(new_loop):
    async def scenario() -> None:
        connection, wire = connected()
        late = connection.start(ASK, 0.0001)  # on uvloop its timer is none: it is due at once
        other = connection.start(ASK, 60.0)
        with pytest.raises(RemotingTimeoutError):
            await late
        assert not other.done()
        assert sum(len(some) for some in wire.opaques()) == 2
        connection.connection_lost(None)
        with pytest.raises(ConnectionLostError):
            await other

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scenario())
