"""The eight most telling faults on servers from the jars: ``make faults-quick``.

One cluster for all. Clients poll routes every second, so that a run takes seconds. All figures but times must
be met: how long clients take to recover, with the default settings, is measured by ``make faults``.
"""

import asyncio
from collections.abc import Iterator

import pytest

from rmqtools.cluster import LocalCluster
from tools.measure.faults.bench import Bench, Case
from tools.measure.faults.cases import CASES, QUICK
from tools.measure.faults.figures import unmet
from tools.measure.faults.site import LocalSite

pytestmark = [pytest.mark.broker, pytest.mark.slow]

SECONDS = 9.0


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("faults")
    with LocalCluster(brokers=3, directory=folder / "cluster") as cluster:
        yield Bench(
            site=LocalSite(cluster),
            folder=folder,
            seconds=SECONDS,
            client={"poll_name_server_interval": 1.0, "heartbeat_broker_interval": 1.0},
            producer={"send_timeout": 10.0},
            reader={"delay_after_error": 0.5, "pull_timeout": 6.0, "long_poll_timeout": 2.0},
        )


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.title.replace(" ", "-")) for case in CASES if case.number in QUICK],
)
def test_a_fault_costs_no_acknowledged_message_and_its_figures_are_met(bench: Bench, case: Case) -> None:
    try:
        outcome = asyncio.run(case.run(bench))
    finally:
        bench.site.restore()

    assert unmet(outcome.figures, times=False) == [], outcome.verdict
