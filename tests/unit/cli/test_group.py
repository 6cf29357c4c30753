"""``rmqtools group`` on the cluster in this process: what is printed, and what is changed."""

import json
from dataclasses import replace

import pytest

from rmqtools import MessageQueue
from rmqtools.cli.exit_code import ExitCode
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import RemotingError, UnsupportedError
from rmqtools.model.running_info import ProcessQueueInfo
from rmqtools.testing import Reaction
from tests.unit.cli.top.scene import report

QUEUE = MessageQueue("orders", "broker-a", 0)

RESET = ("group", "reset", "billing", "-t", "orders", "--to-earliest")
SKIP = ("group", "skip", "billing", "-t", "orders")
SOON = ("--set", "request_timeout=1")


@pytest.fixture(autouse=True)
def billing(cluster):
    """A group that has consumed 1 of 3 messages of a topic with two queues, and has no members."""
    cluster.create_topic("orders", queues=1)
    for second in (1, 2, 3):
        own = {"KEYS": "k", "UNIQ_KEY": f"0A{second}" * 8}
        cluster.store("orders", b"x", queue=QUEUE, store_timestamp_ms=second * 1000, properties=own)
    cluster.create_group("billing")
    cluster.commit("billing", QUEUE, 1)
    cluster.commit("billing", MessageQueue("orders", "broker-b", 0), 0)


def offset(cluster):
    return cluster.committed("billing", QUEUE)


@pytest.fixture
def member(cluster):
    """Add a member that owns both queues."""
    owner = report("orders", ("broker-a", 0), ("broker-b", 0), strategy="AVG")
    cluster.add_member("billing", "10.0.0.1@one", owner)
    return owner


def test_groups_are_listed_with_members_and_lag(run):
    (row,) = json.loads(run("group", "list", "--json").stdout)

    assert (row["group"], row["members"], row["lag"]) == ("billing", 0, 2)
    assert run("group", "list").stdout.splitlines() == [
        "GROUP    MEMBERS  LAG  RATE/S  MODEL  TYPE  LAST CONSUMED",
        "billing        0    2     0.0  -      -     1970-01-01 00:00:01 UTC",
    ]


def test_idle_groups_have_no_members_and_have_consumed_nothing_new(run, cluster):
    cluster.create_topic("new", queues=1)
    cluster.store("new", b"x", queue=MessageQueue("new", "broker-a", 0))
    for group in ("reading", "joined", "never"):
        cluster.create_group(group)
    cluster.commit("reading", MessageQueue("new", "broker-a", 0), 1)
    cluster.add_member("joined", "10.0.0.1@one")

    rows = json.loads(run("group", "list", "--idle", "30d", "--json").stdout)

    assert [row["group"] for row in rows] == ["billing", "never"]
    assert rows[1]["last_consumed"] is None


@pytest.mark.parametrize(
    "command",
    [
        *(("group", "list"), ("topic", "list", "--stats"), ("group", "show", "billing")),
        *(("topic", "describe", "orders"), ("dlq", "list", "-g", "poor")),
        ("message", "get", "orders", "--key", "k", "--no-track"),
        ("message", "story", "k", "-t", "orders"),
        *(("topic", "producers", "orders"), ("dlq", "browse", "-g", "poor"), ("broker", "status")),
        *(("group", "alter", "billing"), ("pin", "show", "-g", "billing"), ("export",)),
        *((*RESET, "--dry-run"), (*SKIP, "--dry-run"), (*SKIP, "--queue", "broker-a:0", "--dry-run")),
    ],
)
def test_a_broker_that_does_not_answer_is_named_and_the_rest_is_listed(run, cluster, command):
    cluster.create_topic("%DLQ%poor", queues=1)
    cluster.store("%DLQ%poor", b"1", queue=MessageQueue("%DLQ%poor", "broker-a", 0))
    cluster.fault(broker="broker-b", times=None, answer=Reaction.DISCONNECT)

    shown = run(*command, *SOON)

    assert shown.exit_code == ExitCode.INCOMPLETE
    assert any(text in shown.stdout for text in ("billing", "orders", "broker-a", "BROKER-A", "127.0.0.1"))
    assert "warning: without broker broker-b, which does not answer: " in shown.stderr


@pytest.mark.parametrize(
    "command",
    [
        *((*RESET, "--yes"), (*SKIP, "--yes"), (*SKIP, "--queue", "broker-b:0", "--yes")),
        *(("group", "alter", "billing", "-c", "retry_max_times=3"), ("group", "delete", "billing", "--yes")),
        *(("topic", "delete", "orders", "--yes"), ("dlq", "replay", "-g", "billing")),
    ],
)
def test_nothing_is_changed_while_a_broker_does_not_answer(run, cluster, command):
    cluster.create_topic("%DLQ%billing", queues=1)
    before = run("export").stdout
    fault = cluster.fault(broker="broker-b", times=None, answer=Reaction.DISCONNECT)
    with pytest.raises(RemotingError):
        run(*command, *SOON)
    fault.remove()

    assert (offset(cluster), run("export").stdout) == (1, before)


