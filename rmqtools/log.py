"""Structured log events over standard-library loggers; changes no global configuration.

An event names a state change in past tense and has its values as keys::

    log = get_logger(__name__)
    log.warning("heartbeat_failed", broker="broker-a", reason="no answer")

Records go to the handlers that the application has set up for the logger's name. The message is
the event with ``key=value`` pairs behind it, and the values are also attributes of the record
(``extra``), so a JSON formatter finds them. The package never calls ``structlog.configure``.

:func:`configure` is for scripts that have no logging of their own. :func:`event_values` joins the events
with the application's structlog; ``docs/logging.md`` has the recipe.

The first enabled log event imports structlog: it imports rich, which takes 0.07 s in every
process that Spark starts.
"""

import logging
import sys
from collections.abc import MutableMapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TextIO

from rmqtools.visible_text import visible, visible_lines

if TYPE_CHECKING:
    import structlog

_PACKAGES: Final = ("rmqtools", "spark_connector")


class EventLogger:
    """Writes the events of a module to its stdlib logger."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)
        self._events: structlog.stdlib.BoundLogger | None = None

    def debug(self, event: str, **values: Any) -> None:
        """Write an event that only developers of the package need."""
        self._log(logging.DEBUG, event, values)

    def info(self, event: str, **values: Any) -> None:
        """Write an event of normal operation."""
        self._log(logging.INFO, event, values)

    def warning(self, event: str, **values: Any) -> None:
        """Write an event that the package coped with."""
        self._log(logging.WARNING, event, values)

    def error(self, event: str, **values: Any) -> None:
        """Write an event that somebody must look at."""
        self._log(logging.ERROR, event, values)

    def exception(self, event: str, **values: Any) -> None:
        """Write an error with the exception that is being handled."""
        self._log(logging.ERROR, event, {"exc_info": True, **values})

    def _log(self, level: int, event: str, values: dict[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            if self._events is None:
                self._events = _bound(self._logger)
            self._events.log(level, event, **values)


def _render(logger: Any, method: str, event: MutableMapping[str, Any]) -> tuple[tuple[str], dict[str, Any]]:
    """Give the standard library one finished line and the values as ``extra``."""
    values = {key: value for key, value in event.items() if key not in ("event", "exc_info")}
    text = " ".join([event["event"], *(f"{key}={value!r}" for key, value in values.items())])
    keywords: dict[str, Any] = {"extra": values}
    if "exc_info" in event:
        keywords["exc_info"] = event["exc_info"]
    return (text,), keywords


def get_logger(name: str) -> EventLogger:
    """Return the structured logger that writes to the stdlib logger ``name``."""
    return EventLogger(name)


def _bound(logger: logging.Logger) -> "structlog.stdlib.BoundLogger":
    library = import_module("structlog")
    bound: structlog.stdlib.BoundLogger = library.wrap_logger(
        logger,
        processors=[_render],
        wrapper_class=library.stdlib.BoundLogger,
        context_class=dict,
        cache_logger_on_first_use=False,
    )
    return bound


def event_values(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Return a processor for ``foreign_pre_chain`` of structlog's ``ProcessorFormatter``.

    Gives the records of the package the shape of the application's own events: the event's name, and its
    values as keys. Other records pass unchanged.
    """
    record = event.get("_record")
    if record is None or record.name.partition(".")[0] not in _PACKAGES:
        return event
    event["event"] = str(record.msg).partition(" ")[0]
    shaped: MutableMapping[str, Any] = _extra_adder()(logger, method, event)
    return shaped


@cache
def _extra_adder() -> "structlog.stdlib.ExtraAdder":
    adder: structlog.stdlib.ExtraAdder = import_module("structlog").stdlib.ExtraAdder()
    return adder


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
    is_terminal = target is not None and target.isatty()  # a process may have no standard error
    handler.setFormatter(_formatter(json=json, colors=is_terminal))
    for package in _PACKAGES:
        logger = logging.getLogger(package)
        logger.setLevel(level)
        logger.handlers[:] = [handler]
        logger.propagate = False


def _make_visible(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape what acts on a terminal in values of others: names, remarks, tracebacks."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = visible_lines(value) if key == "exception" else visible(value)
    return event


def _formatter(*, json: bool, colors: bool) -> logging.Formatter:
    structlog = import_module("structlog")
    shown: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if json:
        shown += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=repr)]
    else:
        shown += [
            structlog.processors.format_exc_info,
            _make_visible,
            structlog.dev.ConsoleRenderer(colors=colors),
        ]
    before: list[Any] = [
        event_values,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    formatter: logging.Formatter = structlog.stdlib.ProcessorFormatter(
        processors=shown, foreign_pre_chain=before
    )
    return formatter
