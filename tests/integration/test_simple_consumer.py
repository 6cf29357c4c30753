"""The simple consumer on real brokers: what the fake cluster does not have."""

import pytest

from rmqtools import SimpleConsumer, SimpleConsumerConfig
from rmqtools.errors import UnsupportedError
from tests.support.listening import new_group

pytestmark = pytest.mark.broker


def test_a_broker_without_a_timer_wheel_is_named(local_cluster, make_topic):
    consumer = SimpleConsumer(SimpleConsumerConfig(name_server=local_cluster.name_server, group=new_group()))
    consumer.subscribe(make_topic())
    with (
        consumer,
        pytest.raises(UnsupportedError, match=r"broker-[ab] at .* has timerWheelEnable=false"),
    ):
        consumer.receive(wait=0)