@pytest.mark.parametrize("command", [("get", "orders", "--key", "none"), ("story", "none", "-t", "orders")])
def test_a_message_that_a_broker_without_an_answer_may_have_is_not_said_to_be_missing(run, cluster, command):
    fault = cluster.fault(broker="broker-b", times=None, answer=Reaction.DISCONNECT)
    without = run("message", *command)
    fault.remove()

    assert (without.exit_code, run("message", *command).exit_code) == (3, 1)
    assert "warning: without broker broker-b, which does not answer: " in without.stderr


@pytest.mark.parametrize(
    ("limit", "kind"), [(("--max-lag", "1"), "lag_large"), (("--max-age", "3600"), "messages_old")]
)
def test_a_group_that_is_late_is_found_within_the_limits_given(run, limit, kind):
    assert kind in run("group", "check", "billing", *limit).stdout
    assert kind not in run("group", "check", "billing").stdout


@pytest.mark.parametrize("option", [("--ignore", "no_members"), ("--min-severity", "error")])
def test_a_check_leaves_out_what_is_ignored_or_not_severe(run, option):
    checked = run("group", "check", "billing", *option)

    assert (checked.exit_code, checked.stdout) == (0, "group billing: nothing found (1 left out)\n")


def test_a_quiet_check_prints_only_what_is_found(run, cluster, member):
    well = run("group", "check", "billing", "--quiet")
    cluster.remove_member("billing", "10.0.0.1@one")
    found = run("group", "check", "billing", "--quiet")

    assert (well.exit_code, well.stdout) == (0, "")
    assert (found.exit_code, "no_members" in found.stdout) == (1, True)


def test_a_queue_without_a_fetch_is_found_after_the_time_given(run, cluster, member):
    fetched = ProcessQueueInfo(last_pull_timestamp=SYSTEM_CLOCK.now_ms() - 30_000)
    table = dict.fromkeys(member.mq_table, fetched)
    cluster.add_member("billing", "10.0.0.1@one", replace(member, mq_table=table))

    assert "queue_not_fetched" not in run("group", "check", "billing").stdout
    assert "queue_not_fetched" in run("group", "check", "billing", "--max-stall", "20s").stdout


def test_a_check_that_lacks_a_broker_cannot_tell(run, cluster, member):
    cluster.fault(broker="broker-b", times=None, answer=Reaction.DISCONNECT)

    found = run("group", "check", "billing")

    assert found.exit_code == ExitCode.INCOMPLETE
    assert "broker_silent" in found.stdout


def test_a_group_without_members_is_shown_with_its_offsets(run):
    assert run("group", "show", "billing").stdout.splitlines() == [
        "group billing: no members",
        "TOPIC   QUEUE       OWNER  NEXT OFFSET  END  LAG  NOTE",
        "orders  broker-a:0  -                1    3    2",
        "orders  broker-b:0  -                0    0    0",
    ]


def test_a_narrow_terminal_has_a_table_for_each_topic(run, cluster, monkeypatch):
    for module in ("printing", "group"):
        monkeypatch.setattr(f"rmqtools.cli.{module}.terminal_width", lambda: 30)

    shown = run("group", "show", "billing")

    assert shown.stdout.splitlines() == [
        "group billing: no members",
        "topic orders:",
        "QUEUE       OWNER  LAG  NOTE",
        "broker-a:0  -        2",
        "broker-b:0  -        0",
    ]
    assert "not shown at 30 columns: next offset, end" in " ".join(shown.stderr.split())


@pytest.mark.parametrize(
    ("option", "after"),
    [
        (("--to-earliest",), 0),
        (("--to-latest",), 3),
        (("--to-time", "1970-01-01T00:00:02"), 1),
        (("--to-time", "1970-01-01T02:00:03+02:00"), 2),
        (("--to-offset", "broker-a:0=2"), 2),
    ],
)
def test_a_reset_shows_before_after_and_difference_and_then_does_it(run, cluster, option, after):
    reset = ("group", "reset", "billing", "-t", "orders", *option)

    would = json.loads(run(*reset, "--dry-run", "--json").stdout)
    unchanged = offset(cluster)
    done = run(*reset, "--yes")

    assert would[0] == {
        "topic": "orders",
        "broker_name": "broker-a",
        "queue_id": 0,
        "before": 1,
        "after": after,
        "difference": after - 1,
    }
    assert (unchanged, offset(cluster)) == (1, after)
    assert done.stdout.splitlines()[:2] == [
        "QUEUE       BEFORE  AFTER  DIFFERENCE",
        f"broker-a:0       1      {after}  {after - 1:>10}",
    ]


