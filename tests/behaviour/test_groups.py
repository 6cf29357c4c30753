"""Offsets, members, locks, retries and dead letters: alike on the fake cluster and on a real one."""

import time

import pytest

from rmqtools.errors import TopicNotFoundError
from rmqtools.model.codes import BoundaryType, RequestCode, ResponseCode
from rmqtools.model.names import dlq_topic, retry_topic
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.headers.group import (
    GetConsumerConnectionListRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetConsumeStatsRequestHeader,
    LockBatchMqRequestHeader,
    UnlockBatchMqRequestHeader,
    UnregisterClientRequestHeader,
)
from rmqtools.protocol.headers.offset import (
    GetEarliestMsgStoretimeRequestHeader,
    GetMinOffsetRequestHeader,
    ResetOffsetRequestHeader,
    SearchOffsetRequestHeader,
)
from rmqtools.protocol.headers.send import ConsumerSendMsgBackRequestHeader
from rmqtools.protocol.headers.topic import GetTopicStatsInfoRequestHeader
from rmqtools.protocol.wire.bodies import (
    format_lock,
    format_unlock,
    parse_consume_stats,
    parse_consumer_connection,
    parse_consumer_list,
    parse_locked_queues,
    parse_reset_offset,
    parse_topic_stats,
)
from tests.behaviour.site import (
    commit,
    consumer_offset,
    heartbeat,
    max_offset,
    next_offset,
    offset_of,
    pull,
    pulled,
    send,
    until,
)

NOTICE = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED


def test_a_group_without_offset_has_none_in_an_empty_queue(wire, topic, group):
    assert consumer_offset(wire, group, topic).code == ResponseCode.QUERY_NOT_FOUND


def test_a_group_without_offset_reads_0_where_the_queue_starts_there(wire, topic, group):
    send(wire, topic)

    assert offset_of(consumer_offset(wire, group, topic)) == 0
    assert offset_of(consumer_offset(wire, group, topic, set_zero_if_not_found=True)) == 0


@pytest.mark.parametrize("count", [0, 1])
def test_a_group_without_offset_is_told_so_if_it_asks(wire, topic, group, count):
    for _ in range(count):
        send(wire, topic)
    answer = consumer_offset(wire, group, topic, set_zero_if_not_found=False)

    assert answer.code == ResponseCode.QUERY_NOT_FOUND


def test_an_offset_is_what_was_committed_last(wire, topic, group):
    heartbeat(wire, "one", group, topic)
    commit(wire, group, topic, 7)
    commit(wire, group, topic, 3)

    assert offset_of(consumer_offset(wire, group, topic)) == 3


def test_a_reset_of_one_queue_is_reported_to_its_next_pull_and_kept_until_then(wire, topic, group):
    for queue_id in (0, 1):
        send(wire, topic, queue_id=queue_id)
    heartbeat(wire, "client", group, topic)
    commit(wire, group, topic, 0)

    reset = wire.ask(
        ResetOffsetRequestHeader(group=group, topic=topic, queue_id=0, offset=1, timestamp=-1, is_force=True)
    )
    late = commit(wire, group, topic, 0)
    kept = offset_of(consumer_offset(wire, group, topic))
    told = [pull(wire, topic, 0, group=group, queue_id=queue_id) for queue_id in (0, 0, 1)]

    assert parse_reset_offset(reset.body).offset_table == {MessageQueue(topic, "broker-a", 0): 1}
    assert (late.code, kept) == (ResponseCode.SUCCESS, 1)
    assert "reset" in (late.remark or "")
    assert [next_offset(answer) for answer in told] == [
        (ResponseCode.PULL_OFFSET_MOVED, 1),
        (ResponseCode.SUCCESS, 1),
        (ResponseCode.SUCCESS, 1),
    ]


@pytest.mark.parametrize("offset", [3, 9])
def test_a_reset_to_an_offset_that_the_queue_does_not_have_is_refused(wire, topic, group, offset):
    send(wire, topic)
    heartbeat(wire, "client", group, topic)

    reset = wire.ask(
        ResetOffsetRequestHeader(
            group=group, topic=topic, queue_id=0, offset=offset, timestamp=-1, is_force=True
        )
    )

    assert reset.code == ResponseCode.SYSTEM_ERROR


