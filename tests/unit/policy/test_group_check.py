import re
from dataclasses import replace
from typing import Any

import pytest

from rmqtools.allocate import NO_PINS, Pins
from rmqtools.model.group_view import (
    BrokerSubscription,
    DeadLetters,
    Finding,
    FindingKind,
    GroupLimits,
    GroupMember,
    GroupView,
    ProxiedMember,
    QueueProgress,
    UnreadableQueues,
    WaitingQueue,
)
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import ConsumeStatus, ProcessQueueInfo
from rmqtools.policy.group_check import SETTLE_SECONDS, Settling, check_group, pin_obstacles

QUEUES = [MessageQueue("T", broker_name, queue_id) for broker_name in "ab" for queue_id in (0, 1)]
RETRY = MessageQueue("%RETRY%g", "a", 0)
ALL_OF_T = frozenset({("T", "*", "TAG")})
JAVA, PYTHON = {"language": "JAVA"}, {"language": "PYTHON", "version": "V5_5_0", "rmqtools_version": None}


def member(number: int, *queues: MessageQueue, **known: Any) -> GroupMember:
    client_id = f"10.0.0.{number}@1"
    values: dict[str, Any] = {"strategy": "AVG", "subscriptions": ALL_OF_T, "orderly": False} | known
    return GroupMember(client_id=client_id, queues=queues, **values)


def group(*members: GroupMember, **known: Any) -> GroupView:
    progress = {queue: QueueProgress(max_offset=9, consumer_offset=4) for queue in [*QUEUES, RETRY]}
    values: dict[str, Any] = {"message_model": "CLUSTERING", "progress": progress} | known
    return GroupView(group="g", members=members, **values)


def kinds(view: GroupView, pins: Pins = NO_PINS) -> list[str]:
    return [finding.kind for finding in check_group(view, pins)]


HEALTHY = group(member(1, *QUEUES[:2], RETRY), member(2, *QUEUES[2:]))


def test_a_group_whose_queues_have_one_owner_each_is_fine():
    assert check_group(HEALTHY) == []


def test_a_group_without_members_is_one_finding():
    assert kinds(group()) == ["no_members"]


def test_a_queue_that_nobody_owns_is_named_but_not_one_of_the_retry_topic():
    (finding,) = check_group(group(member(1, *QUEUES[1:])))

    assert (finding.kind, finding.text) == (FindingKind.QUEUE_UNOWNED, "queue T a:0 is owned by nobody")


def test_a_queue_of_a_topic_that_nobody_subscribes_to_any_more_needs_no_owner():
    old = {MessageQueue("old", "a", 0): QueueProgress(max_offset=1, consumer_offset=1)}

    assert check_group(replace(HEALTHY, progress={**HEALTHY.progress, **old})) == []


def test_a_queue_of_two_members_is_named_with_both():
    (finding,) = check_group(group(member(1, *QUEUES[:3]), member(2, *QUEUES[2:])))

    assert finding.kind == FindingKind.QUEUE_OWNED_TWICE
    assert finding.text == "queue T b:0 is owned by 2 members: 10.0.0.1@1, 10.0.0.2@1"


def test_everybody_owns_everything_in_broadcasting_and_nobody_is_to_blame():
    view = group(member(1, *QUEUES), member(2, *QUEUES), message_model="BROADCASTING")

    assert check_group(view) == []


def test_queues_that_are_popped_may_be_shared():
    members = [member(number, *QUEUES, pops=tuple(QUEUES)) for number in (1, 2)]

    assert check_group(group(*members)) == []


def test_a_member_with_nothing_but_the_retry_queue_is_idle():
    assert kinds(group(member(1, *QUEUES), member(2, RETRY))) == ["member_idle"]


def test_members_that_are_idle_because_others_are_pinned_are_not_found():
    pinned = member(1, *QUEUES, strategy="PINS", pin_version=3)
    others = member(2, strategy="PINS", pin_version=3)

    assert kinds(group(pinned, others), Pins(3, ["10.0.0.1"])) == []
    assert kinds(group(pinned, others), Pins(3)) == ["member_idle"]


