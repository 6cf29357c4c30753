"""What operators ask and change about consumer groups, on a real cluster of two masters."""

import pytest

from rmqtools import Admin, ClientConfig, Message, MessageQueue
from rmqtools.errors import (
    BrokerError,
    ConfigError,
    RocketMQError,
    TopicNotFoundError,
)
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import MessageRequestMode
from tests.support.reading import await_readable

pytestmark = pytest.mark.broker


@pytest.fixture
def filled(make_topic, producer, admin) -> str:
    """A topic with ten messages on every queue."""
    topic = make_topic(queues=2)
    results = [producer.send(Message(topic, b"x")) for _ in range(40)]
    await_readable(admin, results)
    return topic


def test_offsets_of_a_topic_that_is_not_there_cannot_be_asked_for_nor_written(admin, group):
    with pytest.raises(TopicNotFoundError):
        admin.fetch_consumer_offsets(group, "no-such-topic")
    with pytest.raises(TopicNotFoundError):
        admin.update_consumer_offset(group, MessageQueue("no-such-topic", "broker-a", 0), 1)


def test_a_commit_that_the_broker_ignores_after_a_reset_is_an_error(admin, group, filled):
    queue, *others = admin.fetch_subscribe_queues(filled)
    for each in (queue, *others):
        admin.update_consumer_offset(group, each, 9)
    admin.reset_offsets(group, filled, 0)

    with pytest.raises(RocketMQError, match=r"offset 5 of group .* was not stored: .*reset"):
        admin.update_consumer_offset(group, queue, 5)


def test_a_reset_of_a_group_that_is_not_there_is_refused(admin, group, filled):
    with pytest.raises(BrokerError) as refused:
        admin.reset_offsets(group, filled, 0)

    assert refused.value.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


def test_a_deleted_group_is_gone_and_its_offsets_if_asked(admin, group, filled):
    queues = admin.fetch_subscribe_queues(filled)
    admin.update_consumer_offset(group, queues[0], 3)

    admin.delete_group(group)
    kept = admin.fetch_consumer_offsets(group, filled)
    admin.delete_group(group, clean_offset=True)
    cleaned = admin.fetch_consumer_offsets(group, filled)

    assert kept[queues[0]] == 3
    assert cleaned == dict.fromkeys(queues)


def test_groups_of_two_namespaces_do_not_meet(local_cluster, group):
    queue = MessageQueue(f"topic-{group}", "broker-a", 0)
    configs = [ClientConfig(name_server=local_cluster.name_server, namespace=name) for name in ("ns1", "ns2")]
    with Admin(configs[0]) as first, Admin(configs[1]) as second:
        for admin in (first, second):
            admin.create_topic(queue.topic, read_queue_nums=1, write_queue_nums=1)
        first.update_consumer_offset(group, queue, 4)

        assert first.fetch_consumer_offsets(group, queue.topic)[queue] == 4
        assert second.fetch_consumer_offsets(group, queue.topic)[queue] is None
        assert queue in first.fetch_consume_stats(group, queue.topic).offset_table


def test_a_group_is_made_with_settings_and_unknown_ones_are_refused(admin, group, filled):
    queue = admin.fetch_subscribe_queues(filled)[0]

    admin.create_group(group, retry_max_times=3)
    admin.create_group(group, consume_timeout_minute=5)
    admin.set_message_request_mode(filled, group, MessageRequestMode.POP, pop_share_queue_num=-1)
    admin.update_consumer_offset(group, queue, 2)

    assert admin.fetch_consumer_offsets(group, filled)[queue] == 2
    configs = admin.fetch_group_configs(group)
    assert {(each.retry_max_times, each.consume_timeout_minute) for each in configs.values()} == {(3, 5)}
    assert configs.keys() == {"broker-a", "broker-b"}
    with pytest.raises(ConfigError, match="did you mean 'retry_max_times'"):
        admin.create_group(group, retry_max_time=3)


def test_a_member_that_no_broker_knows_cannot_be_asked(admin, group):
    with pytest.raises(BrokerError, match="not online"):
        admin.fetch_running_info(group, "10.0.0.1@nobody")
