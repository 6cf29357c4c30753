"""Every way to give wrong options, the rows of ``option_errors.md``: refused by option, value and remedy."""

from pathlib import Path

import pytest

from rmqtools.clock import SYSTEM_CLOCK
from spark_connector.datasource import RocketMQDataSource
from spark_connector.read.schema import READ_SCHEMA
from tests.support.tables import lacking, quoted, table_rows
from tests.unit.spark_connector.options import test_write_settings

WORDS = {
    "TOMORROW": str(SYSTEM_CLOCK.now_ms() + 24 * 3600 * 1000),
    "CATALOG": "CREATE TEMPORARY VIEW name USING rocketmq OPTIONS (nameServer 'host:port', topic 'Orders')",
    "HERE": test_write_settings.__name__,
}
SERVER, TOPIC = {"nameServer": "h:1"}, {"topic": "T"}
BESIDE = {
    "nothing": {},
    "server": SERVER,
    "topic": TOPIC,
    "both": SERVER | TOPIC,
    "readers": SERVER | TOPIC | {"readers": "2"},
}
WHEN = {  # what Spark does; the last three up to where brokers are asked
    "load": lambda source: source.schema(),
    "plan": lambda source: source.reader(source.schema()),
    "save": lambda source: source.writer(type(READ_SCHEMA)([READ_SCHEMA["body"]]), overwrite=False),
    "stream": lambda source: source.streamReader(source.schema()),
}


def cases():
    """When, the options and the parts of the error of each row, which has its name as its id."""
    for name, when, beside, options, says in table_rows(Path(__file__).with_name("option_errors.md")):
        given = dict(option.replace(r"\n", "\n").split("=", 1) for option in quoted(with_meanings(options)))
        yield pytest.param(WHEN[when], BESIDE[beside] | given, with_meanings(says), id=name)


def with_meanings(cell):
    """Return a cell with the meanings of ``WORDS``."""
    for word, meaning in WORDS.items():
        cell = cell.replace(word, meaning)
    return cell


@pytest.mark.parametrize(("when", "options", "says"), [*cases()])
def test_wrong_options_are_refused_by_name_value_and_remedy(when, options, says, monkeypatch):
    monkeypatch.setenv("RMQTOOLS_SPARK_PLUG_INS", f"{WORDS['HERE']},no_such")

    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the text is compared below
        when(RocketMQDataSource({name.lower(): text for name, text in options.items()}))

    text = str(refusal.value)
    assert lacking(text, says) == [], text
    assert "hunter2" not in text


def test_a_schema_that_is_not_ours_is_refused_at_the_first_plan():
    other = type(READ_SCHEMA)().add("text", "string")

    with pytest.raises(
        ValueError, match=r"column 'text', which format rocketmq does not read.*or drop \.schema"
    ):
        RocketMQDataSource({"nameserver": "h:1", "topic": "T"}).reader(other)
