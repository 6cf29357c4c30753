"""``rmqtools group`` and ``rmqtools allocate`` on live groups of Java's members and ours."""

import json

import pytest

from rmqtools import MessageQueue, PushConsumer
from rmqtools.policy import group_check
from tests.support.cluster_scene import wait_until
from tests.support.command_line import rmqtools
from tests.support.java_consumer import JavaConsumer, PythonConsumer
from tests.support.patience import PATIENT_REQUEST

pytestmark = pytest.mark.broker


@pytest.fixture
def variables(local_cluster) -> dict[str, str]:
    return {"NAMESRV_ADDR": local_cluster.name_server}


def owned(member: PushConsumer, topic: str) -> list[MessageQueue]:
    """What a member of ours owns; the retry topic's queues left out."""
    return [queue for queue in member.queues if queue.topic == topic]


def test_a_group_of_java_and_our_members_is_shown_with_owners_and_found_well(
    java_peer, local_cluster, make_topic, admin, group, join, variables
):
    topic = make_topic(queues=2)
    with JavaConsumer(java_peer, local_cluster.name_server, group, topic) as java:
        ours = join(topic, client_ip="127.0.0.6")
        java.await_assigned(2)
        wait_until(lambda: len(owned(ours, topic)) == 2)
        wait_until(lambda: admin.check_group(group).findings == ())
        patient = (group, "--set", f"request_timeout={PATIENT_REQUEST}")
        shown = rmqtools("group", "show", *patient, "--json", **variables)
        table = rmqtools("group", "show", *patient, **variables).stdout
        checked = rmqtools("group", "check", *patient, **variables)
        ours_own = {(queue.broker_name, queue.queue_id) for queue in owned(ours, topic)}

    view = json.loads(shown.stdout)
    owners = {
        (queue["broker_name"], queue["queue_id"]): queue["owners"]
        for queue in view["queues"]
        if queue["topic"] == topic
    }
    assert {place for place, names in owners.items() if names == [ours.client_id]} == ours_own
    assert sorted(names[0] for names in owners.values()) == sorted([java.client_id, ours.client_id] * 2)
    told = {member["client_id"]: (member["language"], member["strategy"]) for member in view["members"]}
    assert told == {java.client_id: ("JAVA", "AVG"), ours.client_id: ("PYTHON", "AVG")}
    assert all(
        word in table for word in (java.client_id, ours.client_id, "V5_5_0", "2 members", "clustering")
    )
    assert (checked.returncode, checked.stdout) == (0, f"group {group}: nothing found\n")


def test_a_member_whose_process_hangs_leaves_open_what_is_owned_and_ends_with_3(
    local_cluster, make_topic, group, variables, monkeypatch
):
    monkeypatch.setattr(group_check, "SETTLE_SECONDS", 0.5)  # the member hangs until the end
    topic = make_topic(queues=1)
    with PythonConsumer(local_cluster.name_server, group, topic) as member:
        member.await_assigned(2)
        with member.paused():
            checked = rmqtools("group", "check", group, "--set", "request_timeout=1", **variables)

    assert checked.returncode == 3
    assert "member_silent" in checked.stdout
    assert member.client_id in checked.stdout


def test_allocate_shows_what_would_move(make_topic, group, join, variables):
    topic = make_topic(queues=2)
    first, second = join(topic, client_ip="127.0.0.6"), join(topic, client_ip="127.0.0.7")
    wait_until(lambda: len(owned(first, topic)) == len(owned(second, topic)) == 2)

    options = ("-o", "ips=127.0.0.6", "-o", "when_absent=nobody")
    shown = rmqtools("allocate", "-t", topic, "-g", group, "-s", "PINNED_BY_IP", *options, **variables)
    same = rmqtools("allocate", "-t", topic, "-g", group, "-s", "AVG", **variables)

    assert shown.returncode == 0, shown.stderr
    assert "2 queues would move" in shown.stdout
    assert f"{first.client_id}: 4 of 4 queues" in shown.stdout
    assert "0 queues would move" in same.stdout


@pytest.mark.slow  # obstacles have their unit tests
def test_a_group_of_java_members_is_not_pinned_unless_forced(
    java_peer, local_cluster, make_topic, admin, group, variables
):
    topic = make_topic(queues=1)
    allowed = variables | {"RMQTOOLS_ALLOWED_GROUPS": "other,group-*"}
    with JavaConsumer(java_peer, local_cluster.name_server, group, topic, "--ip", "127.0.0.9") as member:
        member.await_assigned(2)
        pin = ("pin", "set", "-g", group, "--when-absent", "nobody")
        of_java = rmqtools(*pin, "--ip", "127.0.0.9", **allowed)
        elsewhere = rmqtools(*pin, "--ip", "10.9.9.9", **allowed)
        forced = rmqtools(*pin, "--ip", "127.0.0.9", "--force", **variables)

    assert (of_java.returncode, elsewhere.returncode, forced.returncode) == (1, 1, 0)
    assert f"member {member.client_id}, JAVA does not share by PINS: its strategy is AVG" in of_java.stderr
    assert "allowed groups" not in of_java.stderr
    assert f"no live member has ip 10.9.9.9; members: {member.client_id}" in elsewhere.stderr
    assert forced.stderr.startswith("warning: pinned in spite of:")
    assert admin.fetch_pins(group).ips == ("127.0.0.9",)
    admin.clear_pins(group)
