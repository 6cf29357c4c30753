"""Where the fake cluster differs from a real one, by intent, as docs/testing.md lists it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.protocol.headers.group import (
    GetConsumerRunningInfoRequestHeader,
    QueryAssignmentRequestHeader,
)
from rmqtools.protocol.headers.pull import PopMessageRequestHeader
from rmqtools.testing import FakeCluster
from tests.behaviour.site import (
    heartbeat,
    max_offset,
    producer_heartbeat,
    pull,
    pull_header,
    pulled,
    send,
    send_header,
    until,
)
from tests.behaviour.wire import wire_to

ROOT = Path(__file__).resolve().parents[2]
FAKE = pytest.mark.parametrize("site", ["fake"], indirect=True)


def listed() -> list[str]:
    """The tests that the list of differences names."""
    page = (ROOT / "docs/testing.md").read_text()
    section = page.partition("## Where the fake cluster differs")[2]
    return re.findall(r"^\|.*\| `(test_\w+)` \|$", section, re.MULTILINE)


def test_every_difference_of_the_list_has_a_test_here() -> None:
    assert sorted(listed()) == sorted(name for name in globals() if name.startswith("test_the_fake"))


@FAKE
def test_the_fake_shows_a_message_as_soon_as_it_is_acknowledged(wire, topic) -> None:
    seen = []
    for _ in range(20):
        wire.ask(send_header(topic), b"body")
        seen.append(max_offset(wire, topic))

    assert seen == list(range(1, 21))


def test_the_fake_multiplies_delays_by_0(site, wire, topic) -> None:
    """The first delay level is a second."""
    send(wire, topic, properties={"DELAY": "1"})
    (message,) = until(lambda: pulled(wire, topic))

    waited = message.store_timestamp_ms - message.born_timestamp_ms
    assert (waited >= 900) is (site.fake is None)


@FAKE
def test_the_fake_delivers_a_message_with_a_time_at_once(wire, topic) -> None:
    send(wire, topic, properties={"TIMER_DELIVER_MS": str(1 << 41)})

    assert len(pulled(wire, topic)) == 1


@FAKE
def test_the_fake_ends_a_long_poll_when_its_time_is_over(site, wire, topic) -> None:
    waiting = wire.send(pull_header(topic, 0, suspend=3600))
    until(lambda: site.fake.requests(RequestCode.PULL_MESSAGE, topic=topic))

    site.fake.advance(3600)

    assert wire.answer(waiting).code == ResponseCode.PULL_NOT_FOUND


@FAKE
def test_the_fake_asks_about_transactions_when_it_is_told(site, wire, topic, group) -> None:
    producer_heartbeat(wire, "one", group)
    properties = {"TRAN_MSG": "true", "PGROUP": group, "UNIQ_KEY": f"id-{group}"}
    flag = int(MessageSysFlag.TRANSACTION_PREPARED_TYPE)
    send(wire, topic, group=group, sys_flag=flag, properties=properties)
    site.fake.advance(24 * 3600)

    asked = [site.fake.check_transactions(group) for _ in range(20)]

    assert asked == [1] * 20
    assert len(site.fake.half_messages()) == 1


@FAKE
def test_the_fake_acknowledges_a_reply_that_nobody_confirms(make_wire, group) -> None:
    asker, replier = make_wire(), make_wire()
    producer_heartbeat(asker, "asker", group)
    properties = {"REPLY_TO_CLIENT": "asker", "CORRELATION_ID": "1", "TTL": "1000"}
    header = send_header("DefaultCluster_REPLY_TOPIC", properties=properties)
    answer = replier.ask(header, b"pong", code=RequestCode.SEND_REPLY_MESSAGE_V2)

    assert answer.code == ResponseCode.SUCCESS
    assert asker.notice(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT) is not None  # answered only now


def test_the_fake_has_slaves_that_are_never_behind() -> None:
    with FakeCluster(slaves=1) as cluster:
        cluster.create_topic("orders")
        with wire_to(cluster.addr("broker-a")) as master, wire_to(cluster.addr("broker-a/1")) as slave:
            send(master, "orders")

            assert max_offset(slave, "orders") == max_offset(master, "orders") == 1


@FAKE
def test_the_fake_refuses_sql_filters(wire, topic) -> None:
    answer = wire.ask(replace(pull_header(topic, 0, tags="a = 1"), expression_type="SQL92"))

    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "SQL92" in answer.remark


@FAKE
def test_the_fake_shares_out_no_queues(wire) -> None:
    assert wire.ask(QueryAssignmentRequestHeader()).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


@FAKE
def test_the_fake_asks_no_member_for_a_report(wire, topic, group) -> None:
    heartbeat(wire, "one", group, topic)
    answer = wire.ask(GetConsumerRunningInfoRequestHeader(consumer_group=group, client_id="one"))

    assert answer.code == ResponseCode.CONSUMER_NOT_ONLINE


@FAKE
def test_the_fake_delivers_a_popped_message_again_when_its_time_is_over(site, wire, topic) -> None:
    send(wire, topic)
    header = PopMessageRequestHeader(
        consumer_group="tests",
        topic=topic,
        queue_id=0,
        max_msg_nums=1,
        invisible_time=60_000,
        poll_time=0,
        born_time=0,
        init_mode=0,
    )
    first = wire.ask(header)
    hidden = wire.ask(header)
    site.fake.advance(60.0)

    assert [first.code, hidden.code] == [ResponseCode.SUCCESS, ResponseCode.POLLING_TIMEOUT]
    assert wire.ask(header).code == ResponseCode.SUCCESS


@FAKE
def test_the_fake_accepts_every_signature(site, topic) -> None:
    config = ProducerConfig(name_server=site.name_server, access_key="nobody", secret_key="wrong")
    with Producer(config) as producer:
        producer.send(Message(topic, b"body"))

    assert len(site.fake.messages(topic)) == 1


def test_the_fake_keeps_messages_in_memory() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("orders")
        cluster.store("orders", b"body")
    with FakeCluster() as another, wire_to(another.addr()) as wire:
        assert pull(wire, "orders").code == ResponseCode.TOPIC_NOT_EXIST

    assert [message.body for message in cluster.messages("orders")] == [b"body"]
