"""Offsets that are gone are named, with the option that lets a query go on."""

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import DataLossError
from spark_connector.data_loss import find_losses, refuse_losses

A, B = MessageQueue("T", "a", 0), MessageQueue("T", "b", 1)


def test_what_is_stored_is_no_loss():
    assert find_losses({A: 0, B: 9}, {A: 0, B: 9}, {A: 0, B: 9}) == []


@pytest.mark.parametrize(
    ("next_offset", "stored", "says", "go_on_at"),
    [
        pytest.param(3, (5, 9), r"offsets \[3, 5\) of T/a/0 have expired", 5, id="expired"),
        pytest.param(12, (5, 9), "T/a/0 ends at 9, before offset 12 that is next", 9, id="shrunk"),
        pytest.param(12, None, r"T/a/0 is gone .*: offsets from 12 on cannot be read", None, id="gone"),
    ],
)
def test_a_loss_says_which_offsets_and_where_reading_can_go_on(next_offset, stored, says, go_on_at):
    earliest, latest = ({A: stored[0]}, {A: stored[1]}) if stored else ({}, {})

    (loss,) = find_losses({A: next_offset}, earliest, latest)

    assert (loss.queue, loss.go_on_at) == (A, go_on_at)
    with pytest.raises(DataLossError, match=says + ".*'failOnDataLoss' to false"):
        refuse_losses([loss])


def test_all_losses_are_told_at_once():
    losses = find_losses({B: 7, A: 1}, {A: 2}, {A: 2})

    assert [loss.queue for loss in losses] == [A, B]
    with pytest.raises(DataLossError, match=r"T/a/0.*; T/b/1"):
        refuse_losses(losses)
