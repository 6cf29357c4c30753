"""Pulls of a scripted broker whose answers change in size, as a real one's do when memory runs out."""

import json

import pytest

from rmqtools import aio
from rmqtools.config import ClientConfig
from rmqtools.errors import BrokerError, DataLossError, RemotingTimeoutError
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
    broker: Broker, begin: int, end: int, *, max_messages: int = 100, **settings: float
) -> list[list[int]]:
    """The offsets of each block."""
    blocks: list[list[int]] = []

    async def scenario() -> None:
        async with ScriptedPeer(broker).serving() as peer:
            broker.addr = peer.addr
            config = ClientConfig(name_server=peer.addr, **settings)  # type: ignore[arg-type]
            async with aio.Client(config) as client:
                found = client.read_blocks(QueueRange(QUEUE, begin, end), max_messages=max_messages)
                blocks.extend([[offset_at(block, start) for start in block.starts] async for block in found])

    run(scenario)
    return blocks


def flat(blocks: list[list[int]]) -> list[int]:
    return [offset for block in blocks for offset in block]


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(lambda offset: 32, id="always-32"),
        pytest.param(lambda offset: 8, id="always-8"),
        pytest.param(lambda offset: 32 if offset < 300 else 8, id="32-then-8"),
        pytest.param(lambda offset: 8 if offset < 300 else 32, id="8-then-32"),
        pytest.param(lambda offset: 1 + offset % 31, id="any"),
    ],
)
def test_every_offset_is_read_once_and_in_order_however_many_a_pull_returns(count):
    assert flat(read(Broker(0, 1000, count), 0, 1000)) == list(range(1000))


def test_blocks_hold_at_least_the_messages_asked_for_whatever_the_pull_size():
    blocks = read(Broker(0, 1000, lambda offset: 8), 0, 1000, max_messages=300)

    assert [len(block) for block in blocks] == [304, 304, 304, 88]


def test_nothing_outside_the_range_is_handed_out():
    assert flat(read(Broker(0, 1000), 17, 105)) == list(range(17, 105))


def test_an_empty_range_asks_nothing_of_the_queue():
    broker = Broker(0, 1000)

    assert read(broker, 5, 5) == []
    assert broker.pulls == []


def test_gaps_are_passed_over_where_the_broker_says_so():
    broker = Broker(0, 400, holes=frozenset(range(50, 200)))

    assert flat(read(broker, 0, 400)) == [*range(50), *range(200, 400)]


@pytest.mark.parametrize(
    ("begin", "end", "missing"),
    [
        pytest.param(0, 150, r"\[0, 96\)", id="expired"),
        pytest.param(100, 250, r"\[200, 250\)", id="never-written"),
        pytest.param(210, 250, r"\[210, 250\)", id="all-beyond-the-end"),
    ],
)
def test_offsets_that_are_not_there_are_named(begin, end, missing):
    with pytest.raises(DataLossError, match=rf"offsets {missing} of .*the broker has \[96, 200\)"):
        read(Broker(96, 200), begin, end, request_timeout=0.2)


def test_a_message_acknowledged_just_now_is_waited_for():
    class Slow(Broker):
        def __call__(self, request: RemotingCommand) -> RemotingCommand | None:
            self.high = 100 if self.pulls.count(64) > 2 else 64
            return super().__call__(request)

    assert flat(read(Slow(0, 64), 0, 100)) == list(range(100))


def test_an_answer_that_leads_nowhere_is_an_error_not_a_loop():
    broker = Broker(0, 100)
    broker.count = lambda offset: 0

    with pytest.raises(DataLossError, match="shows no message at 0 yet"):
        read(broker, 0, 100, request_timeout=0.2)


@pytest.mark.parametrize("offset", [64, 288], ids=["in-the-middle", "the-last-pull"])
def test_a_busy_broker_is_asked_again_for_the_same_offset(offset):
    class Busy(Broker):
        def __call__(self, request: RemotingCommand) -> RemotingCommand | None:
            answer = super().__call__(request)
            is_first = request.code == RequestCode.PULL_MESSAGE and self.pulls.count(offset) == 1
            return response(2, 0, remark="busy") if is_first and self.pulls[-1] == offset else answer

    assert flat(read(Busy(0, 320), 0, 320)) == list(range(320))


