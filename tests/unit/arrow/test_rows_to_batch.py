"""Batches of messages that were decoded one by one."""

import pytest

from rmqtools import MessageQueue
from rmqtools.arrow.rows_to_batch import rows_to_batch
from rmqtools.testing import stored_message

QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.mark.parametrize("bodies", [[b""], [b"one"], [b"", b"a" * 70_000, b"\0"], []])
def test_bodies_of_every_length_are_in_their_rows(bodies):
    batch = rows_to_batch([stored_message("T", body=body) for body in bodies], QUEUE)

    batch.validate(full=True)
    assert batch.column("body").to_pylist() == bodies


def test_the_only_body_of_a_batch_is_not_copied():
    message = stored_message("T", body=b"x" * 1_000_000)

    one, other = (rows_to_batch([message], QUEUE).column("body").buffers()[2] for _ in range(2))

    assert one.address == other.address
