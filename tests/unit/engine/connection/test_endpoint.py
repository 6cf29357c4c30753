import pickle

import pytest

from rmqtools.engine.connection.endpoint import Endpoint
from rmqtools.errors import BrokerError, UnsupportedError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.policy.endpoint.features import PINS
from tests.support.behind_proxy import PROXY_FIELDS

ADDR = "10.0.0.1:8080"


def proxied() -> Endpoint:
    endpoint = Endpoint()
    endpoint.note_route_answer(ADDR, PROXY_FIELDS)
    return endpoint


@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param(
            RequestCode.GET_KV_CONFIG,
            f"the pins of a group: the request GET_KV_CONFIG (101) is not served by {ADDR} (a proxy, or an "
            f"older server); {PINS.instead}",
            id="with-its-feature",
        ),
        pytest.param(RequestCode.RECALL_MESSAGE, "upgrade the brokers", id="older-brokers"),
        pytest.param(
            RequestCode.CLEAN_UNUSED_TOPIC,
            f"{ADDR} does not serve the request CLEAN_UNUSED_TOPIC (316): request type not supported",
            id="of-no-feature",
        ),
    ],
)
def test_a_request_that_is_not_served_is_named_with_the_remedy(code, text):
    assert text in str(Endpoint().not_served(code, "request type not supported", ADDR))


def test_the_error_is_a_broker_error_and_survives_pickling():
    error = proxied().not_served(RequestCode.GET_KV_CONFIG, "no", ADDR)

    copy = pickle.loads(pickle.dumps(error))

    assert isinstance(copy, UnsupportedError)
    assert isinstance(copy, BrokerError)
    assert (str(copy), copy.code) == (str(error), ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    assert (copy.feature, copy.addr, copy.remark) == (PINS.name, ADDR, "no")