def test_a_reset_says_which_moment_it_understood(run, cluster):
    shown = run(
        "group", "reset", "billing", "-t", "orders", "--to-time", "2026-01-31T12:00+02:00", "--dry-run"
    )

    assert shown.stderr.splitlines() == [
        "to the first messages stored at or after 2026-01-31 10:00:00 UTC",
        "--dry-run changes nothing; without it: Move billing to these offsets of orders?",
    ]


def test_skip_moves_a_group_behind_the_last_message(run, cluster):
    shown = run(*SKIP, "-y").stdout

    assert offset(cluster) == 3
    assert shown.endswith("group billing is reset on 2 queues of orders\n")


def test_a_message_of_one_queue_is_skipped_while_members_run(run, cluster):
    cluster.add_member("billing", "10.0.0.1@x")
    skip = (*SKIP, "--queue", "broker-a:0")

    dry = run(*skip, "--offset", 1, "--dry-run").stdout
    kept = offset(cluster)
    shown = run(*skip, "--offset", 1, "-y").stdout
    at = offset(cluster)
    run(*skip, "-y")

    assert dry.splitlines() == [
        "QUEUE       BEFORE  AFTER  DIFFERENCE",
        "broker-a:0       1      2           1",
    ]
    assert (kept, at, offset(cluster)) == (1, 2, 3)
    assert shown.endswith("group billing goes on at offset 2 of orders broker-a:0\n")
    assert cluster.committed("billing", MessageQueue("orders", "broker-b", 0)) == 0


def test_brokers_that_would_move_all_queues_are_refused_by_name(run, cluster):
    run("broker", "config", "broker-a", "-c", "useServerSideResetOffset=false", "--yes")

    with pytest.raises(UnsupportedError, match=r"broker-a at .* has useServerSideResetOffset=false: set"):
        run(*SKIP, "--yes", "--queue", "broker-a:0", "--offset", 1)
    assert offset(cluster) == 1


def test_nothing_is_reset_if_nobody_can_be_asked(run, cluster):
    result = run(*RESET)

    assert (result.exit_code, offset(cluster)) == (1, 1)
    assert "Nobody can answer here: give --yes" in result.stderr


@pytest.mark.parametrize(
    ("options", "parts", "kept"),
    [
        pytest.param((), "its settings and offsets", None, id="with-its-offsets"),
        pytest.param(("--keep-offsets",), "its settings", 1, id="without-its-offsets"),
    ],
)
def test_a_deleted_group_is_gone_and_may_keep_its_offsets(run, cluster, options, parts, kept):
    deleted = run("group", "delete", "billing", "--yes", *options).stdout

    assert deleted == f"group billing is deleted: {parts}\n"
    assert (run("group", "list", "--json").stdout, offset(cluster)) == ("[]\n", kept)


@pytest.mark.process
def test_watch_goes_on_beside_a_broker_that_does_not_answer(run, cluster):
    cluster.fault(broker="broker-b", times=None, answer=Reaction.DISCONNECT)

    watched = run("group", "watch", "billing", "--looks", "2", "--interval", "0.1", "--json")

    looks = [json.loads(line) for line in watched.stdout.splitlines()]
    assert watched.exit_code == 0
    assert ["broker_silent" in look["findings"] for look in looks] == [True, True]


def test_watch_prints_a_line_for_each_look(run):
    lines = run("group", "watch", "billing", "--looks", "2", "--interval", "0.1").stdout.splitlines()

    assert lines[0].split() == ["TIME", "(UTC)", "MEMBERS", "LAG", "IN/S", "OUT/S", "FINDINGS"]
    assert [line.split()[1:] for line in lines[1:]] == [
        ["0", "2", "-", "-", "no_members"],
        ["0", "2", "0.0", "0.0", "no_members"],
    ]


def test_a_member_that_does_not_answer_is_marked_and_its_error_stands_below_the_table(run, cluster):
    cluster.add_member("billing", "192.168.100.200@12345#98765432109876")

    lines = run("group", "show", "billing", *SOON).stdout.splitlines()

    assert lines[2].startswith("192.168.100.200@12345#98765432109876  ")
    assert lines[2].endswith("does not answer")
    assert lines[3].startswith("192.168.100.200@12345#98765432109876 does not answer: ")


def test_a_group_that_has_committed_nothing_is_behind_by_all_that_is_stored(run, cluster):
    cluster.begin_at(QUEUE, 1)
    cluster.commit("billing", QUEUE, None)
    listed = json.loads(run("group", "list", "--json").stdout)
    shown = json.loads(run("group", "show", "billing", "--json").stdout)
    watched = json.loads(run("group", "watch", "billing", "--looks", "1", "--json").stdout)

    assert next(row["lag"] for row in listed if row["group"] == "billing") == 2
    assert (sum(queue["lag"] for queue in shown["queues"]), watched["lag"]) == (2, 2)
