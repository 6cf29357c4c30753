"""Brokers with other settings than ours, on a cluster of their own: all other tests share one."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    ProducerConfig,
    QueueRange,
)
from rmqtools.cluster import LocalCluster
from rmqtools.errors import BrokerError
from rmqtools.protocol.messages.stored import decode_messages
from tests.support.cluster_scene import wait_until
from tests.support.listening import Heard, listening, new_group
from tests.support.patience import PATIENCE
from tests.support.resting import RestingCluster

pytestmark = pytest.mark.broker

COUNT = 3000
QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """One broker that takes no conditions and leaves resets of offsets to members; one queue has messages."""
    settings = {"enablePropertyFilter": "false", "useServerSideResetOffset": "false"}
    with RestingCluster(broker_settings=settings) as cluster:
        with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            admin.create_topic(QUEUE.topic, read_queue_nums=1, write_queue_nums=1)
            with Producer(ProducerConfig(name_server=cluster.name_server, group="tests")) as producer:
                producer.send_many([Message(QUEUE.topic, b"%d" % number) for number in range(COUNT)])
            admin.await_readable({QUEUE: COUNT}, timeout=PATIENCE)
        yield cluster


@pytest.fixture
def admin(cluster: LocalCluster) -> Iterator[Admin]:
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        yield admin


def test_conditions_that_no_broker_takes_fail_the_start(cluster):
    with (
        pytest.raises(BrokerError, match="does not support consumer to filter message by SQL92"),
        listening(cluster.name_server, QUEUE.topic, Heard(), sql="n > 2"),
    ):
        """Never entered."""


def test_a_broker_that_leaves_resets_to_its_members_is_obeyed(cluster, admin):
    group, heard = new_group(), Counter[int]()

    def listen(messages: Sequence[MessageExt], _: object) -> None:
        heard.update(message.queue_offset for message in messages)

    def is_committed() -> bool:
        return admin.fetch_consumer_offsets(group, QUEUE.topic).get(QUEUE) == COUNT

    soon: dict[str, Any] = {"persist_consumer_offset_interval": 0.2, "long_poll_timeout": 1.0}
    with listening(cluster.name_server, QUEUE.topic, listen, group=group, **soon):
        wait_until(is_committed)
        admin.reset_offsets(group, QUEUE.topic, 0)
        wait_until(lambda: len(heard) == COUNT and min(heard.values()) == 2)
        wait_until(is_committed)

    assert set(heard.values()) == {2}


def test_a_read_survives_a_broker_that_returns_fewer_messages_from_one_pull_to_the_next(cluster, admin):
    addr = cluster.broker_addrs["broker-a"]
    read: list[int] = []
    with Client(ClientConfig(name_server=cluster.name_server)) as client:
        for number, block in enumerate(client.read_blocks(QueueRange(QUEUE, 0, COUNT), max_messages=200)):
            read.extend(message.queue_offset for message in decode_messages(block.buffer))
            count = "8" if number % 2 == 0 else "32"
            admin.update_broker_config(addr, {"maxTransferCountOnMessageInMemory": count})

    assert read == list(range(COUNT))
