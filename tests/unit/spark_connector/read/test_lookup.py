"""The driver's requests before a read, on the cluster in this process."""

import pytest

from rmqtools import Admin, ClientConfig
from rmqtools.errors import ConfigError, TopicNotFoundError
from spark_connector.read.batch_reader import RocketMQBatchReader
from spark_connector.read.lookup import Lookup
from spark_connector.read.stream_reader import RocketMQStreamReader
from tests.support.spark_options import batch_of, read_of, stream_of


def lookup_of(cluster, **given):
    return Lookup(read_of(nameServer=cluster.name_server, **{"topic": "orders", **given}))


def test_an_unknown_topic_is_refused_with_the_one_of_a_similar_name(cluster):
    lookup = lookup_of(cluster, topic="ordres")

    with pytest.raises(TopicNotFoundError, match=r"does not exist \(did you mean 'orders'\?\); correct the"):
        lookup.queues()


@pytest.mark.parametrize(
    "given",
    [
        {"topic": "staged"},
        {"topic": "RMQTOOLS_DECISIONS-staged"},
        {"topic": None, "topics": "orders,staged"},
        {"topic": None, "assign": '{"staged":{"broker-a":[0]}}'},
    ],
)
def test_staged_rows_and_decisions_are_refused_as_a_source(cluster, given):
    for topic in ("staged", "RMQTOOLS_DECISIONS-staged"):
        cluster.create_topic(topic, queues=1)

    with pytest.raises(
        ConfigError, match=r"staged' belongs to a write with delivery=exactlyOnce: it has rows of"
    ):
        lookup_of(cluster, **given).queues()


def test_a_missing_read_group_is_refused_on_the_driver_and_not_created(cluster):
    given = {"nameServer": cluster.name_server, "topic": "orders", "readGroup": "analysts"}

    for plan in (
        RocketMQBatchReader(batch_of(**given)).partitions,
        RocketMQStreamReader(stream_of(**given)).initialOffset,
    ):
        with pytest.raises(ConfigError, match=r"option 'readGroup' = 'analysts': no such group on .*; creat"):
            plan()

    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        assert "analysts" not in admin.fetch_group_list()


def test_a_read_group_that_exists_is_accepted(cluster):
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        admin.create_group("analysts")
    lookup = lookup_of(cluster, readGroup="analysts")

    lookup.check_read_group(lookup.queues())
