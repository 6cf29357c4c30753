"""Name servers behind a name with several addresses or an HTTP list, and replaced while a client runs."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from rmqtools import Admin, ClientConfig
from rmqtools.allocate import Pins
from rmqtools.engine.connection.name_server_addresses import LIST_INTERVAL, NameServerAddresses
from rmqtools.errors import ConfigError, RemotingConnectError
from rmqtools.testing import FakeCluster
from tests.support.clock import ManualClock


@pytest.fixture
def names(monkeypatch) -> dict[str, list[str]]:
    """Addresses by host name; change them at any time."""
    known: dict[str, list[str]] = {}
    really = asyncio.BaseEventLoop.getaddrinfo

    async def getaddrinfo(self: Any, host: str, port: int, **settings: Any) -> Any:
        if host not in known:
            return await really(self, host, port, **settings)
        family = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(family[":" in ip], socket.SOCK_STREAM, 6, "", (ip, port)) for ip in known[host]]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return known


def addresses(name_server: str, clock: ManualClock | None = None) -> NameServerAddresses:
    return NameServerAddresses(ClientConfig(name_server=name_server), clock or ManualClock())


async def test_a_name_stands_for_all_its_addresses(names):
    names["headless"] = ["10.0.0.2", "10.0.0.1", "fd00::1"]
    servers = addresses("headless:9876;10.0.0.9:1")
    assert await servers.current() == ("10.0.0.1:9876", "10.0.0.2:9876", "10.0.0.9:1")
    assert servers.host_of("10.0.0.2:9876") == "headless"  # for its certificate
    assert ("10.0.0.1:9876" in servers, "10.0.0.7:9876" in servers) == (True, False)


@pytest.mark.parametrize("ips", [["10.0.0.1"], ["10.0.0.1", "fd00::1"], []])
async def test_a_name_with_one_address_or_none_stays_a_name(names, ips):
    names["single"] = ips
    assert await addresses("single:9876").current() == ("single:9876",)


async def test_names_are_resolved_again_after_a_failure_and_not_before(names, clock):
    names["headless"] = ["10.0.0.1", "10.0.0.2"]
    servers = addresses("headless:9876", clock)
    await servers.current()
    names["headless"] = ["10.0.0.3", "10.0.0.4"]
    assert await servers.current() == ("10.0.0.1:9876", "10.0.0.2:9876")
    servers.failed()
    clock.advance(1.0)
    assert await servers.current() == ("10.0.0.3:9876", "10.0.0.4:9876")


def test_pins_are_written_to_every_address_of_a_list_that_was_replaced():
    with FakeCluster(name_servers=2) as cluster, Admin(ClientConfig(name_server="127.0.0.1:1")) as admin:
        admin.update_name_server(cluster.name_server)
        admin.set_pins("g", Pins(0, ["10.0.0.1"]))
        copies = admin.fetch_pin_copies("g").values()
        assert [isinstance(copy, Pins) and copy.version for copy in copies] == [1, 1]


@pytest.mark.parametrize("text", ["tcp://a:1", " "])
def test_a_list_without_an_address_does_not_replace_another(text):
    admin = Admin(ClientConfig(name_server="127.0.0.1:1"))
    with admin, pytest.raises(ConfigError, match="want host:port"):
        admin.update_name_server(text)


class ListHandler(BaseHTTPRequestHandler):
    """Gives the server's list, or an error while it is empty."""

    def do_GET(self) -> None:
        text = self.server.text  # type: ignore[attr-defined]  # a Lister
        self.send_response(200 if text else 500)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None: ...


class Lister(HTTPServer):
    text = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/rocketmq/nsaddr"


@pytest.fixture
def lister() -> Iterator[Lister]:
    with Lister(("127.0.0.1", 0), ListHandler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_client_finds_its_name_servers_by_a_list_over_http(lister):
    with FakeCluster() as cluster:
        lister.text = f"{cluster.name_server}\n"
        with Admin(ClientConfig(name_server=lister.url)) as admin:
            assert set(admin.fetch_cluster_info().broker_addr_table) == {"broker-a"}


@pytest.mark.process
def test_without_a_first_list_a_request_fails_by_the_lists_address(lister):
    with (
        Admin(ClientConfig(name_server=lister.url, request_timeout=0.2)) as admin,
        pytest.raises(RemotingConnectError, match="gives no list of name servers"),
    ):
        admin.fetch_cluster_info()


async def test_a_list_is_fetched_again_every_two_minutes_and_kept_while_there_is_no_answer(
    lister, monkeypatch, caplog
):
    pauses: list[float] = []
    lister.text = "10.0.0.1:1"
    servers = addresses(lister.url)
    seen = [await servers.current()]
    texts = iter(["10.0.0.2:1;10.0.0.3:1", ""])
    really = asyncio.sleep

    async def pause(seconds: float) -> None:
        if seconds != LIST_INTERVAL:
            return await really(seconds)
        pauses.append(seconds)
        seen.append(await servers.current())
        if (text := next(texts, None)) is None:
            raise asyncio.CancelledError
        lister.text = text
        return None

    monkeypatch.setattr(asyncio, "sleep", pause)
    with pytest.raises(asyncio.CancelledError):
        await servers.fetch_forever()

    assert seen == [("10.0.0.1:1",)] * 2 + [("10.0.0.2:1", "10.0.0.3:1")] * 2
    assert pauses == [LIST_INTERVAL] * 3
    assert "name_server_list_failed" in caplog.text
