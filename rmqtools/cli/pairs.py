"""Options of the form ``NAME=VALUE``."""

from collections.abc import Sequence

from rmqtools.errors import ConfigError


def pairs(texts: Sequence[str] | None) -> dict[str, str]:
    """Return ``NAME=VALUE`` options as a mapping.

    Raises:
        ConfigError: an option has no ``=``.
    """
    return dict(_pair(text) for text in texts or ())


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name):
        raise ConfigError(f"{text!r}: want NAME=VALUE, e.g. namespace=staging")
    return name, value
