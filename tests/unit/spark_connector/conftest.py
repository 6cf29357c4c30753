"""A cluster in this process, and an environment that gives no options."""

from collections.abc import Iterator

import pytest

from rmqtools.testing import FakeCluster
from spark_connector.worker import clients


@pytest.fixture(autouse=True)
def _no_options_in_the_environment(monkeypatch):
    for name in ("NAMESRV_ADDR", "ROCKETMQ_ACCESS_KEY", "ROCKETMQ_SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    """A cluster with a topic of one queue; the clients that a test used are closed after it."""
    with FakeCluster(auto_create_topics=False) as cluster:
        cluster.create_topic("orders", queues=1)
        yield cluster
        clients._CACHE.close_all()
