import io
import json
import logging
import subprocess
import sys

import pytest
import structlog

from rmqtools.log import configure, event_values, get_logger


@pytest.fixture
def loggers():
    """The loggers that ``configure`` sets up, as they were afterwards."""
    loggers = [logging.getLogger(name) for name in ("rmqtools", "spark_connector")]
    before = [(each.level, each.handlers[:], each.propagate) for each in loggers]
    yield loggers
    for logger, (level, handlers, propagate) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers[:], logger.propagate = handlers, propagate


def test_an_event_is_one_line_with_its_values_and_they_are_attributes_of_the_record(caplog):
    with caplog.at_level(logging.INFO, logger="rmqtools.x"):
        get_logger("rmqtools.x").info("broker_isolated", broker="broker-a", latency=1.5, share="100 %d")

    assert caplog.messages == ["broker_isolated broker='broker-a' latency=1.5 share='100 %d'"]
    assert caplog.records[0].broker == "broker-a"


def test_nothing_is_printed_where_logging_is_not_configured(capsys):
    get_logger("rmqtools.x").info("broker_isolated", broker="broker-a")

    assert capsys.readouterr() == ("", "")


@pytest.mark.process
def test_structlog_is_imported_by_the_first_event_that_somebody_wants():
    program = (
        "import sys; from rmqtools.log import get_logger; log = get_logger('rmqtools.x');"
        "log.info('not_wanted'); before = 'structlog' in sys.modules;"
        "log.warning('wanted'); print(before, 'structlog' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_an_exception_comes_with_its_traceback(caplog):
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        get_logger("rmqtools.x").exception("broker_isolated", broker="broker-a")

    assert caplog.records[0].levelname == "ERROR"
    assert "ZeroDivisionError" in caplog.text


def test_names_that_stdlib_reserves_are_refused():
    with pytest.raises(KeyError, match="name"):
        get_logger("rmqtools.x").warning("broker_isolated", name="broker-a")


def test_configure_shows_events_as_json_with_their_values(loggers):
    shown = io.StringIO()
    configure("DEBUG", json=True, stream=shown)

    get_logger("rmqtools.x").debug("broker_isolated", broker="broker-a", queue={1})

    row = json.loads(shown.getvalue())
    assert row.pop("timestamp").endswith("Z")
    assert row == {
        "event": "broker_isolated",
        "broker": "broker-a",
        "queue": "{1}",
        "level": "debug",
        "logger": "rmqtools.x",
    }


def test_configure_shows_exceptions_and_text_for_people_by_default_on_standard_error(loggers, capsys):
    configure()
    try:
        _ = 1 / 0
    except ZeroDivisionError as error:
        get_logger("rmqtools.x").warning("broker_isolated", broker="broker-a", exc_info=error)

    shown = capsys.readouterr().err
    assert "broker_isolated" in shown
    assert "broker=broker-a" in shown
    assert "ZeroDivisionError: division by zero" in shown


def test_configure_again_replaces_what_it_set_up_and_touches_no_other_logger(loggers):
    first, second, root = io.StringIO(), io.StringIO(), logging.getLogger()
    handlers = root.handlers[:]

    configure(stream=first)
    configure("ERROR", stream=second)
    get_logger("spark_connector.x").info("batch_read")
    get_logger("spark_connector.x").error("batch_failed")

    assert (first.getvalue(), second.getvalue().count("\n")) == ("", 1)
    assert root.handlers == handlers


def test_without_a_standard_error_events_go_nowhere(loggers, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)

    configure("INFO")
    get_logger("rmqtools.x").info("broker_isolated")

    assert loggers[0].level == logging.INFO


def test_configure_refuses_unknown_levels(loggers):
    with pytest.raises(ValueError, match="LOUD"):
        configure("LOUD")


def test_records_of_other_packages_pass_the_processor_unchanged():
    record = logging.LogRecord("urllib3", logging.INFO, "f", 1, "two words", None, None)
    event = {"event": "two words", "_record": record}

    assert event_values(None, "info", dict(event)) == event


def test_events_of_the_package_and_of_the_users_structlog_have_one_shape(loggers):
    shown = io.StringIO()
    shared = [structlog.stdlib.add_log_level]
    handler = logging.StreamHandler(shown)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(sort_keys=True),
            ],
            foreign_pre_chain=[event_values, *shared],
        )
    )
    own = structlog.wrap_logger(
        logging.getLogger("rmqtools.user"),
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    loggers[0].handlers[:], loggers[0].propagate = [handler], False

    own.warning("order_booked", order=7)
    get_logger("rmqtools.x").warning("broker_isolated", broker="broker-a")

    assert [json.loads(line) for line in shown.getvalue().splitlines()] == [
        {"event": "order_booked", "level": "warning", "order": 7},
        {"event": "broker_isolated", "level": "warning", "broker": "broker-a"},
    ]
