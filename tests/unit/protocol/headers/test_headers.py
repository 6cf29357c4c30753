import json
from pathlib import Path

from tests.support.headers import HEADERS

FIELDS = Path(__file__).parents[3] / "vectors" / "header_fields.json"
# Java sends these requests without a header, or has the class as a root only.
WITHOUT_JAVA_CLASS = {
    "GetAllTopicListRequestHeader",
    "GetBrokerClusterInfoRequestHeader",
    "GetBrokerConfigRequestHeader",
    "GetBrokerRuntimeInfoRequestHeader",
    "Header",
    "QueryAssignmentRequestHeader",
    "RequestHeader",
    "RpcRequestHeader",
    "SetMessageRequestModeRequestHeader",
    "TopicRequestHeader",
    "UpdateBrokerConfigRequestHeader",
    "UpdateSubscriptionGroupRequestHeader",
}
NO_FIELDS = {"GetAllProducerInfoRequestHeader"}  # Java's class has none: nothing to compare
# Of its four one-field answers Java makes four classes.
MANY_IN_JAVA = {"OffsetResponseHeader"}


def test_every_header_that_java_has_is_compared_with_javas():
    compared = {case["header"] for case in json.loads(FIELDS.read_text())}
    ours = HEADERS.keys()

    assert ours - compared == WITHOUT_JAVA_CLASS | MANY_IN_JAVA | NO_FIELDS
