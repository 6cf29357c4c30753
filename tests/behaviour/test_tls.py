"""TLS with and without a client certificate, in front of a fake cluster, which has none."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from rmqtools import Admin, ClientConfig
from rmqtools.errors import RemotingError
from rmqtools.testing import FakeCluster
from tests.support.relay import TlsProxy


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def pem(tmp_path: Path):
    """Write certificates where settings can name them."""

    def write(name: str, *blobs: trustme.Blob) -> str:
        path = tmp_path / name
        path.write_bytes(b"".join(blob.bytes() for blob in blobs))
        return str(path)

    return write


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        yield cluster


def test_a_certificate_for_another_host_is_refused_unless_names_are_not_checked(cluster, authority, pem):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("elsewhere.invalid").configure_cert(context)
    settings = {"tls_enable": True, "tls_ca_file": pem("ca.pem", authority.cert_pem), "request_timeout": 10.0}
    with TlsProxy(cluster.name_server, context).serving() as proxy:
        strict = ClientConfig(name_server=proxy.addr, **settings)
        with Admin(strict) as admin, pytest.raises(RemotingError, match=r"IP address mismatch|doesn't match"):
            admin.fetch_cluster_info()
        with Admin(ClientConfig(name_server=proxy.addr, tls_check_hostname=False, **settings)) as admin:
            assert admin.fetch_cluster_info().broker_addr_table


def test_a_server_that_wants_a_client_certificate_gets_it(cluster, authority, pem):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    mine = authority.issue_cert("client.invalid")
    settings = {"tls_enable": True, "tls_ca_file": pem("ca.pem", authority.cert_pem), "request_timeout": 10.0}
    with TlsProxy(cluster.name_server, context).serving() as proxy:
        with Admin(ClientConfig(name_server=proxy.addr, **settings)) as admin, pytest.raises(RemotingError):
            admin.fetch_cluster_info()
        with_certificate = ClientConfig(
            name_server=proxy.addr,
            tls_cert_file=pem("client.pem", *mine.cert_chain_pems),
            tls_key_file=pem("client.key", mine.private_key_pem),
            **settings,
        )
        with Admin(with_certificate) as admin:
            assert admin.fetch_cluster_info().broker_addr_table
