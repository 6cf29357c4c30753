"""The contract of a send on the loop thread (``send_async``) and on its caller's thread (``send``)."""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rmqtools import Message, Outcome, Producer, ProducerConfig, SendStatus
from rmqtools.errors import (
    ClientStateError,
    MessageRejectedError,
    RocketMQError,
    SendError,
    TopicNotFoundError,
    UnknownOutcomeError,
)
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.queue import MessageQueue
from rmqtools.observer import observe
from rmqtools.protocol.wire.command import response
from rmqtools.testing import FakeCluster, Reaction
from tests.behaviour.site import until
from tests.support.forked import in_child
from tests.support.interrupts import interrupted_when
from tests.support.send_ways import (
    Observed,
    error_of,
    on_caller,
    on_loop,
    open_to,
    pool_of,
    producing,
    silence_after,
)

SEND = RequestCode.SEND_MESSAGE_V2
MESSAGE = Message("T", b"body", tags="t", keys=("k",), properties={"p": "v"})
STORED, REFUSED, UNKNOWN, NOT_SENT = Outcome.STORED, Outcome.REFUSED, Outcome.UNKNOWN, Outcome.NOT_SENT


@pytest.fixture(params=[on_loop, on_caller])
def send(request: pytest.FixtureRequest):
    """``send(producer, message)``, one way or the other."""
    return request.param


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(brokers=("a", "b")) as cluster:
        cluster.create_topic("T", queues=2)
        yield cluster


def outcomes(attempts) -> list[Outcome]:
    return [attempt.outcome for attempt in attempts]


# on the fake cluster and on a real one


def test_a_message_is_stored_as_it_was_sent(site, producer, send, topic):
    message = Message(topic, b"body\0\xff", tags="t", keys=("k",), properties={"p": "v"}, flag=9)
    results = [send(producer, message) for _ in range(6)]
    found = [site.admin.view_message(result.offset_msg_id) for result in results]

    assert [result.status for result in results] == [SendStatus.SEND_OK] * 6
    assert Counter(result.queue.queue_id for result in results) == {0: 3, 1: 3}
    assert sorted(result.queue_offset for result in results) == [0, 0, 1, 1, 2, 2]
    for result, stored in zip(results, found, strict=True):
        assert (stored.msg_id, stored.body, stored.flag) == (result.msg_id, b"body\0\xff", 9)
        assert (stored.tags, stored.keys, stored.properties["p"]) == ("t", "k", "v")
        assert (stored.queue_id, stored.queue_offset) == (result.queue.queue_id, result.queue_offset)


def test_a_large_message_arrives_whole(site, send, topic):
    body = os.urandom(3_000_000)
    with Producer(ProducerConfig(name_server=site.name_server, group="ways", compression="none")) as producer:
        results = [send(producer, Message(topic, body), timeout=30) for _ in range(3)]
        stored = site.admin.view_message(results[-1].offset_msg_id)

    assert stored.body == body


def test_threads_send_at_the_same_time_and_every_message_is_stored_once(producer, send, topic):
    def send_one(number: int) -> Any:
        return send(producer, Message(topic, b"%d" % number), timeout=30)

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(send_one, range(160)))

    assert len({result.msg_id for result in results}) == 160
    assert len({(result.queue, result.queue_offset) for result in results}) == 160
    assert {result.queue.queue_id for result in results} == {0, 1}


def test_what_cannot_be_sent_is_refused(site, producer, send, topic):
    producer.send(Message(topic, b"first"))
    missing = MessageQueue(topic, site.broker, 7)
    with pytest.raises(MessageRejectedError, match="is not among the 2 queues"):
        send(producer, Message(topic, b"body"), queue=missing)
    with pytest.raises(MessageRejectedError):
        send(producer, Message(topic, b""))


def test_a_message_that_not_every_broker_understands_is_accepted_by_one_that_does(producer, send, topic):
    results = [send(producer, Message(topic, b"body", priority=1)) for _ in range(3)]

    assert {result.status for result in results} == {SendStatus.SEND_OK}


