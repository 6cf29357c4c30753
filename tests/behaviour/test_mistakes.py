"""Mistakes that only a server shows; those of calls and settings are in ``tests/unit/test_mistakes.py``."""

import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from rmqtools import (
    Admin,
    ClientConfig,
    Message,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    SimpleConsumer,
    SimpleConsumerConfig,
)
from rmqtools.errors import UnsupportedError
from tests.behaviour.site import Site, until
from tests.support.listening import Heard, listening


def send(broker: str, topic: str, group: str) -> None:
    with Producer(ProducerConfig(name_server=broker)) as producer:
        producer.send(Message(topic, b"1"))


def consume(broker: str, topic: str, group: str) -> None:
    with pushing(broker, topic, group):
        """Never entered."""


def poll(broker: str, topic: str, group: str) -> None:
    with pulling(broker, topic, group):
        """Never entered."""


def list_topics(broker: str, topic: str, group: str) -> None:
    with Admin(ClientConfig(name_server=broker)) as admin:
        admin.fetch_topic_list()


def list_pins(broker: str, topic: str, group: str) -> None:
    with Admin(ClientConfig(name_server=broker)) as admin:
        admin.fetch_pin_groups()


@pytest.mark.parametrize("use", [send, consume, poll, list_topics, list_pins])
def test_a_broker_that_is_given_as_name_server_is_named(
    site: Site, topic: str, group: str, use: Callable[[str, str, str], None]
) -> None:
    remedy = "is a broker, not a name server: .* set name_server to the address of a name server.* 9876"

    with pytest.raises(UnsupportedError, match=rf"^{re.escape(site.addr)} {remedy}"):
        use(site.addr, topic, group)


def pushing(name_server: str, topic: str, group: str) -> Any:
    return listening(name_server, topic, Heard(), group=group)


def pulling(name_server: str, topic: str, group: str) -> Any:
    consumer = PullConsumer(PullConsumerConfig(name_server=name_server, group=group))
    consumer.subscribe(topic)
    return consumer


def simple(name_server: str, topic: str, group: str) -> Any:
    consumer = SimpleConsumer(SimpleConsumerConfig(name_server=name_server, group=group))
    consumer.subscribe(topic)
    return consumer


@pytest.mark.parametrize("make", [pushing, pulling, simple])
def test_a_topic_that_is_missing_is_logged_once_and_again_when_it_is_there(
    site: Site, group: str, make: Callable[[str, str, str], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="rmqtools.engine.group")
    missing = f"missing-{group}"

    def events(name: str) -> list[str]:
        found = [record for record in caplog.records if record.getMessage().startswith(f"{name} ")]
        return [record.levelname for record in found if record.__dict__["topic"] == missing]

    with ExitStack() as stack:
        stack.enter_context(make(site.name_server, missing, group))
        until(lambda: events("topic_not_found") == ["WARNING"])
        site.admin.create_topic(missing, read_queue_nums=1, write_queue_nums=1)
        until(lambda: events("topic_found") == ["INFO"])

    assert events("topic_not_found") == ["WARNING"]
