"""Questions about what brokers hold, to the cluster in this process."""

import pytest

from rmqtools import Admin, ClientConfig, MessageQueue, Perm
from rmqtools.errors import ConfigError, PermissionDeniedError, TopicNotFoundError
from rmqtools.model.group_config import DataVersion, SubscriptionGroupConfig, SubscriptionGroupWrapper
from rmqtools.protocol.wire.bodies import format_body
from rmqtools.protocol.wire.command import response
from rmqtools.testing import FakeCluster, RequestCode


@pytest.fixture(scope="module")
def cluster():
    with FakeCluster(brokers=("broker-a", "broker-b")) as cluster:
        yield cluster


def test_a_topics_settings_are_told_broker_by_broker(cluster, admin):
    cluster.create_topic("settings", queues=3, broker_names=["broker-b"])

    configs = admin.fetch_topic_configs("settings")

    assert {name: (config.read_queue_nums, config.message_type) for name, config in configs.items()} == {
        "broker-b": (3, "NORMAL")
    }


def test_an_unknown_topic_is_an_error(admin):
    with pytest.raises(TopicNotFoundError, match="nosuch"):
        admin.fetch_topic_configs("nosuch")


def test_a_topic_without_the_read_bit_is_refused_by_the_client_itself(cluster, admin):
    cluster.create_topic("closed", perm=Perm.WRITE)

    with pytest.raises(PermissionDeniedError, match=r"'closed' may not be read: .*want bit 4"):
        admin.fetch_subscribe_queues("closed")


def test_the_statistics_of_a_topic_have_every_queue_of_every_broker(cluster, admin):
    cluster.create_topic("stats", queues=1)
    cluster.store("stats", b"1", b"2", store_timestamp_ms=1000, queue=MessageQueue("stats", "broker-b", 0))

    stats = admin.fetch_topic_stats("stats")

    assert {
        (queue.broker_name, queue.queue_id): (found.min_offset, found.max_offset, found.last_update_timestamp)
        for queue, found in stats.offset_table.items()
    } == {("broker-a", 0): (0, 0, 0), ("broker-b", 0): (0, 2, 1000)}


def test_groups_of_all_brokers_are_listed_once_and_in_order(cluster, admin):
    for name in ("g2", "g1"):
        cluster.create_group(name)

    assert [name for name in admin.fetch_group_list() if name in ("g1", "g2")] == ["g1", "g2"]


def test_settings_of_all_groups_are_told_by_broker(cluster, admin):
    cluster.create_group("patient", retry_max_times=99)

    configs = admin.fetch_all_group_configs()["patient"]

    assert {broker: config.retry_max_times for broker, config in configs.items()} == {
        "broker-a": 99,
        "broker-b": 99,
    }


def test_the_master_of_a_queue_tells_whether_it_has_a_group_and_creates_none(cluster, admin):
    cluster.create_group("there")
    cluster.create_topic("asked", queues=1)
    queue = MessageQueue("asked", "broker-b", 0)

    assert [admin.has_group(name, queue) for name in ("there", "nowhere", "nowhere")] == [True, False, False]


def test_a_namespace_shows_only_its_own_groups_and_topics(cluster):
    for name in ("ns%inside", "other%inside", "outside"):
        cluster.create_group(name)
        cluster.create_topic(name, queues=1)

    with Admin(ClientConfig(name_server=cluster.name_server, namespace="ns")) as admin:
        assert (admin.fetch_group_list(), admin.fetch_topic_list()) == (["inside"], ["inside"])


def test_a_broker_that_answers_in_parts_is_asked_for_the_rest():
    """A broker 5.5 gives at most splitMetadataSize groups an answer, from ``groupSeq`` on."""

    def answer(request):
        at = int(request.ext_fields["groupSeq"]) if request.ext_fields.get("dataVersion") else 0
        table = {name: SubscriptionGroupConfig(group_name=name) for name in ("a", "b", "c")[at : at + 2]}
        version = DataVersion(counter=7)
        body = format_body(SubscriptionGroupWrapper(subscription_group_table=table, data_version=version))
        return response(0, 0, ext_fields={"totalGroupNum": "3"}, body=body)

    with FakeCluster() as cluster:
        cluster.fault(code=RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, times=None, answer=answer)
        with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            assert admin.fetch_group_list() == ["a", "b", "c"]


@pytest.mark.parametrize("later", [pytest.param("abcde", id="created"), pytest.param("bcd", id="deleted")])
def test_a_table_of_groups_that_changes_between_two_parts_is_fetched_again(later):
    """A broker 5.5 starts again at its first group if the version asked for is not that of its table."""
    states = [("abcd", DataVersion(counter=1)), (later, DataVersion(counter=2))]

    def answer(request):
        names, version = states.pop(0) if len(states) > 1 else states[0]
        is_known = request.ext_fields.get("dataVersion") == format_body(version).decode()
        at = int(request.ext_fields["groupSeq"]) if is_known else 0
        table = {name: SubscriptionGroupConfig(group_name=name) for name in names[at : at + 2]}
        body = format_body(SubscriptionGroupWrapper(subscription_group_table=table, data_version=version))
        return response(0, 0, ext_fields={"totalGroupNum": str(len(names))}, body=body)

    with FakeCluster() as cluster:
        cluster.fault(code=RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, times=None, answer=answer)
        with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            assert admin.fetch_group_list() == [*later]


@pytest.mark.parametrize("name", ["retry_max_times", "retry_queue_nums"])
def test_a_setting_of_a_group_below_0_is_refused(cluster, admin, name):
    with pytest.raises(ConfigError, match=f"{name} = -1: want 0 or more"):
        admin.create_group("below", **{name: -1})

    assert "below" not in admin.fetch_group_list()
