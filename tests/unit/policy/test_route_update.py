"""What a fresh route changes in a client's tables."""

import pytest

from rmqtools.errors import ProtocolError
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import BrokerData, QueueData, TopicRouteData
from rmqtools.policy.route_update import RouteTables


def test_the_queues_to_read_are_sorted_as_java_sorts_them():
    names = ["broker-b", "broker-\U0001f600", "broker-a", "broker-\uff5e"]
    route = TopicRouteData(
        queue_datas=tuple(QueueData(name, read_queue_nums=12, write_queue_nums=1, perm=6) for name in names),
        broker_datas=tuple(BrokerData(name, {0: "127.0.0.1:10911"}) for name in names),
    )
    tables = RouteTables()

    assert tables.update("T", route)

    by_utf16 = ["broker-a", "broker-b", "broker-\U0001f600", "broker-\uff5e"]
    assert tables.subscribe["T"] == [
        MessageQueue("T", name, queue_id) for name in by_utf16 for queue_id in range(12)
    ]


def test_a_route_with_too_many_queues_to_read_changes_no_table():
    tables = RouteTables()
    route = TopicRouteData((QueueData("a", 2**31 - 1, 1, 6),), (BrokerData("a", {0: "127.0.0.1:1"}),))

    with pytest.raises(ProtocolError, match="2147483647 queues"):
        tables.update("T", route)

    assert tables == RouteTables()
