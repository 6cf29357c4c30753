"""Requests of operators, as servers get them."""

from collections.abc import Callable

import pytest

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.errors import ConfigError
from rmqtools.model.codes import RequestCode
from rmqtools.testing import FakeCluster

QUEUE = MessageQueue("orders", "broker-a", 1)


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        pytest.param(lambda admin: admin.min_offset(QUEUE), RequestCode.GET_MIN_OFFSET, id="min"),
        pytest.param(lambda admin: admin.max_offset(QUEUE), RequestCode.GET_MAX_OFFSET, id="max"),
        pytest.param(
            lambda admin: admin.search_offset(QUEUE, 5), RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, id="search"
        ),
        pytest.param(
            lambda admin: admin.update_consumer_offset("group", QUEUE, 0),
            RequestCode.UPDATE_CONSUMER_OFFSET,
            id="update",
        ),
        pytest.param(
            lambda admin: admin.fetch_consumer_offsets("group", "orders"),
            RequestCode.QUERY_CONSUMER_OFFSET,
            id="query",
        ),
    ],
)
def test_questions_about_a_queue_name_its_broker_because_a_proxy_forwards_by_that(
    ask: Callable[[Admin], object], code: RequestCode
) -> None:
    with FakeCluster() as cluster, Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        cluster.create_topic("orders")
        ask(admin)

        assert {each.ext_fields["bname"] for each in cluster.requests(code=code)} == {"broker-a"}


def test_the_message_type_of_a_topic_goes_to_its_brokers() -> None:
    with FakeCluster() as cluster, Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        admin.create_topic("orders", message_type="FIFO", attributes={"cleanup.policy": "DELETE"})

        (made,) = cluster.requests(code=RequestCode.UPDATE_AND_CREATE_TOPIC)
    assert made.ext_fields["attributes"] == "+cleanup.policy=DELETE,+message.type=FIFO"


def test_an_unknown_request_mode_is_refused_before_anything_is_sent() -> None:
    config = ClientConfig(name_server="127.0.0.1:1")
    with Admin(config) as admin, pytest.raises(ConfigError, match=r"mode='PUSH'\): want one of PULL, POP"):
        admin.set_message_request_mode("T", "g", "PUSH")  # type: ignore[arg-type]  # the mistake


def test_an_unknown_message_type_is_refused_before_anything_is_sent() -> None:
    with FakeCluster() as cluster, Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        with pytest.raises(ConfigError, match="message_type='SLOW'"):
            admin.create_topic("orders", message_type="SLOW")  # type: ignore[arg-type]  # the mistake

        assert cluster.requests(code=RequestCode.UPDATE_AND_CREATE_TOPIC) == []