def test_an_offset_of_an_unknown_topic_is_refused(wire, topic, group):
    heartbeat(wire, "one", group, topic)

    assert commit(wire, group, "unknown-topic", 1).code == ResponseCode.TOPIC_NOT_EXIST


def test_an_offset_of_an_unknown_group_is_refused(wire, topic, group):
    assert commit(wire, group, topic, 1).code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


def test_an_empty_queue_goes_from_0_to_0(wire, topic):
    assert offset_of(wire.ask(GetMinOffsetRequestHeader(topic=topic, queue_id=0))) == 0
    assert max_offset(wire, topic) == 0


def test_a_queue_goes_from_its_first_message_to_one_behind_its_last(wire, topic):
    send(wire, topic)
    send(wire, topic)

    assert offset_of(wire.ask(GetMinOffsetRequestHeader(topic=topic, queue_id=0))) == 0
    assert max_offset(wire, topic) == 2


@pytest.mark.parametrize(
    ("boundary", "found"),
    [
        pytest.param(None, [0, 0, 1, 2, 3], id="default"),
        pytest.param(BoundaryType.LOWER, [0, 0, 1, 2, 3], id="lower"),
        pytest.param(BoundaryType.UPPER, [0, 0, 1, 2, 2], id="upper"),
    ],
)
def test_a_time_is_the_offset_of_a_message_stored_then(wire, topic, boundary, found):
    for _ in range(3):
        send(wire, topic)
        time.sleep(0.02)
    times = [message.store_timestamp_ms for message in pulled(wire, topic)]

    def search(timestamp_ms: int) -> int:
        header = SearchOffsetRequestHeader(
            topic=topic, queue_id=0, timestamp=timestamp_ms, boundary_type=boundary
        )
        return offset_of(wire.ask(header))

    assert [search(time_ms) for time_ms in (times[0] - 5000, *times, times[-1] + 5000)] == found


def test_a_time_between_two_messages_is_the_offset_of_the_second(wire, topic):
    for _ in range(2):
        send(wire, topic)
        time.sleep(0.02)
    first = pulled(wire, topic)[0].store_timestamp_ms
    header = SearchOffsetRequestHeader(topic=topic, queue_id=0, timestamp=first + 1)

    assert offset_of(wire.ask(header)) == 1


def test_a_time_in_an_empty_queue_is_0(wire, topic):
    header = SearchOffsetRequestHeader(topic=topic, queue_id=0, timestamp=int(time.time() * 1000))

    assert offset_of(wire.ask(header)) == 0


def test_the_earliest_time_is_that_of_the_first_message(wire, topic):
    send(wire, topic)
    answer = wire.ask(GetEarliestMsgStoretimeRequestHeader(topic=topic, queue_id=0))

    assert int(answer.ext_fields["timestamp"]) == pulled(wire, topic)[0].store_timestamp_ms


def test_the_statistics_of_a_topic_show_all_its_queues(site, wire, topic):
    send(wire, topic, queue_id=1)
    table = parse_topic_stats(wire.ask(GetTopicStatsInfoRequestHeader(topic=topic)).body).offset_table

    assert {queue: (one.min_offset, one.max_offset) for queue, one in table.items()} == {
        MessageQueue(topic, site.broker, 0): (0, 0),
        MessageQueue(topic, site.broker, 1): (0, 1),
    }


def test_the_statistics_of_a_group_show_its_lag(site, wire, topic, group):
    heartbeat(wire, "one", group, topic)
    send(wire, topic)
    send(wire, topic)
    commit(wire, group, topic, 1)
    answer = wire.ask(GetConsumeStatsRequestHeader(consumer_group=group, topic=topic))
    one = parse_consume_stats(answer.body).offset_table[MessageQueue(topic, site.broker, 0)]

    assert (one.broker_offset, one.consumer_offset) == (2, 1)


def members(wire, group) -> list[str]:
    answer = wire.ask(GetConsumerListByGroupRequestHeader(consumer_group=group))
    return sorted(parse_consumer_list(answer.body)) if answer.code == ResponseCode.SUCCESS else []


