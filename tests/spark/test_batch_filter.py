"""Filters of the broker, by tag and by condition."""

import pytest

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.errors import ConfigError
from tests.spark.conftest import ADMIN
from tests.support.patience import PATIENCE

TAGS = ("Aa", "BB", "new", None)  # Java's hash codes of the first two are equal


@pytest.fixture(scope="module")
def tagged(fill_new):
    """A topic with 400 messages in one queue, their tags in turn, numbered in the property n."""

    def of(number):
        return {"tags": TAGS[number % 4], "properties": {"n": str(number)}}

    return fill_new(400, queues=1, broker_names=["broker-a"], of=of)


def numbers(rows):
    return [int(row.body) for row in rows]


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        pytest.param("new", {"new"}, id="one"),
        pytest.param("new || BB", {"new", "BB"}, id="two"),
        pytest.param("Aa", {"Aa"}, id="one-of-equal-hash-codes"),
        pytest.param("none-has-it", set(), id="no-match"),
    ],
)
def test_tags_choose_messages_by_their_text(tagged, read_rows, tags, wanted):
    expected = [number for number in range(400) if TAGS[number % 4] in wanted]

    assert numbers(read_rows(topic=tagged, tags=tags)) == expected
    assert numbers(read_rows(topic=tagged, tags=tags, minPartitions=7)) == expected


def test_a_condition_chooses_messages_by_their_properties(tagged, read_rows):
    condition = "n BETWEEN 10 AND 29 AND TAGS IS NOT NULL"
    expected = [n for n in range(10, 30) if TAGS[n % 4]]

    assert numbers(read_rows(topic=tagged, sql=condition)) == expected
    assert numbers(read_rows(topic=tagged, sql=condition, maxRecordsPerPartition=13)) == expected
    assert read_rows(topic=tagged, sql="n > 1000") == []


def test_a_condition_that_is_none_is_refused_not_ignored(tagged, read_rows):
    """The broker answers pulls with such a condition with all messages."""
    with pytest.raises(ConfigError, match=r"option 'sql' = 'n <': .*SUBSCRIPTION_PARSE_FAILED"):
        read_rows(topic=tagged, sql="n <")


def test_a_broker_that_takes_no_conditions_says_so(acl_cluster, read_rows):
    where = {"name_server": acl_cluster.name_server, **ADMIN}
    with Admin(ClientConfig(**where)) as admin, Producer(ProducerConfig(**where, group="tests")) as producer:
        admin.create_topic("unfiltered", read_queue_nums=1, write_queue_nums=1)
        admin.await_readable({producer.send(Message("unfiltered", b"x")).queue: 1}, timeout=PATIENCE)
    keys = {"accessKey": ADMIN["access_key"], "secretKey": ADMIN["secret_key"]}

    with pytest.raises(ConfigError, match=r"option 'sql' = 'n < 5': .*enablePropertyFilter=true"):
        read_rows(nameServer=acl_cluster.name_server, topic="unfiltered", sql="n < 5", **keys)
