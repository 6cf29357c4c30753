import pytest

from rmqtools.model.names import (
    HEARTBEAT_SYNCER_TOPIC,
    is_system_topic,
    namespace_of,
    with_namespace,
    without_namespace,
    without_this_namespace,
)


def test_another_namespace_stays():
    assert without_this_namespace("OTHER%T", "INST") == "OTHER%T"
    assert namespace_of("OTHER%T") == "OTHER"


@pytest.mark.parametrize("name", ["TBW102", "rmq_sys_wheel_timer", "RMQ_SYS_TRANS_HALF_TOPIC"])
def test_system_topics_are_in_no_namespace(name):
    assert is_system_topic(name)
    assert with_namespace(name, "INST") == name
    assert namespace_of(name) == ""


def test_a_percent_sign_in_front_is_no_namespace():
    assert without_namespace("%T") == "%T"
    assert namespace_of("%T") == ""


def test_the_topic_of_proxies_is_in_no_namespace():
    assert with_namespace(HEARTBEAT_SYNCER_TOPIC, "INST") == HEARTBEAT_SYNCER_TOPIC
