"""``rmqtools topic`` on the cluster in this process: what is printed, and what is changed."""

import json

import pytest

from rmqtools import Message, MessageQueue, Perm, Producer, ProducerConfig
from tests.support.cluster_scene import wait_until


@pytest.fixture(autouse=True)
def orders(cluster):
    cluster.create_topic("orders", queues=1)
    cluster.store("orders", b"1", b"2", store_timestamp_ms=1_700_000_000_000)


def test_topics_are_listed_without_rocketmqs_own(run, cluster):
    cluster.create_topic("DefaultCluster", queues=1)  # a real broker makes these two for itself
    cluster.create_topic("broker-a", queues=1)
    assert run("topic", "list").stdout.splitlines() == [
        "TOPIC   BROKERS             READ QUEUES  WRITE QUEUES  PERM",
        "orders  broker-a, broker-b            2             2  rw",
    ]


def test_a_list_with_statistics_counts_messages(run):
    (row,) = json.loads(run("topic", "list", "--stats", "--json").stdout)

    assert (row["topic"], row["messages"], row["last_message"]) == ("orders", 2, "2023-11-14 22:13:20 UTC")


def test_idle_topics_have_no_message_since(run, cluster):
    cluster.create_topic("busy", queues=1)
    cluster.store("busy", b"x")
    cluster.create_topic("empty", queues=1)

    rows = json.loads(run("topic", "list", "--idle", "30d", "--json").stdout)

    assert [(row["topic"], row["messages"]) for row in rows] == [("empty", 0), ("orders", 2)]


def test_a_topic_is_described_queue_by_queue(run, cluster):
    cluster.commit("billing", MessageQueue("orders", "broker-a", 0), 0)

    assert run("topic", "describe", "orders").stdout.splitlines() == [
        "topic:        orders",
        "message type: NORMAL",
        "attributes:   -",
        "retention:    72 hours",
        "put tps:      0.0/s",
        "groups:       billing",
        "QUEUE       PERM  FIRST  END  MESSAGES  LAST HOUR  LAST MESSAGE             NOTE",
        "broker-a:0  rw        0    2         2          0  2023-11-14 22:13:20 UTC",
        "broker-b:0  rw        0    0         0          0  -",
    ]


def test_a_queue_that_got_far_more_messages_than_the_others_is_hot(run, cluster):
    cluster.create_topic("skewed", queues=2)
    for number, count in enumerate((300, 40)):
        queue = MessageQueue("skewed", "broker-a", number)
        cluster.store("skewed", *[b"x"] * count, queue=queue, store_timestamp_ms=1_000)
        cluster.store("skewed", *[b"x"] * (400 - count), queue=queue)

    rows = json.loads(run("topic", "describe", "skewed", "--json").stdout)["queues"]

    assert [row["last_hour"] for row in rows] == [100, 360, 0, 0]
    assert [row["note"] for row in rows] == ["", "hot: 78 % of the last hour", "", ""]


def test_queues_that_cannot_be_used_are_marked(run, cluster):
    cluster.create_topic("closed", queues=1, perm=Perm.READ, broker_names=["broker-a"])

    shown = run("topic", "describe", "closed").stdout

    assert shown.splitlines()[-1].endswith("not writable")


def test_a_topic_is_created_with_a_type(run, admin):
    create = ("topic", "create", "payments", "--queues", "3", "--type", "FIFO", "--broker", "broker-b")

    created = run(*create).stdout

    (config,) = admin.fetch_topic_configs("payments").values()
    assert created == "topic payments is created: 3 queues on each of broker-b\n"
    assert (config.read_queue_nums, config.message_type) == (3, "FIFO")


@pytest.fixture
def config(cluster, admin):
    """Fetch the settings of a topic with four queues on one broker."""
    cluster.create_topic("changing", queues=4, broker_names=["broker-a"])
    return lambda: admin.fetch_topic_configs("changing")["broker-a"]


