"""The driver's requests before a read, on the cluster in this process."""

import pytest

from rmqtools import Admin, ClientConfig
from rmqtools.errors import ConfigError, TopicNotFoundError
from spark_connector.options.batch_settings import batch_options
from spark_connector.options.option_table import parse_options
from spark_connector.options.stream_settings import stream_options
from spark_connector.read.batch_reader import RocketMQBatchReader
from spark_connector.read.lookup import Lookup
from spark_connector.read.stream_reader import RocketMQStreamReader


def lookup_of(cluster, **given):
    options = {"nameServer": cluster.name_server, "topic": "orders", **given}
    return Lookup(batch_options(parse_options(options)).read)


def test_an_unknown_topic_is_refused_with_the_one_of_a_similar_name(cluster):
    lookup = lookup_of(cluster, topic="ordres")

    with pytest.raises(TopicNotFoundError, match=r"does not exist \(did you mean 'orders'\?\); correct the"):
        lookup.queues()


@pytest.mark.parametrize(
    "given",
    [
        {"topic": "staged"},
        {"topic": "RMQTOOLS_DECISIONS-staged"},
        {"topic": "", "topics": "orders,staged"},
        {"topic": "", "assign": '{"staged":{"broker-a":[0]}}'},
    ],
)
def test_staged_rows_and_decisions_are_refused_as_a_source(cluster, given):
    for topic in ("staged", "RMQTOOLS_DECISIONS-staged"):
        cluster.create_topic(topic, queues=1)
    options = {name: text for name, text in ({"topic": "orders"} | given).items() if text}
    lookup = Lookup(batch_options(parse_options({"nameServer": cluster.name_server, **options})).read)

    with pytest.raises(
        ConfigError, match=r"staged' belongs to a write with delivery=exactlyOnce: it has rows of"
    ):
        lookup.queues()


def test_a_missing_read_group_is_refused_on_the_driver_and_not_created(cluster):
    given = parse_options({"nameServer": cluster.name_server, "topic": "orders", "readGroup": "analysts"})

    for plan in (
        RocketMQBatchReader(batch_options(given)).partitions,
        RocketMQStreamReader(stream_options(given)).initialOffset,
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
