"""The HTTP server that tells the name servers, on loopback."""

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from rmqtools.errors import ConfigError
from rmqtools.name_server_list import domain_url, fetch_name_servers


@pytest.fixture
def serve() -> Iterator[Callable[[int, bytes], tuple[str, list[str]]]]:
    """``serve(status, body)``: ``host:port`` of a server with that answer, and the paths it was asked for."""
    servers: list[tuple[HTTPServer, threading.Thread]] = []

    def serve(status: int, body: bytes) -> tuple[str, list[str]]:
        paths: list[str] = []

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                paths.append(self.path)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = HTTPServer(("127.0.0.1", 0), Answer)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        servers.append((server, thread))
        return f"127.0.0.1:{server.server_port}", paths

    yield serve
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("domain", "url"),
    [
        pytest.param("names", "http://names:8080/rocketmq/nsaddr", id="host: Java's port and path"),
        pytest.param("names:90", "http://names:90/rocketmq/nsaddr", id="port"),
        pytest.param("http://names", "http://names/rocketmq/nsaddr", id="scheme"),
        pytest.param("https://names:90/a/b", "https://names:90/a/b", id="whole"),
        pytest.param("[::1]:90/x", "http://[::1]:90/x", id="IPv6"),
    ],
)
def test_what_a_domain_leaves_out_is_java_s(domain: str, url: str) -> None:
    assert domain_url(domain) == url


@pytest.mark.parametrize("domain", ["", "http://", "a b", "ftp://names", "user@names"])
def test_what_is_no_http_address_is_refused(domain: str) -> None:
    with pytest.raises(ConfigError, match="want 'host', 'host:port' or 'http://host:port/path'"):
        domain_url(domain)


def test_the_list_of_name_servers_is_the_answer_without_its_end_of_line(serve) -> None:
    address, paths = serve(200, b"127.0.0.1:9876;127.0.0.1:9877\n")

    assert fetch_name_servers(address) == "127.0.0.1:9876;127.0.0.1:9877"
    assert paths == ["/rocketmq/nsaddr"]


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        pytest.param(404, b"", "HTTP Error 404", id="no such page"),
        pytest.param(200, b"\n", "names no server", id="empty"),
        pytest.param(200, b"\xff", "ascii", id="not text"),
    ],
)
def test_an_answer_without_a_list_is_told_with_the_address(serve, status: int, body: bytes, why: str) -> None:
    address, _ = serve(status, body)

    with pytest.raises(ConfigError, match=rf"http://{address}/rocketmq/nsaddr.*{why}"):
        fetch_name_servers(address)


def test_a_server_that_does_not_answer_is_told(unused_port) -> None:
    with pytest.raises(ConfigError, match=r"refused.*name the servers themselves"):
        fetch_name_servers(f"127.0.0.1:{unused_port}")


def test_a_port_that_speaks_no_http_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = "{}:{}".format(*listening.getsockname())

        def answer() -> None:
            peer, _ = listening.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ConfigError, match=rf"http://{address}/rocketmq/nsaddr.*220 mail.example"):
            fetch_name_servers(address)
        thread.join()


@pytest.fixture
def unused_port() -> int:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return server.server_port


def test_a_proxy_of_the_environment_is_not_asked(serve, unused_port, monkeypatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{unused_port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    address, _ = serve(200, b"127.0.0.1:9876")

    assert fetch_name_servers(address) == "127.0.0.1:9876"


def test_a_failure_says_which_step_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(ConfigError, match=r"\(connect failed: \[Errno 111\]"):
        fetch_name_servers("127.0.0.1:1")
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ConfigError, match=r"\(name look-up failed: \[Errno -2\]"):
        fetch_name_servers("names:90")


def test_a_port_without_tls_is_a_failed_handshake(
    serve: Callable[[int, bytes], tuple[str, list[str]]],
) -> None:
    addr, _ = serve(200, b"")

    with pytest.raises(ConfigError, match=r"\(TLS handshake failed: "):
        fetch_name_servers(f"https://{addr}/list")
