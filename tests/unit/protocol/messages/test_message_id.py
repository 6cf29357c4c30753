import os
import time
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.protocol.messages.message_id import (
    UniqueIdGenerator,
    month_bounds_ms,
    parse_id_process,
    parse_offset_msg_id,
)
from tests.unit.protocol.messages.unique_ids import UniqueId, parse_unique_id


@pytest.fixture(params=["UTC", "Asia/Kathmandu", "America/New_York"])
def time_zone(request, monkeypatch):
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def local_ms(*moment):
    return int(datetime(*moment).timestamp() * 1000)


@given(text=st.text("0123456789abcdefABCDEFGxyz \u0661", max_size=60))
def test_any_text_gives_an_id_or_a_protocol_error(text):
    try:
        parse_offset_msg_id(text)
    except ProtocolError:
        return
    assert len(text) in (32, 56)


@pytest.mark.parametrize("text", ["G" * 32, "7F " * 16, "7F" * 15, "7F" * 20, ""])
def test_what_is_not_32_or_56_hex_digits_is_refused(text):
    with pytest.raises(ProtocolError, match="hex digits"):
        parse_offset_msg_id(text)


def test_generated_ids_say_who_made_them_and_when(time_zone):
    ids = UniqueIdGenerator("10.0.0.1", 70000, 0x12345678)

    made = parse_unique_id(ids.next(local_ms(2025, 3, 2, 0, 0, 1)))

    assert made == UniqueId("10.0.0.1", 70000 & 0xFFFF, 0x12345678, 86_401_000, 0)


def test_ids_of_one_moment_differ_until_the_counter_wraps():
    ids = UniqueIdGenerator("::1", 1, 2)
    now = local_ms(2025, 3, 2)

    made = [ids.next(now) for _ in range(0x1_0000)]

    assert len(set(made)) == 0x1_0000
    assert ids.next(now) == made[0]


def test_a_new_month_starts_at_zero_again():
    ids = UniqueIdGenerator("10.0.0.1", 1, 2)
    ids.next(local_ms(2025, 12, 31, 23, 59, 59))

    assert parse_unique_id(ids.next(local_ms(2026, 1, 1))).millis_since_month_start == 0


def test_a_clock_that_steps_back_over_the_month_does_no_harm():
    ids = UniqueIdGenerator("10.0.0.1", 1, 2)
    ids.next(local_ms(2025, 4, 1))

    assert parse_unique_id(ids.next(local_ms(2025, 3, 31, 23, 59, 59))).millis_since_month_start > 0


@pytest.mark.parametrize("month", [1, 2, 3, 10, 11, 12])
def test_a_month_begins_and_ends_in_local_time(time_zone, month):
    start, following = local_ms(2025, month, 1), local_ms(2025 + month // 12, month % 12 + 1, 1)

    assert month_bounds_ms(start) == month_bounds_ms(following - 1) == (start, following)
    assert os.environ["TZ"] == time_zone


@given(st.ip_addresses().map(str), st.integers(0, 2**32), st.integers(0, 2**40))
def test_a_unique_id_tells_the_address_and_sixteen_bits_of_the_process(ip, pid, now_ms):
    assert parse_id_process(UniqueIdGenerator(ip, pid, 7).next(now_ms)) == (ip, pid & 0xFFFF)


@pytest.mark.parametrize("text", ["", "AB", "x" * 32, "AB" * 15, "AB" * 17, " " + "AB" * 16])
def test_what_is_no_unique_id_has_no_process(text):
    assert parse_id_process(text) is None
