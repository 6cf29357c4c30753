"""The producer of the moved API, on a fake cluster."""

import threading
from typing import Any

import pytest

from rmqtools.compat.client import Message, Producer, SendResult, SendStatus, TraceModel
from rmqtools.compat.exceptions import (
    ProducerException,
    ProducerSendOnewayFailed,
    ProducerSendOrderlyFailed,
    ProducerSendSyncFailed,
    ProducerStartFailed,
)
from rmqtools.errors import ClientStateError, MessageRejectedError, SendError, UnknownOutcomeError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.testing import FakeCluster, Reaction
from tests.unit.compat.conftest import message_of


def test_send_sync_returns_status_id_and_offset(producer, cluster) -> None:
    result = producer.send_sync(message_of(b"a\x00b"))

    (stored,) = cluster.messages("orders")
    assert result == SendResult(SendStatus.OK, stored.msg_id, stored.queue_offset)
    assert stored.body == b"a\x00b"


def test_send_oneway_returns_nothing_and_stores(producer, cluster) -> None:
    assert producer.send_oneway(message_of(b"one")) is None
    producer.send_sync(message_of(b"two"))

    assert sorted(m.body for m in cluster.messages("orders")) == [b"one", b"two"]


def test_messages_of_one_sharding_key_share_a_queue_in_order(producer, cluster) -> None:
    for number in range(6):
        result = producer.send_orderly_with_sharding_key(message_of(b"%d" % number), b"order-1")
        assert (result.status, result.offset) == (0, number)

    assert [m.body for m in cluster.messages("orders")] == [b"%d" % n for n in range(6)]


def test_threads_share_a_producer(producer, cluster) -> None:
    threads = [threading.Thread(target=producer.send_sync, args=(message_of(),)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(cluster.messages("orders")) == 5


@pytest.mark.parametrize(
    ("send", "kind"),
    [
        (lambda p, m: p.send_sync(m), ProducerSendSyncFailed),
        (lambda p, m: p.send_oneway(m), ProducerSendOnewayFailed),
        (lambda p, m: p.send_orderly_with_sharding_key(m, "k"), ProducerSendOrderlyFailed),
    ],
    ids=["sync", "oneway", "orderly"],
)
def test_each_way_to_send_has_its_exception_whose_cause_is_ours(producer, send, kind) -> None:
    with pytest.raises(kind, match="body is empty") as refused:
        send(producer, message_of(b""))
    producer.shutdown()
    with pytest.raises(kind, match="was shut down") as late:
        send(producer, message_of())

    assert isinstance(refused.value.__cause__, MessageRejectedError)
    assert isinstance(late.value.__cause__, ClientStateError)


@pytest.mark.parametrize("level", ["abc", "3.0", "1_0"])
def test_a_delay_that_is_no_level_is_refused_by_the_send(producer, level) -> None:
    message = message_of()
    message.set_property("DELAY", level)

    with pytest.raises(ProducerSendSyncFailed, match=f"DELAY '{level}': want 1 to 18"):
        producer.send_sync(message)


def test_a_send_before_the_start_is_an_exception() -> None:
    with pytest.raises(ProducerSendSyncFailed, match=r"not started: call start\(\)"):
        Producer("shop").send_sync(message_of())


@pytest.mark.process
def test_an_answer_that_never_comes_is_told_apart_from_a_refusal(producer, cluster) -> None:
    producer.set_timeout(1000)  # after the start; a busy machine needs some of it to send
    lost = cluster.fault(code=RequestCode.SEND_MESSAGE_V2, answer=Reaction.SWALLOW, times=None)

    with pytest.raises(ProducerSendSyncFailed) as unknown:
        producer.send_sync(message_of())
    lost.remove()
    cluster.fault(code=RequestCode.SEND_MESSAGE_V2, answer=ResponseCode.MESSAGE_ILLEGAL)
    with pytest.raises(ProducerSendSyncFailed) as failed:
        producer.send_sync(message_of())

    assert lost.fired() >= 1
    assert isinstance(unknown.value.__cause__, UnknownOutcomeError)
    assert type(failed.value.__cause__) is SendError


def test_the_constructor_takes_milliseconds_and_bytes(cluster) -> None:
    producer: Any = Producer("shop", True, 1500, 0, 10)
    producer.set_name_server_address("http://" + cluster.name_server)

    with producer as entered:
        config = entered._engine.config
        with pytest.raises(ProducerSendSyncFailed, match="11 bytes, more than max_message_bytes=10"):
            entered.send_sync(message_of(b"x" * 11))

    assert (entered._timeout, config.max_message_bytes, config.compression) == (1.5, 10, "none")


def test_start_and_shutdown_may_be_repeated_but_not_start_after_shutdown(producer) -> None:
    producer.start()
    producer.shutdown()
    producer.shutdown()

    with pytest.raises(ProducerStartFailed, match="make a new one"):
        producer.start()


def test_a_producer_that_was_never_started_may_be_shut_down() -> None:
    Producer("shop").shutdown()


def test_settings_after_the_start_are_refused(producer) -> None:
    with pytest.raises(ProducerException, match=r"set it before start\(\)"):
        producer.set_group("other")
    with pytest.raises(ProducerException, match=r"set it before start\(\)"):
        producer.set_name_server_domain("names")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda p: p.set_group("a b"), "'a b' has an illegal character"),
        (lambda p: p.set_name_server_address("nowhere"), "nowhere"),
        (lambda p: p.set_max_message_size(0), "max_message_bytes"),
        (lambda p: p.set_name_server_domain("ftp://x"), "name server domain 'ftp://x'"),
    ],
)
def test_a_setting_that_cannot_be_used_is_told_at_the_start(spoil, why) -> None:
    producer = Producer("shop")
    producer.set_name_server_address("127.0.0.1:9876")
    spoil(producer)

    with pytest.raises(ProducerStartFailed, match=why):
        producer.start()


def test_values_that_are_no_times_or_levels_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="timeout=0: want milliseconds"):
        Producer("shop", timeout=0)
    with pytest.raises(ValueError, match="compress level 10"):
        Producer("shop", compress_level=10)


def test_credentials_instance_name_and_trace_reach_the_engine(cluster) -> None:
    producer: Any = Producer("shop")
    producer.set_name_server_address(cluster.name_server)
    producer.set_session_credentials("user", "secret", "ALIYUN")
    producer.set_instance_name("one")
    producer.set_message_trace(TraceModel.OPEN)
    with producer:
        config = producer._engine.config

    assert (config.access_key, config.secret_key) == ("user", "secret")
    assert (config.instance_name, config.enable_trace) == ("one", True)


def test_name_servers_come_from_a_domain(cluster: FakeCluster, monkeypatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        "rmqtools.compat.settings.fetch_name_servers", lambda d: (asked.append(d), cluster.name_server)[1]
    )
    producer = Producer("shop")
    producer.set_name_server_domain("names:8080")
    with producer:
        producer.send_sync(message_of())

    assert asked == ["names:8080"]


def test_a_message_can_be_sent_again_and_changed(producer, cluster) -> None:
    message = Message("orders")
    for body in ("1", "2"):
        message.set_body(body)
        producer.send_sync(message)

    assert sorted(m.body for m in cluster.messages("orders")) == [b"1", b"2"]
