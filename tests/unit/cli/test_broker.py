"""``rmqtools broker`` and ``rmqtools health`` on the cluster in this process."""

import json
import subprocess
import sys

import pytest

from rmqtools.cli.exit_code import ExitCode
from rmqtools.model.codes import RequestCode
from rmqtools.model.group import KVTable
from rmqtools.protocol.wire.bodies import format_body
from rmqtools.protocol.wire.command import response

STATISTICS = {
    "brokerVersionDesc": "V5_5_0",
    "brokerActive": "true",
    "putTps": "12.5 10.0 9.0",
    "getTransferredTps": "7.0 6.0 5.0",
    "putLatency99": "1.25",
    "commitLogDiskRatio_/store/commitlog": "0.45",
    "pageCacheLockTimeMills": "0",
    "sendThreadPoolQueueSize": "3",
}


@pytest.fixture
def says(cluster):
    """Let broker-a say something else of itself."""

    def says(**statistics):
        body = format_body(KVTable(table=STATISTICS | statistics))
        code = RequestCode.GET_BROKER_RUNTIME_INFO
        cluster.fault(code=code, broker="broker-a", times=None, answer=response(0, 0, body=body))

    return says


def test_the_numbers_of_every_broker_are_shown(run, says):
    says()

    assert run("broker", "status").stdout.splitlines()[1].split() == [
        *("broker-a", "master", json.loads(run("broker", "status", "--json").stdout)[0]["addr"], "V5_5_0"),
        *("12.5", "7.0", "1.2", "45.0", "0", "3"),
    ]


def test_settings_are_read_and_changed_with_a_difference(run):
    change = ("broker", "config", "broker-a", "-c", "fileReservedTime=24")

    before = run("broker", "config", "broker-a", "--match", "reserved").stdout
    dry = run(*change, "--dry-run").stdout
    done = run(*change, "--yes").stdout
    again = run(*change, "--yes").stdout

    assert before.splitlines() == ["SETTING           VALUE", "fileReservedTime  72"]
    assert dry.splitlines() == ["SETTING           BEFORE  AFTER", "fileReservedTime  72      24"]
    assert done.splitlines()[-1].endswith("is changed: fileReservedTime=24")
    assert again.endswith("has these settings already\n")


def test_a_quiet_probe_prints_only_what_is_wrong(run, says):
    well = run("health", "--quiet")
    says(**{"commitLogDiskRatio_/store/commitlog": "0.86"})
    full = run("health", "--quiet")

    assert (well.exit_code, well.stdout) == (0, "")
    assert full.exit_code == 1
    assert full.stdout == (
        "unhealthy: broker-a (master): disk 86% full: old messages are deleted before their time\n"
    )


def test_a_full_disk_and_missing_masters_are_unhealthy(run, says):
    healthy = run("health")
    missing = run("health", "--brokers", "3")
    says(**{"commitLogDiskRatio_/store/commitlog": "0.95"})
    full = run("health")

    assert (healthy.exit_code, healthy.stdout) == (0, "healthy: 2 brokers, 2 masters\n")
    assert (missing.exit_code, "2 masters answer, want 3" in missing.stdout) == (1, True)
    assert (full.exit_code, full.stdout) == (1, "unhealthy: broker-a (master): disk 95% full\n")


def test_findings_that_are_ignored_or_not_severe_leave_a_cluster_healthy_and_are_counted(run, says):
    says(**{"commitLogDiskRatio_/store/commitlog": "0.86"})
    ignored = run("health", "--ignore", "disk_nearly_full:broker-*")
    of_another = run("health", "--ignore", "disk_nearly_full:broker-b")
    severe = run("health", "--min-severity", "critical", "--json")

    assert (ignored.exit_code, ignored.stdout) == (0, "healthy: 2 brokers, 2 masters (1 left out)\n")
    assert of_another.exit_code == 1
    assert severe.exit_code == 1
    (found,) = json.loads(severe.stdout)["findings"]
    assert (found["kind"], found["subject"], found["severity"]) == (
        "disk_nearly_full",
        "broker-a",
        "critical",
    )


def test_a_drain_is_no_alarm_for_those_who_leave_out_warnings(run):
    run("broker", "config", "broker-a", "-c", "brokerPermission=4", "--yes")

    drained, severe = run("health"), run("health", "--min-severity", "error")

    assert (drained.exit_code, severe.exit_code) == (1, 0)


@pytest.mark.process
@pytest.mark.parametrize("command", [("health",), ("group", "check", "g")], ids=" ".join)
def test_no_name_server_that_answers_is_incomplete(command):
    nowhere = ("rmqtools", *command, "-n", "127.0.0.1:1", "--set", "request_timeout=0.2")
    ended = subprocess.run([sys.executable, "-m", *nowhere], capture_output=True, text=True, check=False)

    assert ended.returncode == ExitCode.INCOMPLETE
    assert ended.stderr.startswith("error: cannot connect to 127.0.0.1:1")
