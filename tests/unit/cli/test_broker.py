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


WELL = "healthy: 2 brokers, 2 masters"
FILLS = "unhealthy: broker-a (master): disk 86% full: old messages are deleted before their time\n"


@pytest.mark.parametrize(
    ("disk", "options", "code", "text"),
    [
        ("0.45", "", 0, f"{WELL}\n"),
        ("0.45", "--quiet", 0, ""),
        ("0.45", "--brokers 3", 1, "unhealthy: 2 masters answer, want 3\n"),
        ("0.86", "--quiet", 1, FILLS),
        ("0.86", "--ignore disk_nearly_full:broker-*", 0, f"{WELL} (1 left out)\n"),
        ("0.86", "--ignore disk_nearly_full:broker-b", 1, FILLS),
        ("0.95", "", 1, "unhealthy: broker-a (master): disk 95% full\n"),
    ],
)
def test_health_is_what_is_wrong_and_was_not_left_out(run, says, disk, options, code, text):
    says(**{"commitLogDiskRatio_/store/commitlog": disk})

    shown = run("health", *options.split())

    assert (shown.exit_code, shown.stdout) == (code, text)


def test_findings_for_programs_have_a_severity(run, says):
    says(**{"commitLogDiskRatio_/store/commitlog": "0.86"})

    severe = run("health", "--min-severity", "critical", "--json")

    (found,) = json.loads(severe.stdout)["findings"]
    assert (severe.exit_code, found["kind"], found["subject"], found["severity"]) == (
        *(1, "disk_nearly_full"),
        *("broker-a", "critical"),
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
