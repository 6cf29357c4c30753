"""Pulls of a scripted broker whose answers change in size, as a real one's do when memory runs out.

With an offset of ``DEEP``, many pulls are on the wire when the broker does something odd.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from rmqtools import Client, ClientConfig, QueueRange
from rmqtools.engine.reading.range_read import IN_FLIGHT, RangeReader
from rmqtools.errors import BrokerError, DataLossError, ProtocolError, RemotingTimeoutError
from rmqtools.model.block import LARGE_MESSAGE_BYTES
from rmqtools.protocol.messages.stored import decode_message, encode_message
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import FakeCluster, Fault, RequestCode, ResponseCode
from tests.support.behind_proxy import show_as_proxy
from tests.unit.engine.reading.scripted_queue import (
    QUEUE,
    Answer,
    Broker,
    flat,
    offset_at,
    read,
    reading,
    stored,
)

END = 6400  # 200 pulls: the pipeline is full after 10, and is filled up again by 32 at a time
DEEP = [3200, 3232, 3552, 3968]  # what is odd from there on is the first, second, some, last of such 32
BUSY = response(2, 0, remark="busy")


class Odd(Broker):
    """A queue whose answer to each pull is given by ``judge(broker, request, usual answer)``."""

    def __init__(
        self, judge: Callable[[Any, RemotingCommand, Any], Answer], low: int, high: int, **more: Any
    ) -> None:
        super().__init__(low, high, **more)
        self._judge = judge

    def answer(self, request: RemotingCommand, offset: int) -> Answer:
        return self._judge(self, request, super().answer(request, offset))

    def is_first_pull(self) -> bool:
        return self.pulls.count(self.pulls[-1]) == 1


def is_look(request: RemotingCommand) -> bool:
    """Return whether a pull only looks whether there is a message."""
    return request.ext_fields["maxMsgNums"] == "1"


def shorter_from(at: int) -> Callable[[int], int]:
    return lambda offset: 32 if offset < at else 8


@pytest.mark.parametrize(
    ("count", "end"),
    [
        pytest.param(lambda offset: 32, 1000, id="always-32"),
        pytest.param(lambda offset: 8, 1000, id="always-8"),
        pytest.param(shorter_from(300), 1000, id="32-then-8"),
        pytest.param(lambda offset: 8 if offset < 300 else 32, 1000, id="8-then-32"),
        pytest.param(lambda offset: 1 + offset % 31, 1000, id="any"),
        *[pytest.param(shorter_from(at), END, marks=pytest.mark.process, id=f"deep-{at}") for at in DEEP],
    ],
)
def test_every_offset_is_read_once_and_in_order_however_many_a_pull_returns(count, end):
    assert flat(read(Broker(0, end, count), 0, end)) == list(range(end))


def test_blocks_hold_at_least_the_messages_asked_for_whatever_the_pull_size():
    blocks = read(Broker(0, 1000, lambda offset: 8), 0, 1000, max_messages=300)

    assert [len(block) for block in blocks] == [304, 304, 304, 88]


def test_an_answer_of_large_messages_is_a_block_that_nobody_copies():
    small, body = Broker(0, 100, lambda offset: 10), b"x" * LARGE_MESSAGE_BYTES
    large = Broker(0, 100, lambda offset: 10, body=body)

    assert [len(block) for block in read(small, 0, 100)] == [100]
    assert [len(block) for block in read(large, 0, 100)] == [10] * 10


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
        read(Broker(96, 200), begin, end, request_timeout=0.3)


def test_a_message_acknowledged_just_now_is_waited_for():
    class Slow(Broker):
        def __call__(self, request: RemotingCommand) -> Answer:
            self.high = 100 if self.pulls.count(64) > 2 else 64
            return super().__call__(request)

    assert flat(read(Slow(0, 64), 0, 100)) == list(range(100))


@pytest.mark.parametrize(
    ("first", "at", "end"),
    [
        pytest.param(None, [64], 500, id="lost"),
        pytest.param(BUSY, range(64, 96), 320, id="busy-in-the-middle"),
        pytest.param(BUSY, range(288, 320), 320, id="busy-at-the-last-pull"),
        *[pytest.param(BUSY, range(at, END), END, marks=pytest.mark.process, id=f"busy-{at}") for at in DEEP],
    ],
)
def test_a_broker_that_is_busy_or_whose_answer_is_lost_is_asked_again_for_the_same_offsets(first, at, end):
    def judge(broker, request, answer):
        return first if broker.pulls[-1] in at and broker.is_first_pull() else answer

    assert flat(read(Odd(judge, 0, end), 0, end, request_timeout=0.15)) == list(range(end))


def test_an_answer_that_leads_nowhere_is_an_error_not_a_loop():
    broker = Broker(0, 100)
    broker.count = lambda offset: 0

    with pytest.raises(DataLossError, match="shows no message at 0 yet"):
        read(broker, 0, 100, request_timeout=0.3)


def removing(low: int, high: int, *, found_behind: bool) -> Broker:
    """A broker that is deleting [low, high): it passes over them, its smallest offset not yet moved."""

    def judge(broker, request, answer):
        if not low <= broker.pulls[-1] < high:
            return answer
        if found_behind and not is_look(request):
            body = b"".join(stored(o) for o in range(high, high + 8))
            return response(0, 0, ext_fields=broker.fields(high + 8), body=body)
        return passes_over(broker.fields(high))

    return Odd(judge, 0, 128)


def passes_over(fields: dict[str, str | None]) -> RemotingCommand:
    return response(ResponseCode.PULL_RETRY_IMMEDIATELY, 0, "MESSAGE_WAS_REMOVING", ext_fields=fields)


@pytest.mark.parametrize("found_behind", [False, True], ids=["passed-over", "in-front-of-what-was-found"])
def test_what_is_being_deleted_is_a_loss_and_no_gap(found_behind):
    with pytest.raises(DataLossError, match=r"offsets \[0, \d+\) .* the broker is removing them"):
        read(removing(0, 64, found_behind=found_behind), 0, 128)


@pytest.mark.parametrize("end", [320, 20], ids=["others-in-flight", "nothing-in-flight"])
def test_a_look_at_a_gap_that_gets_no_answer_is_repeated(end):
    looks = []

    def judge(broker, request, answer):
        if is_look(request):
            looks.append(request)
            return BUSY if len(looks) == 1 else answer
        return answer

    assert flat(read(Odd(judge, 0, end, holes=range(5)), 0, end)) == list(range(5, end))
    assert len(looks) == 2


@pytest.mark.parametrize(
    ("holes", "low", "end"),
    [
        pytest.param(range(16), 16, 128, id="in-front-of-the-first-message"),
        *[
            pytest.param(range(at, END, 32), END, END, marks=pytest.mark.process, id=f"deep-{at}")
            for at in DEEP
        ],
    ],
)
def test_what_expires_between_two_pulls_is_a_loss_and_no_gap(holes, low, end):
    class Expiring(Broker):
        def answer(self, request: RemotingCommand, offset: int) -> Answer:
            if is_look(request):
                self.low = low
            return super().answer(request, offset)

    with pytest.raises(DataLossError, match=rf"offsets \[{holes[0]}, {low}\) .* they have expired"):
        read(Expiring(0, end, holes=holes), 0, end, request_timeout=0.5)


def test_what_a_slave_does_not_have_yet_is_never_passed_over():
    class Slave(Broker):
        is_slave = True

    with pytest.raises(DataLossError, match=r"\[64, 128\) .* that is a slave, wait for its master"):
        read(Slave(0, 64), 0, 128, request_timeout=0.1, how={"fail_on_data_loss": False})


async def test_a_read_survives_the_restart_of_the_only_broker_of_its_topic():
    missing: list[Fault] = []

    def judge(broker, request, answer):
        if len(broker.pulls) != 4 or missing:
            return answer
        route = RequestCode.GET_ROUTEINFO_BY_TOPIC
        missing.append(cluster.fault(code=route, times=2, answer=ResponseCode.TOPIC_NOT_EXIST))
        cluster.disconnect("broker-a")
        return None

    async with reading(Odd(judge, 0, 400)) as (cluster, client):
        found = client.read_blocks(QueueRange(QUEUE, 0, 400))
        offsets = [offset_at(block, start) async for block in found for start in block.starts]
    assert offsets == list(range(400))
    assert missing[0].fired()


def test_a_broker_that_says_no_ends_the_read():
    refusal = response(ResponseCode.NO_PERMISSION, 0, remark="not you")

    with pytest.raises(BrokerError, match="not you"):
        read(Odd(lambda *_: refusal, 0, 10), 0, 10)


def test_a_silent_broker_ends_in_a_timeout_within_the_budget():
    with pytest.raises(RemotingTimeoutError, match=r"did not answer PULL_MESSAGE \(11\)"):
        read(Odd(lambda *_: None, 0, 10), 0, 10, request_timeout=0.1)


def test_losses_are_passed_over_on_request_and_logged(caplog):
    with caplog.at_level("WARNING", "rmqtools.engine.reading.range_read"):
        offsets = flat(read(Broker(96, 200), 0, 250, how={"fail_on_data_loss": False}, request_timeout=0.1))

    assert offsets == [*range(96, 200)]
    assert "offsets [0, 96) of" in caplog.text
    assert "offsets [200, 250) of" in caplog.text


def test_what_is_being_deleted_is_passed_over_on_request():
    broker = removing(0, 64, found_behind=False)

    assert flat(read(broker, 0, 128, how={"fail_on_data_loss": False})) == [*range(64, 128)]


@pytest.mark.parametrize("back_to", [0, 32, 64], ids=["behind", "a-pull-behind", "nowhere"])
def test_what_is_being_deleted_never_leads_back(back_to):
    def judge(broker, request, answer):
        return passes_over(broker.fields(back_to)) if broker.pulls[-1] >= 64 else answer

    with pytest.raises(ProtocolError, match=rf"at 64 came back to {back_to}"):
        read(Odd(judge, 0, 128), 0, 128, how={"fail_on_data_loss": False})


@pytest.mark.process
@pytest.mark.parametrize("deep", DEEP)
def test_an_answer_that_leads_back_is_an_error_in_a_full_pipeline_too(deep):
    def judge(broker, request, answer):
        if broker.pulls[-1] >= deep and broker.is_first_pull():
            answer.ext_fields = {**answer.ext_fields, "nextBeginOffset": "32"}
        return answer

    with pytest.raises(ProtocolError, match=rf"pull of .* at {deep} came back to 32"):
        read(Odd(judge, 0, END), 0, END)


@pytest.mark.parametrize("length", [1, 27, 28, 80])
def test_a_body_shorter_than_a_message_is_named_as_such(length):
    def judge(broker, request, answer):
        return response(0, 0, ext_fields=broker.fields(32), body=bytes(length))

    with pytest.raises(ProtocolError, match=f"pull body of {length} bytes"):
        read(Odd(judge, 0, 128), 0, 128)


class Batches(Broker):
    """Every message is a batch of ten; a pull in the middle of one gets it from its beginning."""

    def answer(self, request: RemotingCommand, offset: int) -> Answer:
        first = offset // 10 * 10
        body = encode_message(replace(decode_message(stored(first)), sys_flag=0xC0, properties=INNER))
        return response(0, 0, ext_fields=self.fields(first + 10), body=body)


INNER = {"INNER_NUM": "10"}


@pytest.mark.parametrize(
    ("begin", "end", "read_from"),
    [
        pytest.param(0, 30, [0, 10, 20], id="whole"),
        pytest.param(15, 30, [10, 20], id="begins-in-the-middle"),
        pytest.param(0, 11, [0, 10], id="ends-in-the-middle"),
        pytest.param(13, 15, [10], id="inside"),
    ],
)
def test_a_stored_batch_is_read_where_the_range_meets_any_of_it(begin, end, read_from):
    assert flat(read(Batches(0, 100), begin, end)) == read_from


# the number of pulls on the wire


@pytest.mark.process
def test_answers_of_changing_sizes_do_not_make_the_broker_send_everything_many_times():
    broker = Broker(0, 3000, lambda offset: 1 + offset * 7 % 31)

    assert flat(read(broker, 0, 3000)) == list(range(3000))
    assert len(broker.pulls) < IN_FLIGHT + 3 * len(set(broker.pulls))


@pytest.mark.process
def test_where_predictions_come_true_nothing_is_asked_twice():
    broker = Broker(0, 3200)

    read(broker, 0, 3200)

    assert all(after - before == 32 for before, after in pairwise(broker.pulls))


@pytest.mark.process
async def test_a_connection_that_breaks_while_a_block_is_used_is_made_anew():
    is_silent = [True]
    offsets: list[int] = []

    def judge(broker, request, answer):
        is_odd = broker.pulls[-1] >= 3552 and broker.is_first_pull()
        return None if is_odd and is_silent else answer

    async with reading(Odd(judge, 0, END)) as (cluster, client):
        async for block in client.read_blocks(QueueRange(QUEUE, 0, END), max_messages=3552):
            if not offsets:
                connection = await client._client.remoting.connect(cluster.addr())
                is_silent.clear()
                cluster.disconnect("broker-a")
                await connection._closed
            offsets += [offset_at(block, start) for start in block.starts]
        assert offsets == list(range(END))


@pytest.mark.process
async def test_pulls_are_sent_before_the_last_one_is_answered():
    async with reading(Broker(0, END)) as (_, client):
        reader = RangeReader(client._client, QueueRange(QUEUE, 0, END))
        blocks = reader.blocks(max_messages=32, max_bytes=1 << 20)
        on_the_wire = [len(reader._waiting) async for _ in blocks]
        assert min(on_the_wire[10:-IN_FLIGHT]) >= IN_FLIGHT // 2 - 1


@pytest.mark.process
async def test_when_all_of_a_range_is_asked_for_nobody_looks_for_more():
    async with reading(Broker(0, END)) as (_, client):
        reader: Any = RangeReader(client._client, QueueRange(QUEUE, 0, 128))
        looks, predict = [], reader._predict
        reader._predict = lambda: (looks.append(reader._planned), predict())[1]
        assert [len(block) async for block in reader.blocks(max_messages=32, max_bytes=1 << 20)] == [32] * 4
        assert looks == [0]


@pytest.mark.process
def test_through_a_proxy_a_range_read_has_one_pull_on_the_wire():
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        cluster.store("T", *(b"%d" % number for number in range(200)), queue=QUEUE)
        show_as_proxy(cluster)
        cluster.fault(code=RequestCode.PULL_MESSAGE, answer=None)  # the first answer is dropped
        with Client(ClientConfig(name_server=cluster.name_server, request_timeout=0.2)) as client:
            messages = [m for part in client.read_messages(QueueRange(QUEUE, 0, 200)) for m in part]

        asked = [
            request.ext_fields["queueOffset"] for request in cluster.requests(code=RequestCode.PULL_MESSAGE)
        ]
    assert [int(message.body) for message in messages] == list(range(200))
    assert asked.index("0", 1) <= 2  # asked again before a third pull was on the wire
