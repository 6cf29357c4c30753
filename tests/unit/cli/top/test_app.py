"""The live view on the cluster in this process: what is shown, and what may be changed from it."""

import re
import signal
from dataclasses import replace

import pytest

from rmqtools import MessageQueue
from rmqtools.allocate import Pins
from rmqtools.cli.top.live_table import LiveTable
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.testing import NAME_SERVER, FakeCluster, Reaction, RequestCode, ResponseCode
from tests.unit.cli.top.scene import report, watching

pytestmark = pytest.mark.process  # seconds of work

A, B = "broker-a", "broker-b"
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
FIRST, SECOND = "10.0.0.1@one", "10.0.0.2@two"


@pytest.fixture
def cluster():
    with FakeCluster(brokers=(A, B), auto_create_topics=False) as cluster:
        cluster.create_topic("orders", queues=2)
        cluster.store("orders", b"x", b"x", b"x", queue=MessageQueue("orders", A, 0))
        cluster.create_group("billing")
        cluster.commit("billing", MessageQueue("orders", A, 0), 1)
        cluster.commit("billing", MessageQueue("orders", B, 0), 0)
        share(cluster, FIRST, (A, 0), (A, 1))
        share(cluster, SECOND, (B, 0), (B, 1))
        yield cluster


@pytest.fixture
def pins(admin):
    return lambda: admin.fetch_pins("billing")


def share(cluster, client_id, *queues):
    cluster.add_member("billing", client_id, report("orders", *queues))


def open_group(view, *words):
    """Open the group, and wait until its picture has all these words."""
    view.until("billing")
    view.press("enter")
    return view.until(*words)


def without_trend(text):
    """A picture without bars and addresses, which differ from run to run."""
    text = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", text)
    return [re.sub(r" +", " ", re.sub("[▁▂▃▄▅▆▇█]", "", line)).strip() for line in text.splitlines()]


def test_the_tab_of_groups_has_members_and_lag(cluster):
    with watching(cluster) as view:
        lines = without_trend(view.until("billing", "1 group by name"))

        assert lines[0] == "HOST:PORT 2 masters in 0/s out 0/s"
        assert lines[1].split() == ["findings", "groups", "topics", "brokers"]
        assert lines[3].split() == ["GROUP", "MEMBERS", "LAG", "DEAD", "OUT/S", "NOTE", "TREND"]
        assert lines[4].split()[:3] == ["billing", "2", "2"]


def test_keys_open_topics_and_brokers(cluster):
    with watching(cluster) as view:
        view.until("billing")
        view.press("t")
        topics = without_trend(view.until("orders"))
        view.press("b")
        brokers = without_trend(view.until("broker-b master"))

        assert topics[4].split()[:3] == ["orders", "4", "3"]
        assert [line.split()[:2] for line in brokers[4:6]] == [[A, "master"], [B, "master"]]


def test_a_group_shows_members_and_a_grid_of_owners(cluster):
    with watching(cluster) as view:
        lines = without_trend(open_group(view, FIRST, "orders broker-b"))

        assert re.match(r"billing 2 members lag 2 \(\d+s old\) out ", lines[0])
        assert lines[1].startswith("not pinned")
        assert lines[3] == f"A {FIRST} 2 PINS"
        assert lines[4] == f"B {SECOND} 2 PINS"
        assert lines[6:8] == ["orders broker-a 0 AA", "orders broker-b 0 BB"]


def test_the_grid_follows_a_rebalance_and_counts_the_moved_queues(cluster):
    with watching(cluster) as view:
        open_group(view, "broker-b 0 BB")
        share(cluster, FIRST, (A, 0), (A, 1), (B, 1))
        share(cluster, SECOND, (B, 0))

        assert "1 queue moved at" in view.until("broker-b 0 BA")


def test_a_member_that_does_not_answer_makes_unowned_queues_uncertain(cluster):
    cluster.add_member("billing", SECOND, None)

    with watching(cluster) as view:
        open_group(view, "broker-b 0 ??", "does not answer", "member_silent")


def test_a_pin_is_set_after_a_question_that_names_its_effect(cluster, pins):
    with watching(cluster, allowed="bill*") as view:
        open_group(view, "broker-b 0 BB")
        view.press("down", "p")
        view.until("Pin group billing to 10.0.0.2?", "2 queues of orders", "messages wait")
        unchanged = pins()
        view.press("w")
        view.until("all members share")
        view.press("y")
        view.until("billing is pinned to 10.0.0.2")

        assert unchanged.ips == ()

    assert (pins().ips, pins().when_absent) == (("10.0.0.2",), "everybody")


