import pickle

import pytest

import rmqtools
from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    MirrorConfig,
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


@pytest.mark.parametrize(("class_", "config"), [*CLASSES, *ASYNCHRONOUS])
def test_a_representation_shows_group_server_and_state_and_no_secret(class_, config):
    keys = {"access_key": "alice", "secret_key": "hunter2"}
    settings = settings_of(config) | keys
    group = f"group={config(**settings).group!r} " if hasattr(config, "group") else ""
    made = class_(config(**settings))
    name = f"{class_.__module__}.{class_.__name__}"

    assert repr(made) == f"<{name} {group}name_server='127.0.0.1:1' state='new'>"


def test_a_representation_shows_the_state_and_no_password_of_a_list_of_name_servers():
    client = Producer(
        ProducerConfig(name_server="http://user:hunter2@127.0.0.1:1/list", client_ip="127.0.0.1")
    )
    with client:
        started = repr(client)

    assert "name_server='http://127.0.0.1:1/list' state='started'" in started
    assert "state='closed'" in repr(client)


@pytest.mark.parametrize("face", [rmqtools, aio], ids=["blocking", "asyncio"])
def test_a_representation_of_what_works_on_a_producer_or_two_clients_shows_theirs(face):
    producer = face.Producer(ProducerConfig(name_server="127.0.0.1:1", group="g"))
    source, target = ClientConfig(name_server="127.0.0.1:2"), ProducerConfig(name_server="127.0.0.1:3")
    mirror = face.Mirror(MirrorConfig(source=source, target=target, topics={"a": "b"}))

    assert "DecisionLog group='g' name_server='127.0.0.1:1' state='new'>" in repr(
        face.DecisionLog(producer, "t")
    )
    assert "Mirror source='127.0.0.1:2' target='127.0.0.1:3' state='new'>" in repr(mirror)


def test_a_client_whose_constructor_has_failed_has_a_representation_too():
    assert repr(Producer.__new__(Producer)) == "<rmqtools.Producer>"