@pytest.mark.parametrize(
    ("found", "one", "two"),
    [
        (["subscriptions_differ"], {}, {"subscriptions": frozenset({("T", "a || b", "TAG")})}),
        (["strategies_differ"], {}, {"strategy": "CONSISTENT_HASH"}),
        pytest.param([], {}, {"strategy": None}, id="a-strategy-that-is-not-told"),
        (["modes_differ"], {}, {"orderly": True}),
        (["name_servers_differ"], {"name_server": "a:1"}, {"name_server": "b:1"}),
        (["versions_differ"], JAVA | {"version": "V4_9_7"}, JAVA | {"version": "V5_5_0"}),
        (["versions_differ"], PYTHON, PYTHON | {"rmqtools_version": "0.3.0"}),
    ],
)
def test_members_that_differ_are_found(found, one, two):
    assert kinds(group(member(1, *QUEUES[:2], **one), member(2, *QUEUES[2:], **two))) == found


def test_while_a_member_is_silent_nothing_is_said_about_owners():
    silent = GroupMember(client_id="10.0.0.2@1", error="no answer")

    assert kinds(group(member(1, *QUEUES[:2]), silent)) == ["member_silent"]


def test_a_topic_without_route_is_found():
    assert kinds(replace(HEALTHY, missing_topics=("U",))) == ["topic_missing"]


def test_a_pinned_ip_that_nobody_has_is_found_and_members_with_other_pins():
    view = group(member(1, *QUEUES, strategy="PINS", pin_version=2))

    assert kinds(view, Pins(3, ["10.0.0.1", "10.9.9.9"])) == ["pins_differ", "pinned_ip_absent"]


PINNABLE = group(member(6, *QUEUES, strategy="PINS"), member(7, strategy="PINS"))


def test_nothing_speaks_against_pinning_members_that_share_by_pins():
    assert pin_obstacles(PINNABLE, ["10.0.0.6", "10.0.0.0/28"]) == []


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (PINNABLE, "no live member has ip 10.1.1.1; members: 10.0.0.6@1, 10.0.0.7@1"),
        (group(), "no live member has ip 10.1.1.1; members: there are no members at all"),
    ],
)
def test_an_ip_that_no_member_has_is_refused_with_the_members_there_are(view, words):
    assert pin_obstacles(view, ["10.1.1.1"]) == [words]


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (replace(PINNABLE, message_model="BROADCASTING"), "broadcasting"),
        (replace(PINNABLE, consume_type="CONSUME_POP"), "pop"),
        (group(member(6, strategy="PINS", pops=tuple(QUEUES))), r"members pop \(10.0.0.6@1\)"),
        (group(member(6, strategy="AVG")), "does not share by PINS: its strategy is AVG"),
        (group(member(6, strategy=None, language="JAVA")), "@1, JAVA does not share by PINS: .* unknown"),
        (group(GroupMember(client_id="10.0.0.6@1", error="no answer")), "does not share by PINS: no answer"),
    ],
)
def test_groups_that_pins_do_not_move_are_refused(view, words):
    (obstacle,) = pin_obstacles(view, ["10.0.0.6"])

    assert re.search(words, obstacle)


# Stuck, failing and doubled members

NOW = 1_700_000_100_000
FRESH, OLD = NOW - 1_000, NOW - 75_000


def state(*, cached: int = 0, consumed: int = FRESH, pulled: int = FRESH) -> ProcessQueueInfo:
    return ProcessQueueInfo(
        cached_msg_count=cached, last_consume_timestamp=consumed, last_pull_timestamp=pulled
    )


def alone(**known: object) -> GroupView:
    return group(member(1, *QUEUES, **known), now_ms=NOW)


