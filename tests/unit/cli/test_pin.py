"""``rmqtools pin`` on the cluster in this process: what is said of the pins that are there."""

import json
from datetime import UTC, datetime

import pytest

from rmqtools import Admin, ClientConfig
from rmqtools.allocate import Pins
from rmqtools.cli.pin import members_on
from rmqtools.errors import ConfigError


@pytest.fixture
def admin(cluster):
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        yield admin


@pytest.fixture
def member(cluster):
    """Make a member of a group that does nothing."""
    made = []

    def add(group, client_id):
        cluster.add_member(group, client_id)
        made.append((group, client_id))

    yield add
    for group, client_id in made:
        cluster.remove_member(group, client_id)


def state(run, group):
    (row,) = json.loads(run("pin", "show", "-g", group, "--json").stdout)
    return row["state"]


@pytest.mark.parametrize(
    ("members", "when_absent", "text"),
    [
        (["10.0.0.1@a", "10.0.0.2@b"], "nobody", "in force: 1 of 2 members"),
        (["10.0.0.2@b", "10.0.0.3@c"], "everybody", "no pinned member: all 2 members share"),
        (["10.0.0.2@b"], "nobody", "no pinned member: nobody consumes"),
        (["10.0.0.2@b"], None, "no pinned member: the when_absent of each member decides"),
        ([], "nobody", "not in force: the group has no members"),
    ],
)
def test_the_state_says_what_pins_do_with_the_members_that_are_there(
    run, admin, member, members, when_absent, text
):
    for client_id in members:
        member("staging", client_id)
    admin.set_pins("staging", Pins(0, ["10.0.0.1"], when_absent=when_absent))

    assert state(run, "staging") == text


def test_pins_that_ended_are_expired(run, admin):
    admin.set_pins("ended", Pins(0, ["10.0.0.1"], expires_at=datetime(2020, 1, 1, tzinfo=UTC)))

    assert state(run, "ended") == "expired"


def test_clearing_what_was_never_pinned_says_so_and_writes_nothing(run, admin):
    cleared = run("pin", "clear", "-g", "free")

    assert (cleared.exit_code, cleared.stdout) == (0, "group free was never pinned: nothing to clear\n")
    assert "free" not in admin.fetch_pin_groups()


def test_a_dry_run_shows_the_shares_and_pins_nothing(run, admin, member):
    member("trial", "10.0.0.1@a")
    member("trial", "10.0.0.2@b")

    shown = run("pin", "set", "-g", "trial", "--ip", "10.0.0.1", "--when-absent", "nobody", "--dry-run")

    assert shown.stdout.splitlines() == [
        "MEMBER      QUEUES NOW  QUEUES THEN",
        "10.0.0.1@a  -                     0",
        "10.0.0.2@b  -                     0",
        "group trial is not pinned: --dry-run changes nothing",
    ]
    assert "it is not among the allowed groups" in shown.stderr
    assert "trial" not in admin.fetch_pin_groups()


def test_networks_and_ipv6_addresses_pin_members_too():
    members = ["10.1.2.3@a", "[fe80::1]@b", "host@c"]

    assert members_on(members, ["10.1.0.0/16", "fe80::/64"]) == ["10.1.2.3@a", "[fe80::1]@b"]


def test_allocate_takes_who_consumes_while_nobody_pinned_is_there_from_the_live_pins(run, admin, cluster):
    cluster.create_topic("shared", queues=1, broker_names=["broker-a"])
    allocate = ("allocate", "-t", "shared", "-s", "PINS", "-g", "live", "--members", "10.0.0.2@x", "--json")

    unpinned = json.loads(run(*allocate).stdout)[0]["then"]
    admin.set_pins("live", Pins(0, ["10.0.0.1"], when_absent="nobody"))
    waiting = json.loads(run(*allocate).stdout)[0]["then"]
    admin.set_pins("live", Pins(0, ["10.0.0.1"], when_absent="everybody"))
    shared = json.loads(run(*allocate).stdout)[0]["then"]

    assert (unpinned, waiting, shared) == (["10.0.0.2@x"], [], ["10.0.0.2@x"])


def test_pins_that_leave_it_to_the_members_must_be_told_what_those_do(run, admin, cluster):
    cluster.create_topic("shared", queues=1, broker_names=["broker-a"])
    admin.set_pins("vague", Pins(0, ["10.0.0.1"]))
    allocate = ("allocate", "-t", "shared", "-s", "PINS", "-g", "vague", "--members", "10.0.0.2@x", "--json")

    with pytest.raises(ConfigError, match="give -o when_absent=nobody or -o when_absent=everybody"):
        run(*allocate)
    assert json.loads(run(*allocate, "-o", "when_absent=nobody").stdout)[0]["then"] == []
