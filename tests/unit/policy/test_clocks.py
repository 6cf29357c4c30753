import pytest

from rmqtools.policy.clocks import ahead, broker_ahead, clock_findings

BOOT_MS = 1_000_000_000_000
AN_HOUR = {"bootTimestamp": str(BOOT_MS), "runtime": "[ 1 days, 2 hours, 3 minutes, 4 seconds ]"}
THEN_MS = BOOT_MS + (86_400 + 2 * 3_600 + 3 * 60 + 4) * 1000


@pytest.mark.parametrize("since_ms", [0, 500, 999])
def test_a_broker_whose_whole_seconds_fit_has_the_same_time(since_ms):
    assert broker_ahead(AN_HOUR, THEN_MS + since_ms, THEN_MS + since_ms + 20) == 0.0


@pytest.mark.parametrize("seconds", [-600, 600])
def test_the_difference_is_known_within_the_second_that_a_broker_leaves_open(seconds):
    asked_ms = THEN_MS + 500 - seconds * 1000

    assert broker_ahead(AN_HOUR, asked_ms, asked_ms + 20) == pytest.approx(seconds, abs=1)


def test_a_time_at_the_edge_of_what_fits_is_no_difference():
    assert ahead(THEN_MS, THEN_MS + 1000, THEN_MS - 20, THEN_MS) == 0.0
    assert ahead(THEN_MS, THEN_MS + 1000, THEN_MS + 1000, THEN_MS + 1020) == 0.0


def test_a_slow_answer_makes_no_difference():
    assert ahead(THEN_MS + 4000, THEN_MS + 4000, THEN_MS, THEN_MS + 9000) == 0.0


@pytest.mark.parametrize("statistics", [{}, AN_HOUR | {"runtime": "soon"}, AN_HOUR | {"bootTimestamp": "-"}])
def test_an_answer_without_a_time_tells_nothing(statistics):
    assert broker_ahead(statistics, THEN_MS, THEN_MS) is None


def test_equal_clocks_and_small_differences_are_no_finding():
    assert list(clock_findings({})) == []
    assert list(clock_findings({"a": 0.0, "b": 4.0, "c": -4.0})) == []


def test_if_most_brokers_differ_it_is_this_machines_clock():
    (finding,) = clock_findings({"a": 600.0, "b": 601.0, "c": 600.0})

    assert (finding.kind, finding.subject) == ("clock_differs", "")
    assert finding.text.startswith("the clock of this machine is 600 s behind those of the brokers: ")


def test_a_single_broker_that_differs_is_named():
    (finding,) = clock_findings({"a": 0.0, "b": 0.0, "c": -30.0})

    assert finding.subject == "c"
    assert finding.text.startswith("the clock of broker c is 30 s behind those of the other brokers: ")
