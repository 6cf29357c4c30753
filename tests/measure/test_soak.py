import asyncio

from rmqtools.testing import FakeCluster
from tools.measure.faults import soak
from tools.measure.faults.figures import unmet


def test_a_short_soak_hears_everything_and_leaves_nothing(monkeypatch):
    monkeypatch.setattr(soak, "_POISON_EVERY", 500)
    monkeypatch.setattr(soak, "_MEMBER_SECONDS", 0.3)
    monkeypatch.setattr(soak, "_SLOPE_MIB_PER_MINUTE", float("inf"))  # the cluster is in this process

    with FakeCluster(brokers=("broker-a", "broker-b")) as cluster:
        figures = asyncio.run(soak.soak(cluster.name_server, 2.5))

    assert unmet(figures) == []


def test_the_slope_is_that_of_the_warm_part():
    run = soak.Soak("127.0.0.1:9876", "topic")
    run.samples = [(float(at), 500.0 if at < 25 else 100.0 + at / 60) for at in range(100)]

    assert abs(run.slope() - 1.0) < 1e-9
