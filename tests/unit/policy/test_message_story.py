"""Stories of messages, joined from facts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.model.group import Connection
from rmqtools.model.group_view import MessageTrack, TrackType
from rmqtools.model.message import MessageExt
from rmqtools.model.message_story import MessageStory
from rmqtools.model.trace import (
    ConsumeReturnType,
    EndTransactionTrace,
    PubTrace,
    SubAfterTrace,
    SubBeforeTrace,
    Trace,
    TraceMessageType,
)
from rmqtools.policy.message_story import FoundTrace, StoryFacts, join_story

MSG_ID, GROUP, NOW = "AC11000200017B23C1A74F0A2B3C0001", "billing", 1_000_000
PID = 70000 & 0xFFFF  # what an id has of it
PYTHON = Connection(client_id="10.0.0.5@411#7", client_addr="10.0.0.5:4000", language="PYTHON")
JAVA = Connection(client_id="10.0.0.6@70000#9", client_addr="10.0.0.6:5000", language="JAVA")


def stored(topic: str = "orders", at_ms: int = 10_000, **fields) -> MessageExt:
    properties = {"UNIQ_KEY": MSG_ID, "KEYS": "k"} | fields.pop("properties", {})
    given: dict[str, Any] = {
        "queue_id": 1,
        "queue_offset": 7,
        "commit_log_offset": 0,
        "body": b"",
        "flag": 0,
        "sys_flag": 0,
    }
    given |= {"born_timestamp_ms": 9_000, "born_host": "10.0.0.9:1", "store_host": "10.0.0.1:10911"}
    return MessageExt(
        topic=topic,
        properties=properties,
        store_timestamp_ms=at_ms,
        broker_name="broker-a",
        **(given | fields),
    )


def begun(request_id: str = "r1", *, at_ms: int = 11_000, times: int = 0) -> SubBeforeTrace:
    return SubBeforeTrace(
        timestamp_ms=at_ms,
        region_id="R",
        group=GROUP,
        request_id=request_id,
        msg_id=MSG_ID,
        retry_times=times,
        keys="k",
    )


def ended(request_id: str = "r1", **fields) -> SubAfterTrace:
    given: dict[str, Any] = {"cost_ms": 5, "success": True, "timestamp_ms": 11_005, "group": GROUP}
    return SubAfterTrace(request_id=request_id, msg_id=MSG_ID, keys="k", **(given | fields))


def pub() -> PubTrace:
    return PubTrace(
        timestamp_ms=9_001,
        region_id="R",
        group="shop",
        topic="orders",
        msg_id=MSG_ID,
        tags=None,
        keys="k",
        store_host="h:1",
        body_length=1,
        cost_ms=3,
        message_type=TraceMessageType.NORMAL,
        offset_msg_id="",
        success=True,
    )


def found(*records: Trace, addr: str = "10.0.0.5:4000", ip: str = "", pid: int = -1) -> list[FoundTrace]:
    return [FoundTrace(record=record, addr=addr, ip=ip, pid=pid) for record in records]


def story(**facts) -> MessageStory:
    given: dict[str, Any] = {
        "topic": "orders",
        "msg_id": MSG_ID,
        "members": {GROUP: [PYTHON, JAVA]},
        "now_ms": NOW,
    }
    return join_story(StoryFacts(**(given | facts)))


def test_a_message_that_all_record_leaves_nothing_unknown():
    told = story(copies=[stored()], traces=found(pub(), begun(), ended()))

    assert [(event.kind.value, event.group, event.client) for event in told.events] == [
        ("born", "", "10.0.0.9:1"),
        ("sent", "shop", "10.0.0.5:4000"),
        ("stored", "", ""),
        ("delivered", GROUP, PYTHON.client_id),
    ]
    assert told.events[-1].text == "success after 0.005 s"
    assert told.unknown == ()


def test_records_that_were_stored_twice_are_one_delivery():
    told = story(copies=[stored()], traces=found(pub(), pub(), begun(), begun(), ended(), ended()))

    assert (len(told.sendings), len(told.groups[0].deliveries)) == (1, 1)


@pytest.mark.parametrize(
    ("found_by", "name"),
    [
        pytest.param({"addr": "10.0.0.6:5001", "ip": "fd00::6", "pid": PID}, JAVA.client_id, id="java"),
        pytest.param({"addr": "10.0.0.7:5001", "ip": "10.0.0.6", "pid": PID}, JAVA.client_id, id="nat"),
        pytest.param({"addr": "10.0.0.6:5001", "ip": "10.0.0.6", "pid": 2}, "10.0.0.6@2", id="gone"),
        pytest.param({"addr": "10.0.0.8:1", "ip": "10.0.0.8", "pid": 411}, "10.0.0.8@411", id="elsewhere"),
        pytest.param({"addr": "10.0.0.8:1"}, "10.0.0.8:1", id="no-process"),
    ],
)
def test_a_delivery_has_the_name_of_the_one_member_that_fits(found_by, name):
    (delivery,) = story(traces=found(begun(), ended(), **found_by)).groups[0].deliveries

    assert (delivery.client.name, delivery.client.is_member) == (name, name == JAVA.client_id)


def test_of_two_members_in_one_process_none_is_named():
    twin = Connection(client_id="10.0.0.6@70000#8", client_addr="10.0.0.6:5002")
    facts = {"members": {GROUP: [JAVA, twin]}, "copies": [stored()]}
    told = story(traces=found(pub(), begun(), ended(), ip="10.0.0.6", pid=PID), **facts)

    assert not told.groups[0].deliveries[0].client.is_member
    assert told.unknown == (
        f"group {GROUP}, delivery of 10.0.0.6@4464: its client id: no connected member, or several, fit its "
        "address and process",
    )


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({}, "success"),
        ({"success": False, "return_type": ConsumeReturnType.FAILED}, "failed"),
        ({"success": False, "return_type": ConsumeReturnType.EXCEPTION}, "exception"),
        ({"success": False, "return_type": ConsumeReturnType.RETURNNULL}, "nothing returned"),
        ({"success": True, "return_type": ConsumeReturnType.TIME_OUT}, "timed out"),
        ({"success": False, "return_type": 0}, "failed"),
        ({"success": False, "return_type": 99}, "failed"),
    ],
)
def test_results_of_deliveries(fields, result):
    (delivery,) = story(traces=found(begun(), ended(**fields))).groups[0].deliveries

    assert delivery.result == result


def test_retries_have_their_delay_and_a_dead_letter_its_place():
    retry, dead = f"%RETRY%{GROUP}", f"%DLQ%{GROUP}"
    waits = {"REAL_TOPIC": retry, "DELAY": "3"}
    told = story(
        retry_topics={GROUP: [retry]},
        traces=found(pub(), begun(), ended(success=False), begun("r2", times=1), ended("r2", success=False)),
        copies=[
            stored(),
            stored("SCHEDULE_TOPIC_XXXX", 12_000, properties=waits, reconsume_times=1),
            stored(retry, 22_500, reconsume_times=1),
            stored(dead, 23_000, reconsume_times=2),
        ],
    )
    (group,) = told.groups

    assert [(one.number, one.delay_seconds) for one in group.retries] == [(1, 10.5)]
    assert [copy.topic for copy in group.dead_letters] == [dead]
    assert [event.kind.value for event in told.events][-3:] == ["sent back", "retry", "dead letter"]
    assert told.events[-3].text == "waited 10.5 s, delay level 3"
    assert told.unknown == ()


def test_deliveries_that_copies_prove_and_nobody_recorded_are_said_to_be_missing():
    retry = f"%RETRY%{GROUP}"
    told = story(
        retry_topics={GROUP: [retry]},
        traces=found(pub(), begun(times=1), ended()),
        copies=[stored(), stored(retry, reconsume_times=1), stored(retry, reconsume_times=3)],
    )

    assert told.unknown == (f"group {GROUP}, deliveries with retry number 0, 2: no trace record of a member",)


def test_a_delayed_message_waits_before_it_is_stored():
    waiting = stored("SCHEDULE_TOPIC_XXXX", properties={"REAL_TOPIC": "ns%orders", "DELAY": "2"})
    told = story(copies=[waiting], namespace="ns")

    assert [(event.kind.value, event.text) for event in told.events][-1] == (
        "waits",
        "delay level 2, broker-a:1, offset 7",
    )
    assert not any("where it is stored" in text for text in told.unknown)


def test_the_decision_of_a_transaction_is_told():
    decision = EndTransactionTrace(
        timestamp_ms=9_500,
        group="shop",
        topic="orders",
        msg_id=MSG_ID,
        state="COMMIT_MESSAGE",
        from_check=True,
    )
    (event,) = [one for one in story(traces=found(decision)).events if one.kind.value == "decided"]

    assert event.text == "COMMIT_MESSAGE, asked by a broker"


def test_what_is_missing_is_said_with_its_reason():
    track = MessageTrack(consumer_group="audit", track_type=TrackType.CONSUMED)
    silent = MessageTrack(consumer_group="slow", track_type=TrackType.UNKNOWN, error="no answer")
    told = story(
        tracks=[track, silent],
        traces=found(begun("r1"), ended("r2")),
        copies=[stored(), stored(queue_id=2)],
        gaps=["x: broken"],
        now_ms=12_000,
    )

    assert [text.partition(":")[0] for text in told.unknown] == [
        "x",
        "which of its 2 copies a delivery was",
        "the send, its duration and attempts",
        "group audit, who got it, when, with which result",
        f"group {GROUP}, delivery of {PYTHON.client_id}",
        f"group {GROUP}, delivery of {PYTHON.client_id}",
        "group slow, its offset",
        "the last seconds",
    ]
    assert told.unknown[2].endswith(": no trace record of its producer (enable_trace)")


def test_a_message_that_no_broker_has_is_told_from_its_records_alone():
    told = story(traces=found(pub(), begun(), ended()))

    assert (told.keys, told.stored, told.born_ms) == ("k", (), None)
    assert told.unknown == ("where it is stored: no broker has it in topic orders, or no longer",)


@given(st.lists(st.sampled_from([pub(), begun(), ended(), begun("r2", times=1), ended("r2"), ended("r3")])))
def test_no_delivery_is_lost_or_invented_whatever_the_order_of_records(records):
    told = story(traces=found(*records))

    ids = {record.request_id for record in records if not isinstance(record, PubTrace)}
    assert sorted(one.request_id for group in told.groups for one in group.deliveries) == sorted(ids)


def test_events_of_one_millisecond_are_in_the_order_of_the_attempts():
    at = 11_000
    retry = stored(f"%RETRY%{GROUP}", at, reconsume_times=1)
    records = found(pub(), begun("r2", at_ms=at, times=1), begun("r1", at_ms=at))

    told = story(copies=[stored(at_ms=at), retry], traces=records, retry_topics={GROUP: [f"%RETRY%{GROUP}"]})

    kinds = [event.kind.value for event in told.events if event.at_ms == at]
    assert kinds == ["stored", "delivered", "retry", "delivered"]
