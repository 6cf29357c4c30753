"""Pulls of a scripted broker whose answers change in size, as a real one's do when memory runs out."""

from dataclasses import replace

import pytest

from rmqtools.errors import BrokerError, DataLossError, ProtocolError, RemotingTimeoutError
from rmqtools.model.block import LARGE_MESSAGE_BYTES
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.queue import QueueRange
from rmqtools.protocol.messages.stored import decode_message, encode_message
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import FakeCluster, Fault
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


ROUTE = RequestCode.GET_ROUTEINFO_BY_TOPIC


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


def test_an_answer_that_leads_nowhere_is_an_error_not_a_loop():
    broker = Broker(0, 100)
    broker.count = lambda offset: 0

    with pytest.raises(DataLossError, match="shows no message at 0 yet"):
        read(broker, 0, 100, request_timeout=0.3)


@pytest.mark.parametrize("offset", [64, 288], ids=["in-the-middle", "the-last-pull"])
def test_a_busy_broker_is_asked_again_for_the_same_offset(offset):
    class Busy(Broker):
        def __call__(self, request: RemotingCommand) -> Answer:
            answer = super().__call__(request)
            is_first = request.code == RequestCode.PULL_MESSAGE and self.pulls.count(offset) == 1
            return response(2, 0, remark="busy") if is_first and self.pulls[-1] == offset else answer

    assert flat(read(Busy(0, 320), 0, 320)) == list(range(320))


def removing(broker: Broker, low: int, high: int, *, found_behind: bool):
    """A broker that is deleting [low, high): it passes over them, its smallest offset not yet moved."""

    class Removing(Broker):
        def __call__(self, request: RemotingCommand) -> Answer:
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


@pytest.mark.parametrize("end", [320, 20], ids=["others-in-flight", "nothing-in-flight"])
def test_a_look_at_a_gap_that_gets_no_answer_is_repeated(end):
    class Busy(Broker):
        looks = 0

        def __call__(self, request: RemotingCommand) -> Answer:
            answer = super().__call__(request)
            if request.code == RequestCode.PULL_MESSAGE and request.ext_fields["maxMsgNums"] == "1":
                self.looks += 1
                return response(2, 0, remark="busy") if self.looks == 1 else answer
            return answer

    broker = Busy(0, end, holes=frozenset(range(5)))

    assert flat(read(broker, 0, end)) == list(range(5, end))
    assert broker.looks == 2


def test_what_expires_between_two_pulls_is_a_loss_and_no_gap():
    class Expiring(Broker):
        def __call__(self, request: RemotingCommand) -> Answer:
            if request.code == RequestCode.PULL_MESSAGE and request.ext_fields["maxMsgNums"] == "1":
                self.low = 16
            return super().__call__(request)

    with pytest.raises(DataLossError, match=r"offsets \[0, 16\) .* they have expired"):
        read(Expiring(0, 128, holes=frozenset(range(16))), 0, 128)


def test_what_a_slave_does_not_have_yet_is_never_passed_over():
    class Slave(Broker):
        is_slave = True

    with pytest.raises(DataLossError, match=r"\[64, 128\) .* that is a slave, wait for its master"):
        read(Slave(0, 64), 0, 128, request_timeout=0.1, how={"fail_on_data_loss": False})


async def test_a_read_survives_the_restart_of_the_only_broker_of_its_topic():
    class Restarting(Broker):
        cluster: FakeCluster

        def __call__(self, request: RemotingCommand) -> Answer:
            if len(self.pulls) == 3 and not missing:
                missing.append(self.cluster.fault(code=ROUTE, times=2, answer=ResponseCode.TOPIC_NOT_EXIST))
                self.cluster.disconnect("broker-a")
                return None
            return super().__call__(request)

    missing: list[Fault] = []
    broker = Restarting(0, 400)

    offsets: list[int] = []

    async with reading(broker) as (broker.cluster, client):
        found = client.read_blocks(QueueRange(QUEUE, 0, 400))
        offsets.extend([offset_at(block, start) async for block in found for start in block.starts])
    assert offsets == list(range(400))
    assert missing[0].fired()


