"""Trace records as texts."""

from dataclasses import replace

from rmqtools.protocol.messages.trace import PubTrace, TraceMessageType, format_pub, trace_keys
from tests.support.trace_records import parse_pubs

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


def test_records_are_read_back_and_those_of_consumers_passed_over():
    other = replace(TRACE, tags=None, keys=None, success=False)
    text = format_pub(TRACE) + "SubAfter\x01id\x01msg\x011\x01true\x01k\x010\x02" + format_pub(other)

    assert parse_pubs(text) == [TRACE, other]


def test_a_trace_message_is_found_by_each_id_and_key_once():
    assert trace_keys([TRACE, replace(TRACE, msg_id="B", keys=None)]) == ["C0A80A015E0D0D16", "k1", "k2", "B"]
