"""Bodies about running consumers and groups, as the Java client 5.5.0 (RemotingSerializable) writes them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.model.group import HeartbeatSyncerData, SubscriptionData
from rmqtools.model.group_config import (
    CustomizedRetryPolicy,
    ExponentialRetryPolicy,
    GroupList,
    GroupRetryPolicy,
    SetMessageRequestModeRequestBody,
    SimpleSubscriptionData,
    SubscriptionGroupConfig,
)
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import (
    PROP_CONSUMER_START_TIMESTAMP,
    CMResult,
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    ConsumeStatus,
    GetConsumerStatusBody,
    PopProcessQueueInfo,
    ProcessQueueInfo,
)
from rmqtools.protocol.wire.bodies import (
    format_body,
    parse_body,
    parse_consume_directly,
    parse_consumer_status,
    parse_group_list,
    parse_proxy_heartbeat,
    parse_running_info,
    parse_subscription_group,
    parse_subscription_groups,
)

NEW_QUEUE = (
    '{"cachedMsgCount":0,"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,"cachedMsgSizeInMiB":0,"commitOffset":0,'
    '"droped":false,"lastConsumeTimestamp":0,"lastLockTimestamp":0,"lastPullTimestamp":0,"locked":false,'
    '"transactionMsgCount":0,"transactionMsgMaxOffset":0,"transactionMsgMinOffset":0,"tryUnlockTimes":0}'
)
BUSY_QUEUE = (
    '{"cachedMsgCount":4,"cachedMsgMaxOffset":3,"cachedMsgMinOffset":2,"cachedMsgSizeInMiB":5,"commitOffset":1,'
    '"droped":true,"lastConsumeTimestamp":12,"lastLockTimestamp":10,"lastPullTimestamp":11,"locked":true,'
    '"transactionMsgCount":8,"transactionMsgMaxOffset":7,"transactionMsgMinOffset":6,"tryUnlockTimes":9}'
)
RUNNING = (
    '{"jstack":"TID: 1\\n\\tat xü","mqPopTable":{{"brokerName":"broker-b","queueId":2,"topic":"T"}:'
    '{"droped":true,"lastPopTimestamp":1700000000000,"waitAckCount":3}},'
    '"mqTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:' + NEW_QUEUE + ","
    '{"brokerName":"broker-a","queueId":1,"topic":"T"}:' + BUSY_QUEUE + "},"
    '"properties":{"PROP_CONSUMER_START_TIMESTAMP":"1700000000000"},'
    '"statusTable":{"T":{"consumeFailedMsgs":7,"consumeFailedTPS":1.0E-4,"consumeOKTPS":1.23456789E7,'
    '"consumeRT":100.0,"pullRT":1.5,"pullTPS":0.3333333333333333}},'
    '"subscriptionSet":[{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*",'
    '"subVersion":7,"tagsSet":[],"topic":"%RETRY%g"},'
    '{"classFilterMode":false,"codeSet":[97,98],"expressionType":"TAG","subString":"a || b","subVersion":7,'
    '"tagsSet":["a","b"],"topic":"T"}],"userConsumerInfo":{"k":"v"}}'
)
GROUP = (
    '{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,'
    '"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"g",'
    '"groupRetryPolicy":{"customizedRetryPolicy":{"next":[1,2]},"type":"CUSTOMIZED"},"groupSysFlag":0,'
    '"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,'
    '"whichBrokerWhenConsumeSlowly":1}'
)
FULL_GROUP = (
    '{"attributes":{"+k":"v"},"brokerId":1,"consumeBroadcastEnable":false,"consumeEnable":false,'
    '"consumeFromMinEnable":false,"consumeMessageOrderly":true,"consumeTimeoutMinute":5,"groupName":"g",'
    '"groupRetryPolicy":{"exponentialRetryPolicy":{"initial":1000,"max":2000,"multiplier":3},'
    '"type":"EXPONENTIAL"},"groupSysFlag":4,"notifyConsumerIdsChangedEnable":false,"retryMaxTimes":3,'
    '"retryQueueNums":2,"subscriptionDataSet":[{"expression":"*","expressionType":"TAG","topic":"T",'
    '"version":9}],"whichBrokerWhenConsumeSlowly":2}'
)
QUEUES = [
    MessageQueue("T", "broker-a", 0),
    MessageQueue("T", "broker-a", 1),
    MessageQueue("T", "broker-b", 2),
]

BODIES = [
    pytest.param(
        ConsumerRunningInfo(
            properties={PROP_CONSUMER_START_TIMESTAMP: "1700000000000"},
            subscription_set=(
                SubscriptionData(topic="%RETRY%g", sub_version=7),
                SubscriptionData(
                    topic="T",
                    sub_string="a || b",
                    tags_set=("a", "b"),
                    code_set=(97, 98),
                    sub_version=7,
                ),
            ),
            mq_table={
                QUEUES[0]: ProcessQueueInfo(),
                QUEUES[1]: ProcessQueueInfo(
                    commit_offset=1,
                    cached_msg_min_offset=2,
                    cached_msg_max_offset=3,
                    cached_msg_count=4,
                    cached_msg_size_in_mib=5,
                    transaction_msg_min_offset=6,
                    transaction_msg_max_offset=7,
                    transaction_msg_count=8,
                    locked=True,
                    try_unlock_times=9,
                    last_lock_timestamp=10,
                    dropped=True,
                    last_pull_timestamp=11,
                    last_consume_timestamp=12,
                ),
            },
            mq_pop_table={
                QUEUES[2]: PopProcessQueueInfo(
                    wait_ack_count=3, dropped=True, last_pop_timestamp=1700000000000
                )
            },
            status_table={
                "T": ConsumeStatus(
                    pull_rt=1.5,
                    pull_tps=0.3333333333333333,
                    consume_rt=100.0,
                    consume_ok_tps=12345678.9,
                    consume_failed_tps=0.0001,
                    consume_failed_msgs=7,
                )
            },
            user_consumer_info={"k": "v"},
            jstack="TID: 1\n\tat xü",
        ),
        RUNNING,
        id="running",
    ),
    pytest.param(
        ConsumerRunningInfo(),
        '{"mqPopTable":{},"mqTable":{},"properties":{},"statusTable":{},"subscriptionSet":[],'
        '"userConsumerInfo":{}}',
        id="running-nothing",
    ),
    pytest.param(
        ConsumeMessageDirectlyResult(),
        '{"autoCommit":true,"order":false,"spentTimeMills":0}',
        id="directly-new",
    ),
    pytest.param(
        ConsumeMessageDirectlyResult(
            order=True,
            auto_commit=False,
            consume_result=CMResult.CR_THROW_EXCEPTION,
            remark='java.lang.X: "ü"',
            spent_time_mills=12,
        ),
        '{"autoCommit":false,"consumeResult":"CR_THROW_EXCEPTION","order":true,'
        '"remark":"java.lang.X: \\"ü\\"","spentTimeMills":12}',
        id="directly",
    ),
    pytest.param(GetConsumerStatusBody(), '{"consumerTable":{},"messageQueueTable":{}}', id="status-nothing"),
    pytest.param(
        GetConsumerStatusBody(
            message_queue_table={QUEUES[0]: 5}, consumer_table={"10.0.0.1@1": {QUEUES[1]: 6}}
        ),
        '{"consumerTable":{"10.0.0.1@1":{{"brokerName":"broker-a","queueId":1,"topic":"T"}:6}},'
        '"messageQueueTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:5}}',
        id="status",
    ),
    pytest.param(
        SubscriptionGroupConfig(
            group_name="g",
            group_retry_policy=GroupRetryPolicy(customized_retry_policy=CustomizedRetryPolicy(next=(1, 2))),
        ),
        GROUP,
        id="group",
    ),
    pytest.param(
        SubscriptionGroupConfig(
            group_name="g",
            consume_enable=False,
            consume_from_min_enable=False,
            consume_broadcast_enable=False,
            consume_message_orderly=True,
            retry_queue_nums=2,
            retry_max_times=3,
            group_retry_policy=GroupRetryPolicy(
                type="EXPONENTIAL",
                exponential_retry_policy=ExponentialRetryPolicy(initial=1000, max=2000, multiplier=3),
            ),
            broker_id=1,
            which_broker_when_consume_slowly=2,
            notify_consumer_ids_changed_enable=False,
            group_sys_flag=4,
            consume_timeout_minute=5,
            subscription_data_set=(
                SimpleSubscriptionData(topic="T", expression_type="TAG", expression="*", version=9),
            ),
            attributes={"+k": "v"},
        ),
        FULL_GROUP,
        id="full-group",
    ),
    pytest.param(
        SetMessageRequestModeRequestBody(topic="T", consumer_group="g", mode="POP", pop_share_queue_num=8),
        '{"consumerGroup":"g","mode":"POP","popShareQueueNum":8,"topic":"T"}',
        id="request-mode",
    ),
    pytest.param(GroupList(group_list=("g",)), '{"groupList":["g"]}', id="group-list"),
]


@pytest.mark.parametrize(("body", "text"), BODIES)
def test_bodies_are_written_as_java_writes_them(body, text):
    assert format_body(body).decode() == text


@pytest.mark.parametrize(("body", "text"), BODIES)
def test_bodies_are_read_as_they_were_written(body, text):
    assert parse_body(type(body), text.encode()) == body


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_running_info, "{}", ConsumerRunningInfo()),
        (parse_consume_directly, "{}", ConsumeMessageDirectlyResult()),
        (parse_consumer_status, "{}", GetConsumerStatusBody()),
        (parse_subscription_group, '{"groupName":"g"}', SubscriptionGroupConfig(group_name="g")),
        (parse_group_list, '{"groupList":["g"]}', ("g",)),
        (
            parse_subscription_groups,
            '{"dataVersion":{"counter":0},"forbiddenTable":{},"subscriptionGroupTable":{"g":'
            '{"groupName":"g"}}}',
            {"g": SubscriptionGroupConfig(group_name="g")},
        ),
    ],
)
def test_what_a_peer_leaves_out_has_its_default(parse, text, value):
    assert parse(text.encode()) == value


def test_a_group_without_name_is_refused():
    with pytest.raises(ProtocolError, match="groupName is missing"):
        parse_subscription_group(b"{}")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (0.001, "0.001"),
        (0.000999, "9.99E-4"),
        (-0.0001, "-1.0E-4"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (1.25e300, "1.25E300"),
        (float("nan"), "null"),
        (float("inf"), "null"),
    ],
)
def test_doubles_are_javas(number, text):
    assert f'"pullRT":{text},' in format_body(ConsumeStatus(pull_rt=number)).decode()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_read_back_the_same(number):
    status = ConsumeStatus(pull_rt=number)

    assert json.loads(format_body(status))["pullRT"] == number
    assert parse_body(ConsumeStatus, format_body(status)) == status


def test_a_heartbeat_as_a_proxy_sends_it_to_other_proxies_is_read():
    recorded = (
        b'{"channelData":"{\\"remoteProxyIp\\":\\"127.0.0.1\\",\\"type\\":\\"REMOTING\\"}",'
        b'"clientId":"127.0.0.1@proxied","consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET",'
        b'"consumeType":"CONSUME_PASSIVELY","group":"g","heartbeatType":"REGISTER","language":"PYTHON",'
        b'"lastUpdateTimestamp":1795711636049,"localProxyId":"127.0.0.1%17717%24845",'
        b'"messageModel":"CLUSTERING","subscriptionDataSet":[],"version":513}'
    )

    assert parse_proxy_heartbeat(recorded) == HeartbeatSyncerData(
        heartbeat_type="REGISTER",
        client_id="127.0.0.1@proxied",
        group="g",
        local_proxy_id="127.0.0.1%17717%24845",
        last_update_timestamp=1795711636049,
    )