def test_alter_changes_what_is_given_and_shows_it_before(run, config):
    alter = ("topic", "alter", "changing", "--write-queues", "2", "--type", "DELAY")

    dry = run(*alter, "--dry-run").stdout
    unchanged = config().write_queue_nums
    run(*alter)

    assert dry.splitlines() == [
        "broker-a: 4 read, 4 write queues, rw -> 4 read, 2 write queues, rw",
        "broker-a: message type NORMAL -> DELAY",
    ]
    assert unchanged == 4
    changed = config()
    assert (changed.read_queue_nums, changed.write_queue_nums, changed.message_type) == (4, 2, "DELAY")


def test_queues_to_read_are_changed_apart_from_those_to_write(run, config):
    run("topic", "alter", "changing", "--read-queues", "6")

    assert (config().read_queue_nums, config().write_queue_nums) == (6, 4)


def test_a_topic_is_deleted_only_with_a_yes(run, cluster, admin):
    cluster.create_topic("old", queues=1)

    asked = run("topic", "delete", "old")
    deleted = run("topic", "delete", "old", "--yes")

    assert (asked.exit_code, deleted.exit_code) == (1, 0)
    assert "Delete topic old with about 0 messages? Nobody can answer here: give --yes" in asked.stderr
    assert "old" not in admin.fetch_topic_list()


def test_a_topic_of_a_namespace_is_another_than_the_plain_one_in_every_command(run, cluster, admin):
    inside = ("--set", "namespace=shop")
    run("topic", "create", "orders", "--queues", "1", *inside)
    sent = run("produce", "orders", *inside, stdin="a\nb\n")
    run("topic", "alter", "orders", "--queues", "2", *inside)
    listed = json.loads(run("topic", "list", "--json", *inside).stdout)
    read = run("consume", "orders", "--format-string", r"%t %s\n", *inside).stdout
    described = json.loads(run("topic", "describe", "orders", "--json", *inside).stdout)
    run("topic", "delete", "orders", "--yes", *inside)

    assert sent.stdout.startswith("2 messages stored in orders,")
    assert [(row["topic"], row["read_queues"]) for row in listed] == [("orders", 4)]
    assert sorted(read.splitlines()) == ["orders a", "orders b"]
    assert (described["topic"], len(described["queues"])) == ("orders", 4)
    assert [name for name in admin.fetch_topic_list() if "orders" in name] == ["orders"]
    assert len(cluster.messages("orders")) == 2


@pytest.mark.parametrize(
    ("hours", "plug_in", "shown"),
    [
        ("24", "", "72 hours (reserve.time=24 has no effect: the broker has no tiered storage)"),
        ("24", "a.tieredstore.TieredMessageStore", "24 hours in tiered storage, 72 hours on "),
        ("-1", "", "72 hours"),
    ],
)
def test_the_retention_of_a_topic_is_what_its_brokers_do(run, cluster, admin, hours, plug_in, shown):
    run("topic", "alter", "orders", "--attribute", f"reserve.time={hours}")
    for name in ("broker-a", "broker-b"):
        admin.update_broker_config(cluster.addr(name), {"messageStorePlugIn": plug_in})

    (retention,) = json.loads(run("topic", "describe", "orders", "--json").stdout)["retention"]

    assert retention.startswith(shown)


def test_the_producers_of_a_topic_are_those_on_the_machines_its_messages_came_from(run, cluster, admin):
    cluster.create_topic("made", queues=1, broker_names=["broker-a"])
    empty = run("topic", "producers", "made").stdout
    with Producer(ProducerConfig(name_server=cluster.name_server, group="makers")) as producer:
        producer.send(Message("made", b"1"))
        producer.send(Message("made", b"2"))
        wait_until(lambda: "makers" in admin.fetch_producers())
        rows = json.loads(run("topic", "producers", "made", "--json").stdout)
        shown = run("topic", "producers", "made").stdout
        (row,) = [row for row in rows if row["producer_group"] == "makers"]

        assert (row["host"], row["messages"], row["client_ids"]) == ("127.0.0.1", 2, [producer.client_id])
        assert producer.client_id in shown
    assert empty == "topic made has no messages\n"


def test_a_topic_is_created_and_deleted_in_the_cluster_that_is_named(run, admin):
    run("topic", "create", "regional", "--cluster", "DefaultCluster")
    created = admin.fetch_topic_list()
    run("topic", "delete", "regional", "--cluster", "DefaultCluster", "--yes")

    assert {*created} - {*admin.fetch_topic_list()} == {"regional"}
