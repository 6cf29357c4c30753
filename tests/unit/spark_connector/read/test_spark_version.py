"""Options and functions that an old PySpark cannot serve are refused by name."""

import pytest

from rmqtools.errors import ConfigError
from spark_connector.options.option_table import parse_options
from spark_connector.progress.ending import stop_at_end
from spark_connector.progress.metrics import lag
from spark_connector.read import spark_version
from spark_connector.read.spark_version import (
    LIMIT_OPTIONS,
    RefusedStreamReader,
    has_admission_control,
    refuse_limits,
)


@pytest.mark.parametrize("name", LIMIT_OPTIONS)
def test_limits_of_a_micro_batch_are_refused_by_name_and_version(name):
    given = parse_options({"nameServer": "h:1", "topic": "T", name: "5"})

    with pytest.raises(ConfigError, match=f"option '{name}' needs PySpark 4.2 or newer, this is 4"):
        refuse_limits(given)
    refuse_limits(parse_options({"nameServer": "h:1", "topic": "T"}))


def test_this_pyspark_has_everything():
    assert has_admission_control()


@pytest.mark.parametrize("function", [lag, stop_at_end])
def test_functions_that_need_reported_offsets_are_refused(monkeypatch, function):
    monkeypatch.setattr(spark_version, "has_admission_control", lambda: False)

    with pytest.raises(ConfigError, match=f"spark_connector.{function.__name__} needs PySpark 4.2 or newer"):
        function(None)


def test_a_refused_reader_raises_its_error_at_every_call():
    reader = RefusedStreamReader(ConfigError("option 'x'"))

    calls = (
        reader.initialOffset,
        reader.latestOffset,
        lambda: reader.latestOffset({}, None),
        lambda: reader.partitions({}, {}),
        lambda: reader.read(None),
    )
    for call in calls:
        with pytest.raises(ConfigError, match="option 'x'"):
            call()
