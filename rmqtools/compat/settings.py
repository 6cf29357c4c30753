"""The settings that producers and consumers share: set one by one until the start."""

from typing import Any

from rmqtools.compat.exceptions import RocketMQException
from rmqtools.compat.message import Text, to_text
from rmqtools.name_server_list import fetch_name_servers


class Configurable:
    """A client before its start: the setters that producers and consumers have in common."""

    _error: type[RocketMQException] = RocketMQException
    _is_new = True  # not started yet

    def __init__(self, group_id: Text) -> None:
        self._settings: dict[str, Any] = {"group": to_text("group", group_id)}
        self._domain: str | None = None

    def set_instance_name(self, name: Text) -> None:
        """Set the second half of the client id; each client of a group needs one of its own."""
        self._set("instance_name", to_text("instance name", name))

    def set_name_server_address(self, addr: Text) -> None:
        """Set the name servers, ``host:port;host:port``. Default: the variable NAMESRV_ADDR."""
        self._set("name_server", to_text("name server address", addr))
        self._domain = None

    def set_name_server_domain(self, domain: Text) -> None:
        """Set the HTTP server that is asked for the name servers once, at the start.

        Args:
            domain: ``host``, ``host:port`` or a whole URL; default port 8080, path ``/rocketmq/nsaddr``.
        """
        self._refuse_late("the name server domain")
        self._domain = to_text("name server domain", domain)

    def set_session_credentials(self, access_key: Text, access_secret: Text, channel: Text = "") -> None:
        """Set the user that requests are signed for; ``channel`` is not sent: brokers ignore it."""
        self._set("access_key", to_text("access_key", access_key))
        self._set("secret_key", to_text("access_secret", access_secret))

    def _set_group(self, group: Text) -> None:
        self._set("group", to_text("group", group))

    def _set(self, name: str, value: object) -> None:
        self._refuse_late(name)
        self._settings[name] = value

    def _refuse_late(self, what: str) -> None:
        if not self._is_new:
            raise self._error(f"{what} is set after the start: set it before start()")

    def _known_settings(self) -> dict[str, Any]:
        """Return what has been set, with the name servers of the domain.

        Raises:
            ConfigError: the domain does not tell them.
        """
        if self._domain is None:
            return dict(self._settings)
        return self._settings | {"name_server": fetch_name_servers(self._domain)}


def seconds(name: str, milliseconds: float) -> float:
    """Milliseconds of the native API in seconds.

    Raises:
        ValueError: not a positive number.
    """
    if not isinstance(milliseconds, int | float) or milliseconds <= 0:
        raise ValueError(f"{name}={milliseconds!r}: want milliseconds, more than 0")
    return milliseconds / 1000
