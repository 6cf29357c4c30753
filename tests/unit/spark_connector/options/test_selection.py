"""Which topics a pattern means."""

import pytest

from spark_connector.options.selection import TopicPattern

TOPICS = [
    "Orders",
    "OrdersOld",
    "Returns",
    "%RETRY%g",
    "%DLQ%g",
    "%DLQ%orders",
    "%LMQ%x",
    "TBW102",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "rmq_sys_wheel_timer",
    "broker-a",
    "DefaultCluster",
    "ns%Orders",
    "%RETRY%ns%g",
    "other%Orders",
    "Staged",
    "RMQTOOLS_DECISIONS-Staged",
    "RMQTOOLS_FENCE",
]
RESERVED = {"broker-a", "DefaultCluster"}


@pytest.mark.parametrize(
    ("pattern", "means"),
    [
        pytest.param("Orders", ["Orders"], id="whole-names-only"),
        pytest.param("Orders.*", ["Orders", "OrdersOld"], id="several"),
        pytest.param("Orders|Returns", ["Orders", "Returns"], id="alternatives"),
        pytest.param(
            ".*", ["Orders", "OrdersOld", "Returns", "ns%Orders", "other%Orders"], id="nothing-of-the-system"
        ),
        pytest.param("%DLQ%.*", ["%DLQ%g", "%DLQ%orders"], id="dead-letters-by-prefix"),
        pytest.param("%RETRY%.*", ["%RETRY%g", "%RETRY%ns%g"], id="retries-by-prefix"),
        pytest.param(".DLQ.*", [], id="prefix-must-be-literal"),
        pytest.param("broker-a|TBW102|RMQ_SYS.*|rmq_sys.*|%LMQ%.*", [], id="system-topics-never"),
        pytest.param("orders", [], id="case-counts"),
    ],
)
def test_a_pattern_means_whole_names_and_no_system_topics(pattern, means):
    assert TopicPattern(pattern).select(TOPICS, reserved=RESERVED) == means
