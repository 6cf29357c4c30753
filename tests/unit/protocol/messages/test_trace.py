"""Trace records as texts."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.model.trace import (
    ConsumeReturnType,
    EndTransactionTrace,
    PubTrace,
    SubAfterTrace,
    SubBeforeTrace,
    TraceMessageType,
)
from rmqtools.protocol.messages.trace import (
    format_pub,
    format_sub_after,
    format_sub_before,
    parse_traces,
    trace_keys,
)

TRACE = PubTrace(
    timestamp_ms=1625848452706,
    region_id="DefaultRegion",
    group="PID",
    topic="topic-test",
    msg_id="C0A80A015E0D0D16",
    tags="tag",
    keys="k1 k2",
    store_host="127.0.0.1:10911",
    body_length=26,
    cost_ms=245,
    message_type=TraceMessageType.DELAY,
    offset_msg_id="0A9A002600002A9F",
    success=True,
)


def test_a_record_has_upstreams_fields_in_upstreams_order():
    assert format_pub(TRACE) == (
        "Pub\x011625848452706\x01DefaultRegion\x01PID\x01topic-test\x01C0A80A015E0D0D16\x01tag\x01k1 k2"
        "\x01127.0.0.1:10911\x0126\x01245\x013\x010A9A002600002A9F\x01true\x02"
    )


BEFORE = SubBeforeTrace(
    timestamp_ms=1625848452706,
    region_id="DefaultRegion",
    group="GID",
    request_id="7F000001AB",
    msg_id="C0A80A015E0D0D16",
    retry_times=2,
    keys="k1 k2",
)
AFTER = SubAfterTrace(
    request_id="7F000001AB",
    msg_id="C0A80A015E0D0D16",
    cost_ms=7,
    success=False,
    keys=None,
    return_type=ConsumeReturnType.FAILED,
    timestamp_ms=1625848452713,
    group="GID",
)


def test_records_of_consumers_have_upstreams_fields_in_upstreams_order():
    assert format_sub_before(BEFORE) == (
        "SubBefore\x011625848452706\x01DefaultRegion\x01GID\x017F000001AB\x01C0A80A015E0D0D16"
        "\x012\x01k1 k2\x02"
    )
    assert format_sub_after(AFTER) == (
        "SubAfter\x017F000001AB\x01C0A80A015E0D0D16\x017\x01false\x01null\x014\x011625848452713\x01GID\x02"
    )


def test_records_are_read_back_and_those_of_unknown_kinds_left_out():
    other = replace(TRACE, tags=None, keys=None, success=False)
    batched = replace(BEFORE, region_id=None)
    text = format_pub(TRACE) + "Recall\x011\x02" + format_sub_before(batched) + format_sub_after(AFTER)

    assert parse_traces((text + format_pub(other)).encode()) == [TRACE, batched, AFTER, other]


def test_records_of_older_clients_lack_what_those_did_not_write():
    text = format_pub(replace(TRACE, offset_msg_id="")).replace("\x01\x01true", "\x01true")
    text += "SubAfter\x01id\x01msg\x011\x01true\x01k\x02"

    assert parse_traces(text.encode()) == [
        replace(TRACE, offset_msg_id=""),
        SubAfterTrace(request_id="id", msg_id="msg", cost_ms=1, success=True, keys="k"),
    ]


def test_the_decision_of_a_transaction_is_read():
    fields = "EndTransaction 5 R g T msg null null h:1 1 tx COMMIT_MESSAGE true"
    text = fields.replace(" ", "\x01") + "\x02"

    assert parse_traces(text.encode()) == [
        EndTransactionTrace(
            timestamp_ms=5, group="g", topic="T", msg_id="msg", state="COMMIT_MESSAGE", from_check=True
        )
    ]


@pytest.mark.parametrize("body", [b"Pub\x01x\x02", b"SubAfter\x01id\x02", b"\xff", b"SubBefore\x01" * 8])
def test_a_record_that_cannot_be_read_is_an_error(body):
    with pytest.raises(ProtocolError, match="trace"):
        parse_traces(body)


@given(st.binary() | st.text("PubSAfter\x01\x021").map(str.encode))
def test_any_bytes_give_records_or_one_kind_of_error(body):
    with suppress(ProtocolError):
        parse_traces(body)


def test_a_trace_message_is_found_by_each_id_and_key_once():
    assert trace_keys([TRACE, replace(TRACE, msg_id="B", keys=None)]) == ["C0A80A015E0D0D16", "k1", "k2", "B"]
