"""Tools for tests of programs that use RocketMQ: a cluster in the test's own process.

from rmqtools.testing import FakeCluster

with FakeCluster() as cluster:
    cluster.create_topic("orders", queues=4)
    ...  # clients with name_server=cluster.name_server

:mod:`rmqtools.testing.plugin` has fixtures for pytest; docs/testing.md shows them.
"""

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.testing.drain import Drain
from rmqtools.testing.fake import NAME_SERVER, FakeCluster, Fault, Reaction, encode_stored, stored_message
from rmqtools.testing.pinned_group import PinnedGroup

__all__ = [
    "NAME_SERVER",
    "Drain",
    "FakeCluster",
    "Fault",
    "PinnedGroup",
    "Reaction",
    "RequestCode",
    "ResponseCode",
    "encode_stored",
    "stored_message",
]
