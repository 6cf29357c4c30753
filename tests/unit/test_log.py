import logging

import pytest

from rmqtools.log import get_logger


def test_an_event_is_one_line_with_its_values_and_they_are_attributes_of_the_record(caplog):
    with caplog.at_level(logging.INFO, logger="rmqtools.x"):
        get_logger("rmqtools.x").info("broker_isolated", broker="broker-a", latency=1.5, share="100 %d")

    assert caplog.messages == ["broker_isolated broker='broker-a' latency=1.5 share='100 %d'"]
    assert caplog.records[0].broker == "broker-a"


def test_nothing_is_printed_where_logging_is_not_configured(capsys):
    get_logger("rmqtools.x").info("broker_isolated", broker="broker-a")

    assert capsys.readouterr() == ("", "")


def test_names_that_stdlib_reserves_are_refused():
    with pytest.raises(KeyError, match="name"):
        get_logger("rmqtools.x").warning("broker_isolated", name="broker-a")
