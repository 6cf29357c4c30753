import pytest

from rmqtools.policy.broker_address import FoundBroker, find_in_subscribe

TABLE = {"a": {0: "master:1", 1: "slave:1"}, "b": {0: "master:2", 2: "slave:2"}}


@pytest.mark.parametrize(
    ("name", "broker_id", "found"),
    [
        pytest.param("a", 0, FoundBroker("master:1", False), id="the-master"),
        pytest.param("a", 1, FoundBroker("slave:1", True), id="the-slave-itself-without-a-second-one"),
        pytest.param("b", 1, FoundBroker("slave:2", True), id="the-next-slave"),
        pytest.param("a", 5, None, id="no-such-slave"),
        pytest.param("c", 0, None, id="no-such-broker"),
    ],
)
def test_a_pull_goes_to_the_broker_that_was_named_or_to_the_next_slave(name, broker_id, found):
    assert find_in_subscribe(TABLE, name, broker_id, only_this_broker=True) == found