@pytest.mark.parametrize(
    ("known", "kind", "text"),
    [
        ({"longest_call": 61.0}, "listener_slow", "runs for 61 s"),
        ({"states": {QUEUES[0]: state(cached=3, consumed=OLD)}}, "queue_blocked", "consumed none for 75 s"),
        (
            {"states": {queue: state(cached=3, consumed=OLD) for queue in QUEUES}},
            "queue_blocked",
            "has 12 fetched messages of 4 queues (T a:0, T a:1, T b:0, T b:1)",
        ),
        (
            {
                "waiting": (WaitingQueue(queue=QUEUES[0], queue_offset=7, times=2),),
                "last_error": "KeyError('x')",
            },
            "queue_blocked",
            "waits for offset 7, which failed 2 times at member 10.0.0.1@1: KeyError('x')",
        ),
        (
            {"waiting": tuple(WaitingQueue(queue=queue, queue_offset=7, times=2) for queue in QUEUES[:3])},
            "queue_blocked",
            "2 queues (T a:1, T b:0) wait in the same way",
        ),
        ({"states": {QUEUES[0]: state(pulled=OLD)}}, "queue_not_fetched", "not fetched for 75 s, 5 messages"),
        (
            {"states": {queue: state(pulled=OLD) for queue in QUEUES}},
            "queue_not_fetched",
            "has not fetched for 75 s, 20 messages behind",
        ),
        (
            {
                "rates": {"T": ConsumeStatus(consume_failed_tps=0.5, consume_failed_msgs=30)},
                "last_error": "boom",
            },
            "member_fails",
            "fails for 0.50 messages/s of topic T, 30 in the last hour: boom",
        ),
        (
            {"rates": {topic: ConsumeStatus(consume_failed_tps=0.5) for topic in "TU"}},
            "member_fails",
            "0.50 messages/s of topic T, 0 in the last hour; 0.50 messages/s of topic U",
        ),
    ],
    ids=[
        *("listener", "none-consumed", "none-consumed-of-many", "poison", "poison-in-many"),
        *("no-fetch", "no-fetch-of-many", "failures", "failures-of-topics"),
    ],
)
def test_a_member_that_is_stuck_or_fails_is_one_finding_however_many_queues_it_concerns(known, kind, text):
    (finding,) = check_group(alone(**known))

    assert (finding.kind, finding.subject) == (kind, "10.0.0.1@1")
    assert text in finding.text


@pytest.mark.parametrize(
    "known",
    [
        {"longest_call": 59.0},
        {"states": {QUEUES[0]: state(cached=3)}},
        {"states": {QUEUES[0]: state(consumed=OLD)}},
        {"states": {QUEUES[0]: state(pulled=OLD)}},
        {"rates": {"T": ConsumeStatus(consume_failed_msgs=30)}},
    ],
    ids=["short-call", "consumes", "nothing-to-consume", "nothing-to-fetch", "failed-long-ago"],
)
def test_a_member_that_works_is_not_found(known):
    at_end = {queue: QueueProgress(max_offset=4, consumer_offset=4) for queue in [*QUEUES, RETRY]}

    assert check_group(replace(alone(**known), progress=at_end)) == []


def test_the_limits_are_the_callers():
    assert check_group(alone(longest_call=61.0), limits=GroupLimits(listener=62)) == []
    assert kinds(alone(longest_call=6.0), NO_PINS) == []
    assert [one.kind for one in check_group(alone(longest_call=6.0), limits=GroupLimits(listener=5))] == [
        "listener_slow"
    ]


def test_a_client_id_that_every_broker_lists_twice_is_shared_and_owners_are_not_judged():
    entries = dict.fromkeys("ab", ("10.0.0.1:5", "10.0.0.9:6"))
    (finding,) = check_group(group(member(1, *QUEUES[:1], entries=entries)))

    assert finding.kind == "client_id_shared"
    assert "10.0.0.9:6" in finding.text
    assert "give each process its own instance_name" in finding.text


def test_a_member_that_one_broker_of_two_lists_again_is_told_apart():
    well = member(1, *QUEUES[:1], entries=dict.fromkeys("ab", ("10.0.0.2:5",)))
    again = member(2, *QUEUES[1:], entries={"a": ("10.0.0.1:5", "10.0.0.1:6"), "b": ("10.0.0.1:7",)})

    assert kinds(group(well, again)) == ["member_listed_again"]


def test_a_broadcasting_member_of_a_clustering_group_is_found_and_takes_no_queue_from_the_others():
    view = group(
        member(1, *QUEUES, message_model="CLUSTERING"), member(2, *QUEUES, message_model="BROADCASTING")
    )
    (finding,) = check_group(view)

    assert finding.kind == "models_differ"
    assert "give it a group of its own" in finding.text


PROXIED = (ProxiedMember(client_id="10.0.0.9@1", proxy="10.0.0.5:8080"),)


def test_members_through_a_proxy_are_found_beside_direct_ones():
    (finding,) = check_group(replace(HEALTHY, proxied=PROXIED))

    assert finding.kind == "members_proxied"
    assert "10.0.0.9@1 (proxy 10.0.0.5:8080); and directly: 10.0.0.1@1, 10.0.0.2@1" in finding.text
    assert kinds(replace(HEALTHY, proxied=PROXIED, message_model="BROADCASTING")) == []


