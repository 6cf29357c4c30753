"""The simple consumer on real brokers: what the fake cluster does not have."""

import pytest

from rmqtools import (
    ConsumeFromWhere,
    SimpleConsumer,
    SimpleConsumerConfig,
)
from rmqtools.errors import BrokerError, UnsupportedError
from tests.support.listening import new_group

pytestmark = pytest.mark.broker


def consumer(name_server: str, topic: str, *, sql: str | None = None) -> SimpleConsumer:
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    made = SimpleConsumer(
        SimpleConsumerConfig(name_server=name_server, group=new_group(), consume_from=first)
    )
    made.subscribe(topic, sql=sql)
    return made


def test_a_broker_without_a_timer_wheel_is_named(local_cluster, make_topic):
    with (
        consumer(local_cluster.name_server, make_topic()) as member,
        pytest.raises(UnsupportedError, match=r"broker-[ab] at .* has timerWheelEnable=false"),
    ):
        member.receive(wait=0)


def test_a_condition_that_brokers_cannot_parse_is_refused_at_the_start(local_cluster, make_topic):
    with (
        pytest.raises(BrokerError, match="SUBSCRIPTION_PARSE_FAILED"),
        consumer(local_cluster.name_server, make_topic(), sql="a >"),
    ):
        pass
