"""The measurement of exactly-once writes, in small: each kind of break once or twice."""

import sys

import pytest

from tests.support.spark_processes import ROOT, environment, run

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow]


@pytest.mark.parametrize(
    "breaks",
    [
        (
            "--kills",
            "2",
            "--broker-kills",
            "1",
            "--pauses",
            "0",
            "--executor-kills",
            "1",
            "--speculations",
            "0",
            "--lock-seconds",
            "5",
        ),
        ("--kills", "0", "--broker-kills", "0", "--pauses", "1", "--executor-kills", "0"),
    ],
    ids=["killed", "stopped"],
)
def test_a_java_client_finds_each_row_once_whatever_was_killed_or_stopped(breaks):
    printed = run([sys.executable, "-m", "tools.measure.exact_sink", *breaks], environment(), cwd=ROOT)

    judged = [line for line in printed if " twice, " in line]
    assert judged
    assert all(", 0 twice, 0 missing, " in line for line in judged), printed
