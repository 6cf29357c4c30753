"""Names of Kafka's source and of Spark in errors, and on the page for those who come from there."""

import pytest

from rmqtools.errors import ConfigError
from spark_connector.options.columns import COLUMNS
from spark_connector.options.kafka_names import (
    KAFKA_COLUMNS,
    KAFKA_OPTIONS,
    SPARK_OPTIONS,
    describe_kafka_names,
)
from spark_connector.options.option_table import OPTIONS, parse_options
from tests.docs.blocks import DOCS


def refusal_of(name: str) -> str:
    with pytest.raises(ConfigError) as refused:
        parse_options({name.lower(): "x"})
    return str(refused.value)


REASONS = {**{name: f"Kafka's, here: {ours}" for name, ours in KAFKA_OPTIONS.items()}, **SPARK_OPTIONS}


@pytest.mark.parametrize(("name", "reason"), REASONS.items(), ids=REASONS)
def test_an_option_of_kafka_or_spark_is_refused_with_what_to_write_here_or_the_reason(name, reason):
    assert refusal_of(name) == f"unknown option {name.lower()!r} for format rocketmq ({reason})"


def test_any_other_setting_of_kafkas_client_is_called_so():
    assert "a setting of Kafka's client; those of this client are rocketmq.*" in refusal_of(
        "kafka.fetch.min.bytes"
    )


def test_every_counterpart_is_an_option_or_column_that_exists():
    known = {option.name for option in OPTIONS if option.prefix is None}
    prefixes = tuple(option.prefix for option in OPTIONS if option.prefix is not None)

    for ours in KAFKA_OPTIONS.values():
        first = ours.replace("=", " ").replace(",", " ").split()[0].removesuffix(":")
        assert first in known or first.startswith(prefixes) or first == "nothing", ours
    assert {*KAFKA_COLUMNS.values()} <= {*COLUMNS}
    assert not {name.lower() for name in (*KAFKA_OPTIONS, *SPARK_OPTIONS)} & {name.lower() for name in known}


def test_the_page_for_those_who_come_from_kafka_has_the_tables():
    assert describe_kafka_names() in (DOCS / "kafka.md").read_text()