def test_a_group_with_members_through_a_proxy_only_has_members_that_nobody_can_ask():
    assert kinds(replace(group(), proxied=PROXIED)) == ["member_silent"]


def test_messages_that_nobody_can_read_are_found_with_their_number_also_without_members():
    hidden = (
        UnreadableQueues(topic="T", broker_name="a", readable=2, written=8, messages=60),
        UnreadableQueues(topic="%RETRY%g", broker_name="a", readable=1, written=4),
    )
    found = check_group(replace(HEALTHY, unreadable=hidden))

    assert [one.kind for one in found] == ["queues_unreadable", "retry_queues_unreadable"]
    assert (
        "2 queues to read and 8 to write on a: nobody can read the others (messages in them: 60)"
        in found[0].text
    )
    assert "messages in them: unknown" in found[1].text
    assert kinds(group(unreadable=hidden)) == ["queues_unreadable", "retry_queues_unreadable", "no_members"]


def test_a_topic_without_permission_to_read_is_found_with_the_command_that_gives_it():
    hidden = UnreadableQueues(topic="T", broker_name="a", readable=0, written=2, messages=60)
    (finding,) = check_group(replace(HEALTHY, unreadable=(hidden,)))

    assert (finding.kind, finding.text) == (
        "queues_unreadable",
        "topic T may not be read on a: nobody gets the messages of its 2 queues (messages in them: 60): "
        "allow it: rmqtools topic alter T --perm rw",
    )


def test_an_offset_beyond_the_end_of_a_queue_is_found():
    progress = dict(HEALTHY.progress) | {QUEUES[0]: QueueProgress(max_offset=9, consumer_offset=10)}

    assert kinds(replace(HEALTHY, progress=progress)) == ["offset_beyond_end"]


def test_the_lag_of_a_queue_without_a_commit_is_all_that_is_stored():
    assert QueueProgress(max_offset=9, consumer_offset=4).lag == 5
    assert QueueProgress(max_offset=9, consumer_offset=None, min_offset=2).lag == 7


def test_a_group_that_is_further_behind_than_allowed_is_found_with_its_worst_queue():
    view = group(member(1, *QUEUES, RETRY))
    lag = sum(each.lag for each in view.progress.values())

    allowed, found = (check_group(view, NO_PINS, GroupLimits(max_lag=limit)) for limit in (lag, lag - 1))

    assert allowed == []
    assert [one.kind for one in found] == [FindingKind.LAG_LARGE]
    assert f"group 'g' is {lag} messages behind, more than {lag - 1}: queue T " in found[0].text


def test_an_old_message_is_found_also_in_a_group_without_members():
    progress = {QUEUES[0]: QueueProgress(max_offset=9, consumer_offset=4, oldest_ms=40_000)}
    view = group(progress=progress, now_ms=100_000)

    allowed, found = (check_group(view, NO_PINS, GroupLimits(max_age=limit)) for limit in (60, 59))

    assert [one.kind for one in allowed] == [FindingKind.NO_MEMBERS]
    assert [one.kind for one in found] == [FindingKind.MESSAGES_OLD, FindingKind.NO_MEMBERS]
    assert "has not consumed is 60 s old, more than 59 s: queue T" in found[0].text


@pytest.mark.parametrize(
    ("dead", "found"),
    [
        (DeadLetters(count=3, newest_ms=995_000), True),
        (DeadLetters(count=3, newest_ms=1_003_000), True),  # the broker's clock is ahead
        (DeadLetters(count=3, newest_ms=400_000), False),
        (DeadLetters(count=0, newest_ms=995_000), False),
        (DeadLetters(), False),
    ],
)
def test_dead_letters_are_found_while_they_are_new(dead, found):
    view = group(member(1, *QUEUES, RETRY), dead_letters=dead, now_ms=1_000_000)

    assert (FindingKind.DEAD_LETTERS in kinds(view)) == found


def test_a_finding_about_one_member_has_its_client_id():
    view = group(member(1, *QUEUES, RETRY, longest_call=61.0), member(2, error="no answer"))

    assert {one.subject for one in check_group(view)} == {"10.0.0.1@1", "10.0.0.2@1"}


