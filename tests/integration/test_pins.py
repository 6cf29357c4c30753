"""Pins on two real name servers, which do not tell each other anything."""

import uuid
from collections.abc import Iterator

import pytest

from rmqtools import Admin, ClientConfig
from rmqtools.allocate import NO_PINS, Pins
from rmqtools.errors import RocketMQError
from tests.support.command_line import rmqtools
from tests.support.name_servers import NameServers

pytestmark = pytest.mark.broker
FIRST, SECOND = ["10.0.0.1"], ["10.0.0.2"]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServers]:
    """Two name servers. A test that kills one starts it again."""
    with NameServers(tmp_path_factory.mktemp("servers"), 2) as servers:
        yield servers


@pytest.fixture
def admin(servers: NameServers) -> Iterator[Admin]:
    """An admin in a new namespace, where no group has pins."""
    with Admin(ClientConfig(name_server=servers.name_server, namespace=uuid.uuid4().hex[:12])) as admin:
        yield admin


def test_a_pin_that_was_set_while_one_name_server_was_down_counts_when_it_is_back_with_the_old_pin(
    servers: NameServers, admin: Admin
) -> None:
    admin.set_pins("g", Pins(0, FIRST))
    servers.kill(1)
    with pytest.raises(RocketMQError, match=rf"1 of 2 name servers: {servers.addrs[1]}: cannot connect"):
        admin.set_pins("g", Pins(0, SECOND))
    servers.start(1)

    copies = admin.fetch_pin_copies("g")
    assert copies == {servers.addrs[0]: Pins(2, SECOND), servers.addrs[1]: Pins(1, FIRST)}
    assert admin.fetch_pins("g") == Pins(2, SECOND)
    assert admin.set_pins("g", Pins(0, SECOND)) == Pins(3, SECOND)


def test_pins_outlive_the_loss_of_one_name_servers_file(servers: NameServers, admin: Admin) -> None:
    admin.set_pins("g", Pins(0, FIRST, when_absent="nobody", set_by="ops"))
    servers.kill(0)
    servers.lose_kv_file(0)
    servers.start(0)

    assert admin.fetch_pin_copies("g")[servers.addrs[0]] == NO_PINS
    assert admin.fetch_pins("g") == Pins(1, FIRST, when_absent="nobody", set_by="ops")
    assert admin.clear_pins("g").version == 2


def test_groups_with_pins_are_listed_tombstones_too(servers: NameServers, admin: Admin) -> None:
    assert admin.fetch_pin_groups() == []
    admin.set_pins("b", Pins(0, FIRST))
    admin.clear_pins("a")

    assert admin.fetch_pin_groups() == ["a", "b"]


@pytest.mark.slow  # the pin store by scripted name servers
def test_pin_commands_name_the_name_servers_that_failed_and_show_what_each_has(servers: NameServers) -> None:
    addresses = {"NAMESRV_ADDR": servers.name_server}
    with Admin(ClientConfig(name_server=servers.name_server)) as admin:
        admin.set_pins("g", Pins(0, FIRST))
    servers.kill(1)
    cleared = rmqtools("pin", "clear", "-g", "g", **addresses)
    partly = rmqtools("pin", "show", **addresses)
    servers.start(1)
    shown = rmqtools("pin", "show", "-g", "g", **addresses)
    again = rmqtools("pin", "clear", "-g", "g", **addresses)

    assert cleared.returncode == 1
    assert f"are not on 1 of 2 name servers: {servers.addrs[1]}: cannot connect" in cleared.stderr
    assert (partly.returncode, shown.returncode, again.returncode) == (3, 0, 0)
    assert f"cannot be read: cannot connect to {servers.addrs[1]}" in partly.stdout
    assert "outdated" in next(line for line in shown.stdout.splitlines() if servers.addrs[1] in line)
    assert "not pinned" in next(line for line in shown.stdout.splitlines() if servers.addrs[0] in line)
