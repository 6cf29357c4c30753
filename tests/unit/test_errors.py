"""Texts of refusals: with the remedy where one is known."""

import pytest

from rmqtools.errors import BrokerError
from rmqtools.model.codes import ResponseCode

NO_PERMISSION, SYSTEM_ERROR = ResponseCode.NO_PERMISSION, ResponseCode.SYSTEM_ERROR


@pytest.mark.parametrize("code", [NO_PERMISSION, SYSTEM_ERROR], ids=["broker", "proxy"])
@pytest.mark.parametrize(
    ("remark", "words"),
    [
        ("username cannot be null.", "set access_key and secret_key"),
        ("check signature failed.", "the secret_key does not belong to this access_key"),
        ("User:bob has no permission to access Topic:T", "have an administrator allow it"),
    ],
)
def test_a_refusal_of_access_control_has_a_remedy_also_with_the_code_of_a_proxy(code, remark, words):
    assert words in str(BrokerError(code, remark, "10.0.0.1:8080"))


def test_an_internal_error_that_only_sounds_alike_has_none():
    assert BrokerError(SYSTEM_ERROR, "the file is not found", "10.0.0.1:10911").hint == ""


def test_a_queue_of_a_static_topic_that_has_moved_is_explained():
    error = BrokerError(ResponseCode.NOT_LEADER_FOR_QUEUE, "T-1 does not exit", "10.0.0.1:8080")

    assert "has moved to another broker, and a proxy does not find it" in str(error)
