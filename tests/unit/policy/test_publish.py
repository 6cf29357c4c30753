"""From a route to queues, where the route is odd. The usual cases are vectors."""

import pytest

from rmqtools.errors import ProtocolError
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import BrokerData, QueueData, TopicQueueMapping, TopicRouteData
from rmqtools.policy.publish import publish_queues, static_endpoints, subscribe_queues
from rmqtools.policy.route_update import RouteTables

MASTER = BrokerData("a", {0: "127.0.0.1:1"})
SLAVE = BrokerData("a", {1: "127.0.0.1:2"})


@pytest.mark.parametrize("count", ["9" * 5000, "2147483648", "²", "-1", "", "four", "٣", "1_0"])
def test_a_number_of_queues_that_java_cannot_read_is_refused(count):
    route = TopicRouteData(order_topic_conf=f"a:{count};b:1")

    with pytest.raises(ProtocolError, match="orderTopicConf"):
        publish_queues("T", route)


@pytest.mark.parametrize("count", ["2", "+2", "0" * 5000 + "2"])
def test_a_number_of_queues_is_read_as_java_reads_it(count):
    queues = publish_queues("T", TopicRouteData(order_topic_conf=f"a:{count}")).queues

    assert queues == (MessageQueue("T", "a", 0), MessageQueue("T", "a", 1))


@pytest.mark.parametrize(("brokers", "count"), [((MASTER, SLAVE), 1), ((SLAVE, MASTER), 0)])
def test_of_two_broker_datas_of_one_name_the_first_says_whether_there_is_a_master(brokers, count):
    route = TopicRouteData((QueueData("a", 1, 1, 6),), brokers)

    assert len(publish_queues("T", route).queues) == count


def test_of_two_broker_datas_of_one_name_the_first_gives_the_addresses():
    tables = RouteTables()
    tables.update("T", TopicRouteData((QueueData("a", 1, 1, 6),), (MASTER, SLAVE)))

    assert tables.broker_addrs == {"a": {0: "127.0.0.1:1"}}


MANY = 2**31 - 1
TOO_MANY = [
    pytest.param(publish_queues, TopicRouteData(order_topic_conf=f"a:{MANY}"), id="in order"),
    pytest.param(publish_queues, TopicRouteData((QueueData("a", 1, MANY, 6),), (MASTER,)), id="to write"),
    pytest.param(subscribe_queues, TopicRouteData((QueueData("a", MANY, 1, 6),), (MASTER,)), id="to read"),
    pytest.param(
        static_endpoints,
        TopicRouteData(
            topic_queue_mapping_by_broker={"a": TopicQueueMapping("T", "a", "__global__", MANY, 1)}
        ),
        id="static",
    ),
]


@pytest.mark.parametrize(("make", "route"), TOO_MANY)
def test_more_queues_of_a_broker_than_a_client_lists_are_a_protocol_error(make, route):
    with pytest.raises(ProtocolError, match="'T' has 2147483647 queues: at most 65536 on a broker"):
        make("T", route)


def test_so_are_more_queues_of_all_brokers_together():
    route = TopicRouteData(order_topic_conf=";".join(f"broker-{n}:65536" for n in range(3)))

    with pytest.raises(ProtocolError, match=r"196608 queues: .* 131072 in total"):
        publish_queues("T", route)


@pytest.mark.process
def test_as_many_queues_as_a_client_lists_are_listed():
    route = TopicRouteData((QueueData("a", 65536, 65536, 6),), (MASTER,))

    assert len(publish_queues("T", route).queues) == len(subscribe_queues("T", route)) == 65536
