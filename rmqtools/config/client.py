"""Settings of every client: how it reaches a cluster, and how it names itself."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Self

from rmqtools.config.checked import checked, kinds_of, unknown_setting
from rmqtools.config.text import (
    check_address_rules,
    match_name,
    parse_addresses,
    parse_value,
    require_positive,
)
from rmqtools.errors import ConfigError
from rmqtools.model.block import MAX_DECOMPRESSED_BYTES
from rmqtools.model.record import record
from rmqtools.model.secret import Secret

_LIST_URL = re.compile(r"https?://[^\s/;,]+/[^\s;,]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SECRETS = ("secret_key", "security_token", "tls_key_password")
_TLS_SETTINGS = ("tls_ca_file", "tls_cert_file", "tls_key_file", "tls_key_password")


def _name_servers_of_environment() -> str:
    """NAMESRV_ADDR, as the Java client reads it (MixAll.NAMESRV_ADDR_ENV)."""
    return os.environ.get("NAMESRV_ADDR", "")


def check_config(owner: str, config: object, wanted: type[object]) -> None:
    """Refuse a config, or a producer to work on, of another class.

    Raises:
        ConfigError: names both classes.
    """
    if not isinstance(config, wanted):
        got, want = type(config).__name__, wanted.__name__
        if got == want:  # of the other face
            got, want = (f"{one.__module__}.{one.__name__}" for one in (type(config), wanted))
        raise ConfigError(f"{owner} got a {got}: want a {want}, as in {owner}({want}(...))")


@checked
@record
class ClientConfig:
    """Settings of every client: the cluster, and the client's name. Times are seconds, sizes are bytes."""

    name_server: str = field(
        default_factory=_name_servers_of_environment,
        metadata={"wanted": "text: host:port, several separated by ';'"},
    )
    """Name servers as ``host:port``, several separated by ``;``; or the HTTP address of such a list.

    A name with several addresses stands for all of them. A list, ``http://host/path``, is fetched again every
    two minutes. Default: the environment variable NAMESRV_ADDR, as in the Java client.
    """
    client_ip: str | None = None
    """This client's address in its client id (``ip@instance``), shown to brokers and to strategies.

    Default None: the address from which this machine reaches the name server; upstream clientIP. Set it where
    a machine has several addresses and a group is pinned to one of them. It is a name only: sockets are not
    bound to it, so several members on one machine can have different ones, e.g. for a trial.
    """
    instance_name: str | None = None
    """The second half of the client id; without ``@``.

    Default None: ``pid#nanoseconds``, unique among containers too; upstream changeInstanceNameToPID. With
    BROADCASTING: ``DEFAULT``, so that a restarted member finds its offset file. Set it only where client ids
    must stay equal over restarts; two clients of a group must never share one.
    """
    namespace: str | None = None
    """Prefix (``namespace%name``) of every topic and group of this client; upstream namespace.

    Default None: no prefix. Set it where several tenants share one cluster.
    """
    read_group: str | None = None
    """Consumer group that range reads name in their pulls; brokers check its permission and count its reads.

    Default None: TOOLS_CONSUMER, which every broker has; upstream MixAll.TOOLS_CONSUMER_GROUP. Set it where
    readers get permissions of their own. Create the group first: otherwise the first read creates it. Its
    offsets are not changed. Consumers and producers do not use it.
    """
    broker_address_map: Mapping[str, str] | Callable[[str], str] = field(default_factory=dict)
    """Addresses of the route, and the address to connect to instead. Default: empty. Ours.

    Set it where brokers register addresses that this machine cannot reach (Docker, Kubernetes, NAT):
    ``{"10.0.0.5:10911": "127.0.0.1:20911"}``. Keys are ``host:port``, ``prefix*`` (``"10.0.*"``), ``*:port``
    or ``*``; the most specific one takes precedence. A target ``host:*`` keeps the port. Or give a function
    from an address to another; it is called on the event loop.
    """
    connect_timeout: float = 3.0
    """Seconds for one TCP connection, TLS included; upstream NettyClientConfig.connectTimeoutMillis.

    Raise it for servers far away.
    """
    request_timeout: float = 3.0
    """Seconds for one request that has no timeout of its own; upstream mqClientApiTimeout.

    Routes, offsets and administration use it. Raise it where requests to slow brokers time out.
    """
    poll_name_server_interval: float = 30.0
    """Seconds between two fetches of the routes of known topics; upstream pollNameServerInterval.

    Lower it where new queues and brokers must be noticed sooner.
    """
    heartbeat_broker_interval: float = 30.0
    """Seconds between two heartbeats to brokers; upstream heartbeatBrokerInterval.

    Keep it well below the 120 seconds after which a broker drops a silent client.
    """
    max_frame_bytes: int = 16 * 1024 * 1024
    """Bytes of the largest answer that is accepted; upstream com.rocketmq.remoting.frameMaxLength.

    Raise it where brokers store messages that are larger than this.
    """
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
    """Bytes of the largest decompressed body: 16 MiB. Ours: upstream has no limit.

    A larger body raises BodyTooLargeError: a few stored kilobytes can grow a thousandfold and more. Raise it
    where producers compress larger bodies; the event loop decompresses one body at a time, about 5 ms a MiB.
    """
    access_key: str | None = field(default=None, repr=False)
    """Name of the ACL user that requests are signed for; upstream SessionCredentials.accessKey.

    Default None: requests are not signed. Where brokers check permissions, set it with ``secret_key``.
    """
    secret_key: str | None = field(default=None, repr=False)
    """Secret of the ACL user; upstream SessionCredentials.secretKey. Shows as ``***`` everywhere.

    Kept as a :class:`rmqtools.model.secret.Secret`, whose ``reveal()`` returns the text itself.
    Default None: requests are not signed. Where brokers check permissions, set it with ``access_key``.
    """
    security_token: str | None = field(default=None, repr=False)
    """Token of temporary credentials; upstream SessionCredentials.securityToken.

    Default None. Set it only where the service that issued the keys also issued a token.
    """
    tls_enable: bool = False
    """Whether connections use TLS; upstream tls.enable. Set it where servers accept nothing else."""
    tls_ca_file: str | os.PathLike[str] | None = None
    """File of the authorities' certificates (PEM) to check servers with; upstream tls.client.trustCertPath.

    Default None: the certificates of this machine. Set it for certificates of a private authority.
    """
    tls_cert_file: str | os.PathLike[str] | None = None
    """File of this client's own certificate (PEM); upstream tls.client.certPath.

    Default None: no certificate is sent. Set it where servers ask clients for one.
    """
    tls_key_file: str | os.PathLike[str] | None = None
    """File of the private key (PEM) of ``tls_cert_file``; upstream tls.client.keyPath.

    Default None: the key is in ``tls_cert_file``.
    """
    tls_key_password: str | None = field(default=None, repr=False)
    """Password of an encrypted private key; upstream tls.client.keyPassword. Shows as ``***`` everywhere.

    Default None: the key is not encrypted. Nothing ever asks for it on a terminal.
    """
    tls_check_hostname: bool = True
    """Whether a server's certificate must name the address connected to. Ours: upstream never checks.

    Set it to False only for certificates without addresses.
    """

    def __post_init__(self) -> None:
        if not self.name_servers and self.name_server_url is None:
            raise ConfigError(
                "no name server: set name_server='host:port' or the environment variable NAMESRV_ADDR"
            )
        if isinstance(self.broker_address_map, Mapping):
            check_address_rules(self.broker_address_map)
        require_positive(
            self, "connect_timeout", "request_timeout", "max_frame_bytes", "max_decompressed_bytes"
        )
        require_positive(self, "poll_name_server_interval", "heartbeat_broker_interval")
        self._check_names()
        if (self.access_key is None) != (self.secret_key is None):
            raise ConfigError("access_key and secret_key go together: set both or neither")
        for name in ("access_key", *_SECRETS):
            if _CONTROL.search(getattr(self, name) or ""):
                raise ConfigError(
                    f"{name} has a control character, such as the end of a line in a file: remove it"
                )
        for name in _SECRETS:
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, Secret(text))
        self._check_tls()

    def _check_names(self) -> None:
        if self.read_group is not None and not self.read_group.strip():
            raise ConfigError(f"read_group={self.read_group!r}: it is empty; name a group, or leave it out")
        if self.instance_name is not None and "@" in self.instance_name:
            raise ConfigError(
                f"instance_name={self.instance_name!r}: '@' separates it from the address: leave it out"
            )

    def _check_tls(self) -> None:
        """Refuse TLS settings that would have no effect: connections would not be encrypted."""
        given = [name for name in _TLS_SETTINGS if getattr(self, name)]
        if not self.tls_check_hostname:
            given.append("tls_check_hostname")
        if given and not self.tls_enable:
            raise ConfigError(
                f"{', '.join(given)} without tls_enable: connections would be in plain text; set "
                "tls_enable=True, or leave these out"
            )
        if self.tls_key_file and not self.tls_cert_file:
            raise ConfigError(
                f"tls_key_file={self.tls_key_file!r}: want tls_cert_file too, which it belongs to"
            )
        if self.tls_key_password and not self.tls_cert_file:
            raise ConfigError("tls_key_password is set: want tls_cert_file too, whose key it opens")

    @property
    def name_servers(self) -> tuple[str, ...]:
        """The name servers' addresses in the order given; none if their list is at an HTTP address."""
        return () if self.name_server_url is not None else parse_addresses(self.name_server)

    @property
    def name_server_url(self) -> str | None:
        """The HTTP address of the list of name servers; None: ``name_server`` is the list."""
        text = self.name_server.strip()
        return text if _LIST_URL.fullmatch(text) else None

    @classmethod
    def from_mapping(cls, settings: Mapping[str, str]) -> Self:
        """Make a config from text: option files, environment, Spark options.

        Names are matched without regard to case, ``_``, ``-`` and ``.``.

        Raises:
            ConfigError: an unknown name (with the nearest known one), or a value of the wrong type.
        """
        kinds = kinds_of(cls)
        known = {match_name(name): name for name in kinds}
        values: dict[str, Any] = {}
        for name, text in settings.items():
            if (found := known.get(match_name(name))) is None:
                raise ConfigError(unknown_setting(name, kinds))
            values[found] = parse_value(name, text, kinds[found])
        return cls(**values)