def test_who_sends_heartbeats_is_a_member(make_wire, topic, group):
    first, second = make_wire(), make_wire()
    heartbeat(first, "one", group, topic)
    heartbeat(second, "two", group, topic)

    assert members(first, group) == ["one", "two"]


def test_a_client_with_two_connections_is_listed_twice(make_wire, topic, group):
    first, second = make_wire(), make_wire()
    heartbeat(first, "one", group, topic)
    heartbeat(second, "one", group, topic)

    assert members(first, group) == ["one", "one"]


def test_a_group_without_members_is_an_error(wire, group):
    answer = wire.ask(GetConsumerListByGroupRequestHeader(consumer_group=group))

    assert answer.code == ResponseCode.SYSTEM_ERROR


def test_who_leaves_is_no_member(make_wire, topic, group):
    first, second = make_wire(), make_wire()
    heartbeat(first, "one", group, topic)
    heartbeat(second, "two", group, topic)
    second.ask(UnregisterClientRequestHeader(client_id="two", consumer_group=group))

    assert members(first, group) == ["one"]


def test_whose_connection_is_gone_is_no_member(make_wire, topic, group):
    first, second = make_wire(), make_wire()
    heartbeat(first, "one", group, topic)
    heartbeat(second, "two", group, topic)
    second.close()

    until(lambda: members(first, group) == ["one"])


def test_members_are_told_when_one_comes_and_when_one_goes(make_wire, topic, group):
    first, second = make_wire(), make_wire()
    heartbeat(first, "one", group, topic)
    first.notice(NOTICE)  # of its own coming

    heartbeat(second, "two", group, topic)
    come = first.notice(NOTICE)
    second.ask(UnregisterClientRequestHeader(client_id="two", consumer_group=group))
    gone = first.notice(NOTICE)

    assert come is not None
    assert gone is not None
    assert come.ext_fields["consumerGroup"] == gone.ext_fields["consumerGroup"] == group


@pytest.mark.process
def test_members_are_told_of_another_topic_and_not_of_other_tags(site, make_wire, topic, group):
    first, second = make_wire(), make_wire()
    heartbeat(first, "one", group, topic)
    heartbeat(second, "two", group, topic)
    first.notice(NOTICE)
    first.notice(NOTICE)

    heartbeat(second, "two", group, topic, tags="a")
    assert first.notice(NOTICE, within=0.3) is None
    heartbeat(second, "two", group, site.new_topic())
    assert first.notice(NOTICE) is not None


def test_the_members_of_a_group_are_shown_with_their_subscriptions(wire, topic, group):
    heartbeat(wire, "one", group, topic, tags="a")
    answer = wire.ask(GetConsumerConnectionListRequestHeader(consumer_group=group))
    shown = parse_consumer_connection(answer.body)

    assert [one.client_id for one in shown.connection_set] == ["one"]
    assert shown.subscription_table[topic].sub_string == "a"
    assert shown.message_model == "CLUSTERING"


def test_a_group_nobody_is_in_is_not_online(wire, group):
    answer = wire.ask(GetConsumerConnectionListRequestHeader(consumer_group=group))

    assert answer.code == ResponseCode.CONSUMER_NOT_ONLINE


def lock(wire, group, client_id, *queues) -> list[MessageQueue]:
    answer = wire.ask(LockBatchMqRequestHeader(), format_lock(group, client_id, queues))
    return sorted(parse_locked_queues(answer.body))


def test_a_queue_is_locked_for_one_member(site, wire, topic, group):
    q0, q1 = (MessageQueue(topic, site.broker, queue_id) for queue_id in range(2))

    assert lock(wire, group, "one", q0) == [q0]
    assert lock(wire, group, "two", q0, q1) == [q1]
    assert lock(wire, group, "one", q0, q1) == [q0]
    assert lock(wire, f"other-{group}", "two", q0) == [q0]


def test_only_the_owner_gives_a_lock_back(site, wire, topic, group):
    queue = MessageQueue(topic, site.broker, 0)
    lock(wire, group, "one", queue)
    wire.ask(UnlockBatchMqRequestHeader(), format_unlock(group, "two", [queue]))
    assert lock(wire, group, "two", queue) == []

    wire.ask(UnlockBatchMqRequestHeader(), format_unlock(group, "one", [queue]))
    assert lock(wire, group, "two", queue) == [queue]


