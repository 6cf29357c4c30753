"""Requests of operators, as servers get them."""

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError
from rmqtools.model.codes import RequestCode

QUEUE = MessageQueue("orders", "broker-a", 1)


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda admin: admin.min_offset(QUEUE), RequestCode.GET_MIN_OFFSET),
        (lambda admin: admin.max_offset(QUEUE), RequestCode.GET_MAX_OFFSET),
        (lambda admin: admin.search_offset(QUEUE, 5), RequestCode.SEARCH_OFFSET_BY_TIMESTAMP),
        (lambda admin: admin.update_consumer_offset("group", QUEUE, 0), RequestCode.UPDATE_CONSUMER_OFFSET),
        (lambda admin: admin.fetch_consumer_offsets("group", "orders"), RequestCode.QUERY_CONSUMER_OFFSET),
    ],
    ids=["min", "max", "search", "update", "query"],
)
def test_questions_about_a_queue_name_its_broker_because_a_proxy_forwards_by_that(cluster, admin, ask, code):
    cluster.create_topic("orders")
    ask(admin)

    assert {each.ext_fields["bname"] for each in cluster.requests(code=code)} == {"broker-a"}


def test_the_message_type_of_a_topic_goes_to_its_brokers(cluster, admin):
    admin.create_topic("orders", message_type="FIFO", attributes={"cleanup.policy": "DELETE"})

    (made,) = cluster.requests(code=RequestCode.UPDATE_AND_CREATE_TOPIC)
    assert made.ext_fields["attributes"] == "+cleanup.policy=DELETE,+message.type=FIFO"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda admin: admin.set_message_request_mode("T", "g", "PUSH"),
            r"mode='PUSH'\): want one of PULL, POP",
        ),
        (lambda admin: admin.create_topic("orders", message_type="SLOW"), "message_type='SLOW'"),
    ],
    ids=["request-mode", "message-type"],
)
def test_an_unknown_choice_is_refused_before_anything_is_sent(cluster, admin, change, text):
    with pytest.raises(ConfigError, match=text):
        change(admin)

    assert cluster.requests() == []
