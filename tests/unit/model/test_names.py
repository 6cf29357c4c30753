import pytest

from rmqtools.model.names import (
    HEARTBEAT_SYNCER_TOPIC,
    is_system_topic,
    namespace_of,
    retry_topic,
    with_namespace,
    without_namespace,
    without_this_namespace,
)

NAMES = ["T", "%RETRY%g", "%DLQ%g", "a_b-c", "TBW102", "rmq_sys_TRACE_DATA_x", "CID_RMQ_SYS_x"]


@pytest.mark.parametrize("name", NAMES)
def test_a_namespace_comes_off_as_it_went_on(name):
    assert without_this_namespace(with_namespace(name, "INST"), "INST") == name
    assert without_namespace(with_namespace(name, "INST")) == name


@pytest.mark.parametrize("name", NAMES)
def test_wrapping_twice_is_wrapping_once(name):
    assert with_namespace(with_namespace(name, "INST"), "INST") == with_namespace(name, "INST")


def test_prefixes_stay_in_front_of_the_namespace():
    assert with_namespace(retry_topic("g"), "INST") == "%RETRY%INST%g"


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