def ignoring(kept: tuple[str, str, str], *, version: int, member_version: int = 5_000) -> GroupView:
    """A healthy group, and a broker that filters by another subscription."""
    members = tuple(replace(one, sub_versions={"T": member_version}) for one in HEALTHY.members)
    broker = BrokerSubscription(broker_name="a", subscription=kept, sub_version=version)
    return replace(HEALTHY, members=members, broker_subscriptions=(broker,))


def test_a_broker_that_keeps_an_older_subscription_because_a_clock_was_set_back_is_found():
    (finding,) = check_group(ignoring(("T", "a > 5", "SQL92"), version=65_000))

    assert finding.kind == FindingKind.SUBSCRIPTION_IGNORED
    assert finding.text.startswith(
        "broker a filters topic 'T' by 'a > 5' and ignores '*' of the members, which"
    )
    assert "is 60 s older by their clocks: a clock was set back: correct it" in finding.text


def test_a_broker_that_has_not_heard_of_the_newest_subscription_yet_is_not_found():
    assert check_group(ignoring(("T", "a > 5", "SQL92"), version=4_000)) == []


def test_a_broker_with_the_members_subscription_is_not_found():
    same = next(iter(HEALTHY.members[0].subscriptions))

    assert check_group(ignoring(same, version=65_000)) == []


# One finding a cause


def test_a_listener_that_does_not_return_is_one_finding_with_the_queues_that_wait():
    waiting = {queue: state(cached=3, consumed=OLD) for queue in QUEUES}
    (finding,) = check_group(alone(longest_call=75.0, states=waiting))

    assert (finding.kind, finding.queues) == (FindingKind.LISTENER_SLOW, tuple(QUEUES))
    assert (
        "runs for 75 s, and 12 fetched messages of 4 queues (T a:0, T a:1, T b:0, T b:1) wait" in finding.text
    )


def test_many_queues_without_an_owner_are_one_finding_that_names_the_first():
    queues = [MessageQueue("T", "a", number) for number in range(20)]
    progress = {queue: QueueProgress(max_offset=0, consumer_offset=0) for queue in queues}
    (finding,) = check_group(group(member(1, queues[0]), progress=progress))

    assert finding.queues == tuple(queues[1:])
    assert finding.text.startswith("19 queues (T a:1, T a:2, ")
    assert finding.text.endswith(" and 11 more) are owned by nobody")


def test_offsets_beyond_the_ends_of_a_topic_are_one_finding():
    progress = {queue: QueueProgress(max_offset=3, consumer_offset=9) for queue in QUEUES}
    (finding,) = check_group(group(member(1, *QUEUES), progress=progress))

    assert finding.queues == tuple(QUEUES)
    assert "offset 9 of queue T a:0 is beyond its end 3; the same of 3 queues (T a:1, " in finding.text


# Findings that half of a rebalance makes: they count once they have lasted

UNOWNED = Finding(FindingKind.QUEUE_UNOWNED, "nobody owns it", queues=tuple(QUEUES[:1]))
OTHER = Finding(FindingKind.QUEUE_UNOWNED, "nobody owns it", queues=tuple(QUEUES[1:]))
FAILS = Finding(FindingKind.MEMBER_FAILS, "it fails", "10.0.0.1@one")


def test_what_is_no_part_of_a_rebalance_counts_at_once():
    assert Settling().lasting("g", [FAILS], now=0.0) == ((FAILS,), 0.0)


def test_a_queue_without_an_owner_counts_once_it_has_lasted():
    settling = Settling()

    assert settling.lasting("g", [UNOWNED, FAILS], now=0.0) == ((FAILS,), SETTLE_SECONDS)
    assert settling.lasting("g", [UNOWNED], now=1.0) == ((), SETTLE_SECONDS - 1.0)
    assert settling.lasting("g", [UNOWNED], now=SETTLE_SECONDS) == ((UNOWNED,), 0.0)


def test_other_queues_other_groups_and_a_gap_begin_anew():
    settling = Settling()
    settling.lasting("g", [UNOWNED], now=0.0)

    assert settling.lasting("other", [UNOWNED], now=9.0) == ((), SETTLE_SECONDS)
    assert settling.lasting("g", [OTHER], now=9.0) == ((), SETTLE_SECONDS)
    assert settling.lasting("g", [UNOWNED], now=99.0) == ((), SETTLE_SECONDS)