# scripted faults


def answers(code: int):
    return lambda request: response(code, 0, remark="scripted")


def without_ids(request):
    return response(0, 0, ext_fields={"queueId": "0", "queueOffset": "x"})


@pytest.mark.parametrize(
    ("answer", "error", "attempts"),
    [
        pytest.param(answers(ResponseCode.SYSTEM_BUSY), SendError, [REFUSED] * 3, id="busy"),
        pytest.param(answers(ResponseCode.MESSAGE_ILLEGAL), SendError, [REFUSED], id="illegal"),
        pytest.param(answers(ResponseCode.SYSTEM_ERROR), UnknownOutcomeError, [UNKNOWN] * 3, id="internal"),
        pytest.param(Reaction.DISCONNECT, UnknownOutcomeError, [UNKNOWN] * 3, id="disconnect"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", UnknownOutcomeError, [UNKNOWN], id="foreign"),
        pytest.param(b"\x7f\xff\xff\xff\x00\x00\x00\x01", UnknownOutcomeError, [UNKNOWN], id="too-large"),
        pytest.param(b"\x00\x00\x00\x06\x00\x00\x00\x02{]", UnknownOutcomeError, [UNKNOWN], id="no-header"),
        pytest.param(without_ids, UnknownOutcomeError, [], id="no-place"),
    ],
)
def test_an_attempt_without_success_has_its_outcome(cluster, send, answer, error, attempts):
    with producing(cluster) as producer:
        cluster.fault(code=SEND, times=None, answer=answer)
        with pytest.raises(SendError) as caught:
            send(producer, MESSAGE)

    assert type(caught.value) is error
    assert outcomes(caught.value.attempts) == attempts
    assert len(cluster.messages("T")) == 8


@pytest.mark.process
@pytest.mark.parametrize(("answer", "stored"), [(Reaction.SILENCE, 0), (Reaction.SWALLOW, 1)])
def test_without_an_answer_in_time_the_outcome_is_unknown(cluster, send, answer, stored):
    with producing(cluster) as producer:
        cluster.fault(code=SEND, times=None, answer=answer)
        with pytest.raises(UnknownOutcomeError) as caught:
            send(producer, MESSAGE, timeout=0.5)

    unknown = outcomes(caught.value.attempts).count(UNKNOWN)  # three, if the machine does not pause
    assert 1 <= unknown <= 3
    assert len(cluster.messages("T")) == 8 + stored * unknown


@pytest.mark.parametrize(
    ("answer", "first"),
    [
        pytest.param(ResponseCode.SYSTEM_BUSY, REFUSED, id="busy"),
        pytest.param(Reaction.SILENCE, UNKNOWN, id="silence", marks=pytest.mark.process),
        pytest.param(Reaction.DISCONNECT, UNKNOWN, id="disconnect"),
    ],
)
def test_the_next_attempt_goes_to_another_broker(cluster, send, answer, first):
    with producing(cluster) as producer:
        failed = cluster.fault(code=SEND, times=1, answer=answer)
        result = send(producer, MESSAGE, timeout=4)

    one, other = result.attempts
    assert (one.outcome, other.outcome) == (first, STORED)
    assert one.queue.broker_name != other.queue.broker_name == result.queue.broker_name
    assert result.may_be_duplicated == (first is UNKNOWN)
    assert failed.fired() == 1


@pytest.mark.parametrize("answer", [ResponseCode.SYSTEM_BUSY, Reaction.DISCONNECT])
def test_a_queue_chosen_by_the_caller_is_tried_once(cluster, send, answer):
    queue = MessageQueue("T", "a", 1)
    with producing(cluster) as producer:
        cluster.fault(code=SEND, times=1, answer=answer)
        with pytest.raises(SendError) as caught:
            send(producer, MESSAGE, queue=queue)

    assert [attempt.queue for attempt in caught.value.attempts] == [queue]


def test_stored_without_its_replica_is_a_status(cluster, send):
    def stored(request):
        fields = {
            "msgId": "7F00000100002A9F" + "0" * 16,
            "queueId": request.ext_fields["e"],
            "queueOffset": "5",
        }
        return response(ResponseCode.SLAVE_NOT_AVAILABLE, 0, ext_fields=fields)

    with producing(cluster) as producer:
        cluster.fault(code=SEND, answer=stored)
        result = send(producer, MESSAGE)

    assert (result.status, result.queue_offset) == (SendStatus.SLAVE_NOT_AVAILABLE, 5)


@pytest.mark.process  # it waits for seconds
def test_an_answer_that_comes_too_late_is_not_taken_for_the_next(cluster, send):
    queue = MessageQueue("T", "a", 0)
    with producing(cluster) as producer:
        cluster.fault(code=SEND, times=1, delay=3.0)
        with pytest.raises(UnknownOutcomeError):
            send(producer, Message("T", b"late"), queue=queue, timeout=0.3)
        results = [send(producer, Message("T", b"%d" % number), queue=queue) for number in range(5)]
        until(lambda: len(cluster.messages("T", queue)) == 8)
        results += [send(producer, Message("T", b"%d" % number), queue=queue) for number in range(5, 10)]
        stored = {message.queue_offset: message.body for message in cluster.messages("T", queue)}

    assert [stored[result.queue_offset] for result in results] == [b"%d" % number for number in range(10)]


def test_a_connection_that_its_broker_has_closed_is_not_sent_over(cluster, send):
    with producing(cluster) as producer:
        for _ in range(5):
            cluster.disconnect("a")
            cluster.disconnect("b")
            until(lambda: not any(open_to(producer, cluster)))
            result = send(producer, MESSAGE)
            assert outcomes(result.attempts) == [STORED]


def test_a_broker_that_is_gone_has_stored_nothing_and_another_is_used(cluster, send):
    with producing(cluster) as producer:
        cluster.stop("a")
        until(lambda: open_to(producer, cluster) == [False, True])
        results = [send(producer, MESSAGE) for _ in range(8)]

    failed = [attempt for result in results for attempt in result.attempts if attempt.error]
    assert {result.queue.broker_name for result in results} == {"b"}
    assert {attempt.outcome for attempt in failed} == {NOT_SENT}
    assert not any(result.may_be_duplicated for result in results)


def test_a_broker_that_was_isolated_is_avoided(cluster, send):
    with producing(cluster, send_latency_fault_enable=True, start_detector_enable=False) as producer:
        failed = cluster.fault(code=SEND, broker="a", times=None, answer=Reaction.DISCONNECT)
        results = [send(producer, MESSAGE) for _ in range(8)]
        health = producer.broker_health()

    assert {result.queue.broker_name for result in results} == {"b"}
    assert failed.fired() == 1
    assert (health["a"].is_available, health["b"].is_available) == (False, True)


def test_requests_are_signed(cluster, send):
    with producing(cluster, access_key="key", secret_key="secret-of-the-tests") as producer:
        send(producer, Message("T", b"signed"))

    (request,) = [one for one in cluster.requests(SEND) if one.body == b"signed"]
    assert request.ext_fields["AccessKey"] == "key"
    assert request.ext_fields["Signature"]


def test_a_topic_without_a_route_is_an_error_that_says_so(cluster, send):
    cluster.fault(
        code=RequestCode.GET_ROUTEINFO_BY_TOPIC,
        topic="TBW102",
        times=None,
        answer=ResponseCode.TOPIC_NOT_EXIST,
    )
    with producing(cluster) as producer, pytest.raises(TopicNotFoundError):
        send(producer, Message("Missing", b"body"))


@pytest.mark.process
def test_a_route_that_does_not_come_in_time_ends_the_send_with_nothing_sent(cluster, send):
    with producing(cluster) as producer:
        cluster.fault(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, times=None, answer=Reaction.SILENCE)
        with pytest.raises(SendError, match="nothing was sent") as caught:
            send(producer, Message("Other", b"body"), timeout=0.2)

    assert not isinstance(caught.value, UnknownOutcomeError)


def test_traces_are_sent(cluster, send):
    with producing(cluster, enable_trace=True) as producer:
        result = send(producer, MESSAGE)

    traces = b"".join(message.body for message in cluster.messages("RMQ_SYS_TRACE_TOPIC"))
    assert result.msg_id.encode() in traces


@pytest.fixture
def observed() -> Iterator[Observed]:
    observer = Observed()
    observe(observer)
    yield observer
    observe(None)


def test_an_observer_surrounds_a_send(cluster, send, observed):
    with producing(cluster) as producer:
        observed.results.clear()
        result = send(producer, MESSAGE)
        cluster.fault(code=SEND, answer=ResponseCode.MESSAGE_ILLEGAL)
        with pytest.raises(SendError) as caught:
            send(producer, MESSAGE)

    assert observed.results == [result]
    assert observed.errors == [caught.value]
    assert {message.body for message in cluster.messages("T")} == {b"changed"}


# ends: of the wait, of the producer, of the process


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_ends_the_wait_and_later_sends_get_their_own_answers(cluster, send, times):
    queue = MessageQueue("T", "a", 0)
    with producing(cluster) as producer:
        for _ in range(times):
            asked = threading.Event()
            cluster.fault(code=SEND, answer=silence_after(asked))
            with interrupted_when(asked), pytest.raises(KeyboardInterrupt):
                send(producer, Message("T", b"interrupted"), queue=queue, timeout=60)
        results = [send(producer, Message("T", b"%d" % number), queue=queue) for number in range(10)]
        stored = {message.queue_offset: message.body for message in cluster.messages("T", queue)}

    assert [stored[result.queue_offset] for result in results] == [b"%d" % number for number in range(10)]


def test_closing_ends_a_send_under_way_whose_outcome_is_unknown(cluster, send):
    errors, asked = list[Any](), threading.Event()

    def work() -> None:
        try:
            send(producer, MESSAGE, timeout=60)
        except RocketMQError as error:
            errors.append(error)

    with producing(cluster) as producer:
        cluster.fault(code=SEND, times=None, answer=silence_after(asked))
        thread = threading.Thread(target=work)
        thread.start()
        assert asked.wait(20)
        producer.close()
        thread.join(20)

    assert not thread.is_alive()
    assert [type(error) for error in errors] == [UnknownOutcomeError]
    assert len(pool_of(producer)) == 0


def test_a_producer_that_is_not_open_refuses(cluster, send):
    producer = Producer(ProducerConfig(name_server=cluster.name_server, group="g"))
    with pytest.raises(ClientStateError, match="is new"):
        send(producer, MESSAGE)
    with producer:
        send(producer, MESSAGE)
    with pytest.raises(ClientStateError, match="is closed"):
        send(producer, MESSAGE)


def test_a_forked_child_is_refused_and_its_parent_goes_on(cluster, send):
    with producing(cluster) as producer:
        said = in_child(lambda: error_of(lambda: send(producer, MESSAGE)))
        result = send(producer, MESSAGE)

    assert f"ClientStateError: this client was made in process {os.getpid()}" in said
    assert outcomes(result.attempts) == [STORED]


def test_a_send_of_each_way_takes_the_next_queue(cluster):
    with producing(cluster) as producer:
        results = [way(producer, MESSAGE) for _ in range(6) for way in (on_loop, on_caller)]

    assert set(Counter(result.queue for result in results).values()) == {3}


def test_sends_one_after_the_other_share_a_connection_to_each_broker(cluster):
    with producing(cluster) as producer:
        before = len(pool_of(producer))
        for _ in range(20):
            producer.send(MESSAGE)
        after = len(pool_of(producer))

    assert before == after == 2
