import pickle

import pytest

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    aio,
)
from rmqtools.errors import ConfigError

CLASSES = [
    (Client, ClientConfig),
    (Admin, ClientConfig),
    (Producer, ProducerConfig),
    (PullConsumer, PullConsumerConfig),
    (PushConsumer, PushConsumerConfig),
]
ASYNCHRONOUS = [(getattr(aio, class_.__name__), config) for class_, config in CLASSES]


def settings_of(config: type) -> dict[str, str]:
    return {"name_server": "127.0.0.1:1"} | ({"group": "g"} if "Consumer" in config.__name__ else {})


@pytest.mark.parametrize(("class_", "config"), [*CLASSES, *ASYNCHRONOUS])
def test_a_client_is_not_pickled_and_says_what_to_do_instead(class_, config):
    with pytest.raises(TypeError, match=f"a {class_.__name__} has connections .*: pickle its config"):
        pickle.dumps(class_(config(**settings_of(config))))


@pytest.mark.parametrize(("class_", "config"), [*CLASSES, *ASYNCHRONOUS])
def test_a_config_of_another_class_is_refused_by_name(class_, config):
    wrong = "127.0.0.1:1" if config is ClientConfig else ClientConfig(name_server="127.0.0.1:1")

    with pytest.raises(ConfigError, match=f"got a {type(wrong).__name__}: want a {config.__name__}"):
        class_(wrong)
