"""Requests of a peer: which are limited, which are answered together, which never."""

import asyncio

from rmqtools.engine.connection.peer_requests import PER_SECOND, PeerRequests
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand, decode_command, response
from rmqtools.protocol.wire.framing import FrameDecoder
from tests.unit.engine.consumer.push_scene import idle

NEWS = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
INFO = RequestCode.GET_CONSUMER_RUNNING_INFO
RESET = RequestCode.RESET_CONSUMER_CLIENT_OFFSET
BURST = int(PER_SECOND)


class Scene:
    """A peer that asks, and what was handled and written."""

    def __init__(self, *, reads: bool = True) -> None:
        self.handled: list[RemotingCommand] = []
        self.written = bytearray()
        self.requests = PeerRequests(
            "127.0.0.1:1", handle=self._handle, write=self.written.extend, takes_bytes=lambda: reads
        )

    async def _handle(self, request: RemotingCommand, _: str) -> RemotingCommand:
        self.handled.append(request)
        return response(0, 0)

    def ask(self, code: int, count: int, *, body: bytes = b"", **fields: str) -> None:
        for _ in range(count):
            self.requests.take(RemotingCommand(code, fields, body=body, opaque=len(self.handled)))

    def answers(self) -> int:
        return len([decode_command(frame) for frame in FrameDecoder().feed(bytes(self.written))])


async def test_a_flood_of_news_is_handled_ten_times_and_the_last_one_a_moment_later():
    scene, began = Scene(), asyncio.get_running_loop().time()
    for number in range(1000):
        scene.requests.take(RemotingCommand(NEWS, {"consumerGroup": "g"}, opaque=number, flag=2))
        await asyncio.sleep(0)
    at_once = len(scene.handled)
    while scene.handled[-1].opaque != 999:  # noqa: ASYNC110 - the limit's own timer is waited for
        await asyncio.sleep(0.01)
    await scene.requests.stop()
    seconds = asyncio.get_running_loop().time() - began

    assert BURST <= at_once <= len(scene.handled) <= BURST + 1 + PER_SECOND * seconds


async def test_equal_requests_that_wait_are_handled_once_and_all_answered():
    scene = Scene()
    for number in range(BURST):
        scene.ask(INFO, 1, consumerGroup=f"g{number}")
    scene.ask(INFO, 5, consumerGroup="g")
    await asyncio.sleep(2 / PER_SECOND)
    await scene.requests.stop()

    assert len(scene.handled) == BURST + 1
    assert scene.answers() == BURST + 5


async def test_of_resets_that_wait_the_newest_counts():
    scene = Scene()
    scene.ask(NEWS, 1, consumerGroup="a")
    for number in range(BURST - 1):
        scene.ask(INFO, 1, consumerGroup=f"g{number}")
    for body in (b"old", b"new"):
        scene.ask(RESET, 1, body=body, topic="T", group="g")
    await asyncio.sleep(2 / PER_SECOND)
    await scene.requests.stop()

    assert [request.body for request in scene.handled if request.code == RESET] == [b"new"]


async def test_replies_and_check_backs_are_never_limited():
    scene = Scene()
    scene.ask(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, 500)
    scene.ask(RequestCode.CHECK_TRANSACTION_STATE, 500)
    await idle()
    await scene.requests.stop()

    assert len(scene.handled) == 1000


async def test_different_requests_that_wait_are_bounded_and_the_first_ignored_one_is_logged(caplog):
    scene = Scene()
    for number in range(10_000):
        scene.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, 1, body=b"%d" % number)
    await idle()

    assert BURST <= len(scene.handled) <= BURST + 32  # more where the machine is slow, and never all
    assert len(scene.requests._waiting) <= 32
    assert caplog.text.count("peer_requests_ignored") == 1
    await scene.requests.stop()


async def test_a_peer_that_does_not_read_gets_no_answers():
    scene = Scene(reads=False)
    scene.ask(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, 100)
    await idle()
    await scene.requests.stop()

    assert (len(scene.handled), scene.answers()) == (100, 0)
