"""The driver's requests before a read, on the cluster in this process."""

import pytest

from rmqtools.errors import TopicNotFoundError
from rmqtools.testing.fake import FakeCluster
from spark_connector.options.batch_settings import batch_options
from spark_connector.options.option_table import parse_options
from spark_connector.read.lookup import Lookup
from spark_connector.worker import clients


@pytest.fixture
def cluster():
    with FakeCluster() as cluster:
        cluster.create_topic("orders")
        yield cluster
        clients._CACHE.close_all()


def test_an_unknown_topic_is_refused_with_the_one_of_a_similar_name(cluster):
    given = {"nameServer": cluster.name_server, "topic": "ordres"}
    lookup = Lookup(batch_options(parse_options(given)).read)

    with pytest.raises(TopicNotFoundError, match=r"does not exist \(did you mean 'orders'\?\); correct the"):
        lookup.queues()
