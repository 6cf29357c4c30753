from ipaddress import ip_address
from pathlib import Path

from tests.support.docker_layout import SERVICES, ClusterLayout

HERE, THERE = ClusterLayout.of(Path("/home/a/rmqtools")), ClusterLayout.of(Path("/home/b/rmqtools"))


def test_a_checkout_has_the_same_layout_every_time():
    assert ClusterLayout.of(Path("/home/a/rmqtools")) == HERE
    assert ClusterLayout.of(Path("/home/a/other/../rmqtools")) == HERE


def test_two_checkouts_share_nothing():
    assert HERE.project != THERE.project
    assert set(HERE.hosts.values()).isdisjoint(THERE.hosts.values())
    assert set(HERE.ports.values()).isdisjoint(THERE.ports.values())


def test_no_two_sockets_of_a_cluster_meet():
    ports = [port for _, port in HERE.sockets()]

    assert len(set(ports)) == len(ports)


def test_addresses_are_loopback_and_ports_are_none_that_clients_get():
    layouts = [ClusterLayout.of(Path(f"/checkout/{i}")) for i in range(300)]

    assert all(ip_address(layout.hosts[service]).is_loopback for layout in layouts for service in SERVICES)
    assert all(10_000 <= port < 32_768 for layout in layouts for _, port in layout.sockets())


def test_two_layouts_with_different_blocks_never_overlap():
    blocks = {min(port for _, port in layout.sockets()) // 16 for layout in (HERE, THERE)}

    assert all(port // 16 in blocks for layout in (HERE, THERE) for _, port in layout.sockets())
