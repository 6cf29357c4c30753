"""The live view on the cluster in this process: what is shown, and what may be changed from it."""

import re
import signal
from dataclasses import replace

import pytest

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.allocate import Pins
from rmqtools.cli.top.live_table import LiveTable
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.testing import NAME_SERVER, FakeCluster, Reaction, RequestCode, ResponseCode
from tests.unit.cli.top.scene import report, until, watch

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
def pins(cluster):
    def fetch():
        with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            return admin.fetch_pins("billing")

    return fetch


def share(cluster, client_id, *queues):
    cluster.add_member("billing", client_id, report("orders", *queues))


async def open_group(app, pilot, *words):
    """Open the group, and wait until its picture has all these words."""
    await until(app, pilot, "billing")
    await pilot.press("enter")
    return await until(app, pilot, *words)


def without_trend(text):
    """A picture without bars and addresses, which differ from run to run."""
    text = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", text)
    return [re.sub(r" +", " ", re.sub("[▁▂▃▄▅▆▇█]", "", line)).strip() for line in text.splitlines()]


def test_the_tab_of_groups_has_members_and_lag(cluster):
    async def steps(app, pilot):
        lines = without_trend(await until(app, pilot, "billing", "1 group by name"))

        assert lines[0] == "HOST:PORT 2 masters in 0/s out 0/s"
        assert lines[1].split() == ["findings", "groups", "topics", "brokers"]
        assert lines[3].split() == ["GROUP", "MEMBERS", "LAG", "DEAD", "OUT/S", "NOTE", "TREND"]
        assert lines[4].split()[:3] == ["billing", "2", "2"]

    watch(cluster, steps)


def test_keys_open_topics_and_brokers(cluster):
    async def steps(app, pilot):
        await until(app, pilot, "billing")
        await pilot.press("t")
        topics = without_trend(await until(app, pilot, "orders"))
        await pilot.press("b")
        brokers = without_trend(await until(app, pilot, "broker-b master"))

        assert topics[4].split()[:3] == ["orders", "4", "3"]
        assert [line.split()[:2] for line in brokers[4:6]] == [[A, "master"], [B, "master"]]

    watch(cluster, steps)


def test_a_group_shows_members_and_a_grid_of_owners(cluster):
    async def steps(app, pilot):
        lines = without_trend(await open_group(app, pilot, FIRST, "orders broker-b"))

        assert re.match(r"billing 2 members lag 2 \(\d+s old\) out ", lines[0])
        assert lines[1].startswith("not pinned")
        assert lines[3] == f"A {FIRST} 2 PINS"
        assert lines[4] == f"B {SECOND} 2 PINS"
        assert lines[6:8] == ["orders broker-a 0 AA", "orders broker-b 0 BB"]

    watch(cluster, steps)


def test_the_grid_follows_a_rebalance_and_counts_the_moved_queues(cluster):
    async def steps(app, pilot):
        await open_group(app, pilot, "broker-b 0 BB")
        share(cluster, FIRST, (A, 0), (A, 1), (B, 1))
        share(cluster, SECOND, (B, 0))

        assert "1 queue moved at" in await until(app, pilot, "broker-b 0 BA")

    watch(cluster, steps)


def test_a_member_that_does_not_answer_makes_unowned_queues_uncertain(cluster):
    cluster.add_member("billing", SECOND, None)

    async def steps(app, pilot):
        await open_group(app, pilot, "broker-b 0 ??", "does not answer", "member_silent")

    watch(cluster, steps)


def test_a_pin_is_set_after_a_question_that_names_its_effect(cluster, pins):
    async def steps(app, pilot):
        await open_group(app, pilot, "broker-b 0 BB")
        await pilot.press("down", "p")
        await until(app, pilot, "Pin group billing to 10.0.0.2?", "2 queues of orders", "messages wait")
        unchanged = pins()
        await pilot.press("w")
        await until(app, pilot, "all members share")
        await pilot.press("y")
        await until(app, pilot, "billing is pinned to 10.0.0.2")

        assert unchanged.ips == ()

    watch(cluster, steps, allowed="bill*")

    assert (pins().ips, pins().when_absent) == (("10.0.0.2",), "everybody")


@pytest.mark.parametrize(
    ("allowed", "words", "keys"),
    [
        pytest.param("bill*", ["Pin group billing to 10.0.0.1?"], "n", id="answered-with-no"),
        pytest.param("", ["Refused, because:", "not among the allowed groups"], "yn", id="not-allowed"),
    ],
)
def test_a_pin_that_is_declined_or_not_allowed_changes_nothing(cluster, pins, allowed, words, keys):
    async def steps(app, pilot):
        await open_group(app, pilot, "broker-b 0 BB")
        await pilot.press("p")
        await until(app, pilot, *words)
        await pilot.press(*keys)
        await until(app, pilot, "broker-b 0 BB")

    watch(cluster, steps, allowed=allowed)

    assert pins().version == 0


