"""A start or an end becomes an offset per queue."""

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError
from spark_connector.options.offsets import Times
from spark_connector.read.bounds import (
    Ends,
    resolve_group,
    resolve_offsets,
    resolve_stream_end,
    resolve_times,
)
from spark_connector.read.stored import Stored

A0, A1, B0 = (
    MessageQueue("T", "broker-a", 0),
    MessageQueue("T", "broker-a", 1),
    MessageQueue("T", "broker-b", 0),
)
GONE = MessageQueue("T", "broker-c", 0)
EARLIEST = {A0: 10, A1: 0, B0: 5}
LATEST = {A0: 20, A1: 0, B0: 9}
STORED = Stored(EARLIEST, LATEST)


def test_words_become_what_the_brokers_say():
    assert resolve_offsets("earliest", STORED).offsets == EARLIEST
    assert resolve_offsets("latest", STORED).offsets == LATEST


def test_minus_two_and_minus_one_become_the_queues_own_bounds():
    resolved = resolve_offsets({A0: -2, A1: 0, B0: -1}, STORED)

    assert (resolved.offsets, resolved.losses) == ({A0: 10, A1: 0, B0: 9}, ())


def test_queues_that_are_not_named_have_the_default():
    star = MessageQueue("T", "*", -1)

    assert resolve_offsets({A0: 12, star: -1}, STORED).offsets == {A0: 12, A1: 0, B0: 9}


def test_a_queue_left_out_is_refused():
    with pytest.raises(ConfigError, match="T/broker-b/0 is left out"):
        resolve_offsets({A0: 10, A1: 0}, STORED)


@pytest.mark.parametrize(
    ("spec", "offsets", "says"),
    [
        pytest.param({GONE: 1}, {}, "T/broker-c/0 does not exist among T/broker-a/0", id="no-such-queue"),
        pytest.param({GONE: -2}, {}, "T/broker-c/0 does not exist", id="earliest-of-no-queue"),
        pytest.param(
            {A0: 9},
            {A0: 10},
            "offset 9 of T/broker-a/0 is not stored: the queue holds 10 to 20",
            id="expired",
        ),
        pytest.param({A0: 21}, {A0: 20}, "offset 21 of T/broker-a/0 is not stored", id="beyond-the-end"),
    ],
)
def test_offsets_that_do_not_fit_the_queues_are_losses_with_the_nearest_offset(spec, offsets, says):
    resolved = resolve_offsets({A0: 10, A1: 0, B0: 5} | spec, STORED)

    assert resolved.offsets == {A0: 10, A1: 0, B0: 5} | offsets
    assert [says in loss.text for loss in resolved.losses] == [True]


def test_an_offset_of_a_group_that_is_not_stored_is_a_loss_and_a_missing_one_has_its_fallback():
    resolved = resolve_group({A0: 99, A1: None, B0: None}, STORED, group="g", fallback="latest")

    assert resolved.offsets == {A0: 20, A1: 0, B0: 9}
    assert [loss.text for loss in resolved.losses] == [
        "group 'g': offset 99 of T/broker-a/0 is not stored: the queue holds 10 to 20"
    ]


def test_a_queue_that_never_held_a_message_is_no_error_where_times_are_given():
    resolved = resolve_times(Times(5), {A0: 12, A1: 0, B0: 6}, STORED, refuse_none_after=True)

    assert resolved.offsets == {A0: 12, A1: 0, B0: 6}


def test_times_without_a_later_message_are_the_end_or_refused():
    found = {A0: 12, A1: 0, B0: 99}

    assert resolve_times(Times(5), found, STORED).offsets == {A0: 12, A1: 0, B0: 9}
    with pytest.raises(ConfigError, match="T/broker-b/0 has no message stored at or after 5"):
        resolve_times(Times(5), found, STORED, refuse_none_after=True)


def test_a_time_of_a_queue_that_does_not_exist_is_a_loss_as_an_offset_is():
    found = {A0: 12, A1: 0, B0: 6}
    resolved = resolve_times(Times({A0: 5, A1: 5, B0: 5, GONE: 5}), found, STORED)

    assert resolved.offsets == found
    assert ["T/broker-c/0 does not exist" in loss.text for loss in resolved.losses] == [True]


def test_a_stream_may_end_beyond_what_is_stored_and_a_queue_without_an_end_is_not_read():
    ends = resolve_stream_end({A0: 99, A1: -1, B0: -2}, STORED)

    assert ends == Ends({A0: 99, A1: 0, B0: 5}, is_final=True)
    assert resolve_stream_end("latest", STORED) == Ends(LATEST, is_final=True)
    assert resolve_stream_end("latest", Stored({}, {})) == Ends({}, is_final=False)
    with pytest.raises(ConfigError, match="T/broker-b/0 is left out"):
        resolve_stream_end({A0: 99, A1: 4}, STORED)
