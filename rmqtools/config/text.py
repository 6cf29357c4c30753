"""Settings as text: reads and checks addresses, names and values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rmqtools.config.checked import Kind
from rmqtools.errors import ConfigError

_PORT = re.compile(r"[0-9]{1,9}")
_NOT_IN_HOSTS = re.compile(r"[\s\x00-\x20/\\@,;\uff1a\uff0c\uff1b\u3001\u3002]")


def parse_address(address: str) -> tuple[str, int]:
    """Split ``host:port`` (IPv6 in brackets).

    Raises:
        ConfigError: the text has another form, or the port is not in 1..65535.
    """
    host, colon, port = address.rpartition(":")
    is_port = _PORT.fullmatch(port) and 0 < int(port) < 65536
    if not (colon and host and is_port) or _NOT_IN_HOSTS.search(host):
        raise ConfigError(f"address {address!r}: want host:port, e.g. 127.0.0.1:9876")
    return host.removeprefix("[").removesuffix("]"), int(port)


def parse_addresses(text: str) -> tuple[str, ...]:
    """Split ``host:port;host:port`` and check each; ``,`` separates too, and ``http://`` may stand before.

    Raises:
        ConfigError: a part is empty, or no address.
    """
    parts = [part.strip() for part in text.replace(",", ";").strip().removesuffix(";").split(";")]
    if parts == [""]:
        return ()
    if "" in parts:
        raise ConfigError(f"name_server={text!r}: a part is empty: want host:port;host:port")
    addresses = tuple(part.removeprefix("http://") for part in parts)
    for address in addresses:
        parse_address(address)
    return addresses


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Check a parameter that has one of a few values.

    Raises:
        ConfigError: it has another one.
    """
    if value not in choices:
        raise ConfigError(f"{name}={value!r}: want one of {', '.join(map(repr, choices))}")


def check_address_rules(rules: Mapping[str, str]) -> None:
    """Refuse rules of ``broker_address_map`` that can match nothing, or lead to no address.

    Raises:
        ConfigError: a key is not ``host:port``, ``prefix*`` or ``*:port``; a target is not ``host:port`` or
            ``host:*``.
    """
    for rule, target in rules.items():
        try:
            if not (isinstance(rule, str) and isinstance(target, str)):
                raise ConfigError("want two texts, e.g. '10.0.0.5:10911' and '127.0.0.1:20911'")
            if "*" in rule.removeprefix("*:").removesuffix("*"):
                raise ConfigError("'*' stands at the end, or as host before ':port'")
            if not rule.endswith("*"):
                parse_address(rule)
            parse_address(f"{target[:-1]}1" if target.endswith(":*") else target)
        except ConfigError as error:
            raise ConfigError(f"broker_address_map: {rule!r} to {target!r}: {error}") from error


def check_timeout(timeout: object) -> None:
    """Check the timeout of one call; None: there is none.

    Raises:
        ConfigError: it is no number.
    """
    if timeout is not None and not isinstance(timeout, int | float):
        raise ConfigError(f"timeout={timeout!r}: want seconds as a number, e.g. 2.5")


def is_within(value: object, low: float, high: float) -> bool:
    """Return whether a value is a number from ``low`` to ``high``."""
    return isinstance(value, int | float) and low <= value <= high


def match_name(name: str) -> str:
    """Return a setting's name in lower case and without separators, for comparing."""
    return name.lower().replace("_", "").replace("-", "").replace(".", "")


def require_positive(config: object, *names: str) -> None:
    """Refuse settings that are 0 or less, and those that are no number (NaN)."""
    for name in names:
        if not getattr(config, name) > 0:
            raise ConfigError(f"{name}={getattr(config, name)}: want more than 0")


def parse_value(name: str, text: str, kind: Kind) -> Any:
    """Return the value that a text means.

    Raises:
        ConfigError: the text is not of that kind.
    """
    try:
        return kind.parse(text)
    except ValueError as error:
        raise ConfigError(f"setting {name!r}: {text!r} is not {kind.written}") from error
