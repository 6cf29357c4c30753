"""TLS and access control of a local cluster: throw-away certificates, one user, the servers' settings.

All files are in ``<directory>/secure``, for their owner only:

    ca.pem, ca.key          the authority: clients set tls_ca_file to the first
    client.pem, client.key  a certificate for clients: tls_cert_file, tls_key_file
    credentials             accessKey and secretKey of the user, as Spark's option credentialsFile reads them
    secret_key              the key alone, for the commands' variable RMQTOOLS_SECRET_KEY_FILE
    server.pem, server.key, tls.properties      the servers' own
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.ports import LOOPBACK
from rmqtools.cluster.properties import format_properties
from rmqtools.safe_file import PRIVATE, make_private, replace_text

USER = "admin"
FOLDER = "secure"
_AUTH = "org.apache.rocketmq.auth"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSecurity:
    """Security settings of a local cluster 5.x."""

    tls: bool = True
    """Whether servers accept nothing but TLS."""
    client_certificates: bool = False
    """Whether servers want a certificate of each client, too (mTLS)."""
    acl: bool = True
    """Whether brokers accept only signed requests of users that may make them (ACL 2.0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """A cluster's security as it was set up.

    Attributes:
        flags: more arguments of each server's JVM; empty: no TLS.
        broker_settings: more lines of each broker's conf.
        client_settings: settings that let a client in, see :class:`rmqtools.ClientConfig`.
    """

    flags: Sequence[str] = ()
    broker_settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    client_settings: Mapping[str, Any] = field(default_factory=dict, repr=False)


def secure(directory: Path, wanted: ClusterSecurity) -> Secured:
    """Write the certificates of a cluster, new ones at each call, and its credentials if there are none.

    Raises:
        ClusterError: the packages that make certificates are not installed.
    """
    folder = directory / FOLDER
    make_private(folder)
    flags, settings = _tls(folder, wanted) if wanted.tls else ((), {})
    if not wanted.acl:
        return Secured(flags=flags, client_settings=settings)
    key = _secret_key(folder / "secret_key")
    replace_text(folder / "credentials", f"accessKey: {USER}\nsecretKey: {key}\n", mode=PRIVATE)
    keys = {"access_key": USER, "secret_key": key}
    return Secured(flags=flags, broker_settings=_acl(key), client_settings={**settings, **keys})


def _secret_key(file: Path) -> str:
    """Return the user's key, made at a cluster's first start: its brokers keep it with their messages."""
    if file.is_file() and not file.is_symlink():
        return file.read_text(encoding="utf-8").strip()
    key = secrets.token_urlsafe(24)
    replace_text(file, f"{key}\n", mode=PRIVATE)
    return key


def _acl(key: str) -> dict[str, str]:
    """ACL 2.0 with one super user, who is made at a broker's first start."""
    return {
        "authenticationEnabled": "true",
        "authenticationProvider": f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider",
        "authenticationMetadataProvider": (
            f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider"
        ),
        "initAuthenticationUser": json.dumps({"username": USER, "password": key}),
        "innerClientAuthenticationCredentials": json.dumps({"accessKey": USER, "secretKey": key}),
        "authorizationEnabled": "true",
        "authorizationProvider": f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider",
        "authorizationMetadataProvider": f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider",
    }


def _tls(folder: Path, wanted: ClusterSecurity) -> tuple[Sequence[str], dict[str, str | bool]]:
    """Make an authority and its certificates; return the servers' flags and the clients' settings."""
    try:
        import trustme
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            load_pem_private_key,
        )
    except ImportError as error:
        raise ClusterError(
            "the certificates of a secure cluster are made by the package 'trustme': pip install trustme"
        ) from error
    authority = trustme.CA(organization_name="rmqtools local cluster")
    replace_text(folder / "ca.pem", authority.cert_pem.bytes().decode(), mode=PRIVATE)
    replace_text(folder / "ca.key", authority.private_key_pem.bytes().decode(), mode=PRIVATE)
    for name, host in (("server", LOOPBACK), ("client", "client.invalid")):
        made = authority.issue_cert(host, "localhost") if name == "server" else authority.issue_cert(host)
        chain = "".join(blob.bytes().decode() for blob in made.cert_chain_pems)
        key = load_pem_private_key(made.private_key_pem.bytes(), None)
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        replace_text(folder / f"{name}.pem", chain, mode=PRIVATE)
        replace_text(folder / f"{name}.key", text, mode=PRIVATE)  # the servers read PKCS#8 only
    lines = format_properties(_properties(folder, wants_clients=wanted.client_certificates))
    replace_text(folder / "tls.properties", lines, mode=PRIVATE)
    flags = ("-Dtls.enable=true", "-Dtls.server.mode=enforcing", f"-Dtls.config.file={folder}/tls.properties")
    settings: dict[str, str | bool] = {"tls_enable": True, "tls_ca_file": str(folder / "ca.pem")}
    if wanted.client_certificates:
        own = {"tls_cert_file": str(folder / "client.pem"), "tls_key_file": str(folder / "client.key")}
        settings.update(own)
    return flags, settings


def _properties(folder: Path, *, wants_clients: bool) -> dict[str, object]:
    """Return the servers' TLS settings; brokers are clients of the name server (TlsSystemConfig)."""
    return {
        "tls.test.mode.enable": "false",
        "tls.server.need.client.auth": "require" if wants_clients else "none",
        "tls.server.authClient": str(wants_clients).lower(),
        "tls.server.keyPath": folder / "server.key",
        "tls.server.certPath": folder / "server.pem",
        "tls.server.trustCertPath": folder / "ca.pem",
        "tls.client.authServer": "true",
        "tls.client.trustCertPath": folder / "ca.pem",
        "tls.client.keyPath": folder / "client.key",
        "tls.client.certPath": folder / "client.pem",
    }
