"""The number of pulls that a range read keeps on the wire, and its decisions with many of them."""

from itertools import pairwise
from typing import Any

import pytest

from rmqtools.engine.reading.range_read import IN_FLIGHT, RangeReader
from rmqtools.errors import DataLossError, ProtocolError
from rmqtools.model.codes import RequestCode
from rmqtools.model.queue import QueueRange
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.unit.engine.reading.scripted_queue import QUEUE, Answer, Broker, flat, offset_at, read, reading

pytestmark = pytest.mark.process

END = 6400  # 200 pulls: the pipeline is full after 10, and is filled up again by 32 at a time
DEEP = [3200, 3232, 3552, 3968]  # what is odd from there on is the first, second, some, last of such 32


def test_answers_of_changing_sizes_do_not_make_the_broker_send_everything_many_times():
    broker = Broker(0, 3000, lambda offset: 1 + offset * 7 % 31)

    assert flat(read(broker, 0, 3000)) == list(range(3000))
    assert len(broker.pulls) < IN_FLIGHT + 3 * len(set(broker.pulls))


def test_where_predictions_come_true_nothing_is_asked_twice():
    broker = Broker(0, 3200)

    read(broker, 0, 3200)

    assert all(after - before == 32 for before, after in pairwise(broker.pulls))


class Odd(Broker):
    """Answers pulls from ``deep`` on in another way, the first time."""

    def __init__(self, deep: int) -> None:
        super().__init__(0, END)
        self.deep = deep

    def __call__(self, request: RemotingCommand) -> Answer:
        answer = super().__call__(request)
        if request.code != RequestCode.PULL_MESSAGE or self.pulls[-1] < self.deep:
            return answer
        return self.odd(answer) if self.pulls.count(self.pulls[-1]) == 1 else answer

    def odd(self, answer: Answer) -> Answer:
        raise NotImplementedError


@pytest.mark.parametrize("deep", DEEP)
def test_a_busy_broker_is_asked_again_by_a_full_pipeline_too(deep):
    class Busy(Odd):
        def odd(self, answer: Answer) -> Answer:
            return response(2, 0, remark="busy")

    assert flat(read(Busy(deep), 0, END)) == list(range(END))


@pytest.mark.parametrize("deep", DEEP)
def test_short_answers_in_a_full_pipeline_lose_nothing(deep):
    broker = Broker(0, END, lambda offset: 32 if offset < deep else 8)

    assert flat(read(broker, 0, END)) == list(range(END))


@pytest.mark.parametrize("deep", DEEP)
def test_what_expires_in_front_of_a_full_pipeline_is_a_loss_and_no_gap(deep):
    class Expiring(Broker):
        def __call__(self, request: RemotingCommand) -> Answer:
            if request.code == RequestCode.PULL_MESSAGE and request.ext_fields["maxMsgNums"] == "1":
                self.low = END
            return super().__call__(request)

    first_of_each_pull = frozenset(range(deep, END, 32))

    with pytest.raises(DataLossError, match=rf"offsets \[{deep}, 6400\) .* they have expired"):
        read(Expiring(0, END, holes=first_of_each_pull), 0, END, request_timeout=0.5)


@pytest.mark.parametrize("deep", DEEP)
def test_an_answer_that_leads_back_is_an_error_in_a_full_pipeline_too(deep):
    class Backwards(Odd):
        def odd(self, answer: Answer) -> Answer:
            assert isinstance(answer, RemotingCommand)
            answer.ext_fields = {**answer.ext_fields, "nextBeginOffset": "32"}
            return answer

    with pytest.raises(ProtocolError, match=rf"pull of .* at {deep} came back to 32"):
        read(Backwards(deep), 0, END)


async def test_a_connection_that_breaks_while_a_block_is_used_is_made_anew():
    class Silent(Odd):
        is_silent = True

        def odd(self, answer: Answer) -> Answer:
            return None if self.is_silent else answer

    broker = Silent(3552)

    async with reading(broker) as (cluster, client):
        offsets: list[int] = []
        async for block in client.read_blocks(QueueRange(QUEUE, 0, END), max_messages=broker.deep):
            if not offsets:
                connection = await client._client.remoting.connect(cluster.addr())
                broker.is_silent = False
                cluster.disconnect("broker-a")
                await connection._closed
            offsets += [offset_at(block, start) for start in block.starts]
        assert offsets == list(range(END))


async def test_pulls_are_sent_before_the_last_one_is_answered():
    async with reading(Broker(0, END)) as (_, client):
        reader = RangeReader(client._client, QueueRange(QUEUE, 0, END))
        blocks = reader.blocks(max_messages=32, max_bytes=1 << 20)
        on_the_wire = [len(reader._waiting) async for _ in blocks]
        assert min(on_the_wire[10:-IN_FLIGHT]) >= IN_FLIGHT // 2 - 1


async def test_when_all_of_a_range_is_asked_for_nobody_looks_for_more():
    async with reading(Broker(0, END)) as (_, client):
        reader: Any = RangeReader(client._client, QueueRange(QUEUE, 0, 128))
        looks, predict = [], reader._predict
        reader._predict = lambda: (looks.append(reader._planned), predict())[1]
        assert [len(block) async for block in reader.blocks(max_messages=32, max_bytes=1 << 20)] == [32] * 4
        assert looks == [0]
