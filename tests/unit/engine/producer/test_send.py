"""The send loop with brokers that refuse or do not answer, which a real broker does not do on demand."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest

from rmqtools import Message, MessageQueue, Outcome, ProducerConfig, SendStatus
from rmqtools.aio import Producer
from rmqtools.errors import MessageRejectedError, SendError, SendManyError, UnknownOutcomeError
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing import FakeCluster, RequestCode, ResponseCode
from tests.support.scripted_cluster import Answer, ScriptedCluster, says, silent, stored
from tests.support.scripted_transactions import until

MESSAGE = Message("T", b"body")


@asynccontextmanager
async def producing(answers: dict[str, Answer], *, cluster_settings=None, **settings):
    """A producer on a scripted cluster, and the cluster with its requests."""
    async with ScriptedCluster(answers, **(cluster_settings or {})).serving() as cluster:
        config = ProducerConfig(name_server=cluster.name_server, group="g", **settings)
        async with Producer(config) as producer:
            yield producer, cluster


def in_turn(*answers: Answer) -> Answer:
    """The first answer to the first request, and so on."""
    left = iter(answers)
    return lambda request: next(left)(request)


async def test_a_refusal_after_silence_leaves_the_outcome_unknown():
    answer = in_turn(silent, says(ResponseCode.MESSAGE_ILLEGAL))
    async with producing({"a": answer, "b": answer}) as (producer, _):
        with pytest.raises(UnknownOutcomeError) as caught:
            await producer.send(MESSAGE, timeout=0.4)
        assert [attempt.outcome for attempt in caught.value.attempts] == [Outcome.UNKNOWN, Outcome.REFUSED]


async def test_the_result_has_the_queue_that_the_broker_has_chosen():
    def elsewhere(request: RemotingCommand) -> RemotingCommand:
        answer = stored(request)
        answer.ext_fields = {**answer.ext_fields, "queueId": "7"}
        return answer

    async with producing({"a": elsewhere}) as (producer, _):
        result = await producer.send(MESSAGE)
        assert (result.queue, result.queue_offset) == (MessageQueue("T", "a", 7), 5)


async def test_a_dead_broker_is_known_not_to_have_stored_and_the_route_is_asked_for_at_once():
    async with producing({"a": stored, "b": stored}) as (producer, cluster):
        routes = producer._client.routes
        cluster.stop("a")
        while cluster.route_requests < 3:
            await routes.refresh("T")  # until the poll soon after start is over
        asked = cluster.route_requests
        results = [await producer.send(MESSAGE) for _ in range(8)]
        failed = [attempt for result in results for attempt in result.attempts if attempt.error]
        assert {attempt.outcome for attempt in failed} == {Outcome.NOT_SENT}
        assert cluster.route_requests >= asked + len(failed) >= asked + 1
        assert not any(result.may_be_duplicated for result in results)


async def test_a_failed_broker_is_reachable_again_as_soon_as_it_answers_a_probe():
    async with FakeCluster(["a", "b"]) as cluster:
        cluster.create_topic("T")
        config = ProducerConfig(
            name_server=cluster.name_server,
            group="g",
            send_latency_fault_enable=True,
            start_detector_enable=True,
        )
        async with Producer(config) as producer:
            cluster.stop("a")
            while "a" not in producer.broker_health():
                await producer.send(MESSAGE)
            await asyncio.sleep(10)
            assert not producer.broker_health()["a"].is_reachable
            cluster.restart("a")
            await until(lambda: producer.broker_health()["a"].is_reachable)


@pytest.mark.parametrize(
    "queue", [MessageQueue("T", "a", 4), MessageQueue("T", "c", 0), MessageQueue("U", "a", 0)]
)
async def test_a_queue_that_cannot_be_sent_to_is_refused_before_anything_is_sent(queue):
    async with producing({"a": stored}) as (producer, cluster):
        with pytest.raises(MessageRejectedError, match="is not among the 4 queues"):
            await producer.send(MESSAGE, queue=queue)

    assert cluster.sends == []


@pytest.mark.parametrize(
    ("codes", "status"),
    [
        pytest.param([ResponseCode.SLAVE_NOT_AVAILABLE] * 3, SendStatus.SLAVE_NOT_AVAILABLE, id="never"),
        pytest.param([ResponseCode.FLUSH_SLAVE_TIMEOUT] * 3, SendStatus.FLUSH_SLAVE_TIMEOUT, id="too-late"),
        pytest.param([ResponseCode.FLUSH_DISK_TIMEOUT] * 3, SendStatus.FLUSH_DISK_TIMEOUT, id="not-flushed"),
        pytest.param([ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.SUCCESS], SendStatus.SEND_OK, id="later"),
    ],
)
async def test_not_replicated_is_tried_elsewhere_where_asked_and_the_best_answer_is_kept(codes, status):
    answers = in_turn(*[partial(stored, code=code) for code in codes])
    scene = producing({"a": answers}, retry_another_broker_when_not_store_ok=True)
    async with scene as (producer, cluster):
        result = await producer.send(MESSAGE)
        assert result.status is status
        assert [attempt.outcome for attempt in result.attempts] == [Outcome.STORED] * len(codes)
        assert result.may_be_duplicated

    assert len(cluster.sends) == len(codes)


async def test_a_bad_message_among_many_is_refused_before_any_is_sent():
    async with producing({"a": stored}) as (producer, cluster):
        with pytest.raises(MessageRejectedError, match="flag=2147483648: want a signed 32-bit"):
            await producer.send_many([MESSAGE] * 3 + [Message("T", b"x", flag=2**31)])

    assert cluster.sends == []


async def test_send_many_packs_messages_into_batches_and_gives_one_result_each_in_order():
    async with producing({"a": stored}, max_batch_bytes=60_000) as (producer, cluster):
        messages = [Message("T", b"%04d" % n * 100) for n in range(500)]
        results = await producer.send_many(messages)
        assert len(results) == len({result.msg_id for result in results}) == 500
        assert [r.queue_offset for r in results[:3]] == [5, 6, 7]

    assert {request.code for _, request in cluster.sends} == {RequestCode.SEND_BATCH_MESSAGE}
    assert len(cluster.sends) == 5


async def test_send_many_gives_each_message_its_own_result_where_topics_take_turns():
    async with producing({"a": stored}) as (producer, _):
        results = await producer.send_many([Message("T", b"x"), Message("B", b"x")] * 3)
        places = [(result.queue.topic, result.queue_offset) for result in results]
        assert places == [("T", 5), ("B", 5), ("T", 6), ("B", 6), ("T", 7), ("B", 7)]


async def test_send_many_goes_on_behind_a_message_that_was_refused():
    answers = in_turn(says(ResponseCode.MESSAGE_ILLEGAL), *[stored] * 39)
    async with producing({"a": answers}, max_batch_bytes=1000) as (producer, cluster):
        with pytest.raises(SendManyError, match="1 of 40 messages could not be placed") as caught:
            await producer.send_many([Message("T", bytes(900)) for _ in range(40)])

    assert [isinstance(result, SendError) for result in caught.value.results] == [True] + [False] * 39
    assert len(cluster.sends) == 40


@pytest.mark.parametrize("compression", ["zlib", "lz4", "zstd"])
async def test_a_large_body_is_compressed_and_a_small_one_is_not(compression):
    async with producing({"a": stored}, compression=compression) as (producer, cluster):
        await producer.send(Message("T", b"x" * 5000))
        await producer.send(Message("T", b"x" * 4000))

    large, small = (request for _, request in cluster.sends)
    assert len(large.body) < 200
    assert int(large.ext_fields["f"] or 0) & 1
    assert (len(small.body), small.ext_fields["f"]) == (4000, "0")


async def test_a_send_without_a_name_server_ends_in_its_time_and_says_which_one_and_why(caplog):
    async with Producer(ProducerConfig(name_server="127.0.0.1:1", group="g")) as producer:
        began = asyncio.get_running_loop().time()
        with pytest.raises(SendError) as error:
            await producer.send(MESSAGE, timeout=0.3)
        assert asyncio.get_running_loop().time() - began < 1
    assert "cannot connect to 127.0.0.1:1: " in str(error.value)
    assert "check name_server='127.0.0.1:1'" in str(error.value)
    assert caplog.text.count("name_server_failed") == 1  # not with every try


async def test_an_answer_that_cannot_be_read_is_no_proof_of_anything():
    def two_ids(request: RemotingCommand) -> RemotingCommand:
        answer = stored(request)
        return replace(answer, ext_fields={**answer.ext_fields, "msgId": "A,B"})

    async with producing({"a": two_ids}) as (producer, _):
        with pytest.raises(UnknownOutcomeError, match="2 ids for 1 messages"):
            await producer.send(MESSAGE)


async def test_requests_of_a_batch_after_one_that_failed_are_said_not_to_have_been_tried():
    settings = {"max_message_bytes": 1000, "retry_times_when_send_failed": 0}
    async with producing({"a": in_turn(stored, silent)}, **settings) as (producer, _):
        with pytest.raises(SendManyError) as caught:
            await producer.send_batch([Message("T", bytes(600))] * 3, timeout=0.2)
        kinds = [type(result).__name__ for result in caught.value.results]
        assert kinds == ["SendResult", "UnknownOutcomeError", "SendError"]