@pytest.mark.parametrize("site", ["fake"], indirect=True)
def test_a_lock_expires_after_a_minute(site, wire, topic, group):
    queue = MessageQueue(topic, site.broker, 0)
    lock(wire, group, "one", queue)
    site.fake.advance(59)
    assert lock(wire, group, "two", queue) == []

    site.fake.advance(2)

    assert lock(wire, group, "two", queue) == [queue]


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.parametrize("site", ["real"], indirect=True)
def test_a_real_lock_expires_after_a_minute(site, wire, topic, group):
    queue = MessageQueue(topic, site.broker, 0)
    lock(wire, group, "one", queue)
    time.sleep(57)
    assert lock(wire, group, "two", queue) == []

    time.sleep(5)

    assert lock(wire, group, "two", queue) == [queue]


def test_the_first_heartbeat_makes_the_retry_topic(site, wire, topic, group):
    heartbeat(wire, "one", group, topic)
    (data,) = until(lambda: _queue_datas(site, retry_topic(group)))

    assert (data.read_queue_nums, data.write_queue_nums, data.perm) == (1, 1, 6)


def send_back(wire, message, group, *, level=1, **fields):
    header = ConsumerSendMsgBackRequestHeader(
        offset=message.commit_log_offset,
        group=group,
        delay_level=level,
        origin_msg_id=message.offset_msg_id,
        origin_topic=message.topic,
        **fields,
    )
    return wire.ask(header)


def test_a_message_sent_back_comes_again_at_the_retry_topic(wire, topic, group):
    heartbeat(wire, "one", group, topic)
    send(wire, topic, b"again", properties={"TAGS": "t"})
    (message,) = pulled(wire, topic)
    assert send_back(wire, message, group).code == ResponseCode.SUCCESS

    (again,) = until(lambda: pulled(wire, retry_topic(group), group=group))

    assert (again.topic, again.body, again.reconsume_times) == (retry_topic(group), b"again", 1)
    assert again.properties == {
        **message.properties,
        "RETRY_TOPIC": topic,
        "ORIGIN_MESSAGE_ID": message.offset_msg_id,
        "DELAY": "1",
        "WAIT": "false",
        "REAL_TOPIC": retry_topic(group),
        "REAL_QID": "0",
    }
    assert again.born_timestamp_ms == message.born_timestamp_ms


def test_a_message_sent_back_too_often_is_a_dead_letter(wire, topic, group):
    heartbeat(wire, "one", group, topic)
    send(wire, topic, b"dead")
    (message,) = pulled(wire, topic)
    send_back(wire, message, group, max_reconsume_times=1)
    (again,) = until(lambda: pulled(wire, retry_topic(group), group=group))
    send_back(wire, again, group, max_reconsume_times=1)

    (dead,) = until(lambda: pulled(wire, dlq_topic(group), group=group))

    assert (dead.body, dead.queue_id, dead.reconsume_times) == (b"dead", 0, 2)
    assert dead.properties == {**again.properties, "DELAY": "0"}


def test_a_negative_delay_level_makes_a_dead_letter_at_once(wire, topic, group):
    heartbeat(wire, "one", group, topic)
    send(wire, topic, b"dead", properties={"UNIQ_KEY": "7F01"})
    (message,) = pulled(wire, topic)
    send_back(wire, message, group, level=-1)
    (dead,) = until(lambda: pulled(wire, dlq_topic(group), group=group))

    assert dead.properties == {
        **message.properties,
        "RETRY_TOPIC": topic,
        "ORIGIN_MESSAGE_ID": message.offset_msg_id,
        "WAIT": "false",
        "DELAY": "0",
    }


def test_a_message_that_is_not_there_is_not_taken_back(wire, topic, group):
    heartbeat(wire, "one", group, topic)
    header = ConsumerSendMsgBackRequestHeader(offset=1 << 40, group=group, delay_level=1)

    assert wire.ask(header).code == ResponseCode.SYSTEM_ERROR


def _queue_datas(site, topic):
    try:
        return site.admin.fetch_route(topic).queue_datas
    except TopicNotFoundError:
        return ()