def test_pins_are_shown_and_removed_after_a_question(cluster, pins):
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        admin.set_pins("billing", Pins(0, ["10.0.0.1"], when_absent="nobody", set_by="jane"))

    async def steps(app, pilot):
        await open_group(app, pilot, "pinned to 10.0.0.1")
        await pilot.press("u")
        await until(app, pilot, "They are 10.0.0.1 (version 1, set by jane).", "2 of 2 members share all")
        await pilot.press("y")
        await until(app, pilot, "billing is not pinned any more")

    watch(cluster, steps)

    assert pins().ips == ()


def test_a_look_that_fails_is_shown_and_the_next_one_tries_again(cluster):
    async def steps(app, pilot):
        await until(app, pilot, "billing")
        cluster.fault(
            code=RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, answer=ResponseCode.SYSTEM_ERROR, times=1
        )
        await until(app, pilot, "this look failed")
        looks = app.looks
        cluster.create_group("another")
        await until(app, pilot, "another", "billing")

        assert app.looks > looks

    watch(cluster, steps)


def test_rows_are_sorted_by_name_then_by_rate_then_by_lag(cluster):
    cluster.create_group("audit")

    async def steps(app, pilot):
        shown = await until(app, pilot, "billing", "by name")
        await pilot.press("s", "s")
        sorted_by_lag = await until(app, pilot, "by lag")

        assert shown.index("audit") < shown.index("billing")
        assert sorted_by_lag.index("billing") < sorted_by_lag.index("audit")

    watch(cluster, steps)


@pytest.mark.parametrize(("key", "number"), [("q", None), ("ctrl+c", signal.SIGINT)])
def test_the_view_returns_the_signal_that_ended_it(cluster, key, number):
    ended = []

    async def steps(app, pilot):
        await until(app, pilot, "billing")
        ended.append(app)
        await pilot.press(key)

    watch(cluster, steps)

    assert ended[0].return_value == number


@pytest.mark.parametrize("queues", [100, pytest.param(5000, marks=pytest.mark.slow)])
def test_thousands_of_queues_are_shown_and_can_be_scrolled_to_the_last(cluster, queues):
    cluster.create_topic("wide", queues=queues)
    cluster.commit("billing", MessageQueue("wide", A, 0), 0)
    cluster.commit("billing", MessageQueue("wide", B, 0), 0)
    cluster.add_member("billing", FIRST, report("wide", *((A, index) for index in range(queues))))
    cluster.add_member("billing", SECOND, report("wide", *((B, index) for index in range(queues - 1))))

    async def steps(app, pilot):
        await open_group(app, pilot, "wide broker-a")
        await pilot.press("tab", "end")
        shown = await until(app, pilot, f" {queues - 50} {'B' * 49}.")

        assert re.search(rf"{queues - 50} B{{49}}\.$", shown, flags=re.MULTILINE)

    watch(cluster, steps)


@pytest.mark.parametrize("size", [(80, 24), (60, 24), (100, 30)])
def test_the_line_of_keys_and_the_last_look_stay_visible_at_every_size(cluster, size):
    async def steps(app, pilot):
        lines = (await until(app, pilot, "billing", "1 group by name", "q quit")).split("\n")

        assert len(lines) == size[1]
        assert max(map(len, lines)) <= size[0]
        assert "q quit" in lines[-1]

    watch(cluster, steps, size=size)


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

    async def steps(app, pilot):
        shown = await until(app, pilot, "broker_silent", "listener_slow", "dead_letters", "q quit")

        places = [shown.index(f"{name}: ") for name in (B, "billing")]
        assert places == sorted(places)
        assert shown.index("listener_slow") < shown.index("dead_letters")
        assert "$ rmqtools broker status" in shown
        assert f"$ rmqtools group show billing --member {FIRST}" in " ".join(shown.split())
        assert "$ rmqtools dlq list -g billing" in shown

    watch(cluster, steps, size=size, tab="f")


def test_enter_opens_the_group_of_a_finding_and_the_note_of_a_group_is_its_worst(cluster):
    make_it_a_bad_day(cluster)

    async def steps(app, pilot):
        await until(app, pilot, "listener_slow")
        await pilot.press("enter")
        await until(
            app, pilot, "billing  2 members  lag 2", "2 dead letters", "found: listener_slow, dead_letters"
        )
        await pilot.press("escape", "g")
        await until(app, pilot, "listener_slow +1")

    watch(cluster, steps, tab="f")


def test_a_group_without_findings_leaves_the_list_empty(cluster):
    for client_id, broker in ((FIRST, A), (SECOND, B)):
        cluster.add_member("billing", client_id, report("orders", (broker, 0), (broker, 1), strategy="AVG"))

    async def steps(app, pilot):
        await until(app, pilot, "nothing found in 1 group")

    watch(cluster, steps, tab="f")


