"""A real name server that answers and knows no broker, as after its restart, beside one that knows all."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.cluster import LocalCluster
from rmqtools.errors import RocketMQError, TopicNotFoundError
from tests.support.name_servers import NameServers

pytestmark = pytest.mark.broker

CLIENTS = 8  # each begins with a name server by chance


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with NameServers(tmp_path_factory.mktemp("empty"), 1) as servers:
        yield servers.name_server


@pytest.fixture
def name_server(empty: str, local_cluster: LocalCluster) -> str:
    return f"{empty};{local_cluster.name_server}"


@pytest.fixture
def topic(admin: Admin) -> str:
    topic = f"known-{uuid.uuid4().hex[:8]}"
    admin.create_topic(topic)
    return topic


def test_new_producers_send_whichever_name_server_they_ask_first(name_server: str, topic: str) -> None:
    for number in range(CLIENTS):
        with Producer(ProducerConfig(name_server=name_server, group="p")) as producer:
            assert producer.send(Message(topic, b"%d" % number)).offset_msg_id


@pytest.mark.parametrize(
    "look_up",
    [
        pytest.param(lambda admin, topic: admin.fetch_route(topic).queue_datas, id="route"),
        pytest.param(lambda admin, _: admin.fetch_topic_list(), id="topics"),
        pytest.param(lambda admin, _: admin.fetch_cluster_info().broker_addr_table, id="brokers"),
        pytest.param(lambda admin, _: admin.fetch_group_list(), id="groups"),
        pytest.param(lambda admin, topic: admin.fetch_topic_stats(topic).offset_table, id="offsets"),
        pytest.param(
            lambda admin, topic: admin.create_topic(topic, cluster_name="DefaultCluster") is None, id="change"
        ),
    ],
)
def test_administration_finds_what_the_other_name_server_has(
    name_server: str, topic: str, look_up: Callable[[Admin, str], Any]
) -> None:
    for _ in range(CLIENTS):
        with Admin(ClientConfig(name_server=name_server)) as admin:
            assert look_up(admin, topic)


def test_what_no_name_server_has_is_not_found_and_each_is_named(
    name_server: str, empty: str, local_cluster: LocalCluster
) -> None:
    with (
        Admin(ClientConfig(name_server=name_server)) as admin,
        pytest.raises(TopicNotFoundError, match="'nowhere' has no route at ") as caught,
    ):
        admin.fetch_route("nowhere")
    assert empty in str(caught.value)
    assert local_cluster.name_server in str(caught.value)


def test_a_change_that_would_reach_no_broker_is_an_error(empty: str) -> None:
    with Admin(ClientConfig(name_server=empty)) as admin:
        for change in (
            lambda: admin.create_group("g"),
            lambda: admin.delete_group("g"),
            lambda: admin.delete_topic("t"),
        ):
            with pytest.raises(RocketMQError, match=rf"no name server knows a master.*asked: {empty}"):
                change()
