"""Administration of the cluster of a test's module."""

import pytest

from rmqtools import Admin, ClientConfig
from rmqtools.testing import FakeCluster


@pytest.fixture
def cluster():
    with FakeCluster() as cluster:
        yield cluster


@pytest.fixture
def admin(cluster):
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        yield admin
