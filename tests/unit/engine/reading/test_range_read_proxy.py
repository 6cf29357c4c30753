"""Ranges read through a proxy, which drops answers while earlier ones fill its connection."""

import pytest

from rmqtools import Client, ClientConfig, MessageQueue, QueueRange
from rmqtools.model.codes import RequestCode
from rmqtools.testing import FakeCluster
from tests.support.behind_proxy import show_as_proxy

QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.mark.process
def test_through_a_proxy_a_range_read_has_one_pull_on_the_wire():
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        cluster.store("T", *(b"%d" % number for number in range(200)), queue=QUEUE)
        show_as_proxy(cluster)
        cluster.fault(code=RequestCode.PULL_MESSAGE, answer=None)  # the first answer is dropped
        with Client(ClientConfig(name_server=cluster.name_server, request_timeout=0.2)) as client:
            messages = [m for part in client.read_messages(QueueRange(QUEUE, 0, 200)) for m in part]

        asked = [
            request.ext_fields["queueOffset"] for request in cluster.requests(code=RequestCode.PULL_MESSAGE)
        ]
    assert [int(message.body) for message in messages] == list(range(200))
    assert asked.index("0", 1) <= 2  # asked again before a third pull was on the wire