@pytest.mark.parametrize(
    ("allowed", "words", "keys"),
    [
        pytest.param("bill*", ["Pin group billing to 10.0.0.1?"], "n", id="answered-with-no"),
        pytest.param("", ["Refused, because:", "not among the allowed groups"], "yn", id="not-allowed"),
    ],
)
def test_a_pin_that_is_declined_or_not_allowed_changes_nothing(cluster, pins, allowed, words, keys):
    with watching(cluster, allowed=allowed) as view:
        open_group(view, "broker-b 0 BB")
        view.press("p")
        view.until(*words)
        view.press(*keys)
        view.until("broker-b 0 BB")

    assert pins().version == 0


def test_pins_are_shown_and_removed_after_a_question(cluster, admin, pins):
    admin.set_pins("billing", Pins(0, ["10.0.0.1"], when_absent="nobody", set_by="jane"))

    with watching(cluster) as view:
        open_group(view, "pinned to 10.0.0.1")
        view.press("u")
        view.until("Remove the pins of group billing?", "They are 10.0.0.1 (version 1, set by jane).")
        view.until("2 of 2 members share all", "Moves 0 queues of orders.")
        view.press("y")
        view.until("billing is not pinned any more")

    assert pins().ips == ()


def test_a_look_that_fails_is_shown_and_the_next_one_tries_again(cluster):
    with watching(cluster) as view:
        view.until("billing")
        cluster.fault(
            code=RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, answer=ResponseCode.SYSTEM_ERROR, times=1
        )
        view.until("this look failed")
        looks = view.app.looks
        cluster.create_group("another")
        view.until("another", "billing")

        assert view.app.looks > looks


def test_rows_are_sorted_by_name_then_by_rate_then_by_lag(cluster):
    cluster.create_group("audit")

    with watching(cluster) as view:
        shown = view.until("billing", "by name")
        view.press("s", "s")
        sorted_by_lag = view.until("by lag")

        assert shown.index("audit") < shown.index("billing")
        assert sorted_by_lag.index("billing") < sorted_by_lag.index("audit")


@pytest.mark.parametrize(("key", "number"), [("q", None), ("ctrl+c", signal.SIGINT)])
def test_the_view_returns_the_signal_that_ended_it(cluster, key, number):
    with watching(cluster) as view:
        view.until("billing")
        view.press(key)

    assert view.app.return_value == number


@pytest.mark.parametrize("queues", [100, pytest.param(5000, marks=pytest.mark.slow)])
def test_thousands_of_queues_are_shown_and_can_be_scrolled_to_the_last(cluster, queues):
    cluster.create_topic("wide", queues=queues)
    cluster.commit("billing", MessageQueue("wide", A, 0), 0)
    cluster.commit("billing", MessageQueue("wide", B, 0), 0)
    cluster.add_member("billing", FIRST, report("wide", *((A, index) for index in range(queues))))
    cluster.add_member("billing", SECOND, report("wide", *((B, index) for index in range(queues - 1))))

    with watching(cluster) as view:
        open_group(view, "wide broker-a")
        view.press("tab", "end")
        shown = view.until(f" {queues - 50} {'B' * 49}.")

        assert re.search(rf"{queues - 50} B{{49}}\.$", shown, flags=re.MULTILINE)


@pytest.mark.parametrize("size", [(80, 24), (60, 24), (100, 30)])
def test_the_line_of_keys_and_the_last_look_stay_visible_at_every_size(cluster, size):
    with watching(cluster, size=size) as view:
        lines = view.until("billing", "1 group by name", "q quit").split("\n")

        assert len(lines) == size[1]
        assert max(map(len, lines)) <= size[0]
        assert "q quit" in lines[-1]


STUCK = {"PROP_RMQTOOLS_STRATEGY": "AVG", "PROP_RMQTOOLS_LONGEST_CALL": "754.0"}


def make_it_a_bad_day(cluster):
    """Let a listener be stuck, and dead letters come."""
    cluster.create_topic("%DLQ%billing", queues=1)
    cluster.store("%DLQ%billing", b"x", b"y")
    stuck = replace(report("orders", (A, 0), (A, 1)), properties=STUCK)
    cluster.add_member("billing", FIRST, stuck)
    cluster.add_member("billing", SECOND, report("orders", (B, 0), (B, 1), strategy="AVG"))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_findings_come_first_the_worst_on_top_each_with_the_command_that_helps(cluster, size):
    make_it_a_bad_day(cluster)
    cluster.fault(broker=B, times=None, answer=Reaction.DISCONNECT)

    with watching(cluster, size=size, tab="f") as view:
        shown = view.until("broker_silent", "listener_slow", "dead_letters", "q quit")

        places = [shown.index(f"{name}: ") for name in (B, "billing")]
        assert places == sorted(places)
        assert shown.index("listener_slow") < shown.index("dead_letters")
        assert "$ rmqtools broker status" in shown
        assert f"$ rmqtools group show billing --member {FIRST}" in " ".join(shown.split())
        assert "$ rmqtools dlq list -g billing" in shown