def removing(broker: Broker, low: int, high: int, *, found_behind: bool):
    """A broker that is deleting [low, high): it passes over them, its smallest offset not yet moved."""

    class Removing(Broker):
        def __call__(self, request: RemotingCommand) -> RemotingCommand | None:
            offset = int(request.ext_fields.get("queueOffset") or 0)
            is_pull = request.code == RequestCode.PULL_MESSAGE
            if not (is_pull and low <= offset < high):
                return super().__call__(request)
            if found_behind and request.ext_fields["maxMsgNums"] != "1":
                body = b"".join(stored(o) for o in range(high, high + 8))
                return response(0, 0, ext_fields=self._fields(high + 8), body=body)
            fields = self._fields(high)
            return response(ResponseCode.PULL_RETRY_IMMEDIATELY, 0, "MESSAGE_WAS_REMOVING", ext_fields=fields)

    return Removing(broker.low, broker.high)


@pytest.mark.parametrize("found_behind", [False, True], ids=["passed-over", "in-front-of-what-was-found"])
def test_what_is_being_deleted_is_a_loss_and_no_gap(found_behind):
    with pytest.raises(DataLossError, match=r"offsets \[0, \d+\) .* the broker is removing them"):
        read(removing(Broker(0, 128), 0, 64, found_behind=found_behind), 0, 128)


def test_a_read_survives_the_restart_of_the_only_broker_of_its_topic():
    class Restarting(Broker):
        missing = 0

        def __call__(self, request: RemotingCommand) -> RemotingCommand | None:
            if request.code == RequestCode.PULL_MESSAGE and self.missing == 0 and len(self.pulls) == 3:
                self.missing = 3
                peers[0].hang_up()
                return None
            if request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC and self.missing > 1:
                self.missing -= 1
                return response(ResponseCode.TOPIC_NOT_EXIST, 0, remark="gone for the moment")
            return super().__call__(request)

    peers: list[ScriptedPeer] = []
    broker = Restarting(0, 400)

    async def scenario() -> list[int]:
        async with ScriptedPeer(broker).serving() as peer:
            peers.append(peer)
            broker.addr = peer.addr
            async with aio.Client(ClientConfig(name_server=peer.addr)) as client:
                found = client.read_blocks(QueueRange(QUEUE, 0, 400))
                offsets.extend([offset_at(block, start) async for block in found for start in block.starts])

    offsets: list[int] = []
    run(scenario)
    assert offsets == list(range(400))


def test_a_broker_that_says_no_ends_the_read():
    def refuse(request: RemotingCommand) -> RemotingCommand:
        if request.code == RequestCode.PULL_MESSAGE:
            return response(ResponseCode.NO_PERMISSION, 0, remark="not you")
        return broker(request)

    broker = Broker(0, 10)
    broker_with_no = type("Refusing", (), {"__call__": staticmethod(refuse), "addr": ""})()

    async def scenario() -> None:
        async with ScriptedPeer(broker_with_no).serving() as peer:
            broker.addr = peer.addr
            async with aio.Client(ClientConfig(name_server=peer.addr)) as client:
                with pytest.raises(BrokerError, match="not you"):
                    _ = [block async for block in client.read_blocks(QueueRange(QUEUE, 0, 10))]

    run(scenario)


def test_a_silent_broker_ends_in_a_timeout_within_the_budget():
    class Silent(Broker):
        def __call__(self, request: RemotingCommand) -> RemotingCommand | None:
            return super().__call__(request) if request.code != RequestCode.PULL_MESSAGE else None

    with pytest.raises(RemotingTimeoutError, match="did not answer request 11"):
        read(Silent(0, 10), 0, 10, request_timeout=0.2)


def test_a_lost_answer_is_asked_for_again():
    class Forgetful(Broker):
        def __call__(self, request: RemotingCommand) -> RemotingCommand | None:
            answer = super().__call__(request)
            lost = (
                request.code == RequestCode.PULL_MESSAGE
                and self.pulls.count(64) == 1
                and self.pulls[-1] == 64
            )
            return None if lost else answer

    assert flat(read(Forgetful(0, 500), 0, 500, request_timeout=0.3)) == list(range(500))
