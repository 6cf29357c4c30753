import pytest

from rmqtools.config.simple_consumer import SimpleConsumerConfig
from rmqtools.errors import ConfigError


def simple(**settings) -> SimpleConsumerConfig:
    return SimpleConsumerConfig(name_server="127.0.0.1:9876", **({"group": "g"} | settings))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"group": ""}, "no group: set group='name'"),
        ({"consume_from": "CONSUME_FROM_TIMESTAMP"}, "consume_from='CONSUME_FROM_TIMESTAMP': want one of"),
        ({"max_messages": 33}, "max_messages=33: want 1 to 32"),
        ({"invisible_duration": 43201}, "invisible_duration=43201: want 1 second to 12 hours"),
        ({"wait": 0}, "wait=0: want more than 0"),
        ({"max_reconsume_times": -2}, "max_reconsume_times=-2: want 0 or more, or -1"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        simple(**settings)
