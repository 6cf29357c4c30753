"""Subscriptions of a group member."""

from rmqtools import ClientConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.group.subscriptions import Subscriptions


def test_brokers_take_the_newer_of_two_subscriptions_of_one_moment(clock):
    """They keep what they have unless the version is greater (ConsumerGroupInfo.updateSubscription)."""
    subscriptions = Subscriptions(ClientCore(ClientConfig(name_server="127.0.0.1:1"), clock=clock))
    subscriptions.want("T", sql="a > 1")
    first = subscriptions["T"].sub_version
    subscriptions.want("T", sql="a > 2")
    second = subscriptions["T"].sub_version
    clock.advance(1.0)
    subscriptions.want("T", sql="a > 3")

    assert (first, second, subscriptions["T"].sub_version) == (
        clock.now_ms() - 1000,
        clock.now_ms() - 999,
        clock.now_ms(),
    )
