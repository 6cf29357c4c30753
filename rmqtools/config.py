"""Settings, one frozen dataclass per role. Plain values only; defaults equal the Java client's and cite it.

Strategies, selectors and listeners are constructor arguments of the clients, never settings.
"""

import os
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Self

from rmqtools.errors import ConfigError

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def _name_servers_of_environment() -> str:
    """NAMESRV_ADDR, as the Java client reads it (MixAll.NAMESRV_ADDR_ENV)."""
    return os.environ.get("NAMESRV_ADDR", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """How any client reaches a cluster, and how it names itself.

    ``name_server`` is ``host:port``, several separated by ``;``; empty takes the environment variable
    NAMESRV_ADDR. Times are seconds. ``broker_address_map`` replaces addresses of the route before
    connecting (Docker, NAT): ``{"10.0.0.5:10911": "127.0.0.1:20911"}``.
    """

    name_server: str = field(default_factory=_name_servers_of_environment)
    client_ip: str | None = None  # None: the address this machine reaches the name server from
    instance_name: str | None = (
        None  # None: pid#nanos, unique in containers too; upstream changeInstanceNameToPID
    )
    namespace: str | None = None
    broker_address_map: Mapping[str, str] = field(default_factory=dict)
    connect_timeout: float = 3.0  # upstream NettyClientConfig.connectTimeoutMillis
    request_timeout: float = 3.0  # upstream mqClientApiTimeout
    poll_name_server_interval: float = 30.0  # upstream pollNameServerInterval
    heartbeat_broker_interval: float = 30.0  # upstream heartbeatBrokerInterval
    max_frame_bytes: int = 16 * 1024 * 1024  # upstream com.rocketmq.remoting.frameMaxLength
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    security_token: str | None = field(default=None, repr=False)
    tls_enable: bool = False  # upstream tls.enable
    tls_ca_file: str | None = None  # None: the machine's own certificates
    tls_cert_file: str | None = None
    tls_key_file: str | None = None
    tls_check_hostname: bool = True  # upstream never checks; switch off for certificates without addresses

    def __post_init__(self) -> None:
        if not self.name_servers:
            raise ConfigError(
                "no name server: set name_server='host:port' or the environment variable NAMESRV_ADDR"
            )
        for address in (*self.name_servers, *self.broker_address_map.values()):
            parse_address(address)
        require_positive(self, "connect_timeout", "request_timeout", "max_frame_bytes")
        require_positive(self, "poll_name_server_interval", "heartbeat_broker_interval")
        if self.instance_name is not None and "@" in self.instance_name:
            raise ConfigError(
                f"instance_name={self.instance_name!r}: '@' separates it from the address: leave it out"
            )
        if (self.access_key is None) != (self.secret_key is None):
            raise ConfigError("access_key and secret_key go together: set both or neither")

    @property
    def name_servers(self) -> tuple[str, ...]:
        """The name servers' addresses in the order given."""
        parts = self.name_server.replace(",", ";").split(";")
        return tuple(part.strip().removeprefix("http://") for part in parts if part.strip())

    @classmethod
    def from_mapping(cls, settings: Mapping[str, str]) -> Self:
        """Make a config from text: option files, environment, Spark options.

        Names are matched without regard to case, ``_``, ``-`` and ``.``.

        Raises:
            ConfigError: an unknown name (with the nearest known one), or a value of the wrong type.
        """
        known = {_plain(f.name): f.name for f in fields(cls)}
        types_by_name = typing.get_type_hints(cls)
        values: dict[str, Any] = {}
        for name, text in settings.items():
            if (found := known.get(_plain(name))) is None:
                raise ConfigError(unknown_name("setting", name, [f.name for f in fields(cls)]))
            values[found] = _parse(name, text, types_by_name[found])
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """How messages are sent."""

    group: str = "DEFAULT_PRODUCER"  # upstream MixAll.DEFAULT_PRODUCER_GROUP
    send_timeout: float = 3.0  # seconds, all attempts together; upstream sendMsgTimeout
    retry_times_when_send_failed: int = 2  # attempts after the first; upstream retryTimesWhenSendFailed
    retry_another_broker_when_not_store_ok: bool = False  # upstream retryAnotherBrokerWhenNotStoreOK
    send_latency_fault_enable: bool = False  # upstream sendLatencyFaultEnable
    start_detector_enable: bool = (
        False  # with the former: look at failed brokers; upstream startDetectorEnable
    )
    max_message_bytes: int = 4 * 1024 * 1024  # upstream maxMessageSize
    compress_over_bytes: int = 4096  # upstream compressMsgBodyOverHowmuch
    compression: str = "zlib"  # zlib, lz4, zstd or none; upstream compressType
    max_batch_bytes: int = 256 * 1024  # one wire batch of send_many
    max_in_flight: int = 16  # requests of send_many, or of one line of parcels, on the wire at once
    enable_trace: bool = False  # tell the trace topic of every message stored; upstream enableTrace
    trace_topic: str = "RMQ_SYS_TRACE_TOPIC"  # upstream traceTopic
    check_thread_pool_max_size: int = 1  # transaction checks at once; upstream checkThreadPoolMaxSize
    check_request_hold_max: int = 2000  # the same, waiting ones too; upstream checkRequestHoldMax

    def __post_init__(self) -> None:
        super(ProducerConfig, self).__post_init__()
        require_positive(self, "send_timeout", "max_message_bytes", "max_batch_bytes", "max_in_flight")
        require_positive(self, "check_thread_pool_max_size", "check_request_hold_max")
        if self.retry_times_when_send_failed < 0:
            raise ConfigError(
                f"retry_times_when_send_failed={self.retry_times_when_send_failed}: want 0 or more"
            )
        if self.compression not in ("zlib", "lz4", "zstd", "none"):
            raise ConfigError(f"compression={self.compression!r}: want zlib, lz4, zstd or none")


def parse_address(address: str) -> tuple[str, int]:
    """Split ``host:port`` (IPv6 in brackets).

    Raises:
        ConfigError: not of that form, or a port outside 1..65535.
    """
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ConfigError(f"address {address!r}: want host:port, e.g. 127.0.0.1:9876")
    return host.removeprefix("[").removesuffix("]"), int(port)


def unknown_name(kind: str, name: str, known: Sequence[str]) -> str:
    """The text of an error about a name nobody knows, with the nearest known one."""
    near = get_close_matches(name.lower(), [k.lower() for k in known], n=1)
    original = next((k for k in known if near and k.lower() == near[0]), None)
    hint = f"did you mean {original!r}?" if original else f"known: {', '.join(sorted(known))}"
    return f"unknown {kind} {name!r} ({hint})"


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(".", "")


def require_positive(config: object, *names: str) -> None:
    """Refuse settings that are 0 or less."""
    for name in names:
        if getattr(config, name) <= 0:
            raise ConfigError(f"{name}={getattr(config, name)}: want more than 0")


def _parse_bool(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(text)


def _parse_pairs(text: str) -> dict[str, str]:
    """``a=b,c=d`` as a mapping."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(key.strip() and value.strip() for key, _, value in pairs):
        raise ValueError(text)
    return {key.strip(): value.strip() for key, _, value in pairs}


_PARSERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    str: (str, "text"),
    int: (int, "a whole number"),
    float: (float, "seconds, e.g. 2.5"),
    bool: (_parse_bool, "true or false"),
    Mapping[str, str]: (_parse_pairs, "from=to pairs separated by commas"),
}


def _parse(name: str, text: str, kind: Any) -> Any:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kind = next(k for k in typing.get_args(kind) if k is not type(None))
    if isinstance(kind, type) and issubclass(kind, StrEnum):  # the config's own check names the members
        kind = str
    parser, wanted = _PARSERS[kind]
    try:
        return parser(text)
    except ValueError as error:
        raise ConfigError(f"setting {name!r}: {text!r} is not {wanted}") from error