def test_a_broker_that_says_no_ends_the_read():
    class Refusing(Broker):
        def __call__(self, request: RemotingCommand) -> Answer:
            return response(ResponseCode.NO_PERMISSION, 0, remark="not you")

    with pytest.raises(BrokerError, match="not you"):
        read(Refusing(0, 10), 0, 10)


def test_a_silent_broker_ends_in_a_timeout_within_the_budget():
    class Silent(Broker):
        def __call__(self, request: RemotingCommand) -> Answer:
            return super().__call__(request) if request.code != RequestCode.PULL_MESSAGE else None

    with pytest.raises(RemotingTimeoutError, match=r"did not answer PULL_MESSAGE \(11\)"):
        read(Silent(0, 10), 0, 10, request_timeout=0.1)


def test_a_lost_answer_is_asked_for_again():
    class Forgetful(Broker):
        def __call__(self, request: RemotingCommand) -> Answer:
            answer = super().__call__(request)
            lost = (
                request.code == RequestCode.PULL_MESSAGE
                and self.pulls.count(64) == 1
                and self.pulls[-1] == 64
            )
            return None if lost else answer

    assert flat(read(Forgetful(0, 500), 0, 500, request_timeout=0.15)) == list(range(500))


def test_losses_are_passed_over_on_request_and_logged(caplog):
    with caplog.at_level("WARNING", "rmqtools.engine.reading.range_read"):
        offsets = flat(read(Broker(96, 200), 0, 250, how={"fail_on_data_loss": False}, request_timeout=0.1))

    assert offsets == [*range(96, 200)]
    assert "offsets [0, 96) of" in caplog.text
    assert "offsets [200, 250) of" in caplog.text


def test_what_is_being_deleted_is_passed_over_on_request():
    broker = removing(Broker(0, 128), 0, 64, found_behind=False)

    assert flat(read(broker, 0, 128, how={"fail_on_data_loss": False})) == [*range(64, 128)]


@pytest.mark.parametrize("back_to", [0, 32, 64], ids=["behind", "a-pull-behind", "nowhere"])
def test_what_is_being_deleted_never_leads_back(back_to):
    class Backwards(Broker):
        def __call__(self, request: RemotingCommand) -> Answer:
            answer = super().__call__(request)
            if request.code != RequestCode.PULL_MESSAGE or self.pulls[-1] < 64:
                return answer
            fields = self._fields(back_to)
            return response(ResponseCode.PULL_RETRY_IMMEDIATELY, 0, "MESSAGE_WAS_REMOVING", ext_fields=fields)

    with pytest.raises(ProtocolError, match=rf"at 64 came back to {back_to}"):
        read(Backwards(0, 128), 0, 128, how={"fail_on_data_loss": False})


@pytest.mark.parametrize("length", [1, 27, 28, 80])
def test_a_body_shorter_than_a_message_is_named_as_such(length):
    class Torn(Broker):
        def __call__(self, request: RemotingCommand) -> Answer:
            if request.code != RequestCode.PULL_MESSAGE:
                return super().__call__(request)
            return response(0, 0, ext_fields=self._fields(32), body=bytes(length))

    with pytest.raises(ProtocolError, match=f"pull body of {length} bytes"):
        read(Torn(0, 128), 0, 128)


class Batches(Broker):
    """Every message is a batch of ten; a pull in the middle of one gets it from its beginning."""

    def __call__(self, request: RemotingCommand) -> Answer:
        if request.code != RequestCode.PULL_MESSAGE:
            return super().__call__(request)
        first = int(request.ext_fields["queueOffset"] or 0) // 10 * 10
        body = encode_message(replace(decode_message(stored(first)), sys_flag=0xC0, properties=INNER))
        return response(0, 0, ext_fields=self._fields(first + 10), body=body)


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
