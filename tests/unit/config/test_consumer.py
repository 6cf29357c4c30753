import pytest

from rmqtools.config.consumer import PullConsumerConfig, PushConsumerConfig
from rmqtools.errors import ConfigError
from rmqtools.model.group import ConsumeFromWhere, MessageModel


def push(**settings) -> PushConsumerConfig:
    return PushConsumerConfig(name_server="127.0.0.1:9876", **({"group": "g"} | settings))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"group": ""}, "no group: set group='name'"),
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
    assert push.is_broadcasting