def test_enter_opens_the_group_of_a_finding_and_the_note_of_a_group_is_its_worst(cluster):
    make_it_a_bad_day(cluster)

    with watching(cluster, tab="f") as view:
        view.until("listener_slow")
        view.press("enter")
        view.until("billing  2 members  lag 2", "2 dead letters", "found: listener_slow, dead_letters")
        view.press("escape", "g")
        view.until("listener_slow +1")


def test_a_group_without_findings_leaves_the_list_empty(cluster):
    for client_id, broker in ((FIRST, A), (SECOND, B)):
        cluster.add_member("billing", client_id, report("orders", (broker, 0), (broker, 1), strategy="AVG"))

    with watching(cluster, tab="f") as view:
        view.until("nothing found in 1 group")


@pytest.mark.parametrize(("size", "keys"), [((80, 24), ["l"]), ((120, 40), [])])
def test_each_queue_has_lag_age_and_owner_and_a_wide_terminal_shows_both(cluster, size, keys):
    stored_ms = SYSTEM_CLOCK.now_ms() - 3_600_000 * 5
    cluster.store("orders", b"old", queue=MessageQueue("orders", B, 1), store_timestamp_ms=stored_ms)
    cluster.commit("billing", MessageQueue("orders", B, 1), 0)

    with watching(cluster, size=size) as view:
        open_group(view, "broker-b 0 BB")
        view.press(*keys)
        shown = view.until("OWNER", "5h", "(5h old)")

        assert re.search(r"broker-b:1 +B +1 +5h", shown)
        assert ("broker-b 0 BB" in shown) == (size[0] > 110)


def test_a_narrow_terminal_keeps_names_lag_and_notes_and_leaves_out_the_trend(cluster):
    name = "a-group-with-a-name-as-long-as-they-are-in-companies"
    cluster.create_group(name)
    cluster.commit(name, MessageQueue("orders", A, 0), 0)

    with watching(cluster) as view:
        view.until(name, "no_members")
        table = view.app.query_one("#groups-table", LiveTable)

        assert {"group", "lag", "note"} <= set(table.names)
        assert "trend" not in table.names


def test_a_broker_that_is_gone_keeps_a_line_with_the_time_and_its_return_makes_no_spike(cluster):
    with watching(cluster, tab="b") as view:
        view.until("broker-b master")
        view.press("t")
        view.until("orders", " 4 ")
        cluster.stop(B, in_route=False)
        view.until("1 broker finding")
        view.press("b")
        view.until("gone since ")
        view.press("f")
        view.until("broker_gone", "broker-b: gone since")
        view.press("t")
        view.until("orders", " 2 ")
        cluster.store("orders", *[b"x"] * 5, queue=MessageQueue("orders", B, 0))
        cluster.restart(B)
        view.until("orders", " 4 ")
        view.until(looks=view.app.looks + 2)

        assert max(view.app._sampler._meters["topic", "orders"].rates) == 0


def test_without_a_name_server_what_is_shown_is_marked_as_old_and_has_no_rates(cluster):
    with watching(cluster, request_timeout=1.0) as view:
        view.until("billing", "1 group by name")
        fault = cluster.fault(broker=NAME_SERVER, times=None, answer=Reaction.DISCONNECT)
        view.until("STALE: as of ", "old, as of ", "billing        2    2     0      -  ")
        fault.remove()
        view.until("1 group by name", "in 0/s")


def test_a_filter_shows_only_names_that_contain_it_and_the_question_mark_explains_it(cluster):
    cluster.create_group("audit")

    with watching(cluster) as view:
        view.until("audit", "billing")
        view.press("slash", *"BILL", "enter")
        filtered = view.until("only 'bill': 1 group by name")
        view.press("escape")
        view.until("audit", "2 groups by name")
        view.press("question_mark")
        view.until("show only names that contain a text", "Escape: back")
        view.press("escape")
        view.until("2 groups by name")

        assert "audit" not in filtered


@pytest.mark.parametrize("attack", ["\x1b[2J", "\x9b31m", "\u202eevil", "x\r\ny", "\u2028"])
def test_names_that_act_on_a_terminal_are_shown_escaped(attack):
    with FakeCluster(brokers=(f"broker{attack}",)) as cluster:
        topic = f"orders{attack}"
        cluster.create_topic(topic, queues=1)
        cluster.create_group("billing")
        report_ = report(topic, (f"broker{attack}", 0), strategy=f"AVG{attack}")
        cluster.add_member("billing", f"10.0.0.1@{attack}", report_)

        with watching(cluster, size=(120, 24)) as view:
            pictures = [view.until("billing", "1 group by name")]
            view.press("enter")
            pictures.append(view.until("10.0.0.1@", "1 member  lag"))
            assert not any(ACTING.search(shown) for shown in pictures), pictures