@pytest.mark.parametrize(("size", "keys"), [((80, 24), ["l"]), ((120, 40), [])])
def test_each_queue_has_lag_age_and_owner_and_a_wide_terminal_shows_both(cluster, size, keys):
    stored_ms = SYSTEM_CLOCK.now_ms() - 3_600_000 * 5
    cluster.store("orders", b"old", queue=MessageQueue("orders", B, 1), store_timestamp_ms=stored_ms)
    cluster.commit("billing", MessageQueue("orders", B, 1), 0)

    async def steps(app, pilot):
        await open_group(app, pilot, "broker-b 0 BB")
        await pilot.press(*keys)
        shown = await until(app, pilot, "OWNER", "5h", "(5h old)")

        assert re.search(r"broker-b:1 +B +1 +5h", shown)
        assert ("broker-b 0 BB" in shown) == (size[0] > 110)

    watch(cluster, steps, size=size)


def test_a_narrow_terminal_keeps_names_lag_and_notes_and_leaves_out_the_trend(cluster):
    name = "a-group-with-a-name-as-long-as-they-are-in-companies"
    cluster.create_group(name)
    cluster.commit(name, MessageQueue("orders", A, 0), 0)

    async def steps(app, pilot):
        await until(app, pilot, name, "no_members")
        table = app.query_one("#groups-table", LiveTable)

        assert {"group", "lag", "note"} <= set(table.names)
        assert "trend" not in table.names

    watch(cluster, steps)


def test_a_broker_that_is_gone_keeps_a_line_with_the_time_and_its_return_makes_no_spike(cluster):
    async def steps(app, pilot):
        await until(app, pilot, "broker-b master")
        await pilot.press("t")
        await until(app, pilot, "orders", " 4 ")
        cluster.stop(B, in_route=False)
        await until(app, pilot, "1 broker finding")
        await pilot.press("b")
        await until(app, pilot, "gone since ")
        await pilot.press("f")
        await until(app, pilot, "broker_gone", "broker-b: gone since")
        await pilot.press("t")
        await until(app, pilot, "orders", " 2 ")
        cluster.store("orders", *[b"x"] * 5, queue=MessageQueue("orders", B, 0))
        cluster.restart(B)
        await until(app, pilot, "orders", " 4 ")
        looks = app.looks
        await until_looks(app, pilot, looks + 2)

        assert max(app._sampler._meters["topic", "orders"].rates) == 0

    watch(cluster, steps, tab="b")


async def until_looks(app, pilot, looks):
    while app.looks < looks:
        await pilot.pause(0.02)


def test_without_a_name_server_what_is_shown_is_marked_as_old_and_has_no_rates(cluster):
    async def steps(app, pilot):
        await until(app, pilot, "billing", "1 group by name")
        fault = cluster.fault(broker=NAME_SERVER, times=None, answer=Reaction.DISCONNECT)
        await until(app, pilot, "STALE: as of ", "old, as of ", "billing        2    2     0      -  ")
        fault.remove()
        await until(app, pilot, "1 group by name", "in 0/s")

    watch(cluster, steps, request_timeout=1.0)


def test_a_filter_shows_only_names_that_contain_it_and_the_question_mark_explains_it(cluster):
    cluster.create_group("audit")

    async def steps(app, pilot):
        await until(app, pilot, "audit", "billing")
        await pilot.press("slash", *"BILL", "enter")
        filtered = await until(app, pilot, "only 'bill': 1 group by name")
        await pilot.press("escape")
        await until(app, pilot, "audit", "2 groups by name")
        await pilot.press("question_mark")
        await until(app, pilot, "show only names that contain a text", "Escape: back")
        await pilot.press("escape")
        await until(app, pilot, "2 groups by name")

        assert "audit" not in filtered

    watch(cluster, steps)


@pytest.mark.parametrize("attack", ["\x1b[2J", "\x9b31m", "\u202eevil", "x\r\ny", "\u2028"])
def test_names_that_act_on_a_terminal_are_shown_escaped(attack):
    with FakeCluster(brokers=(f"broker{attack}",)) as cluster:
        topic = f"orders{attack}"
        cluster.create_topic(topic, queues=1)
        cluster.create_group("billing")
        report_ = report(topic, (f"broker{attack}", 0), strategy=f"AVG{attack}")
        cluster.add_member("billing", f"10.0.0.1@{attack}", report_)

        async def steps(app, pilot):
            pictures = [await until(app, pilot, "billing", "1 group by name")]
            await pilot.press("enter")
            pictures.append(await until(app, pilot, "10.0.0.1@", "1 member  lag"))
            assert not any(ACTING.search(shown) for shown in pictures), pictures

        watch(cluster, steps, size=(120, 24))
