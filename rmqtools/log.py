"""Structured log events over standard-library loggers; changes no global configuration.

An event names a state change in past tense and has its values as keys::

    log = get_logger(__name__)
    log.info("broker_isolated", broker="broker-a", latency=1.83)

Records go to the handlers that the application has set up for the logger's name. The message is
the event with ``key=value`` pairs behind it, and the values are also attributes of the record
(``extra``), so a JSON formatter finds them. The package never calls ``structlog.configure``.
"""

import logging
from collections.abc import MutableMapping
from typing import Any

import structlog


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
