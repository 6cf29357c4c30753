"""A pinned group on a fake cluster."""

from rmqtools import Admin, ClientConfig
from rmqtools.testing import FakeCluster, PinnedGroup


def test_a_group_is_pinned_elsewhere_and_unpinned() -> None:
    with FakeCluster() as cluster, Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        group = PinnedGroup(admin, "billing", "10.0.0.1")
        seen = [(admin.fetch_pins("billing").ips, group.ips)]
        group.pin("10.0.0.2", "10.0.0.3")
        seen.append((admin.fetch_pins("billing").ips, group.ips))
        group.clear()
        seen.append((admin.fetch_pins("billing").ips, group.ips))

    assert [tuple(map(str, pins)) for pins, _ in seen] == [ips for _, ips in seen]
    assert [ips for _, ips in seen] == [("10.0.0.1",), ("10.0.0.2", "10.0.0.3"), ()]
