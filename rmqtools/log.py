"""Structured log events over standard-library loggers; changes no global configuration.

An event names a state change in past tense and has its values as keys::

    log = get_logger(__name__)
    log.info("broker_isolated", broker="broker-a", latency=1.83)

Records go to the handlers that the application has set up for the logger's name. The message is
the event with ``key=value`` pairs behind it, and the values are also attributes of the record
(``extra``), so a JSON formatter finds them. The package never calls ``structlog.configure``.

:func:`configure` is for scripts that have no logging of their own. :func:`event_values` joins the events
with the application's structlog; ``docs/logging.md`` has the recipe.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import structlog

_PACKAGES: Final = ("rmqtools", "spark_connector")
_add_extra: Final = structlog.stdlib.ExtraAdder()


def _render(logger: Any, method: str, event: MutableMapping[str, Any]) -> tuple[tuple[str], dict[str, Any]]:
    """Give the standard library one finished line and the values as ``extra``."""
    values = {key: value for key, value in event.items() if key not in ("event", "exc_info")}
    text = " ".join([event["event"], *(f"{key}={value!r}" for key, value in values.items())])
    keywords: dict[str, Any] = {"extra": values}
    if "exc_info" in event:
        keywords["exc_info"] = event["exc_info"]
    return (text,), keywords


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return the structured logger that writes to the stdlib logger ``name``."""
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[structlog.stdlib.filter_by_level, _render],
        wrapper_class=structlog.stdlib.BoundLogger,
        context_class=dict,
        cache_logger_on_first_use=False,
    )
    return logger


def event_values(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor for ``foreign_pre_chain`` of structlog's ``ProcessorFormatter``.

    Gives the records of the package the shape of the application's own events: the event's name, and its
    values as keys. Other records pass unchanged.
    """
    record = event.get("_record")
    if record is None or record.name.partition(".")[0] not in _PACKAGES:
        return event
    event["event"] = str(record.msg).partition(" ")[0]
    return _add_extra(logger, method, event)


def configure(level: str | int = "INFO", *, json: bool = False, stream: TextIO | None = None) -> None:
    """Show the events of the package: for scripts that have no logging of their own.

    Sets up the loggers ``rmqtools`` and ``spark_connector`` and no others; their records no longer reach the
    handlers of the root logger. Repeated calls replace the earlier settings.

    Args:
        level: the lowest level shown.
        json: a JSON object a line instead of text for people.
        stream: where to; None: standard error.

    Raises:
        ValueError: an unknown level.
    """
    target = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(target)
    handler.setFormatter(_formatter(json=json, colors=target.isatty()))
    for package in _PACKAGES:
        logger = logging.getLogger(package)
        logger.setLevel(level)
        logger.handlers[:] = [handler]
        logger.propagate = False


def _formatter(*, json: bool, colors: bool) -> structlog.stdlib.ProcessorFormatter:
    shown: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if json:
        shown += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=repr)]
    else:
        shown += [structlog.dev.ConsoleRenderer(colors=colors)]
    before: list[Any] = [
        event_values,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    return structlog.stdlib.ProcessorFormatter(processors=shown, foreign_pre_chain=before)
