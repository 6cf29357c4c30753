import pytest

from rmqtools.model.codes import MQ_VERSION, MQ_VERSION_V4_9_4
from rmqtools.policy.endpoint.versions import format_version, parse_version


@pytest.mark.parametrize(
    ("text", "number"),
    [("4.9.4", MQ_VERSION_V4_9_4), ("4.9.7", 407), ("5.0.0", 413), ("5.3.2", 477), ("5.5.0", MQ_VERSION)],
)
def test_versions_and_their_numbers(text, number):
    assert parse_version(text) == number
    assert format_version(number) == text


def test_a_snapshot_is_called_by_the_release_before_it():
    assert format_version(parse_version("5.5.0") - 1) == "5.4.9"


def test_no_version_is_older_than_all():
    assert parse_version("") == 0
    assert format_version(0) == "older than 4.0.0"
