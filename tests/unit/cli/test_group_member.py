"""``rmqtools group show --member`` on a cluster in this process."""

import json
from dataclasses import replace

import pytest

from tests.unit.cli.top.scene import report

FIRST, SECOND = "10.0.0.1@one", "10.0.0.2@two"


@pytest.fixture(autouse=True)
def members(cluster):
    cluster.create_topic("orders", queues=1)
    cluster.create_group("billing")
    told = report("orders", ("broker-a", 0), strategy="AVG")
    cluster.add_member("billing", FIRST, replace(told, jstack="MainThread  TID: 1\n  File x\n"))
    cluster.add_member("billing", SECOND, told)


def test_a_member_is_shown_from_inside(run):
    shown = run("group", "show", "billing", "--member", FIRST).stdout.splitlines()

    assert shown[0].startswith(f"member {FIRST} of group billing: PYTHON ")
    assert "strategy:      AVG" in shown
    assert shown[6:8] == [
        "TOPIC   QUEUE       NEXT OFFSET  FETCHED  FETCHED AT  CONSUMED AT",
        "orders  broker-a:0            0        0  -           -",
    ]


def test_the_begin_of_a_client_id_is_enough_and_stacks_come_last(run):
    shown = run("group", "show", "billing", "--member", "10.0.0.1", "--stack")

    assert shown.exit_code == 0
    assert shown.stdout.endswith("MainThread  TID: 1\n  File x\n")


def test_a_member_that_sends_no_stacks_is_exit_code_1(run):
    shown = run("group", "show", "billing", "--member", SECOND, "--stack")

    assert shown.exit_code == 1
    assert shown.stdout.endswith("the member sent no stacks: members in Java and Python do\n")


def test_programs_get_the_whole_report(run):
    told = json.loads(run("group", "show", "billing", "--member", FIRST, "--stack", "--json").stdout)

    assert told["properties"]["PROP_RMQTOOLS_STRATEGY"] == "AVG"
    assert told["queues"][0]["topic"] == "orders"
    assert told["stack"].startswith("MainThread")
