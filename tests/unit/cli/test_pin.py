"""``rmqtools pin`` on the cluster in this process: what is said of the pins that are there."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

from rmqtools import Admin, ClientConfig
from rmqtools.allocate import Pins
from rmqtools.cli.pin import members_on
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.group.pin_store import KV_NAMESPACE
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.protocol.headers.topic import PutKVConfigRequestHeader
from rmqtools.protocol.wire.command import request
from rmqtools.testing import FakeCluster
from tests.support.tables import lacking


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
    run, cluster, admin, members, when_absent, text
):
    for client_id in members:
        cluster.add_member("staging", client_id)
    admin.set_pins("staging", Pins(0, ["10.0.0.1"], when_absent=when_absent))

    assert state(run, "staging") == text


def test_pins_that_ended_are_expired(run, admin):
    admin.set_pins("ended", Pins(0, ["10.0.0.1"], expires_at=datetime(2020, 1, 1, tzinfo=UTC)))

    assert state(run, "ended") == "expired"


def test_clearing_what_was_never_pinned_says_so_and_writes_nothing(run, admin):
    cleared = run("pin", "clear", "-g", "free")

    assert (cleared.exit_code, cleared.stdout) == (0, "group free was never pinned: nothing to clear\n")
    assert "free" not in admin.fetch_pin_groups()


def test_a_dry_run_shows_the_shares_and_pins_nothing(run, cluster, admin):
    cluster.add_member("trial", "10.0.0.1@a")
    cluster.add_member("trial", "10.0.0.2@b")

    shown = run("pin", "set", "-g", "trial", "--ip", "10.0.0.1", "--when-absent", "nobody", "--dry-run")

    assert shown.stdout.splitlines() == [
        "MEMBER      QUEUES NOW  QUEUES THEN",
        "10.0.0.1@a  -                     0",
        "10.0.0.2@b  -                     0",
        "group trial is not pinned: --dry-run changes nothing",
    ]
    assert "it is not among the allowed groups" in shown.stderr
    assert "trial" not in admin.fetch_pin_groups()


SET = ("--ip", "10.0.0.1", "--when-absent", "nobody", "--allowed-groups", "*", "--force")


def test_somebody_elses_live_pins_are_named_and_kept_unless_replace_is_given(run, admin):
    admin.set_pins("held", Pins(0, ["10.0.0.7"], set_by="anna@build"))

    with pytest.raises(
        RocketMQError, match=r"--replace.*anna@build has pinned it to 10.0.0.7 since .* UTC from 12"
    ):
        run("pin", "set", "-g", "held", *SET)
    assert admin.fetch_pins("held").ips == ("10.0.0.7",)
    run("pin", "set", "-g", "held", *SET, "--replace")
    assert admin.fetch_pins("held").ips == ("10.0.0.1",)


def test_ones_own_pins_and_expired_ones_need_no_replace(run, admin):
    admin.set_pins("mine", Pins(0, ["10.0.0.7"], set_by="a", expires_at=datetime(2020, 1, 1, tzinfo=UTC)))

    run("pin", "set", "-g", "mine", *SET)
    run("pin", "set", "-g", "mine", *SET)

    assert admin.fetch_pins("mine").version == 3


def test_show_has_who_when_and_from_where(run, admin):
    until = datetime(2099, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    admin.set_pins("signed", Pins(0, ["10.0.0.7"], set_by="anna@build", expires_at=until))

    (row,) = json.loads(run("pin", "show", "-g", "signed", "--json").stdout)

    assert (row["set_by"], row["set_from"]) == ("anna@build", "127.0.0.1")
    assert datetime.fromisoformat(row["set_at"]).tzinfo is not None
    table = run("pin", "show", "-g", "signed").stdout
    assert lacking(table, "`anna@build` `SET AT` `2099-01-02 03:04:05 UTC`") == []


def test_check_reports_a_copy_that_is_ignored_and_repair_rewrites_it(run, cluster):
    async def write_without_the_rules_of_a_writer():
        client = ClientCore(ClientConfig(name_server=cluster.name_server))
        pins = Pins(2**63 - 1, ["10.6.6.6"])
        header = PutKVConfigRequestHeader(namespace=KV_NAMESPACE, key="locked", value=pins.format())
        await client.remoting.invoke_ok(cluster.name_server, request(header))
        await client.close()

    asyncio.run(write_without_the_rules_of_a_writer())

    found = json.loads(run("group", "check", "locked", "--json").stdout)
    repaired = run("group", "check", "locked", "--repair", "--json")

    assert any(
        one["kind"] == "pin_copies_differ" and "version 9223372036854775807 is above" in one["text"]
        for one in found
    )
    assert "version 1 (no machine) is on all name servers now" in repaired.stderr
    assert not any(one["kind"] == "pin_copies_differ" for one in json.loads(repaired.stdout))
    assert "nothing to repair" in run("group", "check", "locked", "--repair").stderr


def test_networks_and_ipv6_addresses_pin_members_too():
    members = ["10.1.2.3@a", "[fe80::1]@b", "host@c"]

    assert members_on(members, ["10.1.0.0/16", "fe80::/64"]) == ["10.1.2.3@a", "[fe80::1]@b"]


@pytest.fixture
def owner(cluster, run):
    """Allocate the queue of a topic to one member by pins; return its owner."""
    cluster.create_topic("shared", queues=1, broker_names=["broker-a"])
    allocate = ("allocate", "-t", "shared", "-s", "PINS", "-g", "live", "--members", "10.0.0.2@x", "--json")
    return lambda *options: json.loads(run(*allocate, *options).stdout)[0]["then"]


def test_allocate_takes_who_consumes_while_nobody_pinned_is_there_from_the_live_pins(admin, owner):
    unpinned = owner()
    admin.set_pins("live", Pins(0, ["10.0.0.1"], when_absent="nobody"))
    waiting = owner()
    admin.set_pins("live", Pins(0, ["10.0.0.1"], when_absent="everybody"))

    assert (unpinned, waiting, owner()) == (["10.0.0.2@x"], [], ["10.0.0.2@x"])


def test_pins_that_leave_it_to_the_members_must_be_told_what_those_do(admin, owner):
    admin.set_pins("live", Pins(0, ["10.0.0.1"]))

    with pytest.raises(ConfigError, match="give --option when_absent=nobody or when_absent=everybody"):
        owner()
    assert owner("-o", "when_absent=nobody") == []


def test_pins_of_one_name_server_are_written_to_all_until_all_are_equal(cluster, admin):
    with FakeCluster(cluster="other") as other:
        admin.set_pins("shared", Pins(1, ["10.0.0.1"]))
        both = ClientConfig(name_server=f"{cluster.name_server};{other.name_server}")
        with Admin(both) as of_both:
            repaired, again = of_both.repair_pins("shared"), of_both.repair_pins("shared")
            copies = of_both.fetch_pin_copies("shared").values()

    assert repaired is not None
    assert repaired.ips == ("10.0.0.1",)
    assert (again, {*copies}) == (None, {repaired})
