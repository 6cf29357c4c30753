import pytest

from rmqtools.config.consumer import PullConsumerConfig, PushConsumerConfig
from rmqtools.errors import ConfigError
from rmqtools.model.group import ConsumeFromWhere, MessageModel


def push(**settings) -> PushConsumerConfig:
    return PushConsumerConfig(name_server="127.0.0.1:9876", **({"group": "g"} | settings))


def test_the_defaults_are_those_of_the_java_client():
    config = push()

    assert (config.message_model, config.consume_from) == (
        MessageModel.CLUSTERING,
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    )
    assert (config.consume_threads, config.consume_message_batch_max_size, config.pull_batch_size) == (
        20,
        1,
        32,
    )
    assert (config.pull_threshold_for_queue, config.consume_concurrently_max_span) == (1000, 2000)
    assert (config.max_reconsume_times, config.consume_timeout, config.rebalance_interval) == (
        -1,
        900.0,
        20.0,
    )


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"group": ""}, "no group: set group='name'"),
        ({"message_model": "ANYCASTING"}, "message_model='ANYCASTING': want one of CLUSTERING, BROADCASTING"),
        ({"consume_from": "THE_MIDDLE"}, "consume_from='THE_MIDDLE': want one of CONSUME_FROM_"),
        ({"consume_threads": 0}, "consume_threads"),
        ({"pull_batch_size": -1}, "pull_batch_size"),
        ({"max_reconsume_times": -2}, "max_reconsume_times=-2: want 0 or more, or -1"),
        ({"pop_invisible_time": 4.9}, "pop_invisible_time=4.9: want 5 to 300 seconds"),
        ({"pop_invisible_time": 300.1}, "pop_invisible_time=300.1: want 5 to 300 seconds"),
        ({"pull_threshold_for_topic": 0}, "pull_threshold_for_topic"),
        ({"max_messages_per_second": 0}, "max_messages_per_second=0: want more than 0"),
        ({"pull_timeout": 15.0}, "pull_timeout=15.0: want more than long_poll_timeout=15.0"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        push(**settings)


def test_enumerated_settings_may_be_texts():
    config = push(message_model="BROADCASTING", consume_from="CONSUME_FROM_FIRST_OFFSET")

    assert config.is_broadcasting
    assert config.consume_from is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


def test_settings_come_from_text_and_unknown_ones_are_refused():
    config = PushConsumerConfig.from_mapping({"nameServer": "h:1", "group": "g", "consumeThreads": "3"})
    assert config.consume_threads == 3

    with pytest.raises(ConfigError, match="consumeThread"):
        PushConsumerConfig.from_mapping({"nameServer": "h:1", "group": "g", "consumeThread": "3"})


def test_a_pull_consumers_settings_are_looked_at_too():
    with pytest.raises(ConfigError, match="poll_batch_size"):
        PullConsumerConfig(name_server="h:1", group="g", poll_batch_size=0)


def test_texts_stand_for_members_of_enumerations_in_the_types_too() -> None:  # mypy reads this
    push = PushConsumerConfig(
        name_server="a:1", group="g", consume_from="CONSUME_FROM_FIRST_OFFSET", message_model="BROADCASTING"
    )
    pull = PullConsumerConfig(name_server="a:1", group="g", consume_from="CONSUME_FROM_FIRST_OFFSET")

    assert (push.consume_from, pull.consume_from) == (ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,) * 2
    assert push.message_model == MessageModel.BROADCASTING
