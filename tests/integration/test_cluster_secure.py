"""What other machines reach of a local cluster, and ``cluster up --secure``."""

import socket
from pathlib import Path

import pytest

from rmqtools.cluster import ClusterError, ClusterSecurity, LocalCluster
from tests.support.cluster_scene import Scene, leftovers
from tests.support.command_line import rmqtools_program
from tests.support.resting import RestingCluster

pytestmark = pytest.mark.broker


def test_a_broker_opens_no_port_of_replication(local_cluster: LocalCluster) -> None:
    ports = [int(addr.rpartition(":")[2]) + 1 for addr in local_cluster.broker_addrs.values()]

    assert local_cluster.exposed_ports == []
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


@pytest.mark.slow  # starts several brokers
def test_a_broker_that_may_have_slaves_is_named_with_its_open_port_and_refused_if_secure() -> None:
    replicates = {"brokerRole": "SYNC_MASTER"}
    with RestingCluster(broker_settings=replicates) as cluster:
        (addr,) = cluster.broker_addrs.values()
        assert cluster.exposed_ports == [int(addr.rpartition(":")[2]) + 1]

    with pytest.raises(
        ClusterError, match="gives stored messages to everybody: a secured cluster has no slaves"
    ):
        RestingCluster(broker_settings=replicates, security=ClusterSecurity()).start()


@pytest.mark.slow
def test_a_secured_cluster_is_reached_with_the_variables_that_up_prints_also_after_a_restart(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path)
    for _ in range(2):
        up = scene.run("up", "--secure")
        assert up.returncode == 0, up.stderr
        lines = up.stdout.splitlines()
        exports = [word for line in lines if "export " in line for word in line.split()[1:]]
        (name_server,) = [line.split()[-1] for line in lines if line.startswith("name server: ")]
        variables = dict(word.split("=", 1) for word in exports) | {"NAMESRV_ADDR": name_server}
        listed, refused = (
            rmqtools_program("topic", "list", "--system", **more)
            for more in (variables, {"NAMESRV_ADDR": name_server})
        )
        assert scene.run("down").returncode == 0

        assert "open to other machines" not in up.stdout
        assert (listed.returncode, "SELF_TEST_TOPIC" in listed.stdout) == (0, True), listed.stderr
        assert refused.returncode == 3  # no server answers
        assert "set tls_enable=True" in refused.stderr
    assert leftovers(scene.directory) == []
