"""Sends, pulls, tags and the long poll: alike on the fake cluster and on a real one."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from rmqtools.errors import TopicNotFoundError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.sys_flag import build_pull_sys_flag
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.pull import ViewMessageRequestHeader
from rmqtools.protocol.headers.send import SendMessageResponseHeader
from rmqtools.protocol.messages.batch import encode_batch
from rmqtools.protocol.messages.message_id import parse_offset_msg_id
from rmqtools.protocol.messages.stored import decode_message, decode_messages
from rmqtools.protocol.wire.command import RemotingCommand
from tests.behaviour.site import (
    consumer_offset,
    heartbeat,
    max_offset,
    next_offset,
    offset_of,
    pull,
    pull_header,
    pulled,
    send,
    send_header,
    until,
)

OF_THE_BROKER = {"CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


def test_a_message_is_stored_at_the_end_of_its_queue_and_read_as_it_was_sent(site, wire, topic):
    properties = {"TAGS": "t", "KEYS": "a b", "UNIQ_KEY": "7F01"}
    send(wire, topic, b"first", queue_id=1)
    stored = send(wire, topic, b"body\0\xff", queue_id=1, flag=9, properties=properties)
    (message,) = pulled(wire, topic, 1, queue_id=1)

    assert (stored.queue_id, stored.queue_offset) == (1, 1)
    assert (message.topic, message.queue_id, message.queue_offset) == (topic, 1, 1)
    assert (message.body, message.flag, message.sys_flag) == (b"body\0\xff", 9, 0)
    assert message.properties == {"TAGS": "t", "KEYS": "a b", "UNIQ_KEY": "7F01"} | OF_THE_BROKER
    assert message.offset_msg_id == stored.msg_id


def test_the_offset_id_names_the_broker_and_the_place(site, wire, topic):
    stored = send(wire, topic)
    addr, place = parse_offset_msg_id(stored.msg_id)
    answer = wire.ask(ViewMessageRequestHeader(topic=topic, offset=place))

    assert addr == site.addr
    assert decode_message(answer.body).body == b"body"


def test_a_message_without_a_unique_key_gets_one(wire, topic):
    stored = send(wire, topic)
    (message,) = pulled(wire, topic)

    assert len(message.properties["UNIQ_KEY"]) >= 32
    assert message.properties["UNIQ_KEY"] == stored.transaction_id


@pytest.mark.parametrize("queue_id", [0, 9])
def test_an_answer_to_a_send_says_region_and_trace(wire, topic, queue_id):
    fields = wire.ask(send_header(topic, queue_id=queue_id), b"body").ext_fields

    assert (fields["MSG_REGION"], fields["TRACE_ON"]) == ("DefaultRegion", "true")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"queue_id": 2}, ResponseCode.INVALID_PARAMETER, id="the queue behind the last"),
        pytest.param({"queue_id": 100}, ResponseCode.INVALID_PARAMETER, id="a queue far behind"),
        pytest.param(
            {"topic": "SCHEDULE_TOPIC_XXXX"}, ResponseCode.NO_PERMISSION, id="a topic of the system"
        ),
        pytest.param({"body": bytes(4 * 1024 * 1024 + 1)}, ResponseCode.MESSAGE_ILLEGAL, id="more than 4 MB"),
        pytest.param(
            {"topic": "no-such-topic", "default_topic": "other"},
            ResponseCode.TOPIC_NOT_EXIST,
            id="a topic and a default topic that are unknown",
        ),
    ],
)
def test_a_send_that_a_broker_refuses_says_why(wire, topic, fields, code):
    given = {"topic": topic, "body": b"body"} | fields
    body = given.pop("body")

    assert wire.ask(send_header(**given), body).code == code


def test_a_send_without_a_queue_gets_one(wire, topic):
    answer = wire.ask(send_header(topic, queue_id=-1), b"body")

    assert decode_header(SendMessageResponseHeader, answer.ext_fields).queue_id in (0, 1)


def test_a_send_to_an_unknown_topic_makes_it(site, wire, group):
    answer = wire.ask(send_header(f"new-{group}", default_topic_queue_nums=3), b"body")
    route = until(lambda: _route(site, f"new-{group}"))

    assert answer.code == ResponseCode.SUCCESS
    assert [(data.read_queue_nums, data.write_queue_nums, data.perm) for data in route.queue_datas] == [
        (3, 3, 6)
    ]


def test_a_oneway_send_is_stored_and_not_answered(wire, topic):
    opaque = wire.send(send_header(topic), b"silent", oneway=True)
    until(lambda: max_offset(wire, topic) == 1)

    assert not wire.is_answered(opaque, within=0)
    assert [message.body for message in pulled(wire, topic)] == [b"silent"]


def test_the_messages_of_a_batch_are_stored_one_by_one(wire, topic):
    body = b"".join(encode_batch([(n, b"%d" % n, b"TAGS\x01t\x02UNIQ_KEY\x01k\x02")]) for n in range(3))
    header = send_header(topic, batch=True)
    answer = wire.ask(header, body, code=RequestCode.SEND_BATCH_MESSAGE)
    stored = decode_header(SendMessageResponseHeader, answer.ext_fields)
    until(lambda: max_offset(wire, topic) == 3)
    messages = pulled(wire, topic)

    assert stored.queue_offset == 0
    assert [message.offset_msg_id for message in messages] == stored.msg_id.split(",")
    assert [(m.queue_offset, m.flag, m.body) for m in messages] == [
        (0, 0, b"0"),
        (1, 1, b"1"),
        (2, 2, b"2"),
    ]
    assert messages[0].properties == {"TAGS": "t", "UNIQ_KEY": "k"}


def test_an_empty_queue_has_nothing_and_is_read_from_0(wire, topic):
    assert next_offset(pull(wire, topic, 0)) == (ResponseCode.PULL_NOT_FOUND, 0)
    assert next_offset(pull(wire, topic, 5)) == (ResponseCode.PULL_OFFSET_MOVED, 0)


def test_a_pull_says_where_to_read_on_and_what_the_queue_holds(wire, topic):
    for _ in range(3):
        send(wire, topic)
    fields = pull(wire, topic, 1, max_msg_nums=1).ext_fields

    assert (fields["nextBeginOffset"], fields["minOffset"], fields["maxOffset"]) == ("2", "0", "3")
    assert len(pulled(wire, topic, 1, max_msg_nums=1)) == 1


@pytest.mark.parametrize(
    ("offset", "code", "following"),
    [
        pytest.param(2, ResponseCode.PULL_NOT_FOUND, 2, id="at-the-end"),
        pytest.param(3, ResponseCode.PULL_OFFSET_MOVED, 2, id="behind-it"),
        pytest.param(-1, ResponseCode.PULL_OFFSET_MOVED, 0, id="before-the-start"),
    ],
)
def test_a_pull_outside_the_queue_is_told_where_to_go(wire, topic, offset, code, following):
    send(wire, topic)
    send(wire, topic)

    assert next_offset(pull(wire, topic, offset)) == (code, following)


def test_a_pull_brings_the_tags_it_asks_for(wire, topic):
    for tag in ("a", "b", "c", "a"):
        send(wire, topic, properties={"TAGS": tag})
    send(wire, topic)

    assert [message.queue_offset for message in pulled(wire, topic, tags="a || c")] == [0, 2, 3]


def test_a_pull_that_finds_other_tags_only_reads_on_behind_them(wire, topic):
    for _ in range(3):
        send(wire, topic, properties={"TAGS": "b"})

    answer = pull(wire, topic, tags="a")

    assert next_offset(answer) == (ResponseCode.PULL_RETRY_IMMEDIATELY, 3)


def test_tags_of_one_hash_code_are_one_to_a_broker(wire, topic):
    send(wire, topic, properties={"TAGS": "Aa"})

    assert len(pulled(wire, topic, tags="BB")) == 1


@pytest.mark.parametrize(
    ("named", "code"),
    [
        pytest.param({"topic": "unknown-topic"}, ResponseCode.TOPIC_NOT_EXIST, id="topic"),
        pytest.param({"queue_id": 2}, ResponseCode.INVALID_PARAMETER, id="queue"),
        pytest.param({"sys_flag": 0}, ResponseCode.SUBSCRIPTION_NOT_EXIST, id="subscription"),
    ],
)
def test_a_pull_of_what_is_not_there_is_refused(wire, topic, group, named, code):
    fields = {"topic": topic, "group": group} | named

    assert pull(wire, fields.pop("topic"), 0, **fields).code == code


def test_a_pull_of_a_group_that_may_not_consume_is_refused(site, wire, topic, group):
    send(wire, topic)
    site.admin.create_group(group, consume_enable=False)
    refusal = pull(wire, topic, group=group)

    assert refusal.code == ResponseCode.NO_PERMISSION
    assert refusal.remark == f"subscription group no permission, {group}"


def test_a_pull_without_subscription_takes_that_of_the_heartbeat(wire, topic, group):
    heartbeat(wire, "one", group, topic, tags="a")
    for tag in "aba":
        send(wire, topic, properties={"TAGS": tag})
    messages = pulled(wire, topic, group=group, sys_flag=0, tags=None)

    assert [message.queue_offset for message in messages] == [0, 2]


def test_of_two_subscriptions_of_a_group_the_newer_one_counts_and_a_pull_of_a_newer_one_is_refused(
    make_wire, topic, group
):
    one, two = make_wire(), make_wire()
    for tags in ("a", "b"):
        send(one, topic, tags.encode(), properties={"TAGS": tags})
    heartbeat(one, "one", group, topic, "a", version=100)
    heartbeat(two, "two", group, topic, "b", version=50)
    own = {"group": group, "sys_flag": 0}

    assert [message.body for message in pulled(one, topic, **own, sub_version=100)] == [b"a"]
    assert pull(one, topic, **own, sub_version=101).code == ResponseCode.SUBSCRIPTION_NOT_LATEST
    heartbeat(two, "two", group, topic, "b", version=150)
    assert [message.body for message in pulled(one, topic, **own)] == [b"b"]


@pytest.mark.process
def test_a_long_poll_ends_with_the_message_it_waits_for(make_wire, topic):
    waiting, other = make_wire(), make_wire()
    opaque = waiting.send(pull_header(topic, 0, suspend=15))
    assert not waiting.is_answered(opaque, within=0.2)

    send(other, topic, b"at last")

    answer = waiting.answer(opaque)
    assert next_offset(answer) == (ResponseCode.SUCCESS, 1)
    assert decode_message(answer.body).body == b"at last"


def test_a_long_poll_passes_over_messages_of_another_tag(make_wire, topic):
    """Every 5 s a real broker looks at each waiting pull, and sends one back whose queue has grown."""
    waiting, other = make_wire(), make_wire()
    opaque = waiting.send(pull_header(topic, 0, suspend=15, tags="a"))
    send(other, topic, properties={"TAGS": "b"})
    send(other, topic, properties={"TAGS": "a"})

    answer = waiting.answer(opaque)

    found, sent_back = (ResponseCode.SUCCESS, 2), (ResponseCode.PULL_RETRY_IMMEDIATELY, 1)
    assert next_offset(answer) in (found, sent_back)
    assert {message.tags for message in decode_messages(answer.body)} <= {"a"}


@pytest.mark.process
def test_a_long_poll_whose_time_is_over_has_found_nothing(wire, topic):
    opaque = wire.send(pull_header(topic, 0, suspend=0.2))

    assert next_offset(wire.answer(opaque)) == (ResponseCode.PULL_NOT_FOUND, 0)


def test_a_pull_commits_the_offset_it_brings_along(wire, topic, group):
    send(wire, topic)
    heartbeat(wire, "one", group, topic)
    flag = build_pull_sys_flag(subscription=True, commit_offset=True)
    pull(wire, topic, 0, group=group, sys_flag=flag, commit_offset=1)

    assert offset_of(consumer_offset(wire, group, topic)) == 1


def test_a_message_with_a_delay_comes_later_at_its_topic(wire, topic):
    send(wire, topic, b"later", queue_id=1, properties={"DELAY": "1", "UNIQ_KEY": "k"})
    (message,) = until(lambda: pulled(wire, topic, queue_id=1))

    added = {"DELAY": "1", "REAL_TOPIC": topic, "REAL_QID": "1"}
    assert (message.topic, message.queue_id, message.body) == (topic, 1, b"later")
    assert message.properties == {"UNIQ_KEY": "k"} | added | OF_THE_BROKER


def test_a_request_of_an_unknown_code_is_not_supported(wire):
    assert wire.ask(RemotingCommand(4711)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def test_connections_do_not_wait_for_each_other(make_wire, topic):
    waiting = make_wire()
    waiting.send(pull_header(topic, 0, suspend=10))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(send, [make_wire() for _ in range(4)], [topic] * 4))

    assert max_offset(make_wire(), topic) == 4


def _route(site, topic):
    try:
        return site.admin.fetch_route(topic)
    except TopicNotFoundError:
        return None
