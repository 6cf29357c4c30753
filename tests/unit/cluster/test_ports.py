"""Free ports."""

import socket

import pytest

from rmqtools.cluster import ClusterError
from rmqtools.cluster.ports import PortPicker


def test_a_port_that_is_asked_for_and_free_is_given() -> None:
    free = PortPicker().broker_port()

    assert PortPicker().name_server_port(free) == free


def test_a_port_that_is_taken_is_refused_by_number() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        with pytest.raises(ClusterError, match=f"port {port} for the name server is taken"):
            PortPicker().name_server_port(port)


def test_a_name_server_gets_no_port_of_a_broker() -> None:
    picker = PortPicker()
    port = picker.broker_port()

    with pytest.raises(ClusterError, match=f"port {port} for the name server is taken"):
        picker.name_server_port(port)


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(ClusterError, match=f"port {port} for the name server is .* or is no port"):
        PortPicker().name_server_port(port)


def test_no_port_is_given_twice_and_brokers_get_three() -> None:
    picker = PortPicker()
    first = picker.name_server_port(None)
    listen = [picker.broker_port() for _ in range(200)]

    used = [first, *(port + offset for port in listen for offset in (0, -2, 1))]
    assert len(set(used)) == len(used)


def test_an_asked_port_of_a_broker_is_given_with_its_neighbours() -> None:
    port = PortPicker().broker_port()
    picker = PortPicker()

    assert picker.broker_port(port) == port
    with pytest.raises(ClusterError, match=f"it takes {port - 2}, {port} and {port + 1}"):
        picker.broker_port(port)


def test_a_brokers_port_whose_neighbour_is_taken_is_refused() -> None:
    port = PortPicker().broker_port()
    refused = pytest.raises(ClusterError, match=f"and {port + 1} is taken")
    with socket.create_server(("127.0.0.1", port + 1)), refused:
        PortPicker().broker_port(port)


@pytest.mark.parametrize("port", [1, 2, 65_535])
def test_a_brokers_port_without_room_for_its_neighbours_is_refused(port: int) -> None:
    with pytest.raises(ClusterError, match="is taken or no port"):
        PortPicker().broker_port(port)
