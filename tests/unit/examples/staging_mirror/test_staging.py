"""The recipe of a share of production on one staging machine, on a cluster in this process."""

import pytest

from examples.staging_mirror import staging
from rmqtools.testing import FakeCluster


@pytest.mark.process
def test_the_pinned_machine_gets_the_whole_share(monkeypatch, capsys):
    with FakeCluster(("broker-a", "broker-b")) as cluster:
        monkeypatch.setenv("NAMESRV_ADDR", cluster.name_server)
        monkeypatch.setattr("sys.argv", ["staging", "--share", "0.2"])

        assert staging.main() == 0
    assert "10.0.0.1 got 0" in capsys.readouterr().out
