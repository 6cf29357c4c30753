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


def test_no_port_is_given_twice_and_brokers_get_three() -> None:
    picker = PortPicker()
    first = picker.name_server_port(None)
    listen = [picker.broker_port() for _ in range(200)]

    used = [first, *(port + offset for port in listen for offset in (0, -2, 1))]
    assert len(set(used)) == len(used)
