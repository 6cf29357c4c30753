"""No false alarm on a cluster that is well, and every trouble of a bad day found."""

import asyncio
from contextlib import ExitStack

import pytest

from rmqtools.group import GroupLimits
from tests.support.patience import PATIENCE
from tools.measure import bad_day, healthy_day

pytestmark = pytest.mark.broker


def test_a_short_day_of_members_has_no_false_alarm(local_cluster):
    with ExitStack() as members:
        day = healthy_day.Day(local_cluster.name_server, members, quiet=2.0)
        limits = GroupLimits(listener=PATIENCE)

        assert asyncio.run(healthy_day.run(day, interval=0.5, limits=limits)) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_day_with_restarted_servers_has_no_false_alarm():
    assert healthy_day.main([]) == 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_trouble_of_a_bad_day_is_found(capsys):
    assert bad_day.main(["--longest", "120"]) == 0

    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:] if line.startswith("| ")]
    by_trouble: dict[str, list[str]] = {}
    for trouble, tool, said in rows:
        if tool != "mqadmin" and not said.startswith("–"):
            by_trouble.setdefault(trouble, []).append(tool)
    assert len({row[0] for row in rows}) >= 5
    assert all("top" in by_trouble[row[0]] for row in rows), by_trouble
